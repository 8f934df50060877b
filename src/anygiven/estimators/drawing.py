"""How texts and images are drawn: one by one in order, in planned groups, or what is nearly independent together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from anygiven.errors import QuestionError
from anygiven.estimators.options import COUNT, POSITIVE
from anygiven.inference import nearly_independent, surest_first
from anygiven.inference.drawing import Choice
from anygiven.lattice import Canonical, Grouped, Path, Protocol, Question, planned_sizes

LOSS = 0.02  # of the nats of one by one: what planned groups may cost more
Order = Callable[[int], Protocol]  # how many groups → in which order they are revealed
Losses = Sequence[Sequence[float]]  # sizes of the evidence, and what a variable costs then


def check_losses(losses: Losses) -> None:
    """Of a file: as many losses as sizes, the sizes rising."""
    sizes, nats = losses
    if len(sizes) != len(nats) or not sizes or sorted(set(sizes)) != list(sizes) or None in nats:
        raise ValueError("the losses do not fit their sizes")


GROUPS = ("planned", "surest")


def check_drawing(n: int, steps: int | str | None, temperature: float, groups: str = "planned") -> None:
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise QuestionError(f"{n!r} draws were asked for; it must be a whole number of at least one.")
    if not POSITIVE.allows(temperature):
        raise QuestionError(f"The temperature is {temperature!r}; it must be a number greater than zero.")
    if not (steps is None or steps == "auto" or COUNT.allows(steps)):
        raise QuestionError(f"steps is {steps!r}; it must be a whole number of at least 1, or 'auto'.")
    if groups not in GROUPS:
        raise QuestionError(f"groups is {groups!r}; it must be 'planned' or 'surest'.")


def asks_one_by_one(question: Question, steps: int | str | None) -> bool:
    n_asked = int(question.is_query.sum(1).max())
    return steps is None or n_asked == 0 or (steps != "auto" and int(steps) >= n_asked)


def drawing_path(
    question: Question, steps: int | str | None, losses: Losses, mutual_nats: float | None, order: Order,
    generator: torch.Generator, groups: str = "planned",
) -> tuple[Path, Choice | None]:  # fmt: skip
    """The path to walk, and where it is found on the way, what each step reveals.

    A number of steps is planned by ARDM's programme, in the order that goes with their number; or in groups of about
    equal size each reveals what is surest then. "auto" reveals together what knows at most `mutual_nats` of each other;
    without that bound it plans as few groups as lose little.
    """
    look = Path.look(question.is_evidence, question.is_query)
    if steps == "auto" and mutual_nats is not None:
        return look, nearly_independent(mutual_nats)
    n_known, n_asked = int(question.is_evidence.sum(1).min()), int(question.is_query.sum(1).max())
    if asks_one_by_one(question, steps):
        return Canonical().path(question, generator), None
    assert steps is not None  # it would be one by one
    if groups == "surest" and steps != "auto":
        return look, surest_first(int(steps))
    sizes, nats = losses
    costs = np.interp(np.arange(n_known, n_known + n_asked), sizes, nats)
    plan = few_groups(costs.tolist()) if steps == "auto" else planned_sizes(costs.tolist(), int(steps))
    return Grouped(order(len(plan)), plan).path(question, generator), None


def few_groups(costs: list[float]) -> tuple[int, ...]:
    """The plan of 1, 2, 4, … groups that costs at most LOSS more than one by one."""
    allowed, n_groups = (1 + LOSS) * sum(costs), 1
    while n_groups < len(costs):
        sizes = planned_sizes(costs, n_groups)
        starts = np.cumsum([0, *sizes[:-1]])
        if sum(size * costs[start] for size, start in zip(sizes, starts, strict=True)) <= allowed:
            return sizes
        n_groups *= 2
    return (1,) * len(costs)
