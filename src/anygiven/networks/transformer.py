"""A masked Transformer: one token a variable, hidden ones carry only their name."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.embedding import CellFeatures
from anygiven.variables.domains import Domain


class AttentionBlock(nn.Module):
    def __init__(self, width: int, n_heads: int, dropout: float):
        super().__init__()
        self.n_heads = n_heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * width, width)
        )

    def forward(self, h: Tensor) -> Tensor:
        b, n, width = h.shape
        q, k, v = self.qkv(self.norm(h)).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)  # (B, heads, N, width / heads)
        h = h + self.merge(mixed.transpose(1, 2).reshape(b, n, width))
        return h + self.feed(self.feed_norm(h))


class MaskedTransformer(AbsorbingNetwork):
    def __init__(
        self, domains: Sequence[Domain], width: int = 96, depth: int = 3, dropout: float = 0.1, n_heads: int = 4
    ):
        super().__init__()
        self.width = width
        self.cells = CellFeatures(domains)
        self.names = nn.Parameter(0.3 * torch.randn(len(domains), width))
        self.symbols = nn.Embedding(self.cells.n_symbols, width)
        self.scores = nn.Parameter(0.1 * torch.randn(len(domains), self.cells.n_features, width))
        nn.init.normal_(self.symbols.weight, std=0.3)
        self.blocks = nn.ModuleList(AttentionBlock(width, n_heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, cells: Tensor, is_evidence: Tensor) -> Tensor:
        index, features = self.cells(cells, is_evidence)
        h = self.names + self.symbols(index) + torch.einsum("bnf,nfw->bnw", features, self.scores)  # (B, N, width)
        for block in self.blocks:
            h = block(h)
        return self.norm(h)
