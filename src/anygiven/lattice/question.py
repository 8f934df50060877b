"""Questions and paths: what is asked given what, and in which order it is revealed.

Masks are (batch, variables) bool tensors, named by what True means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

EVIDENCE = -1
NEVER = 2**31 - 1  # rest: neither evidence nor query


@dataclass(frozen=True)
class Question:
    """p(query | evidence), one per row; variables in neither are rest."""

    is_query: Tensor  # (B, N) bool
    is_evidence: Tensor  # (B, N) bool

    def __post_init__(self):
        if bool((self.is_query & self.is_evidence).any()):
            raise ValueError("a variable cannot be both query and evidence")


@dataclass(frozen=True)
class Path:
    """step[b, i] = EVIDENCE, 0 … T−1 for query variables, NEVER for the rest.

    The variable at step t is predicted from all variables with a smaller step.
    """

    step: Tensor  # (B, N) int64
    masking_mode: Tensor | None = None  # (B,) int64: which one the path is from, if a network wants it; 0: unsaid

    @property
    def is_query(self) -> Tensor:
        return (self.step >= 0) & (self.step != NEVER)

    @property
    def is_evidence(self) -> Tensor:
        return self.step == EVIDENCE

    @property
    def n_steps(self) -> int:
        """T: how many looks the longest row needs."""
        return int(torch.where(self.is_query, self.step, -1).max()) + 1 if self.step.numel() else 0

    def known_at(self, t: int) -> Tensor:
        """(B, N) what a look at step t may see."""
        return self.step < t

    def asked_at(self, t: int) -> Tensor:
        return self.step == t

    def rows(self, index) -> Path:
        return Path(self.step[index], None if self.masking_mode is None else self.masking_mode[index])

    @classmethod
    def look(cls, is_evidence: Tensor, is_asked: Tensor) -> Path:
        """Everything asked at once from the evidence: imputation, glimpses, parallel draws."""
        step = torch.full(is_evidence.shape, NEVER, dtype=torch.int64, device=is_evidence.device)
        step[is_asked] = 0
        step[is_evidence] = EVIDENCE
        return cls(step)


def ranks(priority: Tensor, member: Tensor) -> Tensor:
    """Place of each member in its row by ascending priority: 0, 1, 2, …; non-members come last."""
    keyed = priority.masked_fill(~member, float("inf"))
    return keyed.argsort(dim=-1, stable=True).argsort(dim=-1, stable=True)


def random_subset(member: Tensor, size: Tensor, generator: torch.Generator) -> Tensor:
    """A uniform subset of `size` (B,) members of each row."""
    noise = torch.rand(member.shape, generator=generator, dtype=torch.float64)
    return lowest(noise, member, size)


def lowest(priority: Tensor, member: Tensor, size: Tensor) -> Tensor:
    """The `size` (B,) members of each row with the lowest priority: one sort, no ranks."""
    keyed = priority.masked_fill(~member, float("inf"))
    threshold = keyed.sort(dim=-1).values.gather(1, (size - 1).clamp(min=0)[:, None])
    return member & (keyed <= threshold) & (size > 0)[:, None]


def random_integers(low: Tensor, high: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform integers in [low, high] per row; where high < low, low."""
    span = (high - low + 1).clamp(min=1)
    noise = torch.rand(low.shape, generator=generator, dtype=torch.float64)
    return low + (noise * span).long().clamp(max=span - 1)


def draw_index(weights: Sequence[float], n: int, generator: torch.Generator) -> Tensor:
    """(n,) places in `weights`, drawn in proportion to them; n may be zero, which multinomial refuses."""
    law = torch.tensor(weights, dtype=torch.float64).cumsum(0)
    noise = torch.rand(n, generator=generator, dtype=torch.float64)
    return torch.searchsorted(law, noise * law[-1], right=True).clamp(max=len(law) - 1)
