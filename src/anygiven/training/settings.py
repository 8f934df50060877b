"""How a model is trained, with defaults that suit the table's size."""

from __future__ import annotations

from dataclasses import dataclass


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
    is_constant: bool = False  # after the warm-up the learning rate stays; else it falls to zero
    ema: float = 0.995  # of the weights that are validated and kept
    clip: float = 5.0  # gradient norm
    evaluations: int = 40  # how often the validation questions are asked
    validation_rows: int = 2000  # where there are fewer, each is asked several questions, to judge finely
    patience: int = 10  # evaluations without a better figure before stopping
    max_minutes: float | None = None
    processor_time: bool = False  # minutes of one processor core instead of the wall clock: fair on a busy machine
    checkpoint_seconds: float = 20.0
    seed: int = 0
