"""Workloads: the law of the questions that a user expects to ask (MAC's test-mask distribution).

A workload draws one Question per row, among the cells that are present in that row.
To add one, write a class here: the CLI, the docs and the contract tests find it by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

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

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        coin = torch.rand(is_present.shape, generator=generator) < self.p
        return Question(is_present & ~coin, is_present & coin)


@dataclass(frozen=True)
class KnownAsked(Workload):
    """These variables are known, those are asked; an empty `asked` means all the others."""

    known: tuple[int, ...]
    asked: tuple[int, ...] = ()

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        known = torch.zeros(is_present.shape[1], dtype=torch.bool)
        known[list(self.known)] = True
        asked = ~known
        if self.asked:
            asked = torch.zeros_like(known)
            asked[list(self.asked)] = True
        return Question(is_present & asked, is_present & known & ~asked)


@dataclass(frozen=True)
class GapPatterns(Workload):
    """The gaps of the data itself: another row's gaps are asked, its present cells are evidence."""

    patterns: Tensor  # (n, N) bool, is_present of the data

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        row = torch.randint(len(self.patterns), (len(is_present),), generator=generator)
        pattern = self.patterns[row]
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

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        which = draw_index(self.weights, len(is_present), generator)
        query, evidence = torch.zeros_like(is_present), torch.zeros_like(is_present)
        for k, part in enumerate(self.parts):
            drawn = part.draw(is_present[which == k], generator)
            query[which == k], evidence[which == k] = drawn.is_query, drawn.is_evidence
        return Question(query, evidence)


def mixture(parts: Sequence[Workload], weights: Sequence[float] | None = None) -> Mixture:
    """A mixture with equal weights unless told."""
    weights = weights or [1.0] * len(parts)
    total = sum(weights)
    return Mixture(tuple(parts), tuple(w / total for w in weights))


@dataclass(frozen=True)
class SomeOf(Workload):
    """The questions of another workload about some of the variables, a uniform number of them; the others are rest."""

    workload: Workload

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        n = is_present.sum(dim=1)
        size = random_integers(torch.ones_like(n), n, generator)
        return self.workload.draw(random_subset(is_present, size, generator), generator)


@dataclass(frozen=True)
class Beginning(Workload):
    """The questions of another workload about the first variables, a uniform number of them: of shorter texts."""

    workload: Workload

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        n = is_present.sum(dim=1)
        size = random_integers(torch.ones_like(n), n, generator)
        return self.workload.draw(is_present & (is_present.cumsum(1) <= size.unsqueeze(1)), generator)
