"""The conditionals of several variables at once: what a model answers with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.heads.conditional import Conditional


class Conditionals(ABC):
    """p(variable | what its step may see) of C variables for B rows. Values are cells (B, C, 4)."""

    columns: Tensor  # (C,) which variables, on the CPU

    @abstractmethod
    def log_prob(self, cells: Tensor, is_asked: Tensor | None = None) -> Tensor:
        """(B, C, 4) → (B, C). With is_asked (B, C), on the CPU, what is not asked may be anything: a costly head leaves
        it out."""

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """(B, C, 4) cells."""

    @abstractmethod
    def temperature(self, t: float) -> Conditionals:
        """Sharpened (t < 1) or flattened (t > 1), as the Conditional of each variable is."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """(B, C) in nats; of the parts, where a variable is partly continuous: see the head."""

    @abstractmethod
    def of(self, column: int) -> Conditional:
        """The Conditional of one variable, for the B rows."""

    @abstractmethod
    def average(self, others: Sequence) -> Conditionals:
        """The equal mixture with those of other models."""


class JointHead(nn.Module, ABC):
    """Features (B, width) of all variables together, or (B, N, width) of each → Conditionals."""

    @abstractmethod
    def forward(self, features: Tensor, columns: Tensor | None = None) -> Conditionals:
        """Of all variables, or of the given ones only."""
