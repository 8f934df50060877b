"""A Conditional is a distribution over one variable, for a batch of rows at once."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Conditional(ABC):
    """p(variable | evidence). All tensors share a batch shape; `value` broadcasts against it."""

    @abstractmethod
    def log_prob(self, value: Tensor) -> Tensor:
        """Log density, or log mass where values are discrete."""

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Tensor: ...

    @property
    @abstractmethod
    def mean(self) -> Tensor: ...

    @property
    @abstractmethod
    def mode(self) -> Tensor: ...

    @property
    @abstractmethod
    def std(self) -> Tensor: ...

    @abstractmethod
    def cdf(self, value: Tensor) -> Tensor:
        """P(variable ≤ value)."""

    @abstractmethod
    def quantile(self, level: Tensor | float) -> Tensor:
        """The smallest value whose cdf reaches the level."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """In nats (differential where there is a density)."""

    @abstractmethod
    def temperature(self, t: float) -> Conditional:
        """The same distribution sharpened (t < 1) or flattened (t > 1)."""


def uniform(shape, generator: torch.Generator | None, device: torch.device | None = None) -> Tensor:
    """Float64 uniforms in (0, 1): float32 noise would quietly lower the temperature. They are drawn on the CPU, so that
    a seed gives the same draws on every device."""
    return torch.rand(shape, generator=generator, dtype=torch.float64).clamp(1e-15, 1 - 1e-15).to(device)


def in_double(tensor: Tensor) -> Tensor:
    """In float64; on the CPU if the device has none."""
    return tensor.cpu().double() if tensor.device.type == "mps" else tensor.double()
