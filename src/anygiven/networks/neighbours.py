"""What stands next to a place in a line, as far as it may be seen: short n-grams as features.

A Transformer has to learn with many multiplications what a table of n-grams knows by looking up. Each token looks up
the runs of characters around the place it is about; one that its horizon hides counts as a symbol of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.networks.hiding import hide
from anygiven.variables.domains import SYMBOL, Domain, SharedDomain

GRAMS = (
    (-1,), (-2, -1), (-3, -2, -1), (-4, -3, -2, -1), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4),
    (-1, 1), (-2, -1, 1), (-1, 1, 2), (-2, -1, 1, 2),
)  # fmt: skip
OFFSETS = (-4, -3, -2, -1, 1, 2, 3, 4)
ROWS_PER_WIDTH = 128  # of one n-gram's table, for each unit of the network's width; longer ones are hashed
MIX = 0x1E3779B97F4A7C15  # an odd number: the upper bits of a product with it depend on all bits of an index
UPPER = 33  # bits below the upper ones


def neighbours_for(domains: Sequence[Domain], width: int) -> Neighbours | None:
    """Only variables that stand in a line have neighbours."""
    if isinstance(domains, SharedDomain) and len(domains.shape) == 1:
        return Neighbours(domains, width)
    return None


class Neighbours(nn.Module):
    """(B, L, width) features of the places that tokens are about."""

    first_row: Tensor  # (grams,)
    n_rows: Tensor  # (grams,)
    powers: Tensor  # (offsets, grams) the weight of each neighbour in each n-gram's index
    offsets: Tensor  # (offsets,)

    def __init__(self, domains: SharedDomain, width: int, table_width: int = 32):
        super().__init__()
        self.n_symbols, self.length = domains.domain.n_symbols, len(domains)
        base = self.n_symbols + 2  # hidden, and beyond the end
        powers = torch.zeros(len(OFFSETS), len(GRAMS), dtype=torch.int64)
        for g, gram in enumerate(GRAMS):
            for k, offset in enumerate(gram):
                powers[OFFSETS.index(offset), g] = base**k
        self.max_rows = ROWS_PER_WIDTH * width
        n_each = [min(base ** len(gram), self.max_rows) for gram in GRAMS]
        n_rows = torch.tensor(n_each)
        self.register_buffer("powers", powers, persistent=False)
        self.register_buffer("offsets", torch.tensor(OFFSETS), persistent=False)
        self.register_buffer("n_rows", n_rows, persistent=False)
        self.register_buffer("first_row", n_rows.cumsum(0) - n_rows, persistent=False)
        self.grams = nn.Embedding(sum(n_each), table_width)
        self.merge = nn.Linear(len(GRAMS) * table_width, width)
        nn.init.normal_(self.grams.weight, std=0.1)

    def forward(self, cells: Tensor, step: Tensor, is_shown: Tensor, place: Tensor, horizon: Tensor) -> Tensor:
        """For tokens about `place` (B, L) that see content up to the step `horizon` (B, L)."""
        symbols = hide(cells, is_shown)[..., SYMBOL].long()  # (B, N)
        beside = place.unsqueeze(-1) + self.offsets  # (B, L, offsets)
        inside = (beside >= 0) & (beside < self.length)
        at = beside.clamp(0, self.length - 1).flatten(1)
        seen = inside & ((step.gather(1, at).view_as(beside)) <= horizon.unsqueeze(-1))
        found = torch.where(seen, symbols.gather(1, at).view_as(beside), self.n_symbols)
        found = torch.where(inside, found, self.n_symbols + 1)
        index = found.unsqueeze(-1).mul(self.powers).sum(-2)  # (B, L, grams)
        row = torch.where(self.n_rows < self.max_rows, index, ((index * MIX) >> UPPER) % self.max_rows)
        return self.merge(self.grams(self.first_row + row).flatten(2))
