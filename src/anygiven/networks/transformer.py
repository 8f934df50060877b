"""A masked Transformer: one token a variable, hidden ones carry only their name."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.attention import Attended, AttentionBlock, Rotary
from anygiven.networks.neighbours import neighbours_for
from anygiven.networks.tokens import tokens_for
from anygiven.variables.domains import Domain


class MaskedTransformer(AbsorbingNetwork):
    settings = ("width", "depth", "dropout", "n_heads")

    def __init__(
        self, domains: Sequence[Domain], width: int = 96, depth: int = 3, dropout: float = 0.1, n_heads: int = 4
    ):
        super().__init__()
        self.width = width
        self.tokens = tokens_for(domains, width)
        self.rotary = Rotary(domains, width // n_heads)
        self.neighbours = neighbours_for(domains, width)
        self.blocks = nn.ModuleList(AttentionBlock(width, n_heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, cells: Tensor, is_evidence: Tensor) -> Tensor:
        h = self.tokens.names + self.tokens.values(cells, is_evidence)  # (B, N, width)
        place = torch.arange(h.shape[1], device=h.device).unsqueeze(0)
        if self.neighbours is not None:
            step, now = torch.where(is_evidence, 0, 1), torch.zeros_like(place[:, :1])
            h = h + self.neighbours(cells, step, is_evidence, place.expand(len(h), -1), now)
        turn = self.rotary(place)
        seen = Attended(mask=None, asking=turn, offering=turn)
        for block in self.blocks:
            h = block(h, seen)
        return self.norm(h)
