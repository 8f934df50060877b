"""Which conditionals a law trains: found by drawing from it, so that no law has to say it of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anygiven.lattice.objectives import Objective
from anygiven.lattice.question import EVIDENCE, NEVER, Question

MOST_PAIRED = 2048  # variables; of more it is not kept who was seen with whom
MOST_DRAWS, LEAST_DRAWS = 2048, 48  # of paths
ENTRIES = 2**27  # pairs of variables, over all draws
AT_A_TIME = 2**24


@dataclass(frozen=True)
class Support:
    """What was seen with what, in many drawn paths: a conditional that none of them holds was never, or hardly trained.

    Of an edge p(i | known) it is asked pair by pair: was j ever known, was j ever unknown, where i was asked?
    """

    is_asked: Tensor  # (N,) bool
    is_given: Tensor  # (N,) bool: it was evidence
    leaves_open: bool  # some variable was neither query nor evidence
    is_known: Tensor  # (N, N) bool: j was known where i was asked; (0, 0) where there are too many
    is_unknown: Tensor  # (N, N) bool: j was unknown where i was asked

    @classmethod
    def of(cls, objective: Objective, n: int, with_gaps: Sequence[int] = (), seed: int = 0) -> Support:
        """Of questions about n variables, some of which are missing now and then."""
        generator = torch.Generator().manual_seed(seed)
        n_draws = max(1, min(LEAST_DRAWS, AT_A_TIME // n))
        if n <= MOST_PAIRED:
            n_draws = max(LEAST_DRAWS, min(MOST_DRAWS, ENTRIES // max(1, n * n)))
        is_present = torch.ones(n_draws, n, dtype=torch.bool)
        gaps = list(with_gaps)
        is_present[:, gaps] = torch.rand(n_draws, len(gaps), generator=generator) < 0.5
        step = objective.unshared.draw(is_present, generator)[0].step
        is_asked, is_given = ((step >= 0) & (step < NEVER)).any(0), (step == EVIDENCE).any(0)
        return cls(is_asked, is_given, bool((step == NEVER).any()), *_pairs_of(step))

    @classmethod
    def of_everything(cls, n: int) -> Support:
        every = torch.ones(n, dtype=torch.bool)
        pairs = torch.ones(2 * [n if n <= MOST_PAIRED else 0], dtype=torch.bool)
        return cls(every, every, True, pairs, pairs)

    def never_given(self, question: Question) -> list[tuple[int, int]]:
        """(i, j): i is asked and j given, which was never so."""
        return self._strange(question.is_query, question.is_evidence, self.is_known)

    def never_open(self, question: Question, at_once: bool = False) -> list[tuple[int, int]]:
        """(i, j): i is asked and j left open, which was never so; what is asked `at_once` is open to each other."""
        is_open = ~question.is_evidence if at_once else ~question.is_query & ~question.is_evidence
        return self._strange(question.is_query, is_open, self.is_unknown)

    def _strange(self, one: Tensor, other: Tensor, seen: Tensor) -> list[tuple[int, int]]:
        if len(seen) == 0:
            return []
        together = (one.float().T @ other.float()) > 0  # (N, N) in some row
        strange = (together & ~seen & self.is_asked[:, None]).fill_diagonal_(False)
        return [(int(i), int(j)) for i, j in strange.nonzero()]


def _pairs_of(steps: Tensor) -> tuple[Tensor, Tensor]:
    """(N, N) whether j was known, and whether it was unknown, where i was asked."""
    n = steps.shape[1]
    size = n if n <= MOST_PAIRED else 0
    known, unknown = (torch.zeros(size, size, dtype=torch.bool) for _ in range(2))
    for step in steps.split(max(1, AT_A_TIME // max(1, n * n))) if size else ():
        earlier = step[:, None, :] < step[:, :, None]  # (b, i, j): j is known where i is asked
        asked = ((step >= 0) & (step < NEVER))[:, :, None]
        known |= (earlier & asked).any(0)
        unknown |= (~earlier & asked).any(0)
    return known, unknown
