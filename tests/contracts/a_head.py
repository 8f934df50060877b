"""A column head in one file: one Laplace distribution a column."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anygiven.heads.conditional import uniform
from anygiven.heads.smooth import ColumnHead, Smooth, outputs


@dataclass(frozen=True)
class Laplace(Smooth):
    loc: Tensor
    scale: Tensor

    def log_prob(self, value):
        return -(value - self.loc).abs() / self.scale - (2 * self.scale).log()

    def cdf(self, value):
        z = (value - self.loc) / self.scale
        return 0.5 + 0.5 * z.sign() * -torch.expm1(-z.abs())

    def log_mass(self, low, high):
        return (self.cdf(high) - self.cdf(low)).clamp(min=1e-30).log()

    def quantile(self, level):
        level = torch.as_tensor(level, dtype=self.loc.dtype)
        return self.loc - self.scale * (level - 0.5).sign() * torch.log1p(-2 * (level - 0.5).abs())

    def sample(self, generator=None):
        return self.quantile(uniform(self.loc.shape, generator).to(self.loc))

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def std(self):
        return math.sqrt(2) * self.scale

    def entropy(self):
        return 1 + (2 * self.scale).log()

    def temperature(self, t):
        return Laplace(self.loc, self.scale * t)

    def mixed(self, others, log_shares):
        raise NotImplementedError("one network")

    @property
    def centres(self):
        return self.loc.unsqueeze(-1)


class LaplaceHead(ColumnHead):
    def __init__(self, width, n_columns, n_components, is_grid):
        super().__init__(width, n_columns, n_components, is_grid)
        self.linear = nn.Linear(width, 2 * n_columns)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, features, places):
        loc, log_scale = outputs(self.linear, features, places, 2).unbind(-1)
        return Laplace(loc, log_scale.clamp(-7, 3).exp() / math.sqrt(2))
