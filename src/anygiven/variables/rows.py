"""Rows as a training reads them: cells and which are present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True)
class Data:
    """Cells (n, N, 4) and is_present (n, N); how much each row counts (n,), all alike if it is None."""

    x: Tensor
    is_present: Tensor
    weight: Tensor | None = None

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, index) -> Data:
        return Data(self.x[index], self.is_present[index], None if self.weight is None else self.weight[index])


class Rows(Protocol):
    """What a run learns from: rows that are made when they are asked for, so that they need not fit in memory."""

    def __len__(self) -> int: ...

    def rows(self, index: Tensor) -> Data: ...
