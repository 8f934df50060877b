"""The values a variable can take, and how one cell of it becomes numbers.

A cell is four numbers, whatever its column (see CELL):

    symbol     which discrete part it belongs to: a category, an atom, or the smooth part
    low, high  the interval of normal scores that the value covers in the smooth part (equal: a point)
    log_width  log(high - low) for an interval, log dz/dx for a point

so that its log probability (density in the user's units for a point, mass otherwise) is
log P(symbol) for a category or an atom, and log P(smooth) + log q(z) + log_width in the smooth part.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.special import ndtri

from anygiven.errors import SchemaError
from anygiven.variables.marginals import LOG_SQRT_2PI, SCORE_LIMIT, Marginal

CELL = ("symbol", "low", "high", "log_width")
SYMBOL, LOW, HIGH, LOG_WIDTH = range(4)
OTHER = "(other)"  # one symbol for all rare values of a column that has too many
MAX_LISTED_CELLS = 4096
ON_GRID = 1e-3  # of a step: what is nearer to a value of the grid is taken for it
ON_EDGE = 1e-9  # of a step
N_TABLE = 2**15 + 1  # scores half as far apart as the narrowest component is wide
OUTERMOST = 3.5  # the score of an atom at a bound, to a network


class UnseenValueError(SchemaError):
    """A value that the training table never showed, in a column whose values are a fixed set."""


@dataclass(frozen=True)
class Domain(ABC):
    """What one variable can be."""

    kind: ClassVar[str]
    is_ordered: ClassVar[bool] = False

    @property
    @abstractmethod
    def frequencies(self) -> np.ndarray:
        """(n_symbols,) the marginal probability of each symbol."""

    @property
    def n_symbols(self) -> int:
        return len(self.frequencies)

    @property
    def has_smooth_part(self) -> bool:
        """Whether the last symbol stands for a continuum (or a long grid) of values."""
        return False

    @abstractmethod
    def positions(self) -> np.ndarray:
        """(n_symbols,) where each symbol stands on the axis of normal scores (0 if it has no place)."""

    @abstractmethod
    def encode(self, values: np.ndarray) -> np.ndarray:
        """Present values → cells, (n,) → (n, 4)."""

    @abstractmethod
    def decode(self, cells: np.ndarray) -> np.ndarray:
        """Cells → values, (n, 4) → (n,)."""

    @abstractmethod
    def describe(self) -> str:
        """One line for a person."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...


KINDS: dict[str, type[Domain]] = {}
D = TypeVar("D", bound=Domain)


def register(cls: type[D]) -> type[D]:
    KINDS[cls.kind] = cls
    return cls


def plain_text(value: Any) -> str:
    """A value for a person: whole numbers without a point, whatever they are stored as."""
    if isinstance(value, (float, np.floating)):
        return f"{value + 0.0:.0f}" if value == np.round(value) and abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


@register
@dataclass(frozen=True)
class CategoricalDomain(Domain):
    """A fixed set of values without order."""

    kind: ClassVar[str] = "categorical"
    values: tuple
    counts: tuple

    @property
    def frequencies(self) -> np.ndarray:
        smoothed = np.asarray(self.counts, dtype=np.float64) + 0.5
        return smoothed / smoothed.sum()

    def positions(self) -> np.ndarray:
        return np.zeros(self.n_symbols)

    @cached_property
    def index(self) -> dict:
        """Value → its symbol."""
        return {value: i for i, value in enumerate(self.values)}

    def encode(self, values: np.ndarray) -> np.ndarray:
        otherwise = self.index.get(OTHER, -1)
        symbols = np.array([self.index.get(value, otherwise) for value in values], dtype=np.float64)
        if (symbols < 0).any():
            unseen = values[int(np.argmax(symbols < 0))]
            raise UnseenValueError(repr(unseen) if isinstance(unseen, str) else plain_text(unseen))
        cells = np.zeros((len(values), len(CELL)))
        cells[:, SYMBOL] = symbols
        cells[:, LOW] = cells[:, HIGH] = self.positions()[symbols.astype(int)]
        return cells

    def is_seen(self, values: np.ndarray) -> np.ndarray:
        if OTHER in self.index:
            return np.ones(len(values), dtype=bool)
        return np.array([value in self.index for value in values], dtype=bool)

    def decode(self, cells: np.ndarray) -> np.ndarray:
        values = np.empty(len(self.values), dtype=object)
        values[:] = self.values
        return values[cells[:, SYMBOL].astype(int)]

    def describe(self) -> str:
        if len(self.values) == 1:
            return f"constant: {plain_text(self.values[0])}"
        shown = ", ".join(plain_text(value) for value in self.values[:4])
        return f"{len(self.values)} values: {shown}" + (", …" if len(self.values) > 4 else "")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values), "counts": [float(c) for c in self.counts]}


@register
@dataclass(frozen=True)
class Binary(CategoricalDomain):
    """Two values."""

    kind: ClassVar[str] = "binary"


@register
@dataclass(frozen=True)
class Ordinal(CategoricalDomain):
    """A fixed set of values in order, lowest first."""

    kind: ClassVar[str] = "ordinal"
    is_ordered: ClassVar[bool] = True

    def positions(self) -> np.ndarray:
        """The normal score of the middle of each value's share."""
        share = self.frequencies
        return ndtri(np.cumsum(share) - share / 2)


@dataclass(frozen=True)
class Numeric(Domain):
    """Numbers: a smooth part carried to normal scores by its marginal, and atoms with a mass of their own.

    On a grid (step is not None) every value has a mass, else the smooth part has a density.
    """

    is_ordered: ClassVar[bool] = True
    marginal: Marginal  # of the smooth part, in cells of the grid if there is one
    atoms: tuple = ()  # values with a symbol of their own, ascending
    counts: tuple = (1,)  # of the atoms and, last, of the smooth part
    step: float | None = None
    origin: float = 0.0
    limits: tuple = (-np.inf, np.inf)  # what was seen in training
    bounds: tuple = (-np.inf, np.inf)  # what is possible
    edges: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "edges", self._short_grid_edges())

    @property
    def frequencies(self) -> np.ndarray:
        smoothed = np.asarray(self.counts, dtype=np.float64) + 0.5
        smoothed[-1] *= self.has_room
        return smoothed / smoothed.sum()

    @property
    def has_smooth_part(self) -> bool:
        return True

    @cached_property
    def has_room(self) -> bool:
        """Whether anything but the atoms is possible."""
        if self.step is None or not np.isfinite(self.bounds).all():
            return True
        low, high = self.to_axis(np.array(self.bounds))
        return high - low + 1 > len(self.atoms)

    def to_axis(self, values: np.ndarray) -> np.ndarray:
        """User's units → the marginal's axis (cells of the grid, or the values themselves)."""
        return values if self.step is None else np.round((values - self.origin) / self.step)

    def _from_axis(self, axis: np.ndarray) -> np.ndarray:
        if self.step is None:
            return axis
        # Rounded to the grid's own decimals, or 61.12 would come back as 61.120000000000005.
        return np.round(np.round(axis) * self.step + self.origin, _decimals(self.step, self.origin))

    def is_possible(self, values: np.ndarray) -> np.ndarray:
        """Within the bounds, and on the grid if there is one."""
        values = np.asarray(values, dtype=np.float64)
        low, high = self.bounds
        if self.step is None:
            return (values >= low) & (values <= high)
        slack = ON_GRID * self.step
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.abs((values - self.origin) / self.step - self.to_axis(values))
        return (values >= low - slack) & (values <= high + slack) & (off <= ON_GRID)

    def is_far(self, values: np.ndarray) -> np.ndarray:
        """Farther from what was seen in training than a tenth of its range."""
        low, high = self.limits
        margin = 0.1 * (high - low) if np.isfinite(high - low) else np.inf
        values = np.asarray(values, dtype=np.float64)
        return (values < low - margin) | (values > high + margin)

    def _short_grid_edges(self) -> np.ndarray:
        """Scores of the cell edges of a short grid, so that its cells can be listed; empty otherwise."""
        cells = self._cells()
        return self.marginal.score(np.append(cells - 0.5, cells[-1] + 0.5)) if len(cells) else np.empty(0)

    def _cells(self) -> np.ndarray:
        """All cells of a short grid that have any mass; empty if they are too many."""
        if self.step is None:
            return np.empty(0)
        ends = self.marginal.value(np.array([-SCORE_LIMIT, SCORE_LIMIT]))
        low, high = np.ceil(ends[0] - 0.5 + ON_GRID), np.floor(ends[1] + 0.5 - ON_GRID)
        if self.atoms:
            first, last = self.to_axis(np.array([self.atoms[0], self.atoms[-1]], dtype=float))
            low, high = min(low, first), max(high, last)
        bounds = self.to_axis(np.array(self.bounds))
        low, high = max(low, bounds[0]), min(high, bounds[1])
        return np.arange(low, high + 1) if high - low < MAX_LISTED_CELLS else np.empty(0)

    @cached_property
    def cell_values(self) -> np.ndarray:
        """The value of each cell between the edges."""
        return self._from_axis(self._cells())

    @cached_property
    def atom_values(self) -> np.ndarray:
        return np.asarray(self.atoms, dtype=np.float64)

    def log_width(self, values: np.ndarray) -> np.ndarray:
        """log(high − low) of each value's cell on a grid, log dz/dx elsewhere."""
        if self.step is None:
            return self.marginal.log_slope(values)
        low, high = self.score_edges(values)
        return np.log(np.maximum(high - low, 1e-300))

    @cached_property
    def _positions(self) -> np.ndarray:
        """Neighbouring atoms have nothing smooth between them and so one score: they are spread around it by their
        shares, that the order among them can be seen."""
        scores = np.clip(self.marginal.score(self.to_axis(self.atom_values)), -OUTERMOST, OUTERMOST)
        spread, places = 1.0 if self.counts[-1] == 0 else 0.5, []
        for score in np.unique(scores):
            share = self.frequencies[:-1][scores == score]
            share = share / share.sum()
            places.append(score + spread * ndtri(np.cumsum(share) - share / 2))
        return np.append(np.concatenate([*places, np.empty(0)]), 0.0)

    def positions(self) -> np.ndarray:
        return self._positions

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The nearest possible value's cell; `is_possible` tells which values are one."""
        values = np.clip(np.asarray(values, dtype=np.float64), *self.bounds)
        axis = self.to_axis(values)
        cells = np.zeros((len(values), len(CELL)))
        cells[:, SYMBOL] = self.symbols_of(values)
        if self.step is None:
            cells[:, LOW] = cells[:, HIGH] = self.marginal.score(axis)
            cells[:, LOG_WIDTH] = self.marginal.log_slope(axis)
        else:
            self._encode_intervals(cells, axis)
        is_atom = cells[:, SYMBOL] < len(self.atoms)
        cells[is_atom, LOW] = cells[is_atom, HIGH] = self.positions()[cells[is_atom, SYMBOL].astype(int)]
        cells[is_atom, LOG_WIDTH] = 0.0
        return cells

    def symbols_of(self, values: np.ndarray) -> np.ndarray:
        """The atom each value is, or the number of atoms for the smooth part."""
        n, axis = len(self.atoms), self.to_axis(np.asarray(values, dtype=np.float64))
        if n == 0:
            return np.zeros(axis.shape, dtype=np.int64)
        atoms = self.to_axis(self.atom_values)
        at = np.clip(np.searchsorted(atoms, axis), 0, n - 1)
        return np.where(atoms[at] == axis, at, n)

    def _encode_intervals(self, cells: np.ndarray, axis: np.ndarray) -> None:
        low, high = self.marginal.score(axis - 0.5), self.marginal.score(axis + 0.5)
        middle = np.clip(self.marginal.score(axis), -SCORE_LIMIT + 1e-6, SCORE_LIMIT - 1e-6)
        width = high - low
        # Far out, or between knots, the two scores may be too close to subtract: use the slope there.
        narrow = (width < 1e-7) & ((width == 0) | (np.maximum(-low, high) < SCORE_LIMIT))
        cells[:, LOW], cells[:, HIGH] = np.where(narrow, middle, low), np.where(narrow, middle, high)
        slope = self.marginal.log_slope(axis)
        cells[:, LOG_WIDTH] = np.where(narrow, slope, np.log(np.maximum(width, 1e-300)))

    def decode(self, cells: np.ndarray) -> np.ndarray:
        middle = 0.5 * (cells[:, LOW] + cells[:, HIGH])
        return self.values_of(cells[:, SYMBOL].astype(int), middle)

    def values_of(self, symbols: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The atom, or in the smooth part the value of a score."""
        values = self.smooth_value(z)
        if not self.atoms:
            return values
        return np.where(symbols < len(self.atoms), np.append(self.atom_values, np.nan)[symbols], values)

    def snap(self, values: np.ndarray) -> np.ndarray:
        """The nearest value of the grid; the value itself where there is no grid."""
        return self._from_axis(self.to_axis(np.asarray(values, dtype=np.float64)))

    def smooth_value(self, z: np.ndarray) -> np.ndarray:
        """Normal score → value of the smooth part, on the grid if there is one.

        On a grid a score on the edge of two cells belongs to the lower one, as the cdf has it.
        """
        axis = self.marginal.value(np.asarray(z, dtype=np.float64))
        if self.step is None:
            return np.clip(axis, *self.bounds)
        return np.clip(self._from_axis(np.ceil(axis - 0.5 - ON_EDGE)), *self.bounds)

    def quick_value(self, z: np.ndarray) -> np.ndarray:
        """smooth_value from a table: for the millions of nodes that means are summed over."""
        place = (z + SCORE_LIMIT) * ((len(self._table) - 1) / (2 * SCORE_LIMIT))
        below = np.minimum(place.astype(np.int32), len(self._table) - 2)
        axis = self._table[below]
        axis += (place - below) * self._steps[below]
        return axis if self.step is None else np.clip(self._from_axis(np.ceil(axis - 0.5 - ON_EDGE)), *self.bounds)

    @cached_property
    def _table(self) -> np.ndarray:
        """Values on the marginal's axis at even scores."""
        return self.marginal.value(np.linspace(-SCORE_LIMIT, SCORE_LIMIT, N_TABLE))

    @cached_property
    def _steps(self) -> np.ndarray:
        return np.diff(self._table)

    @cached_property
    def _level_edges(self) -> np.ndarray:
        """Scores between which the marginal's density is level, in the tails nearly so."""
        even = np.linspace(-SCORE_LIMIT, SCORE_LIMIT, 129)
        return np.union1d(even, self.marginal.score(self.marginal.knots))

    @cached_property
    def segments(self) -> tuple[np.ndarray, np.ndarray]:
        """Those scores, and the log of the marginal's density between each two."""
        edges = self._level_edges
        z = 0.5 * (edges[1:] + edges[:-1])
        return edges, self.marginal.log_slope(self.marginal.value(z)) - 0.5 * z**2 - LOG_SQRT_2PI

    @cached_property
    def dense_points(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores all over what the marginal holds level, and the log width of their values: where a mode may be."""
        edges = self._level_edges
        z = np.concatenate([edges[:-1] + share * np.diff(edges) for share in (0.01, 0.5, 0.99)])
        return z, self.log_width(self.smooth_value(z))

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value of the smooth part: what lies beyond the limit of scores is at them."""
        low, high = self.smooth_value(np.array([-SCORE_LIMIT, SCORE_LIMIT]))
        return float(low), float(high)

    def cdf_score(self, values: np.ndarray) -> np.ndarray:
        """The score that the smooth part must not exceed to be at most a value: on a grid the upper edge of the last
        cell at or below it."""
        values = np.asarray(values, dtype=np.float64)
        if self.step is None:
            z, slack = self.marginal.score(values), 0.0
        else:
            z = self.marginal.score(np.floor((values - self.origin) / self.step + ON_GRID) + 0.5)
            slack = ON_GRID * self.step
        low, high = self.ends
        return np.where(values < low - slack, -np.inf, np.where(values >= high - slack, np.inf, z))

    @cached_property
    def atom_scores(self) -> np.ndarray:
        """The score that the smooth part must not exceed to be less than each atom."""
        if self.step is not None:
            return self.cdf_score(self.atom_values - 0.5 * self.step)
        return np.where(self.atom_values <= self.ends[0], -np.inf, self.cdf_score(self.atom_values))

    def score_edges(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scores between which a value's cell of the grid lies."""
        axis = self.to_axis(np.asarray(values, dtype=np.float64))
        return self.marginal.score(axis - 0.5), self.marginal.score(axis + 0.5)

    def describe(self) -> str:
        low, high = self.limits
        text = f"{plain_text(low)} to {plain_text(high)}"
        if self.step is not None and self.step != 1:
            text += f", in steps of {plain_text(self.step)}"
        text += self._describe_bounds()
        if self.atoms:
            shown = ", ".join(plain_text(atom) for atom in self.atoms[:4])
            text += f"; masses at {shown}" + (f", … ({len(self.atoms)})" if len(self.atoms) > 4 else "")
        return text

    def _describe_bounds(self) -> str:
        low, high = self.bounds
        words = [
            f"{word} {plain_text(bound)}" for word, bound in (("from", low), ("up to", high)) if np.isfinite(bound)
        ]
        return f"; possible {' '.join(words)}" if words else ""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "marginal": self.marginal.to_json(),
            "atoms": list(self.atoms),
            "counts": [float(c) for c in self.counts],
            "step": self.step,
            "origin": self.origin,
            "limits": list(self.limits),
            "bounds": [bound if np.isfinite(bound) else None for bound in self.bounds],
        }


def open_ended(z: np.ndarray) -> np.ndarray:
    """Scores, with all that is beyond the limit at infinity: a cell at the limit takes what lies beyond it."""
    limit = SCORE_LIMIT - 1e-6  # there and back again, the limit loses a digit
    return np.where(z <= -limit, -np.inf, np.where(z >= limit, np.inf, z))


def _decimals(*numbers: float) -> int:
    return max(next(d for d in range(13) if d == 12 or round(n, d) == n) for n in numbers)


@register
@dataclass(frozen=True)
class Continuous(Numeric):
    """Real numbers; values that are often hit exactly are atoms."""

    kind: ClassVar[str] = "continuous"


@register
@dataclass(frozen=True)
class Grid(Numeric):
    """Numbers on a grid: ages, prices to the cent, readings to a tenth, dates to the day."""

    kind: ClassVar[str] = "grid"


@register
@dataclass(frozen=True)
class Count(Grid):
    """How many: whole numbers from zero up."""

    kind: ClassVar[str] = "count"


@register
@dataclass(frozen=True)
class Levels(Domain):
    """Brightness 0 … n − 1: of one channel, or of all channels of a pixel that are revealed together.

    Its cell is the levels of its channels, one after the other, not the four numbers of a table's cell.
    """

    kind: ClassVar[str] = "levels"
    is_ordered: ClassVar[bool] = True
    counts: tuple  # how often each level occurs, over all channels
    n_channels: int = 1

    @property
    def frequencies(self) -> np.ndarray:
        smoothed = np.asarray(self.counts, dtype=np.float64) + 0.5
        return smoothed / smoothed.sum()

    def positions(self) -> np.ndarray:
        return np.linspace(-1.0, 1.0, self.n_symbols)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """(n,) or (n, channels) levels → (n, 4) cells."""
        cells = np.zeros((len(values), len(CELL)), dtype=np.float32)
        cells[:, : self.n_channels] = np.asarray(values).reshape(len(values), self.n_channels)
        return cells

    def decode(self, cells: np.ndarray) -> np.ndarray:
        """(n, 4) → (n, channels)."""
        return cells[:, : self.n_channels].round().astype(np.int64)

    def describe(self) -> str:
        channels = "" if self.n_channels == 1 else f" of {self.n_channels} channels"
        return f"{self.n_symbols} levels{channels}"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "counts": [int(c) for c in self.counts], "n_channels": self.n_channels}


@dataclass(frozen=True)
class SharedDomain(Sequence[Domain]):
    """n variables of one domain on a line (characters) or a grid (pixels): networks and heads share their weights."""

    domain: Domain
    shape: tuple[int, ...]  # (n,), (height, width), or (height, width, channels) where each channel is a variable

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, index):
        return ([self.domain] * len(self))[index]
