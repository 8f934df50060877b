"""What a user gets for one column given what is known: a distribution in the user's units, of one row or of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from anygiven.errors import QuestionError, require
from anygiven.estimators.options import COUNT, seed_of
from anygiven.inference.distributions import Categories, Distribution
from anygiven.variables import Schema, read_table
from anygiven.variables.domains import Numeric, plain_text
from anygiven.variables.schema import Variable
from anygiven.variables.tables import is_gap, native_values, number_of

LEAST_SHOWN = 1e-6  # masses of a grid below it are not listed


class Answer:
    """p(column | given): of one row, whose answers are single values, or of many, whose answers are arrays (or, where a
    pandas table was given, series and frames with its index). `[i]` is the answer of one row of many.
    """

    def __init__(
        self, variable: Variable, distribution: Distribution, given: dict[str, Any] | None = None, index: Any = None
    ):
        self.variable, self.distribution, self.index = variable, distribution, index
        self.given = given  # of the one row; None: there are many

    # ------------------------------------------------------------------ one row or many

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def is_single(self) -> bool:
        return self.given is not None

    def __len__(self) -> int:
        return self.distribution.n_rows

    def __getitem__(self, row: int) -> Answer:
        """The answer of one row, counted from 0."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"There is no row {row}; there are {len(self)}, counted from 0.")
        return Answer(self.variable, self.distribution.rows([row]), {})

    def _each(self, values: np.ndarray) -> Any:
        """(B,) → one value, an array, or a series."""
        if self.is_single:
            return self._one(values[0])
        if self._zone and values.dtype.kind == "M":
            values = pd.DatetimeIndex(values, tz="UTC").tz_convert(self._zone)  # type: ignore[assignment]
        return values if self.index is None else pd.Series(values, index=self.index, name=self.name)

    def _each_of(self, values: np.ndarray, columns: list) -> Any:
        """(B, M) → an array, or a frame."""
        if self._zone and values.dtype.kind == "M":
            stamps = [[self._one(value) for value in row] for row in values]
            values = np.array(stamps, dtype=object).reshape(values.shape)
        if self.is_single:
            return values[0]
        if self.index is None:
            return values
        frame = pd.DataFrame(values, index=self.index, columns=pd.Index(columns))
        return frame.infer_objects() if values.dtype == object else frame

    @property
    def _zone(self) -> str | None:
        return self.variable.storage.zone

    def _native(self, values: np.ndarray) -> np.ndarray:
        """Values of the domain, of any shape, as the user stores them."""
        storage = self.variable.storage
        if isinstance(self.variable.domain, Numeric) and self.variable.domain.step is None and not storage.is_time:
            return np.asarray(values, dtype=np.float64)
        return native_values(values.ravel(), storage).reshape(values.shape)

    def _one(self, value: Any) -> Any:
        """A plain Python value: dates as pandas has them, or as days where the column holds those."""
        if isinstance(value, np.datetime64):
            stamp: Any = pd.Timestamp(value)
            if self._zone:
                return stamp.tz_localize("UTC").tz_convert(self._zone)
            is_day = self.variable.storage.kind == "date" and stamp == stamp.normalize()
            return stamp.date() if is_day else stamp
        if isinstance(value, np.timedelta64):
            return pd.Timedelta(value)
        return value.item() if isinstance(value, np.generic) else value

    def _numbers_of(self, value: Any) -> tuple[np.ndarray, bool]:
        """A user's value, or one for each row (of a single row: any number of them) → (1 or B, M), and whether the
        answer loses its second axis."""
        if np.ndim(value) == 0:
            return self._read([value])[None, :], True
        if np.ndim(value) != 1:
            raise QuestionError(f"{self.name} was given values in {np.ndim(value)} dimensions; give one, or a list.")
        items = list(self._aligned(value))
        if self.is_single:
            return self._read(items)[None, :], False
        if len(items) != len(self):
            raise QuestionError(f"{len(items)} values were given for {len(self)} rows; give one for all, or one a row.")
        return self._read(items)[:, None], True

    def _aligned(self, value: Any) -> Any:
        """Values that carry the rows' own labels are put in the rows' order; other labels are a mistake."""
        if self.is_single or self.index is None or not isinstance(value, pd.Series) or value.index.equals(self.index):
            return value
        is_alike = value.index.is_unique and self.index.is_unique and len(value) == len(self.index)
        if is_alike and value.index.isin(self.index).all():
            return value.reindex(self.index)
        raise QuestionError(f"The values of {self.name} have other row labels than the rows; give them the same index.")

    def _read(self, items: list) -> np.ndarray:
        """(M,) as the domain has them, or one sentence."""
        if any(is_gap(item) for item in items):
            raise QuestionError(f"{self.name} was given a gap; give a value.")
        if isinstance(self.variable.domain, Numeric) or self._has_numbers():
            storage = self.variable.storage
            try:
                return np.array([number_of(item, storage) for item in items], dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                what = storage.what
                raise QuestionError(f"{items[0]!r} is not a {what}, but {self.name} holds {what}s.") from None
        schema = Schema((self.variable,), {}, "pandas")
        cells, _ = schema.encode(read_table({self.name: items}))
        return self.variable.domain.decode(cells[:, 0])

    def _asked(self, compute, value: Any) -> Any:
        values, is_flat = self._numbers_of(value)
        found = compute(values)
        return self._each(found[:, 0]) if is_flat else self._each_of(found, [])

    # ------------------------------------------------------------------ summaries

    def _require(self, what: str, is_there: bool, otherwise: str = "mode or probabilities") -> None:
        if not is_there:
            raise QuestionError(f"{self.name} has no {what}: its values are not numbers; use {otherwise}.")

    def _has_numbers(self) -> bool:
        return not isinstance(self.distribution, Categories) or self.distribution.has_numbers

    def _has_order(self) -> bool:
        return not isinstance(self.distribution, Categories) or self.distribution.has_order

    @property
    def mean(self) -> Any:
        self._require("mean", self._has_numbers())
        mean = self.distribution.mean
        return self._each(native_values(mean, self.variable.storage) if self.variable.storage.is_time else mean)

    @property
    def std(self) -> Any:
        self._require("std", self._has_numbers())
        std = self.distribution.std
        is_time = self.variable.storage.is_time
        return self._each(np.round(std * 1e6).astype("timedelta64[us]") if is_time else std)

    @property
    def mode(self) -> Any:
        """The likeliest value. Where there is a density, an atom if it outweighs all that has one."""
        return self._each(self._native(self.distribution.mode))

    @property
    def median(self) -> Any:
        return self.quantile(0.5)

    def quantile(self, level: Any) -> Any:
        """The smallest value whose cdf reaches the level; of a list of levels, each."""
        self._require("quantile", self._has_order())
        levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
        for one in levels:
            _check_level(one)
        values = self._native(self.distribution.quantile(levels))
        return self._each(values[:, 0]) if np.ndim(level) == 0 else self._each_of(values, levels.tolist())

    def interval(self, level: float = 0.9) -> Any:
        """The central interval: low and high leave out half of the rest each. Of many rows: two columns."""
        _check_level(level)
        self._require("interval", self._has_order())
        ends = np.round([(1 - level) / 2, (1 + level) / 2], 12)  # 0.05, not 0.04999999999999999
        values = self._native(self.distribution.quantile(ends))
        if self.is_single:
            return tuple(self._one(value) for value in values[0])
        return self._each_of(values, ["low", "high"])

    def cdf(self, value: Any) -> Any:
        """P(column ≤ value), in the order of the values."""
        self._require("cdf", self._has_order())
        return self._asked(self.distribution.cdf, value)

    def log_prob(self, value: Any) -> Any:
        """Log mass at an atom or on a grid, log density elsewhere, −inf for what is not possible."""
        return self._asked(self.distribution.log_prob, value)

    def pdf(self, value: Any) -> Any:
        """The density at a value, or its probability where it has one."""
        return self._asked(lambda values: np.exp(self.distribution.log_prob(values)), value)

    def entropy(self) -> Any:
        """In nats: differential for the part with a density, discrete for masses."""
        return self._each(self.distribution.entropy())

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """n draws; of many rows, n of each: (rows, n). Without a random state they are new each time."""
        if not COUNT.allows(n):
            raise QuestionError(f"{n!r} draws were asked for; it must be a whole number of at least one.")
        rng = np.random.default_rng(seed_of(random_state))
        return self._each_of(self._native(self.distribution.sample(int(n), rng)), list(range(int(n))))

    @property
    def probabilities(self) -> Any:
        """Value → probability where values have one: categories (likeliest first, or in their order), atoms, and all
        cells of a short grid. Of many rows a column for each value."""
        values, masses = self.distribution.masses()
        shown = self._keys(values)
        if not self.is_single:
            return self._each_of(masses, shown)
        order = np.arange(len(values))
        if isinstance(self.distribution, Categories) and not self.variable.domain.is_ordered:
            order = np.argsort(-masses[0], kind="stable")
        elif not isinstance(self.distribution, Categories):
            atoms = np.isin(values, self.variable.domain.atoms)  # type: ignore[attr-defined]
            order = np.flatnonzero((masses[0] > LEAST_SHOWN) | atoms)
        return {shown[i]: float(masses[0, i]) for i in order}

    def _keys(self, values: np.ndarray) -> list:
        """As the user stores them; whole numbers as such, though gaps made a column of them float."""
        found = [self._one(value) for value in self._native(values)]
        is_whole = all(isinstance(value, float) and value.is_integer() for value in found)
        return [int(value) for value in found] if is_whole else found

    def top(self, k: int = 5) -> list[tuple[Any, float]]:
        """The k likeliest values with their probabilities, of one row."""
        self._require_single("top")
        return sorted(self.probabilities.items(), key=lambda pair: -pair[1])[: max(int(k), 0)]

    # ------------------------------------------------------------------ for a person

    def _require_single(self, what: str) -> None:
        if not self.is_single:
            raise QuestionError(f"{what} is of one row, and there are {len(self)}; take one, as in conditional[0].")

    @property
    def title(self) -> str:
        given = ", ".join(f"{key}={plain_text(value)}" for key, value in (self.given or {}).items())
        return f"{self.name} | {given}" if given else self.name

    def plot(self, ax=None, most: int = 12, mark: Any = None):
        """Bars of the likeliest values, or the density with a stem for every atom that matters; a value to mark."""
        self._require_single("plot")
        plt = require("matplotlib.pyplot", "plot")
        ax = ax or plt.subplots(figsize=(5, 3))[1]
        if isinstance(self.distribution, Categories):
            shown = list(self.probabilities.items())[:most][::-1]
            marked = "" if mark is None else plain_text(self._read([mark])[0])
            colours = ["#c2571a" if plain_text(value) == marked else "#3b6ea5" for value, _ in shown]
            ax.barh([plain_text(value) for value, _ in shown], [p for _, p in shown], color=colours)
            ax.set_xlabel("probability")
        else:
            self._plot_numbers(ax)
            if self.variable.storage.kind in ("date", "datetime"):
                ax.tick_params(axis="x", rotation=30)
            if mark is not None:
                ax.axvline(self._axis(self._read([mark]))[0], color="#c2571a", linewidth=1)
            ax.set_xlabel(self.name)
        ax.set_title(self.title, fontsize=10)
        return ax

    def _plot_numbers(self, ax) -> None:
        low, high = self.distribution.quantile(np.array([0.005, 0.995]))[0]
        values, masses = self.distribution.masses()
        inside = (values >= low) & (values <= high) & (masses[0] > 1e-3)
        domain = self.variable.domain
        assert isinstance(domain, Numeric)
        step = domain.step or 0.0
        if len(domain.edges) and (high - low) / step <= 60:  # few enough for a bar each
            ax.bar(self._axis(values[inside]), masses[0][inside], width=self._width(0.8 * step), color="#3b6ea5")
            ax.set_ylabel("probability")
            return
        low, high = (low, high) if high > low else (low - 1, high + 1)
        edges = np.linspace(low, high, 121)
        density = np.diff(self.distribution.smooth_below(edges[None, :])[0]) / np.diff(edges)  # type: ignore[attr-defined]
        ax.fill_between(self._axis(edges[1:]), density, step="pre", color="#3b6ea5", alpha=0.6)
        ax.set_ylabel("density")
        is_atom = inside & np.isin(values, domain.atoms)
        if is_atom.any():
            twin = ax.twinx()
            twin.vlines(self._axis(values[is_atom]), 0, masses[0][is_atom], color="#c2571a", linewidth=2)
            twin.set_ylabel("mass", color="#c2571a")
            twin.set_ylim(bottom=0)

    def _axis(self, values: np.ndarray) -> np.ndarray:
        """Numbers as matplotlib draws them; dates as dates."""
        is_date = self.variable.storage.kind in ("date", "datetime")
        return native_values(values, self.variable.storage) if is_date else values

    def _width(self, width: float) -> Any:
        is_date = self.variable.storage.kind in ("date", "datetime")
        return np.timedelta64(round(width * 1e6), "us") if is_date else width

    def __repr__(self) -> str:
        if not self.is_single:
            return f"<{self.name}, {len(self):,} rows>"
        if isinstance(self.distribution, Categories):
            top = ", ".join(f"{plain_text(value)}: {p:.3f}" for value, p in list(self.probabilities.items())[:4])
            return f"<{self.title}: {top}>"
        low, high = self.interval(0.9)
        return f"<{self.title}: mean {self.shown(self.mean)}, 90 % between {self.shown(low)} and {self.shown(high)}>"

    def shown(self, value: Any) -> str:
        """A number with the digits that matter beside the distribution's spread; a date without an empty time."""
        if isinstance(value, pd.Timestamp):
            return str(value.date() if value == value.normalize() or self._spread() > 86_400 else value.round("s"))
        if isinstance(value, pd.Timedelta):
            return str(value.round("s") if value > pd.Timedelta("10s") else value).removeprefix("0 days ")
        if not isinstance(value, float) or value.is_integer():
            return plain_text(value)
        spread = self._spread()
        digits = int(np.clip(np.ceil(1.5 - np.log10(spread)), 0, 12)) if spread > 0 else 6
        return f"{value:,.{digits}f}" if abs(value) >= 1e4 else f"{value:.{digits}f}"

    def _spread(self) -> float:
        return float(self.distribution.std[0])

    def _repr_html_(self) -> str:
        from html import escape

        if self.is_single:
            try:
                return (
                    f'<img alt="{escape(repr(self))}" src="data:image/png;base64,{_png(self)}"><br>{escape(repr(self))}'
                )
            except ImportError:
                pass
        return f"<pre>{escape(repr(self))}</pre>"


def _png(drawn: Any) -> str:
    """Something with plot() as a picture in base64."""
    import base64
    import io

    figures = require("matplotlib.figure", "plot")
    figure = figures.Figure(figsize=(5, 3))
    drawn.plot(figure.add_subplot())
    figure.tight_layout()
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return base64.b64encode(file.getvalue()).decode()


def _check_level(level: float) -> None:
    if not 0 <= level <= 1:
        raise QuestionError(f"{level:g} is not a probability between 0 and 1.")
