"""Networks that read a whole path: all its edges in one pass. To add one, write a subclass in its own file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.lattice.question import NEVER
from anygiven.variables.domains import Domain


class PathNetwork(nn.Module, ABC):
    """(cells, step) → features (B, N, width) of every query variable, from the content of earlier steps alone."""

    settings: tuple[str, ...] = ("width", "depth", "dropout")  # what of an architecture it is built with
    sees_the_asked: bool = False  # whether what is asked together is seen together: a look then asks all at once
    lossless_slant: int = 0  # of a grid's lines that may be asked at once with the answers of raster order; 0: none
    width: int

    @classmethod
    def reads(cls, domains: Sequence[Domain]) -> bool:
        """Whether it is made for such variables."""
        return True

    @abstractmethod
    def forward(self, cells: Tensor, step: Tensor) -> Tensor: ...

    @abstractmethod
    def walk(self, cells: Tensor, step: Tensor) -> PathWalk: ...


class PathWalk(ABC):
    """One path, step by step, with what was seen kept in memory."""

    @abstractmethod
    def features(self) -> Tensor:
        """(B, N, width): of the variables asked at this step; anything elsewhere, and only until the next step."""

    @abstractmethod
    def reveal(self, cells: Tensor, step: Tensor) -> None:
        """Take all cells (B, N, 4), in which this step's variables now have values, and go on. In `step` (B, N) some
        of this step's variables may have been put off to a later one."""


def asks(step: Tensor) -> Tensor:
    """(B, N) whether a variable is query."""
    return (step >= 0) & (step != NEVER)


def last_step(step: Tensor) -> Tensor:
    """(B, 1); what is revealed there is seen by nobody."""
    return torch.where(asks(step), step, 0).amax(1, keepdim=True)
