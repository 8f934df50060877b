"""The mixture head: Gaussians, or logistics where values are cells of a grid."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anygiven.heads.conditional import in_double, uniform
from anygiven.heads.smooth import ENTRIES, ColumnHead, Function, Smooth, inside, normal_levels, outputs, solved

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
FINEST_LOG_SCALE, WIDEST_LOG_SCALE = -7.5, 3.0
N_NODES = 49  # of a component, in a quadrature
WIDE_SCALES = (0.6, 2.4)  # of components, beyond each of which the nodes are four times as many
LEAST_WEIGHT = 1e-5  # components below it do not move a mean
NARROW = 1e-2  # intervals narrower than this many scales are density × width


class Kernel(ABC):
    """A standard symmetric density: what the components of a mixture look like."""

    std: float

    @abstractmethod
    def log_density(self, z: Tensor) -> Tensor: ...

    @abstractmethod
    def log_cdf(self, z: Tensor) -> Tensor: ...

    @abstractmethod
    def cdf(self, z: Tensor) -> Tensor: ...

    @abstractmethod
    def inverse_cdf(self, level: Tensor) -> Tensor: ...

    def log_mass(self, low: Tensor, high: Tensor) -> Tensor:
        """log(F(high) − F(low)), from whichever tail keeps the digits."""
        flip = low + high > 0
        a, b = torch.where(flip, -high, low), torch.where(flip, -low, high)
        log_b, log_a = self.log_cdf(b), self.log_cdf(a)
        return log_b + torch.log1p(-torch.exp((log_a - log_b).clamp(max=-1e-7)))


class Normal(Kernel):
    std = 1.0

    def log_density(self, z: Tensor) -> Tensor:
        return -0.5 * z * z - LOG_SQRT_2PI

    def log_cdf(self, z: Tensor) -> Tensor:
        return torch.special.log_ndtr(z)

    def cdf(self, z: Tensor) -> Tensor:
        return torch.special.ndtr(z)

    def inverse_cdf(self, level: Tensor) -> Tensor:
        return torch.special.ndtri(level)


class Logistic(Kernel):
    std = math.pi / math.sqrt(3)

    def log_density(self, z: Tensor) -> Tensor:
        return nn.functional.logsigmoid(z) + nn.functional.logsigmoid(-z)

    def log_cdf(self, z: Tensor) -> Tensor:
        return nn.functional.logsigmoid(z)

    def cdf(self, z: Tensor) -> Tensor:
        return z.sigmoid()

    def inverse_cdf(self, level: Tensor) -> Tensor:
        return torch.logit(level)


@dataclass(frozen=True)
class KernelMixture(Smooth):
    """Σ_k softmax(logits)_k · kernel((x − loc_k) / scale_k) / scale_k."""

    logits: Tensor  # (…, K)
    loc: Tensor  # (…, K)
    scale: Tensor  # (…, K)
    kernel: Kernel

    @property
    def log_weights(self) -> Tensor:
        return self.logits.log_softmax(dim=-1)

    def _standard(self, value: Tensor) -> Tensor:
        return (value.unsqueeze(-1) - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        parts = self.kernel.log_density(self._standard(value)) - self.scale.log()
        return (self.log_weights + parts).logsumexp(dim=-1)

    def log_mass(self, low: Tensor, high: Tensor) -> Tensor:
        """log P(low < x ≤ high)."""
        a, b = self._standard(low), self._standard(high)
        width = (b - a).clamp(min=1e-12)
        narrow = self.kernel.log_density((a + b) / 2) + width.log()
        wide = self.kernel.log_mass(a, torch.maximum(b, a + NARROW / 2))
        return (self.log_weights + torch.where(width < NARROW, narrow, wide)).logsumexp(dim=-1)

    def component(self, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Draw which component, and return its location and scale."""
        running = in_double(self.log_weights.exp()).cumsum(-1)
        u = uniform(running.shape[:-1], generator, running.device).unsqueeze(-1)
        k = (running < u * running[..., -1:]).sum(-1, keepdim=True).clamp(max=running.shape[-1] - 1)
        k = k.to(self.loc.device)
        return self.loc.gather(-1, k).squeeze(-1), self.scale.gather(-1, k).squeeze(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        loc, scale = self.component(generator)
        noise = self.kernel.inverse_cdf(uniform(loc.shape, generator)).to(loc)
        return loc + scale * noise

    @property
    def mean(self) -> Tensor:
        return (self.log_weights.exp() * self.loc).sum(-1)

    @property
    def std(self) -> Tensor:
        second = (self.kernel.std * self.scale) ** 2 + (self.loc - self.mean.unsqueeze(-1)) ** 2
        return (self.log_weights.exp() * second).sum(-1).sqrt()

    @property
    def mode(self) -> Tensor:
        """The densest of the component centres and a fine grid of quantiles."""
        candidates = torch.cat([self.loc, self._grid(129)], dim=-1)  # (…, C)
        density = torch.stack([self.log_prob(candidates[..., c]) for c in range(candidates.shape[-1])], dim=-1)
        return candidates.gather(-1, density.argmax(-1, keepdim=True)).squeeze(-1)

    def cdf(self, value: Tensor) -> Tensor:
        return (self.kernel.cdf(self._standard(value)) * self.log_weights.exp()).sum(-1)

    def quantile(self, level: Tensor | float) -> Tensor:
        """Between the components' own quantiles."""
        level = inside(level, self.loc)
        own = self.loc + self.scale * self.kernel.inverse_cdf(level).unsqueeze(-1)  # (…, K)
        weights = self.log_weights.exp()

        def cdf(z: Tensor) -> Tensor:
            return (weights * self.kernel.cdf(self._standard(z))).sum(-1)

        def density(z: Tensor) -> Tensor:
            return (weights * self.kernel.log_density(self._standard(z)).exp() / self.scale).sum(-1)

        return solved(cdf, density, own.amin(-1), own.amax(-1), level)

    def _grid(self, n: int) -> Tensor:
        """(…, n) points from the 1e-4 to the 1−1e-4 quantile."""
        low, high = self.quantile(1e-4), self.quantile(1 - 1e-4)
        return low.unsqueeze(-1) + (high - low).unsqueeze(-1) * torch.linspace(0, 1, n).to(low)

    def entropy(self) -> Tensor:
        """−Σ_k w_k E_k[log p], each expectation over 64 quantiles of component k."""
        levels = (torch.arange(64).to(self.loc) + 0.5) / 64
        nodes = self.kernel.inverse_cdf(levels)
        parts = [
            torch.stack([self.log_prob(self.loc[..., k] + self.scale[..., k] * node) for node in nodes]).mean(0)
            for k in range(self.loc.shape[-1])
        ]
        return -(self.log_weights.exp() * torch.stack(parts, dim=-1)).sum(-1)

    def quadrature(self) -> tuple[Tensor, Tensor]:
        """Of each component, as likely as it is; nothing has to be inverted."""
        levels, weights = normal_levels(N_NODES, self.loc)
        nodes = self.kernel.inverse_cdf(inside(levels, self.loc))
        z = self.loc.unsqueeze(-1) + self.scale.unsqueeze(-1) * nodes  # (…, K, nodes)
        shares = self.log_weights.exp().unsqueeze(-1) * weights
        return z.flatten(-2).movedim(-1, 0), shares.flatten(-2).movedim(-1, 0)

    def mixed(self, others: Sequence[KernelMixture], log_shares: Sequence[Tensor]) -> KernelMixture:
        """All components together, each as likely as its member makes it."""
        everyone = (self, *others)
        logits = [one.log_weights + share.unsqueeze(-1) for one, share in zip(everyone, log_shares, strict=True)]
        loc, scale = (torch.cat([getattr(one, name) for one in everyone], dim=-1) for name in ("loc", "scale"))
        return KernelMixture(torch.cat(logits, dim=-1), loc, scale, self.kernel)

    @property
    def centres(self) -> Tensor:
        return self.loc

    @property
    def n_parts(self) -> int:
        return self.loc.shape[-1]

    def expect(self, function: Function, n: int) -> Tensor:
        """By quadrature over each component of each row that counts: the marginal bends within wide ones, which have
        more nodes."""
        weights = self.log_weights.exp()
        row, component = (weights > LEAST_WEIGHT).nonzero(as_tuple=True)  # (P,) each
        loc, scale, weight = (part[row, component] for part in (self.loc, self.scale, weights))
        found, finer = torch.empty_like(loc), torch.bucketize(scale, torch.tensor(WIDE_SCALES).to(scale))
        for k in range(len(WIDE_SCALES) + 1):
            nodes, shares = self._nodes(n, 4**k)
            for some in (finer == k).nonzero().squeeze(1).split(max(1, ENTRIES // len(nodes))):
                z = loc[some, None] + scale[some, None] * nodes
                found[some] = function(z, row[some]) @ shares
        total = torch.zeros(len(self.loc), dtype=loc.dtype)
        return total.index_add(0, row, weight * found) / total.index_add(0, row, weight)

    def _nodes(self, n: int, finer: int) -> tuple[Tensor, Tensor]:
        """Where a standard component is evaluated and with which weights: the trapezoidal rule."""
        far, n = (6, n) if isinstance(self.kernel, Normal) else (30, 161)
        t = torch.linspace(-far, far, (n - 1) * finer + 1, dtype=self.loc.dtype)
        density = self.kernel.log_density(t).exp()
        return t, density / density.sum()

    def temperature(self, t: float) -> KernelMixture:
        """p^(1/t) of each component: its mass becomes w^(1/t) · scale^(1 − 1/t), its scale √t times as wide.
        Exact for Gaussians that stand apart."""
        logits = self.log_weights / t + (1 - 1 / t) * self.scale.log()
        return type(self)(logits, self.loc, self.scale * math.sqrt(t), self.kernel)


def standard_normal_start(n_components: int, kernel: Kernel, spread: float = 0.5) -> tuple[Tensor, Tensor]:
    """Locations and scales of a mixture that is nearly N(0, 1) although its components differ."""
    levels = (torch.arange(n_components, dtype=torch.float64) + 0.5) / n_components
    loc = spread * torch.special.ndtri(levels)
    scale = ((1 - (loc**2).mean()).sqrt() / kernel.std).expand(n_components)
    return loc.float(), scale.float()


class MixtureHead(ColumnHead):
    """3K numbers a column: logits, locations, log scales. Gaussians where values are points, logistics on a grid."""

    def __init__(self, width: int, n_columns: int, n_components: int, is_grid: bool):
        super().__init__(width, n_columns, n_components, is_grid)
        self.kernel: Kernel = Logistic() if is_grid else Normal()
        self.size = 3 * n_components
        self.linear = nn.Linear(width, n_columns * self.size)
        loc, scale = standard_normal_start(n_components, self.kernel)
        nn.init.normal_(self.linear.weight, std=1e-3)
        with torch.no_grad():
            self.linear.bias.copy_(torch.cat([torch.zeros(n_components), loc, scale.log()]).repeat(n_columns))

    def forward(self, features: Tensor, places: Tensor) -> KernelMixture:
        logits, loc, log_scale = outputs(self.linear, features, places, self.size).chunk(3, dim=-1)
        return KernelMixture(logits, loc, log_scale.clamp(FINEST_LOG_SCALE, WIDEST_LOG_SCALE).exp(), self.kernel)
