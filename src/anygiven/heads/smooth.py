"""The smooth part of a table's numeric columns, on the axis of normal scores: the seam for kinds of column heads.

To add a kind, write a `Smooth` (the distribution) and a `ColumnHead` (features → that distribution) in a file of its
own, and name it in COLUMN_HEADS (heads/__init__.py): tables, saving and the contract tests find it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Self

from anygiven.heads.conditional import Conditional

Function = Callable[[Tensor, Tensor], Tensor]  # scores (P, M) of some rows (P,) → (P, M)
N_LEVELS = 512


class Smooth(Conditional):
    """A density of scores; a frozen dataclass whose tensors begin with the batch shape."""

    def each(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same with every tensor changed: some rows, another type, another device."""
        tensors = {name: change(tensor) for name, tensor in self._tensors().items()}
        return replace(self, **tensors)  # type: ignore[type-var]

    def followed_by(self, others: Sequence[Self]) -> Self:
        """Those of all rows, one part after the other."""
        joined = {name: torch.cat([tensor, *(o._tensors()[name] for o in others)]) for name, tensor in
                  self._tensors().items()}  # fmt: skip
        return replace(self, **joined)  # type: ignore[type-var]

    def _tensors(self) -> dict[str, Tensor]:
        named: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in named.items() if isinstance(value, Tensor)}

    @abstractmethod
    def log_mass(self, low: Tensor, high: Tensor) -> Tensor:
        """log P(low < score ≤ high), with its digits also in the tails."""

    @abstractmethod
    def temperature(self, t: float) -> Self: ...

    @abstractmethod
    def mixed(self, others: Sequence[Self], log_shares: Sequence[Tensor]) -> Smooth:
        """The mixture with others, in proportion to exp(log_shares), each of the batch shape."""

    @property
    @abstractmethod
    def centres(self) -> Tensor:
        """(…, K) where the density may be highest."""

    @property
    def n_parts(self) -> int:
        """How many numbers a row takes at each score: bounds the size of tables."""
        return 1

    def expect(self, function: Function, n: int) -> Tensor:
        """(B,) the mean of a function of the score over each row, by about n nodes or more; for a batch of one side."""
        levels = (torch.arange(N_LEVELS, dtype=torch.float64) + 0.5) / N_LEVELS
        batch = self.centres.shape[:-1]
        z = self.quantile(levels.view(-1, *[1] * len(batch)).expand(-1, *batch)).movedim(0, -1)  # (B, levels)
        return function(z, torch.arange(len(z))).mean(-1)


class ColumnHead(nn.Module, ABC):
    """Features → the Smooth of some columns, with batch shape (B, C); started near N(0, 1), the columns' marginal.

    A head serves columns whose values are points, or (is_grid) columns whose values are cells of a grid.
    """

    def __init__(self, width: int, n_columns: int, n_components: int, is_grid: bool):
        super().__init__()

    @abstractmethod
    def forward(self, features: Tensor, places: Tensor) -> Smooth:
        """Features (B, width) for all columns together, or (B, C, width) for each of them, and which of the head's
        columns (C,) are asked."""


def outputs(linear: nn.Linear, features: Tensor, blocks: Tensor, size: int) -> Tensor:
    """(B, C, size): of a linear layer whose outputs come in blocks of `size`, some blocks (C,)."""
    if features.dim() == 2:
        rows = (blocks.unsqueeze(1) * size + torch.arange(size, device=blocks.device)).flatten()
        return nn.functional.linear(features, linear.weight[rows], linear.bias[rows]).unflatten(1, (-1, size))
    weight, bias = linear.weight.unflatten(0, (-1, size)), linear.bias.unflatten(0, (-1, size))
    return torch.einsum("bcw,csw->bcs", features, weight[blocks]) + bias[blocks]
