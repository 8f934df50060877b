"""The attention block that both Transformers are built of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm, scaled_dot_product_attention

from anygiven.networks.activation import SquaredReLU
from anygiven.variables.domains import Domain, SharedDomain

Turn = tuple[Tensor, Tensor]  # cosines and sines


class Rotary(nn.Module):
    """Queries and keys turned by the places of variables, so that attention sees distances.

    A token may ask from one place (the variable it predicts) and offer from another (the value it holds). Columns of
    a table have no places and are not turned.
    """

    cos: Tensor  # (N, head width / 2)
    sin: Tensor

    def __init__(self, domains: Sequence[Domain], head_width: int):
        super().__init__()
        self.has_places = isinstance(domains, SharedDomain)
        if isinstance(domains, SharedDomain):
            n, n_axes = head_width // 2, len(domains.shape)
            axis = torch.arange(n) % n_axes
            speed = 500.0 ** (-(torch.arange(n) // n_axes) / max(1, n // n_axes))
            place = torch.cartesian_prod(*(torch.arange(float(k)) for k in domains.shape)).view(-1, n_axes)
            angle = place[:, axis] * speed
            self.register_buffer("cos", angle.cos(), persistent=False)
            self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, variables: Tensor) -> Turn | None:
        """Cosines and sines (B, 1, L, head width / 2) of variables (B, L)."""
        if not self.has_places:
            return None
        return self.cos[variables].unsqueeze(1), self.sin[variables].unsqueeze(1)


def turned(x: Tensor, turn: Turn | None) -> Tensor:
    """(B, heads, L, head width) with each pair of numbers rotated."""
    if turn is None:
        return x
    cos, sin = turn
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


@dataclass
class Memory:
    """Keys and values (B, heads, capacity, head width) of the tokens that one block has seen."""

    keys: Tensor
    values: Tensor
    length: int = 0

    @classmethod
    def empty(cls, n_rows: int, n_heads: int, head_width: int, device: torch.device) -> Memory:
        nothing = torch.zeros(n_rows, n_heads, 0, head_width, device=device)
        return cls(nothing, nothing.clone())

    def extend(self, keys: Tensor, values: Tensor) -> None:
        end = self.length + keys.shape[2]
        if end > self.keys.shape[2]:  # twice the room, so that growing costs little
            room = self.keys.new_zeros(*self.keys.shape[:2], 2 * end - self.keys.shape[2], self.keys.shape[3])
            self.keys, self.values = torch.cat([self.keys, room], dim=2), torch.cat([self.values, room], dim=2)
        self.keys[:, :, self.length : end], self.values[:, :, self.length : end] = keys, values
        self.length = end


@dataclass
class Attended:
    """What a pass of attention is told: who sees whom, from where, and what is remembered."""

    mask: Tensor | None  # (B, 1, Q, K) float, −inf where not visible; None: everything
    is_causal: bool = False
    asking: Turn | None = None  # by the places that tokens ask from
    offering: Turn | None = None  # by the places of what they hold
    n_remembered: int = 0  # the first so many new tokens are kept in the memory


class AttentionBlock(nn.Module):
    """Pre-norm attention with normalised queries and keys, then a feed-forward layer."""

    def __init__(self, width: int, n_heads: int, dropout: float):
        super().__init__()
        self.n_heads, self.head_width = n_heads, width // n_heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.query_scale = nn.Parameter(torch.ones(self.head_width))
        self.merge = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), SquaredReLU(), nn.Dropout(dropout), nn.Linear(4 * width, width)
        )

    def forward(self, h: Tensor, seen: Attended, memory: Memory | None = None) -> Tensor:
        b, n, width = h.shape
        q, k, v = self.qkv(self.norm(h)).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        q, k = self.normalised(q, k)
        q, k = turned(q, seen.asking), turned(k, seen.offering)
        if memory is not None:
            k, v = self._remember(k, v, seen.n_remembered, memory)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=seen.mask, is_causal=seen.is_causal)
        h = h + self.merge(mixed.transpose(1, 2).reshape(b, n, width))
        return h + self.feed(self.feed_norm(h))

    def normalised(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return rms_norm(q, (self.head_width,)) * self.query_scale, rms_norm(k, (self.head_width,))

    @staticmethod
    def _remember(k: Tensor, v: Tensor, n: int, memory: Memory) -> tuple[Tensor, Tensor]:
        """The memory with the first n new tokens, then the others, which are asked once and forgotten."""
        memory.extend(k[:, :, :n], v[:, :, :n])
        known_k, known_v = memory.keys[:, :, : memory.length], memory.values[:, :, : memory.length]
        if n == k.shape[2]:
            return known_k, known_v
        return torch.cat([known_k, k[:, :, n:]], dim=2), torch.cat([known_v, v[:, :, n:]], dim=2)
