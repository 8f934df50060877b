"""A real table that ships with scikit-learn: 442 diabetes patients, in their own units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def diabetes_patients() -> pd.DataFrame:
    """Age, sex, body mass index, blood pressure, six blood values, and the disease's progress after a year."""
    from sklearn.datasets import load_diabetes

    data: Any = load_diabetes(scaled=False)
    frame = pd.DataFrame(data["data"], columns=pd.Index(
        ["age", "sex", "bmi", "pressure", "cholesterol", "ldl", "hdl", "cholesterol_ratio", "triglycerides", "glucose"]
    ))  # fmt: skip
    frame["age"] = frame["age"].astype(int)
    frame["sex"] = np.where(frame["sex"] == 1, "a", "b")  # the source does not say which is which
    frame["glucose"] = frame["glucose"].astype(int)
    frame["progression"] = data["target"].astype(int)
    return frame


def hide_cells(frame: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """A copy with a share of the cells made gaps, completely at random."""
    rng = np.random.default_rng(seed)
    hidden = frame.astype({name: float for name in frame.columns if frame[name].dtype.kind == "i"})
    return hidden.mask(rng.random(frame.shape) < share)
