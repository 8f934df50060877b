"""How a model is trained, with defaults that suit the table's size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

SCHEDULES: dict[str, Callable[[float], float]] = {  # share of the steps after the warm-up, 0 to 1 → rate
    "cosine": lambda share: 0.5 * (1 + math.cos(math.pi * share)),
    "linear": lambda share: 1 - share,
    "constant": lambda share: 1.0,
}


@dataclass(frozen=True)
class Settings:
    """All that the loop needs to know."""

    max_steps: int = 3000  # optimiser steps
    batch_size: int = 256
    learning_rate: float = 2e-3  # at the peak
    weight_decay: float = 0.02
    muon: bool = False  # Muon instead of AdamW for the matrices of the network's blocks
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW
    warmup: float = 0.05  # share of the steps
    warmup_steps: int | None = None  # so many steps instead
    schedule: str = "cosine"  # of the learning rate after the warm-up: one of SCHEDULES
    ema: float = 0.995  # of the weights that are validated and kept
    clip: float = 5.0  # gradient norm
    noise: float = 0.0  # standard deviation of what is added to the scores of numbers, in training alone
    energy_warmup: int = 0  # steps before an energy head trains its energy
    energy_regulariser: float = 0.0  # holds an energy head's log p near log q
    evaluations: int = 40  # how often the validation questions are asked
    validation_rows: int = 2000  # where there are fewer, each is asked several questions, to judge finely
    most_validation_rows: int = 10_000  # of more, so many evenly
    patience: int = 10  # evaluations without a better figure before stopping
    patience_steps: int = 200  # and steps: where steps are slow, there are but a few from one evaluation to the next
    max_minutes: float | None = None
    processor_time: bool = False  # minutes of one processor core instead of the wall clock: fair on a busy machine
    checkpoint_seconds: float = 20.0
    seed: int = 0
