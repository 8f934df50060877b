"""Cells → numbers a network can read: the symbol's own vector, and features of the normal score."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.networks.hiding import hide
from anygiven.variables.domains import HIGH, LOW, SYMBOL, Domain
from anygiven.variables.marginals import SCORE_LIMIT

LIMIT = 5.0  # scores further out look alike to the network
N_BINS = 7


def middle(low: Tensor, high: Tensor) -> Tensor:
    """The middle of a cell; where it is open to one side, the median of what lies in it."""
    z = 0.5 * (low + high)
    is_low, is_high = low <= -SCORE_LIMIT, high >= SCORE_LIMIT
    z = torch.where(is_low, torch.special.ndtri(0.5 * torch.special.ndtr(high)), z)
    return torch.where(is_high, -torch.special.ndtri(0.5 * torch.special.ndtr(-low)), z)


class CellFeatures(nn.Module):
    """For each variable: an index of its symbol (0 of its block: hidden) and features of its score."""

    start: Tensor  # (N,) first index of each variable's symbols
    ordered: Tensor  # (N,) bool
    knots: Tensor  # (N_BINS,)

    def __init__(self, domains: Sequence[Domain]):
        super().__init__()
        n_each = [domain.n_symbols + 1 for domain in domains]
        sizes = torch.tensor(n_each)
        self.register_buffer("start", sizes.cumsum(0) - sizes, persistent=False)
        self.register_buffer("ordered", torch.tensor([d.is_ordered for d in domains]), persistent=False)
        edges = torch.special.ndtri(torch.arange(1, N_BINS + 1, dtype=torch.float64) / (N_BINS + 1)).float()
        self.register_buffer("knots", edges, persistent=False)
        self.n_symbols = sum(n_each)
        self.n_features = 2 + N_BINS

    def forward(self, cells: Tensor, is_evidence: Tensor) -> tuple[Tensor, Tensor]:
        """Symbol indices (B, N) and features (B, N, n_features), all zero where not evidence."""
        cells = hide(cells, is_evidence)
        index = self.start + torch.where(is_evidence, cells[..., SYMBOL].long() + 1, 0)
        z = middle(cells[..., LOW], cells[..., HIGH]).clamp(-LIMIT, LIMIT)
        # Hinges at the quantiles of a normal let one layer bend where the data is.
        hinges = (z.unsqueeze(-1) - self.knots).relu()
        features = torch.cat([z.unsqueeze(-1), 0.3 * z.unsqueeze(-1) ** 2, hinges], dim=-1)
        return index, features * (is_evidence & self.ordered).unsqueeze(-1)
