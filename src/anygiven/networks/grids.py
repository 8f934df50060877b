"""Variables on a grid as planes that convolutions read."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.errors import QuestionError
from anygiven.variables.domains import Domain, Levels, SharedDomain


def is_grid(domains: Sequence[Domain]) -> bool:
    return isinstance(domains, SharedDomain) and len(domains.shape) >= 2 and isinstance(domains.domain, Levels)


def grid_of(domains: Sequence[Domain]) -> tuple[Levels, tuple[int, int]]:
    """The domain of the pixels, and how many rows and columns the variables stand in.

    Channels that are variables of their own stand side by side, so that a row is width × channels long and the raster
    order of the grid has them innermost.
    """
    if not is_grid(domains):
        raise QuestionError("Convolutions need pixels on a grid; use another network for tables and texts.")
    assert isinstance(domains, SharedDomain)
    assert isinstance(domains.domain, Levels)
    return domains.domain, (domains.shape[0], len(domains) // domains.shape[0])


class Planes(nn.Module):
    """Cells (…, 4) → (…, channels + 1): levels between −1 and 1, and a one that says: known."""

    def __init__(self, domain: Levels):
        super().__init__()
        self.n_channels = domain.n_channels
        self.highest = max(1, domain.n_symbols - 1)
        self.n_planes = domain.n_channels + 1

    def forward(self, cells: Tensor) -> Tensor:
        levels = cells[..., : self.n_channels] * (2.0 / self.highest) - 1.0
        return torch.cat([levels, torch.ones_like(levels[..., :1])], dim=-1)
