"""Small fitted models shared by the tests; nothing here trains for more than a few seconds."""

import numpy as np
import pandas as pd
import pytest
import torch

from anygiven import TabularDensity

torch.set_num_threads(1)


def mixed_table(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Every kind of column, with gaps and dependence."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "weight": 70 + 10 * size + rng.normal(size=n),
            "visits": rng.poisson(np.exp(0.5 * size)),
            "smoker": rng.random(n) < 0.3,
            "city": rng.choice(["Oslo", "New York", "Lima"], n, p=[0.5, 0.3, 0.2]),
            "grade": pd.Categorical(
                np.where(size > 0.7, "high", np.where(size > -0.7, "mid", "low")), ["low", "mid", "high"], ordered=True
            ),
            "spent": np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(size, 1)),
            "born": pd.Timestamp("1980-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D"),
        }
    )
    frame["weight"] = frame["weight"].mask(rng.random(n) < 0.1)
    frame["city"] = frame["city"].mask(rng.random(n) < 0.1)
    frame["born"] = frame["born"].mask(rng.random(n) < 0.1)
    return frame


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    return mixed_table()


@pytest.fixture(scope="session")
def density(table) -> TabularDensity:
    return TabularDensity(max_steps=300, verbose=False).fit(table)


@pytest.fixture(scope="session")
def model_folder(density, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "mixed.model"
    density.save(path)
    return path
