"""The spline head: a monotone rational-quadratic spline to a normal (Durkan et al. 2019), by zuko."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anygiven.errors import require
from anygiven.heads.mixtures import FINEST_LOG_SCALE, NARROW, WIDEST_LOG_SCALE, Normal
from anygiven.heads.reweighted import tempered
from anygiven.heads.smooth import ColumnHead, Smooth, inside, outputs

BOUND = 5.0  # beyond it the spline is the identity
N_CENTRES = 48
NORMAL = Normal()


@dataclass(frozen=True)
class Spline(Smooth):
    """x is such that spline((x − loc) / scale) is N(0, 1)."""

    widths: Tensor  # (…, K) unconstrained, as are the next two
    heights: Tensor  # (…, K)
    slopes: Tensor  # (…, K − 1) at the inner knots
    loc: Tensor  # (…)
    scale: Tensor  # (…)

    @property
    def _spline(self):
        transforms = require("zuko.transforms", "splines")
        return transforms.MonotonicRQSTransform(self.widths, self.heights, self.slopes, bound=BOUND)

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z, log_slope = self._spline.call_and_ladj(self._standard(value))
        return NORMAL.log_density(z) + log_slope - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return NORMAL.cdf(self._spline(self._standard(value)))

    def log_mass(self, low: Tensor, high: Tensor) -> Tensor:
        spline = self._spline
        a, b = self._standard(low), self._standard(high)
        z, log_slope = spline.call_and_ladj((a + b) / 2)
        width = (b - a).clamp(min=1e-12)
        narrow = NORMAL.log_density(z) + log_slope + width.log()
        a, b = spline(a), spline(b)
        wide = NORMAL.log_mass(a, torch.maximum(b, a + NARROW / 2))
        return torch.where((b - a < NARROW) & (width < NARROW), narrow, wide)

    def quantile(self, level: Tensor | float) -> Tensor:
        return self.loc + self.scale * self._spline.inv(NORMAL.inverse_cdf(inside(level, self.loc)))

    def temperature(self, t: float) -> Smooth:
        return tempered(self, t)

    @property
    def centres(self) -> Tensor:
        """Quantiles, which stand close where the density is high."""
        levels = ((torch.arange(N_CENTRES) + 0.5) / N_CENTRES).view(-1, *[1] * self.loc.dim())
        return self.quantile(levels.expand(-1, *self.loc.shape)).movedim(0, -1)

    @property
    def n_parts(self) -> int:
        return self.widths.shape[-1]


class SplineHead(ColumnHead):
    """3K + 1 numbers a column: the spline's, a location and a log scale; started at the identity, so at N(0, 1)."""

    def __init__(self, width: int, n_columns: int, n_components: int, is_grid: bool):
        super().__init__(width, n_columns, n_components, is_grid)
        require("zuko", "splines")
        self.sizes = [n_components, n_components, n_components - 1, 1, 1]
        self.linear = nn.Linear(width, n_columns * sum(self.sizes))
        nn.init.normal_(self.linear.weight, std=1e-3)
        nn.init.zeros_(self.linear.bias)

    def forward(self, features: Tensor, places: Tensor) -> Spline:
        numbers = outputs(self.linear, features, places, sum(self.sizes))
        widths, heights, slopes, loc, log_scale = numbers.split(self.sizes, dim=-1)
        scale = log_scale.squeeze(-1).clamp(FINEST_LOG_SCALE, WIDEST_LOG_SCALE).exp()
        return Spline(widths, heights, slopes, loc.squeeze(-1), scale)
