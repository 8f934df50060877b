"""How texts and images are drawn: one by one in order, in planned groups, or what is nearly independent together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from anygiven.errors import QuestionError
from anygiven.inference import nearly_independent
from anygiven.inference.drawing import Choice
from anygiven.lattice import Canonical, Grouped, Path, Question, RandomOrder, planned_sizes

Losses = Sequence[Sequence[float]]  # sizes of the evidence, and what a variable costs then


def check_drawing(n: int, steps: int | str | None, temperature: float) -> None:
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise QuestionError(f"{n!r} draws were asked for; it must be a whole number of at least one.")
    if not temperature > 0:
        raise QuestionError(f"The temperature is {temperature}; it must be greater than nought.")
    if not (steps in (None, "auto") or (isinstance(steps, int) and steps >= 1)):
        raise QuestionError(f"steps is {steps!r}; it must be a whole number of at least 1, or 'auto'.")


def drawing_path(
    question: Question, steps: int | str | None, losses: Losses, mutual_nats: float, generator: torch.Generator
) -> tuple[Path, Choice | None]:
    """The path to walk, and for "auto" what each step reveals; a number of steps is planned by ARDM's programme."""
    if steps == "auto":
        return Path.look(question.is_evidence, question.is_query), nearly_independent(mutual_nats)
    n_known, n_asked = int(question.is_evidence.sum(1).min()), int(question.is_query.sum(1).max())
    if steps is None or n_asked == 0:
        return Canonical().path(question), None
    sizes, nats = losses
    costs = np.interp(np.arange(n_known, n_known + n_asked), sizes, nats)
    return Grouped(RandomOrder(), planned_sizes(costs.tolist(), int(steps))).path(question, generator), None
