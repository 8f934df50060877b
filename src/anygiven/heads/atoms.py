"""A continuum with atoms: zero-inflated money, censored readings, integers with favourite values."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anygiven.heads.categorical import Categorical
from anygiven.heads.conditional import Conditional
from anygiven.heads.smooth import Smooth


@dataclass(frozen=True)
class AtomsPlusContinuous(Conditional):
    """P(atom a) for each atom, and with the remaining probability a draw from the smooth part.

    log_prob is a log mass at an atom and a log density elsewhere.
    """

    symbols: Categorical  # (…, A+1) the atoms and, last, the smooth part
    atoms: Tensor  # (A,) ascending, on the axis of the smooth part
    smooth: Smooth  # (…)

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
        symbol, smooth = self.symbol_and_score(level)
        padded = torch.cat([self.atoms, self.atoms.new_zeros(1)]).to(smooth.dtype)
        return torch.where(symbol == len(self.atoms), smooth, padded[symbol])

    def symbol_and_score(self, level: Tensor | float) -> tuple[Tensor, Tensor]:
        """The quantile as the atom it is (A: none), and its place in the smooth part if it is none.

        The distribution function jumps at the atoms, in their order, also where several stand at one place (as the
        neighbouring atoms of a grid do, which have nothing between them).
        """
        atoms, rest = self._parts()  # (…, A), (…)
        level = torch.as_tensor(level, dtype=rest.dtype, device=rest.device)
        places = self.atoms.to(rest.dtype).view(-1, *[1] * rest.dim())
        before = atoms.cumsum(-1) - atoms + rest.unsqueeze(-1) * self.smooth.cdf(places).movedim(0, -1)  # F just before
        symbol = (before + atoms < level.unsqueeze(-1)).sum(-1)  # the first atom that reaches the level, A if none does
        lowest = _at(symbol, torch.cat([before, torch.full_like(rest, torch.inf).unsqueeze(-1)], dim=-1))
        passed = _at(symbol, torch.cat([torch.zeros_like(rest).unsqueeze(-1), atoms.cumsum(-1)], dim=-1))
        smooth = self.smooth.quantile(((level - passed) / rest.clamp(min=1e-30)).clamp(0, 1))
        return torch.where(level > lowest, symbol, len(self.atoms)), smooth

    def entropy(self) -> Tensor:
        return self.symbols.entropy() + self._parts()[1] * self.smooth.entropy()

    def temperature(self, t: float) -> AtomsPlusContinuous:
        return AtomsPlusContinuous(self.symbols.temperature(t), self.atoms, self.smooth.temperature(t))


def _at(index: Tensor, table: Tensor) -> Tensor:
    """table[…, index]."""
    return table.expand(*index.shape, -1).gather(-1, index.unsqueeze(-1)).squeeze(-1)
