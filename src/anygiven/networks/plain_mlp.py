"""The MLPs of the papers' tables, as published: values times mask beside the mask, and ReLU.

`ResidualMLP` (mlp.py) is what serves tables by default; these are for those who want ACE or SFARM as they were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.embedding import LIMIT, middle
from anygiven.networks.hiding import hide
from anygiven.variables.domains import HIGH, LOW, SYMBOL, Domain, SharedDomain

N_WAVES = 8  # of SFARM's embedding of how much is known


class PlainCells(nn.Module):
    """[x · mask, mask] of every variable; what is not a number has a vector for each of its symbols."""

    start: Tensor  # (N,) first index of each variable's symbols
    ordered: Tensor  # (N,) bool

    def __init__(self, domains: Sequence[Domain], width: int):
        super().__init__()
        sizes = torch.tensor([domain.n_symbols for domain in domains])
        self.register_buffer("start", sizes.cumsum(0) - sizes, persistent=False)
        self.register_buffer("ordered", torch.tensor([domain.is_ordered for domain in domains]), persistent=False)
        self.symbols = nn.Embedding(sum(domain.n_symbols for domain in domains), width)
        self.numbers = nn.Linear(2 * len(domains), width)

    def forward(self, cells: Tensor, is_evidence: Tensor) -> Tensor:
        """(B, width)."""
        cells = hide(cells, is_evidence)
        z = middle(cells[..., LOW], cells[..., HIGH]).clamp(-LIMIT, LIMIT)
        numbers = torch.cat([z * (is_evidence & self.ordered), is_evidence.to(z)], dim=1)
        symbols = self.symbols(self.start + cells[..., SYMBOL].long()) * is_evidence.unsqueeze(-1)
        return self.numbers(numbers) + symbols.sum(1)


class PlainMLP(AbsorbingNetwork):
    """For columns of a table, which have their own domains."""

    @classmethod
    def reads(cls, domains: Sequence[Domain]) -> bool:
        return not isinstance(domains, SharedDomain)


class ACENetwork(PlainMLP):
    """ACE's proposal network: a dense layer, then blocks h + W dropout(relu(V relu(h)))."""

    def __init__(self, domains: Sequence[Domain], width: int = 512, depth: int = 4, dropout: float = 0.0):
        super().__init__()
        self.width = width
        self.cells = PlainCells(domains, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width))
            for _ in range(depth)
        )

    def forward(self, cells: Tensor, is_evidence: Tensor) -> Tensor:
        h = self.cells(cells, is_evidence)
        for block in self.blocks:
            h = h + block(h)
        return h.relu()


class SFARMNetwork(PlainMLP):
    """SFARM's for tables: dense layers with an embedding of the step, which is how many elements are known."""

    def __init__(self, domains: Sequence[Domain], width: int = 32, depth: int = 3, dropout: float = 0.0):
        super().__init__()
        self.width, self.n_variables = width, len(domains)
        self.cells = PlainCells(domains, width)
        self.time = nn.Linear(2 * N_WAVES, width, bias=False)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth - 1))
        self.dropout = nn.Dropout(dropout)

    def forward(self, cells: Tensor, is_evidence: Tensor) -> Tensor:
        share = is_evidence.sum(1, keepdim=True) / self.n_variables  # (B, 1)
        angle = share * (0.5 * math.pi * 2 ** torch.arange(N_WAVES, device=cells.device))
        h = self.cells(cells, is_evidence) + self.time(torch.cat([angle.sin(), angle.cos()], dim=1))
        for layer in self.layers:
            h = layer(self.dropout(h.relu()))
        return h.relu()
