"""What the options of all densities may be: one check each, and one sentence that says so."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

from anygiven.errors import QuestionError
from anygiven.estimators.defaults import Architecture
from anygiven.heads import COLUMN_HEADS
from anygiven.networks import NETWORKS
from anygiven.training.settings import SCHEDULES, Settings


@dataclass(frozen=True)
class Number:
    """A number from `low` on (without it, if open), below `high`."""

    low: float
    is_whole: bool = False
    is_open: bool = False
    high: float = math.inf

    def allows(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, Integral if self.is_whole else Real):
            return False
        number = float(value)  # type: ignore[arg-type]
        return (number > self.low if self.is_open else number >= self.low) and number < self.high

    def __str__(self) -> str:
        kind = "a whole number" if self.is_whole else "a number"
        lowest = f"greater than {self.low:g}" if self.is_open else f"of at least {self.low:g}"
        return f"{kind} {lowest}" + (f" and below {self.high:g}" if self.high < math.inf else "")


POSITIVE, COUNT, COUNT_OR_NONE = Number(0, is_open=True), Number(1, is_whole=True), Number(0, is_whole=True)
SEED = Number(0, high=2**62, is_whole=True)  # so that torch can still count on from it
OPTIONS = {
    "width": COUNT, "depth": COUNT, "kernel": COUNT, "n_sizes": COUNT, "n_strides": Number(1, high=8, is_whole=True),
    "batch_size": Number(1, high=2**16 + 1, is_whole=True), "max_steps": COUNT,
    "orders": Number(1, high=10**5, is_whole=True), "tried_orders": Number(0, high=10**5, is_whole=True),
    "n_heads": COUNT, "length": COUNT, "members": Number(1, high=65, is_whole=True), "n_components": COUNT_OR_NONE,
    "dropout": Number(0, high=1), "max_minutes": POSITIVE, "learning_rate": POSITIVE, "weight_decay": Number(0),
}  # fmt: skip


def check_options(options: dict[str, Any]) -> None:
    """Those that are given; None leaves the choice to the library."""
    for name, value in options.items():
        if name in OPTIONS and value is not None and not OPTIONS[name].allows(value):
            raise QuestionError(f"{name} is {value!r}; it must be {OPTIONS[name]}.")


def check_architecture(architecture: Architecture) -> None:
    """Attention and the U-Net cut their width into equal parts."""
    unit = 1
    if "n_heads" in NETWORKS[architecture.network].settings:
        unit = 2 * architecture.n_heads
    elif "n_sizes" in NETWORKS[architecture.network].settings:
        unit = 8
    if architecture.width % unit:
        raise QuestionError(
            f"width is {architecture.width}; with network={architecture.network!r} it must be a multiple of {unit}."
        )


def check_against_weights(architecture: Architecture, n_members: int, n_tensors: int, n_weights: int) -> None:
    """What a file says of a network, against the weights that are there: nothing is built that they cannot fill."""
    if architecture.network not in NETWORKS or architecture.head not in COLUMN_HEADS:
        raise QuestionError(f"There is no network {architecture.network!r} with a head {architecture.head!r}.")
    options = architecture.to_json()
    check_options({**options, "n_components": options["n_components"] or None})
    check_architecture(architecture)
    most = dict.fromkeys(("members", "depth", "n_sizes"), n_tensors)
    most |= dict.fromkeys(("width", "n_components", "n_heads", "kernel"), n_weights)
    for name, value in {**options, "members": n_members}.items():
        if name in most and value > most[name]:
            raise QuestionError(f"{name} is {value}, which so few weights cannot fill.")


TRAINING = {  # what may be set of the loop beside a density's own options; None: see below
    "betas": None, "warmup": Number(0, high=1), "warmup_steps": COUNT_OR_NONE, "schedule": None,
    "ema": Number(0, high=1), "clip": POSITIVE, "noise": Number(0), "energy_warmup": COUNT_OR_NONE,
    "energy_regulariser": Number(0), "evaluations": COUNT, "validation_rows": COUNT,
    "most_validation_rows": COUNT, "patience": COUNT, "patience_steps": COUNT_OR_NONE,
    "processor_time": None, "muon": None,
}  # fmt: skip


def settings_with(settings: Settings, training: Any) -> Settings:
    """The settings of the loop with what a user sets otherwise, {"noise": 0.01, …}."""
    if training is None:
        return settings
    if not isinstance(training, dict) or not set(training) <= set(TRAINING):
        raise QuestionError(f"training is {training!r}; it must be a dict of some of {', '.join(TRAINING)}.")
    if training.get("schedule", "cosine") not in list(SCHEDULES):
        raise QuestionError(f"There is no schedule {training['schedule']!r}; use one of {', '.join(SCHEDULES)}.")
    for name in ("processor_time", "muon"):
        if not isinstance(training.get(name, True), bool):
            raise QuestionError(f"{name} is {training[name]!r}; it must be True or False.")
    betas = training.get("betas", (0.9, 0.999))
    if not (isinstance(betas, list | tuple) and len(betas) == 2 and all(Number(0, high=1).allows(b) for b in betas)):
        raise QuestionError(f"betas is {betas!r}; it must be two numbers of at least 0 and below 1.")
    for name, value in training.items():
        allowed = TRAINING[name]
        if allowed is not None and not allowed.allows(value):
            raise QuestionError(f"{name} is {value!r}; it must be {allowed}.")
    return replace(settings, **{**training, **({"betas": tuple(betas)} if "betas" in training else {})})


def device_of(device: Any) -> torch.device:
    """Where a model is trained and answers: "auto" is CUDA or Apple's mps where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        found = torch.device(device)
        torch.zeros(1, device=found)
        if found.type == "meta":
            raise RuntimeError("it holds no values")
    except (RuntimeError, TypeError, AssertionError, NotImplementedError):
        raise QuestionError(f"There is no device {device!r} here; use 'auto', which takes what there is.") from None
    return found


def seed_of(random_state: Any) -> int:
    """A whole number from what scikit-learn takes as a random state; without one, a new one each time."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0]) >> 1
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if SEED.allows(random_state):
        return int(random_state)
    raise QuestionError(f"random_state is {random_state!r}; it must be {SEED}, or None.")
