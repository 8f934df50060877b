"""What a user gets for one column given evidence: a distribution in the user's units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

import numpy as np
import torch

from anygiven.errors import QuestionError, require
from anygiven.heads import AtomsPlusContinuous
from anygiven.heads import Categorical as HeadCategorical
from anygiven.inference.summaries import conditional_mean, numeric_mode, quantile
from anygiven.variables.domains import Categorical as CategoryDomain
from anygiven.variables.domains import Numeric
from anygiven.variables.schema import Variable
from anygiven.variables.tables import native_values

N_LEVELS = 400  # quantiles per component when moments and entropies are summed


class Conditional(ABC):
    """p(column | evidence) for one column."""

    def __init__(self, variable: Variable, evidence: dict[str, Any]):
        self.variable, self.evidence = variable, dict(evidence)

    @property
    def name(self) -> str:
        return self.variable.name

    def interval(self, level: float = 0.9):
        """The central interval with this probability."""
        self._check_level(level)
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    @abstractmethod
    def quantile(self, level: float) -> Any:
        """The smallest value whose cdf reaches the level."""

    @staticmethod
    def _check_level(level: float) -> None:
        if not 0 <= level <= 1:
            raise QuestionError(f"{level} is not a probability between 0 and 1.")

    def _native(self, value: Any) -> Any:
        """One decoded value as the user stores it."""
        storage = self.variable.storage
        item = native_values(np.array([value], dtype=object if isinstance(value, (str, bool)) else None), storage)[0]
        if storage.kind in ("date", "datetime"):
            import pandas as pd

            stamp = pd.Timestamp(item)
            return stamp.date() if storage.kind == "date" else stamp
        return item.item() if isinstance(item, np.generic) else item

    def _encode(self, value: Any) -> np.ndarray:
        """A value in the user's units → a cell, or a clear error."""
        from anygiven.variables import Schema, read_table

        schema = Schema((self.variable,), {}, "pandas")
        cells, is_present = schema.encode(read_table({self.name: [value]}))
        if not is_present.all():
            raise QuestionError(f"{self.name} was given a gap; give a value.")
        return cells[:, 0].astype(np.float64)

    def _title(self) -> str:
        given = ", ".join(f"{key}={value}" for key, value in self.evidence.items())
        return f"{self.name} | {given}" if given else self.name


def conditional_of(variable: Variable, conditional, evidence: dict[str, Any]) -> Conditional:
    """The answer for one row of a look."""
    if isinstance(variable.domain, CategoryDomain):
        return CategoricalConditional(variable, conditional, evidence)
    return NumericConditional(variable, conditional, evidence)


class CategoricalConditional(Conditional):
    """A distribution over categories."""

    def __init__(self, variable: Variable, conditional: HeadCategorical, evidence: dict[str, Any]):
        super().__init__(variable, evidence)
        self._p = conditional.probabilities[0].double().numpy()
        self._p = self._p / self._p.sum()
        self._values = [self._native(value) for value in variable.domain.values]  # type: ignore[attr-defined]

    @property
    def probabilities(self) -> dict[Hashable, float]:
        """Value → probability, likeliest first (in order, if the values have one)."""
        order = range(len(self._p)) if self.variable.domain.is_ordered else np.argsort(-self._p, kind="stable")
        return {self._values[i]: float(self._p[i]) for i in order}

    def top(self, k: int = 5) -> list[tuple[Any, float]]:
        """The k likeliest values with their probabilities."""
        order = np.argsort(-self._p, kind="stable")[: max(int(k), 0)]
        return [(self._values[i], float(self._p[i])) for i in order]

    @property
    def mode(self) -> Any:
        return self._values[int(self._p.argmax())]

    def _numbers(self, what: str) -> np.ndarray:
        values = self._values
        if not all(isinstance(value, (int, float)) for value in values):
            raise QuestionError(f"{self.name} has no {what}: its values are not numbers; use mode or probabilities.")
        return np.asarray(values, dtype=float)

    @property
    def mean(self) -> float:
        return float(self._p @ self._numbers("mean"))

    @property
    def std(self) -> float:
        return float(np.sqrt(max(self._p @ self._numbers("std") ** 2 - self.mean**2, 0.0)))

    def _ordered(self, what: str) -> None:
        if not self.variable.domain.is_ordered:
            self._numbers(what)

    def cdf(self, value: Any) -> float:
        """P(column ≤ value), in the order of the values."""
        self._ordered("cdf")
        if self.variable.domain.is_ordered:
            return float(self._p[: int(self._encode(value)[0, 0]) + 1].sum())
        return float(self._p[self._numbers("cdf") <= float(value)].sum())

    def quantile(self, level: float) -> Any:
        self._check_level(level)
        self._ordered("quantile")
        at = int(np.searchsorted(np.cumsum(self._p), level - 1e-12))
        return self._values[min(at, len(self._p) - 1)]

    def entropy(self) -> float:
        p = self._p[self._p > 0]
        return float(-(p * np.log(p)).sum())

    def log_prob(self, value: Any) -> float:
        return float(np.log(self._p[int(self._encode(value)[0, 0])]))

    def sample(self, n: int = 1, random_state: int | None = None) -> list:
        rng = np.random.default_rng(random_state)
        return [self._values[i] for i in rng.choice(len(self._p), size=n, p=self._p)]

    def plot(self, ax=None, most: int = 12):
        """Bars of the likeliest values."""
        plt = require("matplotlib.pyplot", "plot")
        ax = ax or plt.subplots(figsize=(5, 3))[1]
        shown = list(self.probabilities.items())[:most]
        ax.barh([str(value) for value, _ in shown][::-1], [p for _, p in shown][::-1], color="#3b6ea5")
        ax.set_xlabel("probability")
        ax.set_title(self._title(), fontsize=10)
        return ax

    def __repr__(self) -> str:
        top = ", ".join(f"{value}: {p:.3f}" for value, p in list(self.probabilities.items())[:4])
        return f"<{self._title()}: {top}>"


class NumericConditional(Conditional):
    """A distribution over numbers or dates, with masses at atoms and on grids."""

    def __init__(self, variable: Variable, conditional: AtomsPlusContinuous, evidence: dict[str, Any]):
        super().__init__(variable, evidence)
        assert isinstance(variable.domain, Numeric)
        self._domain, self._conditional = variable.domain, conditional
        p = conditional.symbols.probabilities[0].double().numpy()
        self._atom_p, self._smooth_p = p[:-1] / p.sum(), float(p[-1] / p.sum())

    def _support(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points of the smooth part: scores, values in the user's units (unrounded on grids it is), weights."""
        smooth = self._conditional.smooth
        levels = torch.from_numpy((np.arange(N_LEVELS) + 0.5) / N_LEVELS)
        nodes = smooth.kernel.inverse_cdf(levels).numpy()
        loc, scale = smooth.loc[0].double().numpy(), smooth.scale[0].double().numpy()
        z = np.clip(loc[:, None] + scale[:, None] * nodes, -8, 8)  # (K, levels)
        weights = np.repeat(smooth.log_weights[0].double().exp().numpy()[:, None] / N_LEVELS, N_LEVELS, axis=1)
        return z.ravel(), np.clip(self._domain.smooth_value(z.ravel()), *self._domain.limits), weights.ravel()

    @property
    def mean(self) -> Any:
        value = float(conditional_mean(self._domain, self._conditional)[0])
        if self.variable.storage.kind in ("date", "datetime"):
            return self._native(float(self._domain.snap(np.array([value]))[0]))
        return value

    @property
    def std(self) -> Any:
        _, values, weights = self._support()
        atoms = np.asarray(self._domain.atoms, dtype=float)
        first = self._atom_p @ atoms + self._smooth_p * (weights @ values)
        spread = self._atom_p @ (atoms - first) ** 2 + self._smooth_p * (weights @ (values - first) ** 2)
        seconds = float(np.sqrt(max(spread, 0.0)))
        if self.variable.storage.kind in ("date", "datetime"):
            import pandas as pd

            return pd.Timedelta(seconds=seconds)
        return seconds

    @property
    def mode(self) -> Any:
        return self._native(float(numeric_mode(self._domain, self._conditional)[0]))

    @property
    def probabilities(self) -> dict[Any, float]:
        """Value → mass where values have masses: atoms, and all cells of a short grid."""
        masses = {atom: float(p) for atom, p in zip(self._domain.atoms, self._atom_p, strict=True)}
        for value, p in zip(*self._cell_masses(), strict=True):
            if p > 1e-6 and value not in masses:
                masses[float(value)] = float(p)
        return {self._native(value): masses[value] for value in sorted(masses)}

    def _cell_masses(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and masses of a short grid's cells in the smooth part; empty otherwise."""
        edges = self._domain.edges
        if len(edges) < 2:
            return np.empty(0), np.empty(0)
        cdf = self._conditional.smooth.cdf(torch.from_numpy(edges)[:, None].float())[:, 0].double().numpy()
        cdf[0], cdf[-1] = 0.0, 1.0
        return self._domain.cell_values(), self._smooth_p * np.diff(cdf)

    def cdf(self, value: Any) -> float:
        """P(column ≤ value)."""
        number = self._number(value)
        z = torch.tensor([float(self._domain.smooth_score(np.array([number]), "upper")[0])])
        atoms = float(self._atom_p[np.asarray(self._domain.atoms) <= number].sum()) if self._domain.atoms else 0.0
        return atoms + self._smooth_p * float(self._conditional.smooth.cdf(z)[0])

    def _number(self, value: Any) -> float:
        """A number or date as the domain counts it."""
        if self.variable.storage.kind in ("date", "datetime"):
            import pandas as pd

            return float(pd.Timestamp(value).timestamp())  # pyright: ignore[reportAttributeAccessIssue]
        try:
            return float(value)
        except (TypeError, ValueError):
            raise QuestionError(f"{value!r} is not a number, but {self.name} holds numbers.") from None

    def quantile(self, level: float) -> Any:
        self._check_level(level)
        level = min(max(level, 1e-6), 1 - 1e-6)
        return self._native(float(quantile(self._domain, self._conditional, level)[0]))

    def entropy(self) -> float:
        """In nats: differential for the part with a density, discrete for masses."""
        if len(self._domain.edges):
            p = self._cell_masses()[1] / max(self._smooth_p, 1e-300)
            smooth = -(p[p > 0] * np.log(p[p > 0])).sum()
        else:
            z, _, weights = self._support()
            log_q = self._conditional.smooth.log_prob(torch.from_numpy(z).float()[:, None])[:, 0].double().numpy()
            smooth = -(weights @ (log_q + self._domain.log_width(self._domain.smooth_value(z))))
        p = np.append(self._atom_p, self._smooth_p)
        p = p[p > 0]
        return float(-(p * np.log(p)).sum() + self._smooth_p * smooth)

    def log_prob(self, value: Any) -> float:
        """Log mass at an atom or on a grid, log density elsewhere."""
        cell = self._encode(value)[0]
        symbol = int(cell[0])
        if symbol < len(self._domain.atoms):
            return float(np.log(self._atom_p[symbol]))
        smooth = self._conditional.smooth
        low, high = torch.tensor([cell[1]]).float(), torch.tensor([cell[2]]).float()
        inside = smooth.log_mass(low, high) if cell[2] - cell[1] > 1e-4 else smooth.log_prob((low + high) / 2) + cell[3]
        return float(np.log(self._smooth_p) + float(inside[0]))

    def sample(self, n: int = 1, random_state: int | None = None) -> list:
        generator = torch.Generator()
        generator.manual_seed(random_state) if random_state is not None else generator.seed()
        z = torch.stack([self._conditional.smooth.sample(generator)[0] for _ in range(n)]).double().numpy()
        rng = np.random.default_rng(random_state)
        symbol = rng.choice(len(self._atom_p) + 1, size=n, p=np.append(self._atom_p, self._smooth_p))
        atoms = np.append(np.asarray(self._domain.atoms, dtype=float), np.nan)
        values = np.where(symbol < len(self._domain.atoms), atoms[symbol], self._domain.smooth_value(z))
        return [self._native(float(value)) for value in values]

    def plot(self, ax=None):
        """The density between the 0.5 and 99.5 percentiles, with a stem for every atom that matters."""
        plt = require("matplotlib.pyplot", "plot")
        ax = ax or plt.subplots(figsize=(5, 3))[1]
        low, high = (self._number(self.quantile(level)) for level in (0.005, 0.995))
        if high <= low:
            low, high = low - 1, high + 1
        edges = np.linspace(low, high, 121)
        z = torch.from_numpy(self._domain.marginal.score(self._axis(edges))).float()[:, None]
        mass = self._smooth_p * np.diff(self._conditional.smooth.cdf(z)[:, 0].double().numpy())
        shown = (
            edges if self.variable.storage.kind not in ("date", "datetime") else (edges * 1e6).astype("datetime64[us]")
        )
        ax.fill_between(shown[1:], mass / np.diff(edges), step="pre", color="#3b6ea5", alpha=0.6)
        ax.set_ylabel("density")
        self._plot_atoms(ax, low, high)
        ax.set_title(self._title(), fontsize=10)
        ax.set_xlabel(self.name)
        return ax

    def _axis(self, values: np.ndarray) -> np.ndarray:
        """User's units → the marginal's axis, without rounding to the grid."""
        domain = self._domain
        return values if domain.step is None else (values - domain.origin) / domain.step

    def _plot_atoms(self, ax, low: float, high: float) -> None:
        inside = [
            (a, p) for a, p in zip(self._domain.atoms, self._atom_p, strict=True) if low <= a <= high and p > 1e-3
        ]
        if inside:
            twin = ax.twinx()
            twin.vlines([a for a, _ in inside], 0, [p for _, p in inside], color="#c2571a", linewidth=2)
            twin.set_ylabel("mass", color="#c2571a")
            twin.set_ylim(bottom=0)

    def __repr__(self) -> str:
        low, high = self.interval(0.9)
        mean = f"{self.mean:.4g}" if isinstance(self.mean, float) else str(self.mean)
        return f"<{self._title()}: mean {mean}, 90 % between {low} and {high}>"
