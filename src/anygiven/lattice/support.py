"""Which conditionals a law trains: found by drawing from it, so that no law has to say it of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anygiven.lattice.objectives import Objective
from anygiven.lattice.question import EVIDENCE, NEVER, Path

MOST_PAIRED = 2048  # variables; of more it is not kept who was seen with whom
MOST_IN_THREES = 128  # variables; of more it is not asked who was known while another was not
MOST_DRAWS, LEAST_DRAWS = 2048, 48  # of paths
ENTRIES = 2**27  # pairs of variables, over all draws
AT_A_TIME = 2**24


@dataclass(frozen=True)
class Support:
    """What was seen with what, in many drawn paths: a conditional that none of them holds was never, or hardly trained.

    Of an edge p(i | known) it is asked: was j ever known, was k ever unknown, and both at once, where i was asked?
    """

    is_asked: Tensor  # (N,) bool
    is_given: Tensor  # (N,) bool: it was evidence
    leaves_open: bool  # some variable was neither query nor evidence
    is_known: Tensor  # (N, N) bool: j was known where i was asked; (0, 0) where there are too many
    is_unknown: Tensor  # (N, N) bool: j was unknown where i was asked
    steps: Tensor  # (D, N) the drawn paths; (0, N) where there are too many variables for what is asked of them

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
        kept = step if n <= MOST_IN_THREES else step[:0]
        return cls(is_asked, is_given, bool((step == NEVER).any()), *_pairs_of(step), kept)

    @classmethod
    def of_everything(cls, n: int) -> Support:
        every = torch.ones(n, dtype=torch.bool)
        pairs = torch.ones(2 * [n if n <= MOST_PAIRED else 0], dtype=torch.bool)
        return cls(every, every, True, pairs, pairs, torch.zeros(0, n, dtype=torch.int64))

    def strange(self, path: Path) -> Strange | None:
        """An edge of the path that was never trained, and why; None if there is none."""
        for i in (path.is_query.any(0) & self.is_asked).nonzero().squeeze(1).tolist() if len(self.is_known) else []:
            rows = path.step[path.is_query[:, i]]
            known = rows < rows[:, [i]]  # (b, N)
            never_known = (known.any(0) & ~self.is_known[i]).nonzero()
            if len(never_known):
                return Strange(i, int(never_known[0]), None)
            never_open = ((~known).any(0) & ~self.is_unknown[i]).nonzero()
            if len(never_open):
                return Strange(i, None, int(never_open[0]))
            if len(self.steps):
                never_both = (_together(known, ~known) & ~self._together_where(i)).nonzero()
                if len(never_both):
                    return Strange(i, *never_both[0].tolist())
        return None

    def _together_where(self, i: int) -> Tensor:
        """(N, N) whether j was known and k unknown at once, where i was asked."""
        asked = self.steps[(self.steps[:, i] >= 0) & (self.steps[:, i] < NEVER)]
        known = asked < asked[:, [i]]
        return _together(known, ~known)


@dataclass(frozen=True)
class Strange:
    """Variable i was never asked with j known, or with k unknown, or with both at once."""

    asked: int
    known: int | None
    unknown: int | None

    def said(self, named: Callable[[int], str]) -> str:
        where = f"where {named(self.asked)} was asked"
        if self.unknown is None:
            return f"{named(self.known or 0)} was never given {where}"
        if self.known is None:
            return f"{named(self.unknown)} was never left open {where}"
        return f"{named(self.known)} was never given with {named(self.unknown)} left open {where}"


def _together(one: Tensor, other: Tensor) -> Tensor:
    """(N, N) whether the first holds of j and the second of k in some row (b, N)."""
    return (one.float().T @ other.float()) > 0


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
