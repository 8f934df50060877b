"""A residual MLP: a few dense blocks on the whole row at once; the fastest on tables."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.embedding import CellFeatures
from anygiven.variables.domains import Domain, SharedDomain


class ResidualBlock(nn.Module):
    def __init__(self, width: int, dropout: float):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        nn.init.zeros_(self.outer.bias)

    def forward(self, h: Tensor) -> Tensor:
        return h + self.outer(self.dropout(nn.functional.silu(self.inner(self.norm(h)))))


class ResidualMLP(AbsorbingNetwork):
    @classmethod
    def reads(cls, domains: Sequence[Domain]) -> bool:
        """Columns of a table, which have their own domains."""
        return not isinstance(domains, SharedDomain)

    def __init__(self, domains: Sequence[Domain], width: int = 256, depth: int = 3, dropout: float = 0.1):
        super().__init__()
        self.width = width
        self.cells = CellFeatures(domains)
        self.symbols = nn.EmbeddingBag(self.cells.n_symbols, width, mode="sum")
        self.scores = nn.Linear(len(domains) * self.cells.n_features, width)
        nn.init.normal_(self.symbols.weight, std=0.3 / max(len(domains), 1) ** 0.5)
        self.blocks = nn.ModuleList(ResidualBlock(width, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, cells: Tensor, is_evidence: Tensor) -> Tensor:
        index, features = self.cells(cells, is_evidence)
        h = self.symbols(index) + self.scores(features.flatten(1))  # (B, width)
        for block in self.blocks:
            h = block(h)
        return self.norm(h)
