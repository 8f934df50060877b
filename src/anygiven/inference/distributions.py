"""What a look says of one column, row by row: every summary of one law, in the domain's own numbers.

The distribution function is the law: masses at atoms and on grids, a density elsewhere. A quantile is its generalised
inverse; mean, std, mode, entropy, log probabilities and draws are those of the same masses and densities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anygiven.heads import AtomsPlusContinuous, Categorical, Smooth, smooth_log_prob
from anygiven.heads.smooth import LEAST_LEVEL
from anygiven.variables.domains import ON_GRID, OTHER, CategoricalDomain, Domain, Numeric, open_ended
from anygiven.variables.marginals import LOG_SQRT_2PI, SCORE_LIMIT

ENTRIES = 2**22  # numbers of a table at a time: rows × values × components
FEW_CELLS = 1024  # of a grid: as many are summed one by one
N_SHARES = 128


class Distribution(ABC):
    """p(column | evidence) for B rows. Values come as (B, M) and answers go as (B,) or (B, M), in float64."""

    domain: Domain
    n_rows: int

    @abstractmethod
    def rows(self, index) -> Distribution:
        """Those of some rows."""

    @abstractmethod
    def followed_by(self, others: Sequence) -> Distribution:
        """Those of all rows, one part after the other."""

    @property
    @abstractmethod
    def mean(self) -> np.ndarray: ...

    @property
    @abstractmethod
    def std(self) -> np.ndarray: ...

    @property
    @abstractmethod
    def mode(self) -> np.ndarray:
        """(B,) the likeliest value."""

    @abstractmethod
    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """(L,) → (B, L) the smallest value whose cdf reaches the level."""

    @abstractmethod
    def cdf(self, values: np.ndarray) -> np.ndarray:
        """P(column ≤ value)."""

    @abstractmethod
    def log_prob(self, values: np.ndarray) -> np.ndarray:
        """Log mass at atoms and on grids, log density elsewhere, −inf for what is impossible."""

    @abstractmethod
    def entropy(self) -> np.ndarray:
        """(B,) nats: of masses, and differential where there is a density."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """(B, n)."""

    @abstractmethod
    def masses(self) -> tuple[np.ndarray, np.ndarray]:
        """The values that have a mass (S,) and their masses (B, S); all of them, if they are few, else the atoms."""


def distribution_of(domain: Domain, conditional) -> Distribution:
    """The distribution that a head's Conditional of one column is, in its domain's numbers."""
    if isinstance(domain, Numeric):
        return Numbers.of(domain, conditional)
    assert isinstance(domain, CategoricalDomain)
    return Categories.of(domain, conditional)


def point_of(distribution: Distribution, statistic: str) -> np.ndarray:
    """(B,) one value: the mean, the median or the mode; of categories without order always the mode."""
    if isinstance(distribution, Categories):
        if statistic == "median" and distribution.domain.is_ordered:
            return distribution.quantile(np.array([0.5]))[:, 0]
        return distribution.mode
    return distribution.quantile(np.array([0.5]))[:, 0] if statistic == "median" else getattr(distribution, statistic)


@dataclass(frozen=True)
class Categories(Distribution):
    """Masses of a fixed set of values; in their order if they have one, else as numbers if they are."""

    domain: CategoricalDomain
    p: np.ndarray  # (B, S)

    @classmethod
    def of(cls, domain: CategoricalDomain, conditional: Categorical) -> Categories:
        p = conditional.logits.cpu().double().softmax(-1).numpy()
        return cls(domain, p)

    @property
    def n_rows(self) -> int:
        return len(self.p)

    def rows(self, index) -> Categories:
        return Categories(self.domain, self.p[index])

    def followed_by(self, others: Sequence[Categories]) -> Categories:
        return Categories(self.domain, np.concatenate([self.p, *(other.p for other in others)]))

    @cached_property
    def values(self) -> np.ndarray:
        """(S,) as objects."""
        found = np.empty(len(self.domain.values), dtype=object)
        found[:] = self.domain.values
        return found

    @property
    def has_numbers(self) -> bool:
        return all(isinstance(value, (bool, int, float)) for value in self.domain.values)

    @property
    def has_order(self) -> bool:
        return self.domain.is_ordered or self.has_numbers

    @cached_property
    def _numbers(self) -> np.ndarray:
        return np.asarray(self.domain.values, dtype=np.float64)

    @cached_property
    def _order(self) -> np.ndarray:
        """(S,) the values from the lowest up."""
        return np.arange(len(self.values)) if self.domain.is_ordered else np.argsort(self._numbers, kind="stable")

    @property
    def mean(self) -> np.ndarray:
        return self.p @ self._numbers

    @property
    def std(self) -> np.ndarray:
        return np.sqrt((self.p * (self._numbers - self.mean[:, None]) ** 2).sum(1))

    @property
    def mode(self) -> np.ndarray:
        """(B,) the likeliest value that has a name."""
        return self.values[np.where(self.values == OTHER, -1.0, self.p).argmax(1)]

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        running = self.p[:, self._order].cumsum(1)[:, None, :]  # (B, 1, S)
        at = (running < np.clip(levels, LEAST_LEVEL, 1 - LEAST_LEVEL)[..., None]).sum(-1)
        return self.values[self._order[np.minimum(at, len(self.values) - 1)]]

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """Of numbers, or of categories in order."""
        running = np.concatenate([np.zeros((self.n_rows, 1)), self.p[:, self._order].cumsum(1)], axis=1)
        running = np.minimum(running / running[:, -1:], 1.0)
        if self.has_numbers:
            count = np.searchsorted(self._numbers[self._order], np.asarray(values, dtype=np.float64), side="right")
        else:
            count = self._symbols(values) + 1
        return np.take_along_axis(running, np.broadcast_to(count, (self.n_rows, values.shape[1])), axis=1)

    def _symbols(self, values: np.ndarray) -> np.ndarray:
        """−1 where a value is none of them."""
        return np.array([[self.domain.index.get(value, -1) for value in row] for row in values], dtype=np.int64)

    def log_prob(self, values: np.ndarray) -> np.ndarray:
        symbols = np.broadcast_to(self._symbols(values), (self.n_rows, values.shape[1]))
        with np.errstate(divide="ignore"):
            log_p = np.log(np.take_along_axis(self.p, np.maximum(symbols, 0), axis=1))
        return np.where(symbols < 0, -np.inf, log_p)

    def entropy(self) -> np.ndarray:
        return _entropy(self.p)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.values[_draw(self.p, n, rng)]

    def masses(self) -> tuple[np.ndarray, np.ndarray]:
        return self.values, self.p


@dataclass(frozen=True)
class Numbers(Distribution):
    """Atoms, and a smooth part on normal scores: a mass for each cell of a grid, a density elsewhere."""

    domain: Numeric
    conditional: AtomsPlusContinuous  # in float64, its atoms where the domain has them

    @classmethod
    def of(cls, domain: Numeric, conditional: AtomsPlusContinuous) -> Numbers:
        logits = conditional.symbols.logits.cpu().double()
        if not domain.has_room:
            logits = torch.cat([logits[:, :-1], torch.full_like(logits[:, -1:], -torch.inf)], dim=1)
        smooth = conditional.smooth.each(lambda tensor: tensor.cpu().double())
        return cls(domain, AtomsPlusContinuous(Categorical(logits), torch.from_numpy(domain.atom_scores), smooth))

    @property
    def n_rows(self) -> int:
        return len(self.conditional.symbols.logits)

    @property
    def smooth(self) -> Smooth:
        return self.conditional.smooth

    def rows(self, index) -> Numbers:
        symbols = Categorical(self.conditional.symbols.logits[index])
        part = self.smooth.each(lambda tensor: tensor[index])
        return Numbers(self.domain, AtomsPlusContinuous(symbols, self.conditional.atoms, part))

    def followed_by(self, others: Sequence[Numbers]) -> Numbers:
        logits = torch.cat([one.conditional.symbols.logits for one in (self, *others)])
        smooth = self.smooth.followed_by([other.smooth for other in others])
        return Numbers(self.domain, AtomsPlusContinuous(Categorical(logits), self.conditional.atoms, smooth))

    def _in_parts(self, compute: Callable[[Numbers, slice], np.ndarray], width: int) -> np.ndarray:
        """compute(some rows, which) for so many rows at a time that a table of (rows, width, components) fits."""
        size = max(1, ENTRIES // max(1, width * self.smooth.n_parts))
        if self.n_rows <= size:
            return compute(self, slice(None))
        slices = [slice(start, start + size) for start in range(0, self.n_rows, size)]
        return np.concatenate([compute(self.rows(part), part) for part in slices])

    @cached_property
    def _p(self) -> np.ndarray:
        """(B, A + 1) of the atoms and the smooth part."""
        return self.conditional.symbols.probabilities.numpy()

    def _smooth_cdf(self, z: np.ndarray) -> np.ndarray:
        """(B, M) or (1, M) scores → (B, M)."""
        below = self.smooth.cdf(torch.from_numpy(np.ascontiguousarray(z.T)))  # (M, B)
        return below.numpy().T

    # ------------------------------------------------------------------ the law

    def cdf(self, values: np.ndarray) -> np.ndarray:
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (self.n_rows, np.shape(values)[1]))
        return self._in_parts(lambda some, part: some._cdf(values[part]), values.shape[1])

    def _cdf(self, values: np.ndarray) -> np.ndarray:
        slack = 0.0 if self.domain.step is None else ON_GRID * self.domain.step
        passed = np.searchsorted(self.domain.atom_values, values + slack, side="right")
        running = np.concatenate([np.zeros((self.n_rows, 1)), self._p[:, :-1].cumsum(1)], axis=1)
        atoms = np.take_along_axis(running, passed, axis=1)
        return np.minimum(atoms + self.smooth_below(values), 1.0)

    def smooth_below(self, values: np.ndarray) -> np.ndarray:
        """(B, M) the cdf without its jumps at atoms."""
        return self._p[:, -1:] * self._smooth_cdf(self.domain.cdf_score(values))

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        levels = np.clip(np.asarray(levels, dtype=np.float64), LEAST_LEVEL, 1 - LEAST_LEVEL)
        return self._in_parts(lambda some, _: some._quantile(levels), len(levels))

    def _quantile(self, levels: np.ndarray) -> np.ndarray:
        level = torch.from_numpy(levels)[:, None].expand(-1, self.n_rows)
        symbol, z = (part.numpy().T for part in self.conditional.symbol_and_score(level))  # (B, L)
        if not self.domain.has_room:
            symbol = np.minimum(symbol, len(self.domain.atoms) - 1)
        return self.domain.values_of(symbol, np.clip(z, -SCORE_LIMIT, SCORE_LIMIT))

    def log_prob(self, values: np.ndarray) -> np.ndarray:
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (self.n_rows, np.shape(values)[1]))
        return self._in_parts(lambda some, part: some._log_prob(values[part]), values.shape[1])

    def _log_prob(self, values: np.ndarray) -> np.ndarray:
        cells = self.domain.encode(values.T.ravel()).reshape(*values.T.shape, 4)  # (M, B, 4)
        symbol = cells[..., 0].T.astype(int)
        with np.errstate(divide="ignore"):
            log_p = np.log(np.take_along_axis(self._p, symbol, axis=1))
        inside = smooth_log_prob(self.smooth, torch.from_numpy(cells), self.domain.step is not None).numpy().T
        log_p = log_p + np.where(symbol == len(self.domain.atoms), inside, 0.0)
        return np.where(self.domain.is_possible(values), log_p, -np.inf)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        symbol, generator = _draw(self._p, n, rng), torch.Generator().manual_seed(int(rng.integers(2**62)))
        z = self.smooth.each(lambda tensor: tensor.expand(n, *tensor.shape)).sample(generator).numpy().T  # (B, n)
        return self.domain.values_of(symbol, np.clip(z, -SCORE_LIMIT, SCORE_LIMIT))

    # ------------------------------------------------------------------ masses one by one

    @property
    def is_listed(self) -> bool:
        """Whether every possible value has a mass, and they are few enough to sum over them for many rows."""
        return 0 < len(self.domain.edges) <= FEW_CELLS + 1

    @cached_property
    def _cell_masses(self) -> np.ndarray:
        """(B, C) of the cells of a short grid, atoms included."""
        return self._in_parts(lambda some, _: some._masses_of_cells(), len(self.domain.edges))

    def _masses_of_cells(self) -> np.ndarray:
        edges = open_ended(self.domain.edges)
        edges[0], edges[-1] = -np.inf, np.inf
        masses = self._p[:, -1:] * np.diff(self._smooth_cdf(edges[None, :]), axis=1)
        at = np.searchsorted(self.domain.cell_values, self.domain.atom_values - 0.5 * (self.domain.step or 0.0))
        masses[:, at] += self._p[:, :-1]
        return masses

    def masses(self) -> tuple[np.ndarray, np.ndarray]:
        if len(self.domain.edges):
            return self.domain.cell_values, self._cell_masses
        return self.domain.atom_values, self._p[:, :-1]

    # ------------------------------------------------------------------ summaries

    @cached_property
    def mean(self) -> np.ndarray:
        if self.is_listed:
            return self._cell_masses @ self.domain.cell_values
        return self._p[:, :-1] @ self.domain.atom_values + self._p[:, -1] * self._expect(lambda values, _: values, 33)

    @cached_property
    def std(self) -> np.ndarray:
        mean = self.mean[:, None]
        if self.is_listed:
            return np.sqrt((self._cell_masses * (self.domain.cell_values - mean) ** 2).sum(1))
        smooth = self._expect(lambda values, row: (values - self.mean[row, None]) ** 2, 57)
        atoms = (self._p[:, :-1] * (self.domain.atom_values - mean) ** 2).sum(1)
        return np.sqrt(atoms + self._p[:, -1] * smooth)

    def _expect(self, of: Callable[[np.ndarray, np.ndarray], np.ndarray], n: int) -> np.ndarray:
        """(B,) the mean over the smooth part of a function of values (P, M) and their rows (P,)."""

        def of_scores(z: Tensor, row: Tensor) -> Tensor:
            values = self.domain.quick_value(np.clip(z.numpy(), -SCORE_LIMIT, SCORE_LIMIT))
            return torch.from_numpy(np.ascontiguousarray(of(values, row.numpy())))

        return self.smooth.expect(of_scores, n).numpy()

    @cached_property
    def mode(self) -> np.ndarray:
        """(B,) Masses are compared with masses. Where there is a density, an atom wins if it outweighs the whole smooth
        part, since a mass and a density cannot be compared."""
        if len(self.domain.edges):
            return self.domain.cell_values[self._cell_masses.argmax(1)]
        densest, log_p = self._in_parts(lambda some, _: some._densest(), len(self.domain.dense_points[0])).T
        if not self.domain.atoms:
            return densest
        atom = self._p[:, :-1].argmax(1)
        rival = np.exp(log_p) if self.domain.step is not None else self._p[:, -1]
        return np.where(self._p[np.arange(self.n_rows), atom] >= rival, self.domain.atom_values[atom], densest)

    def _densest(self) -> np.ndarray:
        """(B, 2) the densest value of the smooth part and its log density or mass. It is looked for in the middle of
        components and all over what the marginal holds level, without the outermost hundredths: at a bound a density
        may have a pole."""
        levels = torch.tensor([[0.01], [0.99]], dtype=torch.float64).expand(-1, self.n_rows)
        low, high = np.clip(self.smooth.quantile(levels).numpy(), -SCORE_LIMIT, SCORE_LIMIT)[..., None]
        shared, log_width = self.domain.dense_points
        log_p = self.smooth.log_prob(torch.from_numpy(shared)[:, None]).numpy().T + log_width  # (B, M)
        best = np.where((shared >= low) & (shared <= high), log_p, -np.inf).argmax(1)
        z = np.clip(np.concatenate([self.smooth.centres.numpy(), shared[best][:, None]], axis=1), low, high)
        values = self.domain.smooth_value(z)
        log_p = self._log_prob(values)
        best = np.arange(self.n_rows), log_p.argmax(1)
        return np.stack([values[best], log_p[best]], axis=1)

    def entropy(self) -> np.ndarray:
        if len(self.domain.edges):
            return _entropy(self._cell_masses)
        if self.domain.step is not None:  # too many cells to list: at values of equal shares
            levels = (np.arange(N_SHARES) + 0.5) / N_SHARES
            return self._in_parts(lambda some, _: -some._log_prob(some._quantile(levels)).mean(1), N_SHARES)
        return _entropy(self._p) + self._p[:, -1] * self._in_parts(lambda some, _: some._smooth_entropy(), 1000)

    def _smooth_entropy(self) -> np.ndarray:
        """−E[log q(z)] by quadrature, −E[log dz/dx] over the segments on which the marginal is level."""

        def log_ratio(z: Tensor, row: Tensor) -> Tensor:
            """log q(z) − log N(z), of the rows' own densities."""
            z = z.clamp(-SCORE_LIMIT, SCORE_LIMIT)
            log_q = self.smooth.each(lambda tensor: tensor[row]).log_prob(z.T).T
            return log_q + 0.5 * z**2 + LOG_SQRT_2PI

        edges, log_density = self.domain.segments
        share = np.diff(self._smooth_cdf(open_ended(edges)[None, :]), axis=1)
        return -self.smooth.expect(log_ratio, 57).numpy() - share @ log_density


def _entropy(p: np.ndarray) -> np.ndarray:
    return -(p * np.log(np.maximum(p, 1e-300))).sum(-1)


def _uniform(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return np.clip(rng.random(shape), 1e-15, 1 - 1e-15)


def _draw(p: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(B, S) masses → (B, n) indices."""
    running = p.cumsum(1)
    u = _uniform((len(p), n), rng) * running[:, -1:]
    if len(p) == 1:
        found: Any = np.searchsorted(running[0], u[0], side="left")[None, :]
    else:
        found = np.stack([np.searchsorted(r, row, side="left") for r, row in zip(running, u, strict=True)])
    return np.minimum(found, p.shape[1] - 1)
