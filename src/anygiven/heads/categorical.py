"""Categories, two-valued variables, and categories in order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anygiven.heads.conditional import Conditional, Head, uniform


@dataclass(frozen=True)
class Categorical(Conditional):
    """Masses of 0 … K−1. Mean, std, cdf and quantile read the index as a number."""

    logits: Tensor  # (…, K)

    @property
    def log_probabilities(self) -> Tensor:
        return self.logits.log_softmax(dim=-1)

    @property
    def probabilities(self) -> Tensor:
        return self.log_probabilities.exp()

    def _support(self) -> Tensor:
        return torch.arange(self.logits.shape[-1], dtype=self.logits.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        table = self.log_probabilities.expand(*value.shape, self.logits.shape[-1])
        return table.gather(-1, value.long().unsqueeze(-1)).squeeze(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self.quantile(uniform(self.logits.shape[:-1], generator))

    @property
    def mean(self) -> Tensor:
        return (self.probabilities * self._support()).sum(-1)

    @property
    def mode(self) -> Tensor:
        return self.logits.argmax(-1).to(self.logits.dtype)

    @property
    def std(self) -> Tensor:
        spread = (self._support() - self.mean.unsqueeze(-1)) ** 2
        return (self.probabilities * spread).sum(-1).clamp(min=0).sqrt()

    def cdf(self, value: Tensor) -> Tensor:
        return (self.probabilities * (self._support() <= value.unsqueeze(-1))).sum(-1)

    def quantile(self, level: Tensor | float) -> Tensor:
        running = self.probabilities.double().cumsum(-1)
        level = torch.as_tensor(level, dtype=torch.float64)
        index = (running < level.unsqueeze(-1) * running[..., -1:]).sum(-1)
        return index.clamp(max=self.logits.shape[-1] - 1).to(self.logits.dtype)

    def entropy(self) -> Tensor:
        return -(self.probabilities * self.log_probabilities.clamp(min=-100)).sum(-1)

    def temperature(self, t: float) -> Categorical:
        return type(self)(self.log_probabilities / t)


class CategoricalHead(Head):
    """Logits start at the log frequencies, so an untrained head answers with the marginal."""

    def __init__(self, width: int, frequencies: Tensor):
        super().__init__()
        self.linear = nn.Linear(width, len(frequencies))
        nn.init.zeros_(self.linear.weight)
        with torch.no_grad():
            self.linear.bias.copy_(frequencies.clamp(min=1e-12).log())

    def forward(self, features: Tensor) -> Categorical:
        return Categorical(self.linear(features))


@dataclass(frozen=True)
class Bernoulli(Categorical):
    """Two values, one logit."""

    @classmethod
    def from_logit(cls, logit: Tensor) -> Bernoulli:
        return cls(torch.stack([torch.zeros_like(logit), logit], dim=-1))


class BernoulliHead(Head):
    """One logit, started at the log odds of the marginal."""

    def __init__(self, width: int, frequency: float = 0.5):
        super().__init__()
        self.linear = nn.Linear(width, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.constant_(self.linear.bias, float(torch.logit(torch.tensor(frequency))))

    def forward(self, features: Tensor) -> Bernoulli:
        return Bernoulli.from_logit(self.linear(features).squeeze(-1))


@dataclass(frozen=True)
class Ordinal(Categorical):
    """Categories in order."""


class OrdinalHead(Head):
    """logit_k = free_k + a·s_k + b·s_k², with s_k the place of category k on the normal scale.

    The two shared terms move and spread the whole distribution along the order, so neighbours learn
    from each other; the free logits take what does not follow the order.
    """

    basis: Tensor  # (2, K)

    def __init__(self, width: int, frequencies: Tensor, positions: Tensor):
        super().__init__()
        self.free = CategoricalHead(width, frequencies)
        self.shared = nn.Linear(width, 2)
        nn.init.zeros_(self.shared.weight)
        nn.init.zeros_(self.shared.bias)
        self.register_buffer("basis", torch.stack([positions, positions**2]).float())

    def forward(self, features: Tensor) -> Ordinal:
        return Ordinal(self.free.linear(features) + self.shared(features) @ self.basis)
