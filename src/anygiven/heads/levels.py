"""Levels of brightness: mixtures of discretised logistics, with the channels of a pixel tied as in PixelCNN++.

Levels 0 … n − 1 stand on the axis between −1 and 1; the lowest takes all mass below it, the highest all above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from anygiven.heads.categorical import Categorical
from anygiven.heads.conditional import Conditional, uniform
from anygiven.heads.mixtures import NARROW, Logistic

FAR = 30.0  # scales: beyond all mass
ENTRIES = 2**24  # numbers of a table of masses at a time
N_POINTS = 8  # of an earlier channel, over which the mean of a later one is taken
KERNEL = Logistic()


@dataclass(frozen=True)
class PixelMixture:
    """p(c₁ … c_C) = Σ_k w_k Π_c P_k(c | the channels before it): one component for all channels of a pixel.

    The location of a channel moves in proportion to the channels before it: red moves green, both move blue.
    """

    logits: Tensor  # (…, K)
    loc: Tensor  # (…, K, C)
    scale: Tensor  # (…, K, C)
    tie: Tensor  # (…, K, C·(C−1)/2) how far the earlier channels move the later ones
    n_levels: int

    @property
    def log_weights(self) -> Tensor:
        return self.logits.log_softmax(dim=-1)

    def axis(self, level: Tensor) -> Tensor:
        return level * (2.0 / (self.n_levels - 1)) - 1.0

    def _moved(self, channel: int, earlier: Tensor) -> Tensor:
        """(…, K) the location of a channel given the channels before it (…, channel) on the axis."""
        first = channel * (channel - 1) // 2
        moves = self.tie[..., first : first + channel] * earlier.unsqueeze(-2)
        return self.loc[..., channel] + moves.sum(-1)

    def _log_mass(self, channel: int, level: Tensor, loc: Tensor) -> Tensor:
        """(…, K) log P_k(level) of one channel."""
        half = 1.0 / (self.n_levels - 1)
        middle = self.axis(level)
        a = ((middle - half).unsqueeze(-1) - loc) / self.scale[..., channel]
        b = ((middle + half).unsqueeze(-1) - loc) / self.scale[..., channel]
        low, high = (level <= 0).unsqueeze(-1), (level >= self.n_levels - 1).unsqueeze(-1)
        a, b = torch.where(low, b.clamp(max=0) - FAR, a), torch.where(high, a.clamp(min=0) + FAR, b)
        narrow = KERNEL.log_density((a + b) / 2) + (b - a).log()
        wide = KERNEL.log_mass(a, torch.maximum(b, a + NARROW / 2))
        return torch.where(b - a < NARROW, narrow, wide)

    def log_prob(self, levels: Tensor) -> Tensor:
        """(…, C) levels → (…)."""
        total, on_axis = self.log_weights, self.axis(levels)
        for c in range(levels.shape[-1]):
            total = total + self._log_mass(c, levels[..., c], self._moved(c, on_axis[..., :c]))
        return total.logsumexp(dim=-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """(…, C) levels: a component, then its channels one after the other."""
        k = Categorical(self.logits).sample(generator).long()[..., None]  # (…, 1)
        levels = self.loc.new_zeros(*self.loc.shape[:-2], self.loc.shape[-1])
        for c in range(levels.shape[-1]):
            loc = self._moved(c, self.axis(levels[..., :c])).gather(-1, k).squeeze(-1)
            noise = KERNEL.inverse_cdf(uniform(loc.shape, generator)).to(loc)
            drawn = loc + self.scale[..., c].gather(-1, k).squeeze(-1) * noise
            levels[..., c] = self._level(drawn)
        return levels

    @property
    def mean(self) -> Tensor:
        """(…, C) levels: of each component, on average over points of the channels before."""
        points = self.loc.new_zeros(1, *self.loc.shape[:-1], 0)  # (n points, …, K, channels before) on the axis
        mass, means = self.loc.new_ones(points.shape[:-1]), []  # (n points, …, K)
        for c in range(self.loc.shape[-1]):
            first = c * (c - 1) // 2
            loc = self.loc[..., c] + (self.tie[..., first : first + c] * points).sum(-1)  # (n points, …, K)
            means.append((mass * self._mean_level(loc, self.scale[..., c])).sum(0))
            if c + 1 < self.loc.shape[-1]:
                levels, shares = self._points(c, loc)  # (P, n points, …, K)
                before = points.expand(len(levels), *points.shape)
                points = torch.cat([before, self.axis(levels).unsqueeze(-1)], dim=-1).flatten(0, 1)
                mass = (mass * shares).flatten(0, 1)
        return (self.log_weights.exp().unsqueeze(-1) * torch.stack(means, dim=-1)).sum(-2)

    def _points(self, c: int, loc: Tensor) -> tuple[Tensor, Tensor]:
        """Levels of a channel and their masses: all levels where there are few, else some of equal mass."""
        if self.n_levels <= N_POINTS:
            levels = torch.arange(self.n_levels).to(loc).view(-1, *[1] * loc.dim()).expand(-1, *loc.shape)
            return levels, torch.stack([self._log_mass(c, level[..., 0], loc).exp() for level in levels])
        shares = (torch.arange(N_POINTS).to(loc) + 0.5) / N_POINTS
        drawn = loc + self.scale[..., c] * KERNEL.inverse_cdf(shares).view(-1, *[1] * loc.dim())
        return self._level(drawn), torch.full_like(drawn, 1 / N_POINTS)

    def _level(self, place: Tensor) -> Tensor:
        """The level of a place on the axis."""
        return ((place + 1) * ((self.n_levels - 1) / 2)).round().clamp(0, self.n_levels - 1)

    def _mean_level(self, loc: Tensor, scale: Tensor) -> Tensor:
        """Σ over the borders between levels of P(above it)."""
        if len(loc) == 1 or self.n_levels <= 32:
            borders = self.axis(torch.arange(self.n_levels - 1) + 0.5).tolist()
            return sum(((loc - border) / scale).sigmoid() for border in borders) + torch.zeros_like(loc)
        above = scale * (softplus((loc + 1) / scale) - softplus((loc - 1) / scale))  # as an integral: quicker, as near
        return above * ((self.n_levels - 1) / 2)

    def entropy(self) -> Tensor:
        """(…) nats: that of the components' choice and, on average, of their channels; an upper bound."""
        step = 2.0 / (self.n_levels - 1)
        # A whole number has at most the entropy of a Gaussian whose variance is a twelfth greater; rounding adds half
        # a level at most to the spread of a logistic.
        variance = (KERNEL.std * self.scale / step + 0.5).square() + 1 / 12
        bounded = (0.5 * (2 * math.pi * math.e * variance).log()).clamp(max=math.log(self.n_levels)).sum(-1)
        weights = self.log_weights.exp()
        return (weights * bounded).sum(-1) + Categorical(self.logits).entropy()

    def temperature(self, t: float) -> PixelMixture:
        """Scales t times as wide, as SFARM draws its Fig. 6: less noise, and no colour becomes likelier than it was."""
        return replace(self, scale=self.scale * t)

    def mixed(self, others) -> PixelMixture:
        """The equal mixture with others: all components together."""
        everyone = (self, *others)
        joined = {name: torch.cat([getattr(one, name) for one in everyone], dim=-2) for name in ("loc", "scale", "tie")}
        return replace(self, logits=torch.cat([one.log_weights for one in everyone], dim=-1), **joined)


@dataclass(frozen=True)
class LevelMixture(Conditional):
    """One channel: the same with all that a distribution of numbers can tell."""

    pixel: PixelMixture

    def log_prob(self, value: Tensor) -> Tensor:
        return self.pixel.log_prob(value.unsqueeze(-1))

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self.pixel.sample(generator).squeeze(-1)

    @property
    def table(self) -> Categorical:
        """The masses of all levels."""
        one = self.pixel
        each = replace(one, logits=one.logits.unsqueeze(-2), loc=one.loc.unsqueeze(-3), scale=one.scale.unsqueeze(-3),
                       tie=one.tie.unsqueeze(-3))  # fmt: skip
        shape, levels = one.logits.shape[:-1], torch.arange(one.n_levels).to(one.loc)
        size = max(1, ENTRIES // max(1, math.prod(shape) * one.logits.shape[-1]))  # levels at a time
        parts = [each.log_prob(part[:, None].expand(*shape, -1, -1)) for part in levels.split(size)]
        return Categorical(torch.cat(parts, dim=-1))

    @property
    def mean(self) -> Tensor:
        return self.table.mean

    @property
    def mode(self) -> Tensor:
        return self.table.mode

    @property
    def std(self) -> Tensor:
        return self.table.std

    def cdf(self, value: Tensor) -> Tensor:
        return self.table.cdf(value)

    def quantile(self, level: Tensor | float) -> Tensor:
        return self.table.quantile(level)

    def entropy(self) -> Tensor:
        """From the mixture's cdf at the borders between levels: ten times quicker than their log masses."""
        one = self.pixel
        borders = one.axis(torch.arange(one.n_levels - 1).to(one.loc) + 0.5)
        parts = zip(*(t.unbind(-1) for t in (one.log_weights.exp(), one.loc[..., 0], one.scale[..., 0])), strict=True)
        below = one.loc.new_zeros(1)
        for weight, loc, scale in parts:
            below = below + weight[..., None] * ((borders - loc[..., None]) / scale[..., None]).sigmoid()
        none, all_of_it = torch.zeros_like(below[..., :1]), torch.ones_like(below[..., :1])
        masses = below.diff(dim=-1, prepend=none, append=all_of_it).clamp(min=0)
        return -torch.xlogy(masses, masses).sum(-1)

    def temperature(self, t: float) -> LevelMixture:
        return LevelMixture(self.pixel.temperature(t))


class PixelHead(nn.Module):
    """features (…, width) → PixelMixture, started near the marginal of the levels."""

    def __init__(self, width: int, frequencies: Tensor, n_channels: int, n_components: int):
        super().__init__()
        self.n_levels, self.n_channels, self.n_components = len(frequencies), n_channels, n_components
        n_ties = n_channels * (n_channels - 1) // 2
        self.sizes = [1, n_channels, n_channels, n_ties]
        self.linear = nn.Linear(width, n_components * sum(self.sizes))
        nn.init.normal_(self.linear.weight, std=1e-3)
        shares = (torch.arange(n_components) + 0.5) / n_components
        level = torch.searchsorted(frequencies.double().cumsum(0), shares.double()).clamp(max=self.n_levels - 1)
        loc = level * (2.0 / (self.n_levels - 1)) - 1.0 + 0.02 * (torch.arange(n_components) - n_components / 2)
        start = torch.zeros(n_components, sum(self.sizes))
        start[:, 1 : 1 + n_channels] = loc.float().unsqueeze(-1)
        start[:, 1 + n_channels : 1 + 2 * n_channels] = math.log(0.5 / n_components + 0.05)
        with torch.no_grad():
            self.linear.bias.copy_(start.flatten())

    def forward(self, features: Tensor) -> PixelMixture:
        numbers = self.linear(features).unflatten(-1, (self.n_components, sum(self.sizes)))
        logits, loc, log_scale, tie = numbers.split(self.sizes, dim=-1)
        return PixelMixture(logits.squeeze(-1), loc, log_scale.clamp(-7, 3).exp(), tie.tanh(), self.n_levels)
