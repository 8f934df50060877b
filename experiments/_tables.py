"""What the experiments on tables share: one density fitted on rows and judged by given validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from anygiven import TabularDensity
from anygiven.training import Settings
from anygiven.variables import read_table
from anygiven.variables.rows import Data

N_TIMED, N_TIMED_ROWS = (4, 10, 100), 5_000  # steps, and rows they are tried on
SLOW_SECONDS = 3.0  # where four steps take longer, ten tell how long one takes


def frame_of(data: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(data, columns=pd.Index([f"x{i + 1}" for i in range(data.shape[1])]))


def fit_with_valid(density: TabularDensity, train: np.ndarray, valid: np.ndarray, counted: dict | None = None) -> dict:
    """Fit, judged by these validation rows, for as many steps as were counted before or as the minutes allow; what it
    tells of itself.

    How many that are is found beforehand, on a copy, by processor time. The training itself then looks at no clock, so
    that the same number of steps gives the same model again.
    """
    train, valid = frame_of(train), frame_of(valid)
    counted = counted or steps_within(density, train, valid)
    training = {**_by_processor(density), **{k: counted[k] for k in ("evaluations",) if k in counted}}
    density.set_params(max_minutes=None, max_steps=counted["max_steps"], training=training)
    report = density.fit(train, valid=valid).report_
    figures = {name: report[name] for name in ("steps", "training_seconds", "parameters", "curve")}
    return {"max_steps": counted["max_steps"], "evaluations": training.get("evaluations"), **figures}


def steps_within(density: TabularDensity, train: pd.DataFrame, valid: pd.DataFrame) -> dict:
    """As many steps as take the density's minutes of one core, and how often they may be judged: a quarter of the time
    at most, and twice at least."""
    few, some, many = N_TIMED
    train = train[:N_TIMED_ROWS]
    _seconds_until(1, density, train, valid)  # whatever is loaded or kept at first is not to be timed
    begun = _seconds_until(few, density, train, valid)
    then = some if begun > SLOW_SECONDS else many
    a_step = max((_seconds_until(then, density, train, valid) - begun) / (then - few), 1e-4)
    a_judgement = max(begun - few * a_step, 1e-4)  # the one before the first step
    seconds, wanted = 60 * density.max_minutes, _by_processor(density).get("evaluations", Settings.evaluations)
    evaluations = max(2, min(wanted, int(0.25 * seconds / a_judgement)))
    return {"max_steps": max(few, int((seconds - evaluations * a_judgement) / a_step)), "evaluations": evaluations}


def _seconds_until(n: int, density: TabularDensity, train: pd.DataFrame, valid: pd.DataFrame) -> float:
    """Of one core, until step n."""
    trial = clone(density).set_params(max_minutes=None, max_steps=n)
    trial.training = {**_by_processor(density), "evaluations": 1, "energy_warmup": 0}
    return trial.fit(train, valid=valid).report_["curve"][-1][1]


def _by_processor(density: TabularDensity) -> dict:
    """Its settings of the loop, with seconds of the processor instead of the wall clock's."""
    return {**(density.training or {}), "processor_time": True}


def cells(density: TabularDensity, data: np.ndarray) -> Data:
    encoded, present = density.schema_.encode(read_table(frame_of(data)))
    return Data(torch.from_numpy(encoded), torch.from_numpy(present))


def mean_and_error(log_p: Any) -> dict:
    log_p = np.asarray(log_p, dtype=float)
    return {"nats": float(log_p.mean()), "standard_error": float(log_p.std() / np.sqrt(len(log_p)))}
