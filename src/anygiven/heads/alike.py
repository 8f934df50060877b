"""One head for all variables, where they are alike: characters, pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anygiven.heads.categorical import Categorical, CategoricalHead
from anygiven.heads.conditionals import Conditionals, JointHead
from anygiven.variables.domains import SYMBOL, Alike


@dataclass(frozen=True)
class AlikeConditionals(Conditionals):
    """One family of distributions with batch shape (B, C)."""

    columns: Tensor  # (C,)
    conditional: Categorical

    def log_prob(self, cells: Tensor) -> Tensor:
        return self.conditional.log_prob(cells[..., SYMBOL])

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        symbol = self.conditional.sample(generator)
        cells = symbol.new_zeros(*symbol.shape, 4)
        cells[..., SYMBOL] = symbol
        return cells

    def temperature(self, t: float) -> AlikeConditionals:
        return AlikeConditionals(self.columns, self.conditional.temperature(t))

    def entropy(self) -> Tensor:
        return self.conditional.entropy()

    def of(self, column: int) -> Categorical:
        return Categorical(self.conditional.logits[:, int((self.columns == column).nonzero()[0])])

    def where(self, is_taken: Tensor, other: AlikeConditionals) -> AlikeConditionals:
        logits = torch.where(is_taken.unsqueeze(-1), self.conditional.logits, other.conditional.logits)
        return AlikeConditionals(self.columns, Categorical(logits))

    def average(self, others: Sequence[AlikeConditionals]) -> AlikeConditionals:
        members = torch.stack([c.conditional.log_probabilities for c in (self, *others)])
        return AlikeConditionals(self.columns, Categorical(members.logsumexp(0) - math.log(len(members))))


class AlikeHead(JointHead):
    """The same map from features to a distribution for every variable."""

    def __init__(self, width: int, domains: Alike):
        super().__init__()
        self.n_variables = len(domains)
        self.head = CategoricalHead(width, torch.as_tensor(domains.domain.frequencies, dtype=torch.float32))

    def forward(self, features: Tensor, columns: Tensor | None = None) -> AlikeConditionals:
        columns = torch.arange(self.n_variables) if columns is None else columns
        features = features if columns is None or len(columns) == self.n_variables else features[:, columns]
        return AlikeConditionals(columns, self.head(features))
