"""What the options of all densities may be: one check each, and one sentence that says so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

from anygiven.errors import QuestionError
from anygiven.estimators.defaults import Architecture
from anygiven.heads import COLUMN_HEADS
from anygiven.networks import NETWORKS


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
