"""Workloads: the law of the questions that a user expects to ask (MAC's test-mask distribution).

A workload draws one Question per row, among the cells that are present in that row.
To add one, write a class here: the CLI, the docs and the contract tests find it by itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from anygiven.errors import QuestionError
from anygiven.lattice.question import Question, draw_index, random_integers, random_subset


class Workload(ABC):
    """A law of questions."""

    @abstractmethod
    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        """One question per row of is_present (B, N), about present variables only."""

    def query_sizes(self, n: int) -> Tensor | None:
        """(n+1,) law of |query| over n present variables, if evidence is empty and, given its size,
        the query is uniform over subsets; None for any other workload. Glimpses then sample exactly."""
        return None


@dataclass(frozen=True)
class Joint(Workload):
    """All variables, given nothing: log p(x)."""

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        return Question(is_present, torch.zeros_like(is_present))

    def query_sizes(self, n: int) -> Tensor:
        sizes = torch.zeros(n + 1, dtype=torch.float64)
        sizes[n] = 1.0
        return sizes


@dataclass(frozen=True)
class CardMask(Workload):
    """Marginals: |query| uniform in 1 … n, then a uniform subset (M_card-mask of MAC)."""

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        n = is_present.sum(dim=1)
        size = random_integers(torch.ones_like(n), n, generator)
        return Question(random_subset(is_present, size, generator), torch.zeros_like(is_present))

    def query_sizes(self, n: int) -> Tensor:
        sizes = torch.full((n + 1,), 1.0 / max(n, 1), dtype=torch.float64)
        sizes[0] = 0.0 if n > 0 else 1.0
        return sizes


@dataclass(frozen=True)
class UniformEvidence(Workload):
    """Conditionals: |evidence| uniform in 0 … n−1, all the rest asked (ACE's training law)."""

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        n = is_present.sum(dim=1)
        size = random_integers(torch.zeros_like(n), n - 1, generator)
        evidence = random_subset(is_present, size, generator)
        return Question(is_present & ~evidence, evidence)


@dataclass(frozen=True)
class BernoulliEvidence(Workload):
    """Conditionals: each variable is evidence with probability p, all the rest asked (MAC's Table 5)."""

    p: float = 0.5

    def __post_init__(self):
        if not (isinstance(self.p, int | float) and 0 <= self.p < 1):
            raise QuestionError(f"The probability of evidence is {self.p!r}; it must be at least 0 and below 1.")

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        coin = torch.rand(is_present.shape, generator=generator) < self.p
        return Question(is_present & ~coin, is_present & coin)


@dataclass(frozen=True)
class KnownAsked(Workload):
    """These variables are known, those are asked; an empty `asked` means all the others."""

    known: tuple[int, ...]
    asked: tuple[int, ...] = ()

    def __post_init__(self):
        if set(self.known) & set(self.asked):
            raise QuestionError("The workload names a variable as both known and asked.")

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        n = is_present.shape[1]
        if not set(self.known) | set(self.asked) <= set(range(n)):
            raise ValueError(f"it names a variable that is not among the {n}")
        known = torch.zeros(n, dtype=torch.bool)
        known[list(self.known)] = True
        asked = ~known
        if self.asked:
            asked = torch.zeros_like(known)
            asked[list(self.asked)] = True
        return Question(is_present & asked, is_present & known & ~asked)


@dataclass(frozen=True)
class GapPatterns(Workload):
    """The gaps of the data itself: another row's gaps are asked, its present cells are evidence."""

    patterns: tuple[str, ...]  # different rows of is_present, such as "1101": the third cell is a gap
    counts: tuple[int, ...]  # how many rows have each

    @classmethod
    def of(cls, is_present: Tensor) -> GapPatterns:
        rows, counts = is_present.unique(dim=0, return_counts=True)
        patterns = tuple("".join("1" if cell else "0" for cell in row) for row in rows.tolist())
        return cls(patterns, tuple(counts.tolist()))

    @cached_property
    def _rows(self) -> Tensor:
        """(patterns, N) bool."""
        return torch.tensor([[cell == "1" for cell in pattern] for pattern in self.patterns], dtype=torch.bool)

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        if self._rows.shape[1] != is_present.shape[1] or len(self.counts) != len(self.patterns):
            raise ValueError(f"its patterns of gaps are not of {is_present.shape[1]} variables")
        pattern = self._rows[draw_index(self.counts, len(is_present), generator)]
        evidence = is_present & pattern
        query = is_present & ~pattern
        # A row without gaps asks nothing; ask one variable at random so that no draw is wasted.
        idle = ~query.any(dim=1)
        one = random_subset(is_present, torch.ones(len(is_present), dtype=torch.int64), generator)
        query = torch.where(idle[:, None], one, query)
        return Question(query, evidence & ~query)


@dataclass(frozen=True)
class Mixture(Workload):
    """A share of the rows from each workload."""

    parts: tuple[Workload, ...]
    weights: tuple[float, ...]

    def __post_init__(self):
        if not self.parts or len(self.parts) != len(self.weights):
            raise QuestionError("A mixture needs at least one workload, and one weight for each.")
        if not (min(self.weights) >= 0 and 0 < sum(self.weights) < math.inf):
            raise QuestionError("The weights of a mixture must be numbers of at least 0, and not all 0.")

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        which = draw_index(self.weights, len(is_present), generator)
        query, evidence = torch.zeros_like(is_present), torch.zeros_like(is_present)
        for k, part in enumerate(self.parts):
            drawn = part.draw(is_present[which == k], generator)
            query[which == k], evidence[which == k] = drawn.is_query, drawn.is_evidence
        return Question(query, evidence)


def mixture(parts: Sequence[Workload], weights: Sequence[float] | None = None) -> Mixture:
    """A mixture with equal weights unless told."""
    drawn = Mixture(tuple(parts), tuple(weights or [1.0] * len(parts)))
    return Mixture(drawn.parts, tuple(weight / sum(drawn.weights) for weight in drawn.weights))


@dataclass(frozen=True)
class AboutSome(Workload):
    """The questions of another workload about some of the variables, a uniform number of them; the others are rest."""

    workload: Workload

    @abstractmethod
    def some(self, is_present: Tensor, size: Tensor, generator: torch.Generator) -> Tensor:
        """So many (B,) of the present variables (B, N)."""

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        n = is_present.sum(dim=1)
        size = random_integers(torch.ones_like(n), n, generator)
        return self.workload.draw(self.some(is_present, size, generator), generator)


@dataclass(frozen=True)
class SomeOf(AboutSome):
    """Any of the variables."""

    def some(self, is_present: Tensor, size: Tensor, generator: torch.Generator) -> Tensor:
        return random_subset(is_present, size, generator)


@dataclass(frozen=True)
class Beginning(AboutSome):
    """The first variables: questions about shorter texts."""

    def some(self, is_present: Tensor, size: Tensor, generator: torch.Generator) -> Tensor:
        return is_present & (is_present.cumsum(1) <= size.unsqueeze(1))
