"""What the experiments on tables share: one density fitted on rows and judged by given validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from anygiven import TabularDensity
from anygiven.variables import read_table
from anygiven.variables.rows import Data


def frame_of(data: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(data, columns=pd.Index([f"x{i + 1}" for i in range(data.shape[1])]))


def fit_with_valid(density: TabularDensity, train: np.ndarray, valid: np.ndarray) -> dict:
    """Fit, judged by these validation rows, by processor time; what it tells of itself."""
    density.training = {**(density.training or {}), "processor_time": True}
    report = density.fit(frame_of(train), valid=frame_of(valid)).report_
    return {name: report[name] for name in ("steps", "training_seconds", "parameters", "curve")}


def cells(density: TabularDensity, data: np.ndarray) -> Data:
    encoded, present = density.schema_.encode(read_table(frame_of(data)))
    return Data(torch.from_numpy(encoded), torch.from_numpy(present))


def mean_and_error(log_p: Any) -> dict:
    log_p = np.asarray(log_p, dtype=float)
    return {"nats": float(log_p.mean()), "standard_error": float(log_p.std() / np.sqrt(len(log_p)))}
