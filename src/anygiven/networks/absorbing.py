"""Networks that know one thing: a look from this evidence. To add one, write a subclass in its own file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from anygiven.variables.domains import Domain


class AbsorbingNetwork(nn.Module, ABC):
    """(cells, is_evidence) → features (B, width), or (B, N, width) with features of each variable."""

    settings: tuple[str, ...] = ("width", "depth", "dropout")  # what of an architecture it is built with
    width: int
    takes_masking_mode = False  # whether forward takes a third: that of the evidence (B,), 0 where it is unsaid

    @classmethod
    def reads(cls, domains: Sequence[Domain]) -> bool:
        """Whether it is made for such variables."""
        return True

    @abstractmethod
    def forward(self, cells: Tensor, is_evidence: Tensor) -> Tensor: ...
