"""Categories: masses of 0 … K−1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anygiven.heads.conditional import Conditional, in_double, uniform


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
        return torch.arange(self.logits.shape[-1], dtype=self.logits.dtype, device=self.logits.device)

    def log_prob(self, value: Tensor) -> Tensor:
        table = self.log_probabilities.expand(*value.shape, self.logits.shape[-1])
        return table.gather(-1, value.long().unsqueeze(-1)).squeeze(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self.quantile(uniform(self.logits.shape[:-1], generator, self.logits.device))

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
        running = in_double(self.probabilities).cumsum(-1)
        level = torch.as_tensor(level, dtype=torch.float64, device=running.device)
        index = (running < level.unsqueeze(-1) * running[..., -1:]).sum(-1)
        return index.clamp(max=self.logits.shape[-1] - 1).to(self.logits)

    def entropy(self) -> Tensor:
        return -(self.probabilities * self.log_probabilities.clamp(min=-100)).sum(-1)

    def temperature(self, t: float) -> Categorical:
        return Categorical(self.log_probabilities / t)


class CategoricalHead(nn.Module):
    """Features (…, width) → Categorical. Logits start at the log frequencies, so an untrained head answers with the
    marginal."""

    def __init__(self, width: int, frequencies: Tensor):
        super().__init__()
        self.linear = nn.Linear(width, len(frequencies))
        nn.init.zeros_(self.linear.weight)
        with torch.no_grad():
            self.linear.bias.copy_(frequencies.clamp(min=1e-12).log())

    def forward(self, features: Tensor) -> Categorical:
        return Categorical(self.linear(features))
