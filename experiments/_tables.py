"""What the experiments on tables share: one density fitted on rows and judged by given validation rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import torch

from anygiven import TabularDensity
from anygiven.estimators.fitting import Recipe, fit_models
from anygiven.estimators.options import settings_with
from anygiven.estimators.workload import table_workload
from anygiven.variables import read_table, schema_of
from anygiven.variables.rows import Data


def frame_of(data: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(data, columns=pd.Index([f"x{i + 1}" for i in range(data.shape[1])]))


def fit_with_valid(density: TabularDensity, train: np.ndarray, valid: np.ndarray, schema: dict | None = None) -> dict:
    """Fit as TabularDensity does, but with these validation rows instead of a tenth of the others; minutes are of
    processor time. What it tells of itself: steps, seconds, curve."""
    density._begin()
    started = time.process_time()
    density.variables_ = schema_of(read_table(frame_of(train)), schema, density.seed_)
    parts = [cells(density, part) for part in (train, valid)]
    density.architecture_ = density._choose_architecture(len(train))
    network = density.architecture_.network
    density.workload_ = table_workload(density.workload, density.schema_, parts[0].is_present, network)
    settings = settings_with(density._settings(len(train)), {**(density.training or {}), "processor_time": True})
    recipe = Recipe(density.domains, density.architecture_, density.workload_.objective, settings, density._device)
    density.model_, outcomes = fit_models(recipe, lambda _: (parts[0], parts[1]), verbose=density.verbose)
    density.report_ = {"members": 1, **density._report_of(outcomes), "seconds": time.process_time() - started}
    return {"steps": outcomes[0].steps, "training_seconds": round(outcomes[0].seconds, 1),
            "parameters": density.model_.n_parameters, "curve": outcomes[0].curve}  # fmt: skip


def cells(density: TabularDensity, data: np.ndarray) -> Data:
    encoded, present = density.schema_.encode(read_table(frame_of(data)))
    return Data(torch.from_numpy(encoded), torch.from_numpy(present))


def mean_and_error(log_p: Any) -> dict:
    log_p = np.asarray(log_p, dtype=float)
    return {"nats": float(log_p.mean()), "standard_error": float(log_p.std() / np.sqrt(len(log_p)))}
