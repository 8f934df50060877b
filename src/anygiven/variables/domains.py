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

from anygiven.errors import SchemaError
from anygiven.variables.marginals import SCORE_LIMIT, Marginal

CELL = ("symbol", "low", "high", "log_width")
SYMBOL, LOW, HIGH, LOG_WIDTH = range(4)
MAX_SNAPPED_CELLS = 4096


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


def domain_from_json(data: dict[str, Any]) -> Domain:
    data = dict(data)
    cls = KINDS[data.pop("kind")]
    if "marginal" in data:
        data["marginal"] = Marginal.from_json(data["marginal"])
    data = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return cls(**data)


@register
@dataclass(frozen=True)
class Categorical(Domain):
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

    def encode(self, values: np.ndarray) -> np.ndarray:
        index = {value: i for i, value in enumerate(self.values)}
        symbols = np.array([index.get(value, -1) for value in values], dtype=np.float64)
        if (symbols < 0).any():
            unseen = values[int(np.argmax(symbols < 0))]
            raise UnseenValueError(f"{unseen!r}")
        cells = np.zeros((len(values), len(CELL)))
        cells[:, SYMBOL] = symbols
        cells[:, LOW] = cells[:, HIGH] = self.positions()[symbols.astype(int)]
        return cells

    def is_seen(self, values: np.ndarray) -> np.ndarray:
        known = set(self.values)
        return np.array([value in known for value in values], dtype=bool)

    def decode(self, cells: np.ndarray) -> np.ndarray:
        values = np.empty(len(self.values), dtype=object)
        values[:] = self.values
        return values[cells[:, SYMBOL].astype(int)]

    def describe(self) -> str:
        if len(self.values) == 1:
            return f"constant: {self.values[0]}"
        shown = ", ".join(str(value) for value in self.values[:4])
        return f"{len(self.values)} values: {shown}" + (", …" if len(self.values) > 4 else "")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values), "counts": [int(c) for c in self.counts]}


@register
@dataclass(frozen=True)
class Binary(Categorical):
    """Two values."""

    kind: ClassVar[str] = "binary"


@register
@dataclass(frozen=True)
class Ordinal(Categorical):
    """A fixed set of values in order, lowest first."""

    kind: ClassVar[str] = "ordinal"
    is_ordered: ClassVar[bool] = True

    def positions(self) -> np.ndarray:
        """The normal score of the middle of each value's share."""
        from scipy.special import ndtri

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
    edges: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "edges", self._snapping_edges())

    @property
    def frequencies(self) -> np.ndarray:
        smoothed = np.asarray(self.counts, dtype=np.float64) + 0.5
        return smoothed / smoothed.sum()

    @property
    def has_smooth_part(self) -> bool:
        return True

    def _to_axis(self, values: np.ndarray) -> np.ndarray:
        """User's units → the marginal's axis (cells of the grid, or the values themselves)."""
        return values if self.step is None else np.round((values - self.origin) / self.step)

    def _from_axis(self, axis: np.ndarray) -> np.ndarray:
        if self.step is None:
            return axis
        # Rounded to the grid's own decimals, or 61.12 would come back as 61.120000000000005.
        return np.round(np.round(axis) * self.step + self.origin, _decimals(self.step, self.origin))

    def _snapping_edges(self) -> np.ndarray:
        """Scores of the cell edges of a short grid, so that draws can be snapped; empty otherwise."""
        if self.step is None or not np.isfinite(self.limits).all():
            return np.empty(0)
        cells = self._cells()
        return self.marginal.score(np.append(cells - 0.5, cells[-1] + 0.5)) if len(cells) else np.empty(0)

    def _cells(self) -> np.ndarray:
        """The cells of a short grid, a tenth beyond what was seen; empty if they are too many."""
        low, high = self._to_axis(np.array(self.limits))
        margin = np.ceil(0.1 * (high - low)) + 1
        n = high - low + 2 * margin
        return np.arange(low - margin, high + margin) if n <= MAX_SNAPPED_CELLS else np.empty(0)

    def cell_values(self) -> np.ndarray:
        """The value of each cell between the edges."""
        return self._from_axis(self._cells()) if len(self.edges) else np.empty(0)

    def log_width(self, values: np.ndarray) -> np.ndarray:
        """log(high − low) of each value's cell on a grid, log dz/dx elsewhere."""
        if self.step is None:
            return self.marginal.log_slope(values)
        width = self.smooth_score(values, "upper") - self.smooth_score(values, "lower")
        return np.log(np.maximum(width, 1e-300))

    def positions(self) -> np.ndarray:
        return np.append(self.marginal.score(self._to_axis(np.asarray(self.atoms, dtype=float))), 0.0)

    def encode(self, values: np.ndarray) -> np.ndarray:
        values = np.asarray(values, dtype=np.float64)
        axis = self._to_axis(values)
        cells = np.zeros((len(values), len(CELL)))
        cells[:, SYMBOL] = self._symbols(axis)
        if self.step is None:
            cells[:, LOW] = cells[:, HIGH] = self.marginal.score(axis)
            cells[:, LOG_WIDTH] = self.marginal.log_slope(axis)
        else:
            self._encode_intervals(cells, axis)
        is_atom = cells[:, SYMBOL] < len(self.atoms)
        cells[is_atom, LOW] = cells[is_atom, HIGH] = self.positions()[cells[is_atom, SYMBOL].astype(int)]
        cells[is_atom, LOG_WIDTH] = 0.0
        return cells

    def _symbols(self, axis: np.ndarray) -> np.ndarray:
        """The atom each value is, or the number of atoms for the smooth part."""
        n = len(self.atoms)
        if n == 0:
            return np.zeros(len(axis))
        atoms = self._to_axis(np.asarray(self.atoms, dtype=float))
        at = np.clip(np.searchsorted(atoms, axis), 0, n - 1)
        return np.where(atoms[at] == axis, at, n)

    def _encode_intervals(self, cells: np.ndarray, axis: np.ndarray) -> None:
        low, high = self.marginal.score(axis - 0.5), self.marginal.score(axis + 0.5)
        middle = np.clip(self.marginal.score(axis), -SCORE_LIMIT + 1e-6, SCORE_LIMIT - 1e-6)
        width = high - low
        # Far out, or between knots, the two scores may be too close to subtract: use the slope there.
        narrow = width < 1e-7
        cells[:, LOW], cells[:, HIGH] = np.where(narrow, middle, low), np.where(narrow, middle, high)
        slope = self.marginal.log_slope(axis)
        cells[:, LOG_WIDTH] = np.where(narrow, slope, np.log(np.maximum(width, 1e-300)))

    def decode(self, cells: np.ndarray) -> np.ndarray:
        middle = 0.5 * (cells[:, LOW] + cells[:, HIGH])
        values = self.smooth_value(middle)
        if self.atoms:
            atoms = np.append(np.asarray(self.atoms, dtype=float), np.nan)
            symbol = cells[:, SYMBOL].astype(int)
            values = np.where(symbol < len(self.atoms), atoms[symbol], values)
        return values

    def snap(self, values: np.ndarray) -> np.ndarray:
        """The nearest value of the grid; the value itself where there is no grid."""
        return self._from_axis(self._to_axis(np.asarray(values, dtype=np.float64)))

    def smooth_value(self, z: np.ndarray) -> np.ndarray:
        """Normal score → value of the smooth part, on the grid if there is one."""
        return self._from_axis(self.marginal.value(np.asarray(z, dtype=np.float64)))

    def quick_value(self, z: np.ndarray) -> np.ndarray:
        """smooth_value from a table of 8,001 scores: for the millions of nodes that means are summed over."""
        place = np.clip((z + SCORE_LIMIT) * (len(self.table) - 1) / (2 * SCORE_LIMIT), 0, len(self.table) - 1.001)
        below = place.astype(np.int64)
        share = place - below
        return self.table[below] * (1 - share) + self.table[below + 1] * share

    @cached_property
    def table(self) -> np.ndarray:
        return self.smooth_value(np.linspace(-SCORE_LIMIT, SCORE_LIMIT, 8001))

    def smooth_score(self, values: np.ndarray, side: str = "middle") -> np.ndarray:
        """Score of a value; side "upper" gives the upper edge of its cell, "lower" the lower."""
        shift = {"middle": 0.0, "upper": 0.5, "lower": -0.5}[side] if self.step is not None else 0.0
        return self.marginal.score(self._to_axis(np.asarray(values, dtype=float)) + shift)

    def describe(self) -> str:
        low, high = self.limits
        text = f"{low:g} to {high:g}"
        if self.step is not None and self.step != 1:
            text += f", in steps of {self.step:g}"
        if self.atoms:
            shown = ", ".join(f"{atom:g}" for atom in self.atoms[:4])
            text += f"; masses at {shown}" + (f", … ({len(self.atoms)})" if len(self.atoms) > 4 else "")
        return text

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "marginal": self.marginal.to_json(),
            "atoms": list(self.atoms),
            "counts": [int(c) for c in self.counts],
            "step": self.step,
            "origin": self.origin,
            "limits": list(self.limits),
        }


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
    """How many: whole numbers from nought up."""

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
class Alike(Sequence[Domain]):
    """n variables of one domain on a line (characters) or a grid (pixels): networks and heads share their weights."""

    domain: Domain
    shape: tuple[int, ...]  # (n,), (height, width), or (height, width, channels) where each channel is a variable

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, index):
        return ([self.domain] * len(self))[index]
