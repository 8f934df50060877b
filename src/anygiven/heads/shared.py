"""One head for all variables, where they are alike: characters, pixels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from anygiven.heads.categorical import Categorical, CategoricalHead
from anygiven.heads.conditional import Conditional
from anygiven.heads.conditionals import Conditionals, JointHead
from anygiven.heads.levels import LevelMixture, PixelHead, PixelMixture
from anygiven.variables.domains import CELL, SYMBOL, Levels, SharedDomain


@dataclass(frozen=True)
class SharedConditionals(Conditionals):
    """One family of distributions with batch shape (B, C)."""

    columns: Tensor  # (C,)

    def _place(self, column: int) -> int:
        return int((self.columns == column).nonzero()[0])

    @staticmethod
    def _cells(values: Tensor) -> Tensor:
        """(B, C, n) → (B, C, 4): the first n numbers of each cell."""
        return torch.nn.functional.pad(values, (0, len(CELL) - values.shape[-1]))

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """(B, C, n): the mean of each number that a cell holds."""


@dataclass(frozen=True)
class SharedCategories(SharedConditionals):
    """Characters, or levels that are free of each other."""

    conditional: Categorical

    def log_prob(self, cells: Tensor, is_asked: Tensor | None = None) -> Tensor:
        return self.conditional.log_prob(cells[..., SYMBOL])

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self._cells(self.conditional.sample(generator).unsqueeze(-1))

    def temperature(self, t: float) -> SharedCategories:
        return SharedCategories(self.columns, self.conditional.temperature(t))

    def entropy(self) -> Tensor:
        return self.conditional.entropy()

    @property
    def mean(self) -> Tensor:
        return self.conditional.mean.unsqueeze(-1)

    def of(self, column: int) -> Categorical:
        return Categorical(self.conditional.logits[:, self._place(column)])

    def average(self, others: Sequence[SharedCategories]) -> SharedCategories:
        members = torch.stack([c.conditional.log_probabilities for c in (self, *others)])
        return SharedCategories(self.columns, Categorical(members.logsumexp(0) - math.log(len(members))))


@dataclass(frozen=True)
class SharedPixels(SharedConditionals):
    """Pixels whose channels are revealed together."""

    conditional: PixelMixture

    @property
    def n_channels(self) -> int:
        return self.conditional.loc.shape[-1]

    def log_prob(self, cells: Tensor, is_asked: Tensor | None = None) -> Tensor:
        return self.conditional.log_prob(cells[..., : self.n_channels])

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self._cells(self.conditional.sample(generator))

    def temperature(self, t: float) -> SharedPixels:
        return SharedPixels(self.columns, self.conditional.temperature(t))

    def entropy(self) -> Tensor:
        """Exact for one channel, an upper bound for several."""
        return LevelMixture(self.conditional).entropy() if self.n_channels == 1 else self.conditional.entropy()

    @property
    def mean(self) -> Tensor:
        return self.conditional.mean

    def of(self, column: int) -> Conditional:
        """Of a pixel with several channels: the first of them."""
        one = self._each(lambda tensor: tensor[:, self._place(column)])
        return LevelMixture(replace(one, loc=one.loc[..., :1], scale=one.scale[..., :1], tie=one.tie[..., :0]))

    def _each(self, change) -> PixelMixture:
        changed = {name: change(getattr(self.conditional, name)) for name in ("logits", "loc", "scale", "tie")}
        return replace(self.conditional, **changed)

    def average(self, others: Sequence[SharedPixels]) -> SharedPixels:
        return SharedPixels(self.columns, self.conditional.mixed([other.conditional for other in others]))


class SharedHead(JointHead):
    """The same map from features to a distribution for every variable.

    Levels have a mixture of so many discretised logistics, or with none a mass for each level; symbols have masses.
    """

    def __init__(self, width: int, domains: SharedDomain, n_components: int):
        super().__init__()
        self.n_variables = len(domains)
        domain, frequencies = domains.domain, torch.as_tensor(domains.domain.frequencies, dtype=torch.float32)
        self.head: CategoricalHead | PixelHead = CategoricalHead(width, frequencies)
        if isinstance(domain, Levels) and n_components > 0:
            self.head = PixelHead(width, frequencies, domain.n_channels, n_components)

    def forward(self, features: Tensor, columns: Tensor | None = None) -> SharedConditionals:
        columns = torch.arange(self.n_variables) if columns is None else columns
        if not torch.equal(columns, torch.arange(self.n_variables)):
            features = features[:, columns.to(features.device)]
        if isinstance(self.head, PixelHead):
            return SharedPixels(columns, self.head(features))
        return SharedCategories(columns, self.head(features))
