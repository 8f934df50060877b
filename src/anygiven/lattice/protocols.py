"""Protocols: in which order a question's variables are revealed (MAC's decomposition protocol).

To add one, write a class here: the CLI, the docs and the contract tests find it by itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from anygiven.lattice.question import EVIDENCE, NEVER, Path, Question, lowest, ranks


class Protocol(ABC):
    """Question → Path."""

    is_random = False

    @abstractmethod
    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """(B, N) lower is revealed earlier; no ties within a row."""

    def prefix(self, members: Tensor, length: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The first `length` (B,) members of each row to be revealed."""
        return lowest(self.priority(members.shape, generator), members, length)

    def path(self, question: Question, generator: torch.Generator | None = None) -> Path:
        """Query variables one at a time by ascending priority."""
        order = ranks(self.priority(question.is_query.shape, generator), question.is_query)
        step = torch.where(question.is_query, order, NEVER)
        return Path(torch.where(question.is_evidence, EVIDENCE, step))


@dataclass(frozen=True)
class Canonical(Protocol):
    """w-MAC: one order for every question; the greatest element is removed first, so revealed last.

    `order` lists the variables from first to last revealed; by default their natural order.
    """

    order: tuple[int, ...] | None = None

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        n = shape[1]
        if self.order is None:
            return torch.arange(n, dtype=torch.float64).expand(shape)
        if sorted(self.order) != list(range(n)):
            raise ValueError(f"its order must name each of the {n} variables once")
        place = torch.empty(n, dtype=torch.float64)
        place[list(self.order)] = torch.arange(n, dtype=torch.float64)
        return place.expand(shape)

    def prefix(self, members: Tensor, length: Tensor, generator: torch.Generator | None = None) -> Tensor:
        if self.order is not None:
            return super().prefix(members, length, generator)
        return members & (members.cumsum(dim=1) <= length[:, None])  # in natural order no sort is needed


@dataclass(frozen=True)
class RandomOrder(Protocol):
    """w-RND: a uniform order for each row."""

    is_random = True

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)


@dataclass(frozen=True)
class Strided(Protocol):
    """0, s, 2s, …, then 1, s+1, …: coarse to fine, every position has one place."""

    stride: int = 2

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        position = torch.arange(shape[1], dtype=torch.float64)
        return ((position % self.stride) * shape[1] + position // self.stride).expand(shape)


@dataclass(frozen=True)
class BitReversal(Protocol):
    """0, the middle, the quarters, the eighths, …: every prefix is spread evenly over the line."""

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        n_bits = max(1, (shape[1] - 1).bit_length())
        reversed_bits = [int(format(i, f"0{n_bits}b")[::-1], 2) for i in range(shape[1])]
        return torch.tensor(reversed_bits, dtype=torch.float64).expand(shape)


@dataclass(frozen=True)
class Merging(Protocol):
    """Any protocol with neighbouring steps merged into groups."""

    protocol: Protocol

    @property
    def is_random(self) -> bool:  # type: ignore[override]
        return self.protocol.is_random

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        return self.protocol.priority(shape, generator)

    def path(self, question: Question, generator: torch.Generator | None = None) -> Path:
        path = self.protocol.path(question, generator)
        one_by_one = Path(torch.where(path.is_query, ranks(path.step.double(), path.is_query), path.step))
        return Path(torch.where(path.is_query, self.groups(one_by_one, generator), path.step), path.masking_mode)

    @abstractmethod
    def groups(self, path: Path, generator: torch.Generator | None) -> Tensor:
        """(B, N) the group of each query variable, which come one by one."""


@dataclass(frozen=True)
class Budget(Merging):
    """At most `steps` network calls, in groups of nearly equal size."""

    steps: int

    def groups(self, path: Path, generator: torch.Generator | None) -> Tensor:
        return equal_groups(path, path.is_query.sum(dim=1).clamp(max=max(self.steps, 1)))


@dataclass(frozen=True)
class RandomBudget(Merging):
    """A random number of steps, 1 to all, its logarithm uniform: trains drawing in few steps."""

    @property
    def is_random(self) -> bool:  # type: ignore[override]
        return True

    def groups(self, path: Path, generator: torch.Generator | None) -> Tensor:
        size = path.is_query.sum(dim=1)
        level = torch.rand(size.shape, generator=generator, dtype=torch.float64)
        return equal_groups(path, (size + 1).clamp(min=1).double().pow(level).long().minimum(size))


def equal_groups(path: Path, n_groups: Tensor) -> Tensor:
    """(B, N) steps merged into n_groups (B,) groups of nearly equal size."""
    size = path.is_query.sum(dim=1, keepdim=True).clamp(min=1)  # (B, 1)
    return path.step * n_groups.unsqueeze(1) // size


@dataclass(frozen=True)
class Grouped(Merging):
    """Groups of these sizes; what is left over joins the last one."""

    sizes: tuple[int, ...]

    def groups(self, path: Path, generator: torch.Generator | None) -> Tensor:
        ends = torch.tensor(self.sizes[:-1], dtype=torch.int64).cumsum(0)
        return torch.searchsorted(ends, path.step, right=True)


def planned_sizes(losses: Sequence[float], n_groups: int) -> tuple[int, ...]:
    """Sizes of the groups that lose least: ARDM's dynamic programme.

    losses[t] is what one variable costs when t others are known. A group that begins at step s asks all its members
    with what is known at s, so steps s … t−1 in one group cost (t − s) · losses[s]. O(groups · n).
    """
    n = len(losses)
    falling = np.maximum.accumulate(np.asarray(losses, dtype=float)[::-1])[::-1]  # more evidence never costs more
    # Where the losses are level all plans cost the same; the slightest fall makes their groups equal.
    slopes = (falling + 1e-9 * max(1.0, float(falling[0])) * np.arange(n, 0, -1) / n).tolist()
    n_groups = max(1, min(int(n_groups), n))
    best = [math.inf] + [t * slopes[0] for t in range(1, n + 1)]  # of reaching t with one group
    choices = []
    for _ in range(n_groups - 1):
        best, choice = _with_one_group_more(best, slopes)
        choices.append(choice)
    ends, at = [n], n
    for choice in reversed(choices):
        at = choice[at]
        ends.append(at)
    return tuple(np.diff([0, *reversed(ends)]).tolist())


def _with_one_group_more(best: list[float], slopes: list[float]) -> tuple[list[float], list[int]]:
    """min over s < t of best[s] + (t − s) · slopes[s] for each t, and the s that attains it.

    Each s is a line in t, and the slopes only fall, so the lines that are ever lowest stand in a queue.
    """
    n = len(slopes)
    found, choice = [math.inf] * (n + 1), [0] * (n + 1)
    lines: list[tuple[float, float, int]] = []  # slope, height at zero, s
    first = 0
    for t in range(1, n + 1):
        s = t - 1
        if best[s] < math.inf:
            line = (slopes[s], best[s] - s * slopes[s], s)
            while len(lines) - first >= 2 and _is_never_lowest(lines[-2], lines[-1], line):
                lines.pop()
            lines.append(line)
        while len(lines) - first >= 2 and _at(lines[first + 1], t) <= _at(lines[first], t):
            first += 1
        if len(lines) > first:
            found[t], choice[t] = _at(lines[first], t), lines[first][2]
    return found, choice


def _at(line: tuple[float, float, int], t: int) -> float:
    return line[0] * t + line[1]


def _is_never_lowest(before: tuple[float, float, int], middle: tuple[float, float, int], after) -> bool:
    """Whether the line after overtakes the one before no later than the middle one does."""
    return (after[1] - before[1]) * (before[0] - middle[0]) <= (middle[1] - before[1]) * (before[0] - after[0])
