"""A continuum with atoms: zero-inflated money, censored readings, integers with favourite values."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anygiven.heads.categorical import Categorical, CategoricalHead
from anygiven.heads.conditional import Conditional, Head, bisect
from anygiven.heads.mixtures import KernelMixture, MixtureHead


@dataclass(frozen=True)
class AtomsPlusContinuous(Conditional):
    """P(atom a) for each atom, and with the remaining probability a draw from the smooth part.

    log_prob is a log mass at an atom and a log density elsewhere.
    """

    symbols: Categorical  # (…, A+1) the atoms and, last, the smooth part
    atoms: Tensor  # (A,) ascending, on the axis of the smooth part
    smooth: KernelMixture  # (…)

    def _atom_of(self, value: Tensor) -> Tensor:
        """(…) the index of the atom, or A."""
        hit = value.unsqueeze(-1) == self.atoms  # (…, A)
        return torch.where(hit.any(-1), hit.float().argmax(-1) if len(self.atoms) else 0, len(self.atoms))

    def log_prob(self, value: Tensor) -> Tensor:
        symbol = self._atom_of(value)
        density = torch.where(symbol == len(self.atoms), self.smooth.log_prob(value), 0.0)
        return self.symbols.log_prob(symbol) + density

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        symbol = self.symbols.sample(generator).long()
        padded = torch.cat([self.atoms, self.atoms.new_zeros(1)])
        return torch.where(symbol == len(self.atoms), self.smooth.sample(generator), padded[symbol])

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Probabilities of the atoms (…, A) and of the smooth part (…)."""
        probabilities = self.symbols.probabilities
        return probabilities[..., :-1], probabilities[..., -1]

    @property
    def mean(self) -> Tensor:
        atoms, rest = self._parts()
        return (atoms * self.atoms).sum(-1) + rest * self.smooth.mean

    @property
    def std(self) -> Tensor:
        atoms, rest = self._parts()
        second = (atoms * self.atoms**2).sum(-1) + rest * (self.smooth.std**2 + self.smooth.mean**2)
        return (second - self.mean**2).clamp(min=0).sqrt()

    @property
    def mode(self) -> Tensor:
        """The likeliest atom if any atom outweighs the smooth part, else the smooth part's mode."""
        symbol = self.symbols.mode.long()
        padded = torch.cat([self.atoms, self.atoms.new_zeros(1)])
        return torch.where(symbol == len(self.atoms), self.smooth.mode, padded[symbol])

    def cdf(self, value: Tensor) -> Tensor:
        atoms, rest = self._parts()
        return (atoms * (self.atoms <= value.unsqueeze(-1))).sum(-1) + rest * self.smooth.cdf(value)

    def quantile(self, level: Tensor | float) -> Tensor:
        low, high = self.smooth.quantile(1e-9), self.smooth.quantile(1 - 1e-7)
        if len(self.atoms):
            low, high = low.clamp(max=self.atoms[0] - 1e-3), high.clamp(min=self.atoms[-1] + 1e-3)
        level = torch.as_tensor(level, dtype=low.dtype)
        shape = torch.broadcast_shapes(low.shape, level.shape)
        return self._snap(bisect(self.cdf, level.expand(shape), low.expand(shape), high.expand(shape)))

    def _snap(self, value: Tensor) -> Tensor:
        """Bisection closes in on an atom from below: name the atom itself."""
        if not len(self.atoms):
            return value
        gap = (value.unsqueeze(-1) - self.atoms).abs()
        nearest = gap.min(-1)
        return torch.where(nearest.values < 1e-5, self.atoms[nearest.indices], value)

    def entropy(self) -> Tensor:
        return self.symbols.entropy() + self._parts()[1] * self.smooth.entropy()

    def temperature(self, t: float) -> AtomsPlusContinuous:
        return AtomsPlusContinuous(self.symbols.temperature(t), self.atoms, self.smooth.temperature(t))


class AtomsPlusContinuousHead(Head):
    """Symbol logits started at the log frequencies, and a mixture started near N(0, 1)."""

    def __init__(self, width: int, atoms: Tensor, frequencies: Tensor, n_components: int = 8):
        super().__init__()
        self.symbols = CategoricalHead(width, frequencies)
        self.smooth = MixtureHead(width, n_components)
        self.register_buffer("atoms", atoms.float())

    def forward(self, features: Tensor) -> AtomsPlusContinuous:
        atoms = self.get_buffer("atoms")
        return AtomsPlusContinuous(self.symbols(features), atoms, self.smooth(features))
