"""Gaussians, mixtures of Gaussians, and mixtures of logistics cut into cells."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anygiven.heads.conditional import Conditional, Head, uniform

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
LEAST_LEVEL = 1e-9  # quantiles further out are those of this level
MAX_ITERATIONS = 100
N_PARTS = 32
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
class Gaussian(Conditional):
    """N(loc, scale²)."""

    loc: Tensor
    scale: Tensor

    def log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -0.5 * z * z - LOG_SQRT_2PI - self.scale.log()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        noise = torch.randn(self.loc.shape, generator=generator, dtype=self.loc.dtype)
        return self.loc + self.scale * noise

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def std(self) -> Tensor:
        return self.scale

    def cdf(self, value: Tensor) -> Tensor:
        return torch.special.ndtr((value - self.loc) / self.scale)

    def quantile(self, level: Tensor | float) -> Tensor:
        return self.loc + self.scale * torch.special.ndtri(torch.as_tensor(level, dtype=self.loc.dtype))

    def entropy(self) -> Tensor:
        return 0.5 + LOG_SQRT_2PI + self.scale.log()

    def temperature(self, t: float) -> Gaussian:
        return Gaussian(self.loc, self.scale * math.sqrt(t))


@dataclass(frozen=True)
class KernelMixture(Conditional):
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
        running = self.log_weights.exp().double().cumsum(-1)
        u = uniform(running.shape[:-1], generator).unsqueeze(-1)
        k = (running < u * running[..., -1:]).sum(-1, keepdim=True).clamp(max=running.shape[-1] - 1)
        return self.loc.gather(-1, k).squeeze(-1), self.scale.gather(-1, k).squeeze(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        loc, scale = self.component(generator)
        noise = self.kernel.inverse_cdf(uniform(loc.shape, generator)).to(loc.dtype)
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
        """Between the components' own quantiles: closed in on in two rounds, then by Newton's steps while they stay
        inside what is known, else by halves."""
        level = torch.as_tensor(level, dtype=self.loc.dtype).clamp(LEAST_LEVEL, 1 - LEAST_LEVEL)
        own = self.loc + self.scale * self.kernel.inverse_cdf(level).unsqueeze(-1)  # (…, K)
        low, high = own.amin(-1), own.amax(-1)
        weights, shares = self.log_weights.exp(), torch.arange(1, N_PARTS, dtype=low.dtype) / N_PARTS
        for _ in range(2):
            width = (high - low) / N_PARTS
            inner = low + (high - low) * shares.view(-1, *[1] * low.dim())  # (parts − 1, …)
            passed = (self.cdf(inner) < level).sum(0)
            low, high = low + width * passed, low + width * (passed + 1)
        z = (low + high) / 2
        for _ in range(MAX_ITERATIONS):
            t = self._standard(z)
            missed = (weights * self.kernel.cdf(t)).sum(-1) - level
            low, high = torch.where(missed < 0, z, low), torch.where(missed < 0, high, z)
            density = (weights * self.kernel.log_density(t).exp() / self.scale).sum(-1)
            newton = z - missed / density.clamp(min=1e-30)
            after = torch.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
            # Newton has about squared the error of the step before; halves go on until nothing is left to halve.
            if bool(((after - z).abs() <= torch.finfo(z.dtype).eps ** 0.7 * (1 + z.abs())).all()):
                return after
            z = after
        return z

    def _grid(self, n: int) -> Tensor:
        """(…, n) points from the 1e-4 to the 1−1e-4 quantile."""
        low, high = self.quantile(1e-4), self.quantile(1 - 1e-4)
        return low.unsqueeze(-1) + (high - low).unsqueeze(-1) * torch.linspace(0, 1, n, dtype=low.dtype)

    def entropy(self) -> Tensor:
        """−Σ_k w_k E_k[log p], each expectation over 64 quantiles of component k."""
        levels = (torch.arange(64, dtype=self.loc.dtype) + 0.5) / 64
        nodes = self.kernel.inverse_cdf(levels)
        parts = [
            torch.stack([self.log_prob(self.loc[..., k] + self.scale[..., k] * node) for node in nodes]).mean(0)
            for k in range(self.loc.shape[-1])
        ]
        return -(self.log_weights.exp() * torch.stack(parts, dim=-1)).sum(-1)

    def temperature(self, t: float) -> KernelMixture:
        """p^(1/t) of each component: its mass becomes w^(1/t) · scale^(1 − 1/t), its scale √t times as wide.
        Exact for Gaussians that stand apart."""
        logits = self.log_weights / t + (1 - 1 / t) * self.scale.log()
        return type(self)(logits, self.loc, self.scale * math.sqrt(t), self.kernel)


@dataclass(frozen=True)
class DiscretisedMixture(Conditional):
    """A kernel mixture over the integers: P(k) = F(k + ½) − F(k − ½)."""

    smooth: KernelMixture

    def log_prob(self, value: Tensor) -> Tensor:
        return self.smooth.log_mass(value - 0.5, value + 0.5)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self.smooth.sample(generator).round()

    def _support(self) -> Tensor:
        low, high = self.smooth.quantile(1e-6).floor().min(), self.smooth.quantile(1 - 1e-6).ceil().max()
        return torch.arange(float(low), float(high) + 1, dtype=self.smooth.loc.dtype)

    def _masses(self) -> tuple[Tensor, Tensor]:
        """The support (S,) and log masses (…, S)."""
        support = self._support()
        return support, torch.stack([self.log_prob(k.expand(self.smooth.loc.shape[:-1])) for k in support], dim=-1)

    @property
    def mean(self) -> Tensor:
        support, log_mass = self._masses()
        return (log_mass.exp() * support).sum(-1)

    @property
    def std(self) -> Tensor:
        support, log_mass = self._masses()
        mean = (log_mass.exp() * support).sum(-1, keepdim=True)
        return (log_mass.exp() * (support - mean) ** 2).sum(-1).sqrt()

    @property
    def mode(self) -> Tensor:
        support, log_mass = self._masses()
        return support[log_mass.argmax(-1)]

    def cdf(self, value: Tensor) -> Tensor:
        return self.smooth.cdf(value.floor() + 0.5)

    def quantile(self, level: Tensor | float) -> Tensor:
        return (self.smooth.quantile(level) - 0.5 - 1e-6).ceil()

    def entropy(self) -> Tensor:
        _, log_mass = self._masses()
        return -(log_mass.exp() * log_mass).sum(-1)

    def temperature(self, t: float) -> DiscretisedMixture:
        return DiscretisedMixture(self.smooth.temperature(t))


def standard_normal_start(n_components: int, kernel: Kernel, spread: float = 0.5) -> tuple[Tensor, Tensor]:
    """Locations and scales of a mixture that is nearly N(0, 1) although its components differ."""
    levels = (torch.arange(n_components, dtype=torch.float64) + 0.5) / n_components
    loc = spread * torch.special.ndtri(levels)
    scale = ((1 - (loc**2).mean()).sqrt() / kernel.std).expand(n_components)
    return loc.float(), scale.float()


class GaussianHead(Head):
    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, 2)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, features: Tensor) -> Gaussian:
        loc, log_scale = self.linear(features).unbind(-1)
        return Gaussian(loc, log_scale.clamp(-7, 5).exp())


class MixtureHead(Head):
    """3K numbers per variable: logits, locations, log scales; started near N(0, 1)."""

    def __init__(self, width: int, n_components: int = 8, kernel: Kernel | None = None):
        super().__init__()
        self.kernel = kernel or Normal()
        self.linear = nn.Linear(width, 3 * n_components)
        loc, scale = standard_normal_start(n_components, self.kernel)
        nn.init.normal_(self.linear.weight, std=1e-3)
        with torch.no_grad():
            self.linear.bias.copy_(torch.cat([torch.zeros(n_components), loc, scale.log()]))

    def forward(self, features: Tensor) -> KernelMixture:
        logits, loc, log_scale = self.linear(features).chunk(3, dim=-1)
        return KernelMixture(logits, loc, log_scale.clamp(-7, 5).exp(), self.kernel)


class DiscretisedLogisticHead(Head):
    """Integers around `centre` with spread `spread`: a mixture of discretised logistics."""

    def __init__(self, width: int, n_components: int = 8, centre: float = 0.0, spread: float = 1.0):
        super().__init__()
        self.centre, self.spread = centre, spread
        self.mixture = MixtureHead(width, n_components, Logistic())

    def forward(self, features: Tensor) -> DiscretisedMixture:
        unit = self.mixture(features)
        loc, scale = self.centre + self.spread * unit.loc, self.spread * unit.scale
        return DiscretisedMixture(KernelMixture(unit.logits, loc, scale, unit.kernel))
