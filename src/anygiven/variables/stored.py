"""Domains and schemas as they stand on disk: one description of each, by which all that is read is checked.

msgspec checks the types, ranges and names; `__post_init__` checks what the parts have to do with each other. Nothing is
built from a file before it has passed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from anygiven.variables.domains import CELL, KINDS, CategoricalDomain, Levels, Numeric
from anygiven.variables.marginals import Marginal, Tail
from anygiven.variables.tables import LARGEST, Storage

FARTHEST = 1e6 * LARGEST  # marginals reach beyond the values
Finite = Annotated[float, Meta(ge=-FARTHEST, le=FARTHEST)]
Positive = Annotated[float, Meta(gt=0, le=FARTHEST)]
Share = Annotated[float, Meta(ge=0, le=1 + 1e-9)]
HowOften = Annotated[float, Meta(ge=0, le=1e15)]
Value = bool | int | float | str
T = TypeVar("T")


class Stored(Struct, forbid_unknown_fields=True):
    """Part of a file. A ValueError says what does not fit."""


def read_stored(data: bytes, kind: type[T]) -> T:
    """JSON → the described parts; a ValueError if it is anything else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ValueError(str(error)) from None


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


class StoredMarginal(Stored):
    knots: Annotated[list[Finite], Meta(min_length=2)]
    masses: list[Share]
    tails: tuple[tuple[Share, Positive], tuple[Share, Positive]]

    def __post_init__(self):
        _demand(bool((np.diff(self.knots) >= 0).all()), "the knots of a marginal fall")
        _demand(len(self.masses) == len(self.knots) - 1, "a marginal has as many masses as gaps between knots")
        _demand(self.tails[0][0] + self.tails[1][0] <= 1 + 1e-9, "the tails of a marginal hold more than all")

    def read(self) -> Marginal:
        low, high = (Tail(*numbers) for numbers in self.tails)
        return Marginal.from_masses(np.array(self.knots), np.array(self.masses), low, high)


class _StoredCategories(Stored, tag_field="kind"):
    values: Annotated[list[Value], Meta(min_length=1)]
    counts: list[HowOften]

    def __post_init__(self):
        _demand(len(self.counts) == len(self.values), "a column has as many counts as values")
        _demand(len(set(self.values)) == len(self.values), "a value of a column stands twice")

    def read(self) -> CategoricalDomain:
        return _kind_of(self)(tuple(self.values), tuple(self.counts))


class StoredCategorical(_StoredCategories, tag="categorical"): ...


class StoredBinary(_StoredCategories, tag="binary"): ...


class StoredOrdinal(_StoredCategories, tag="ordinal"): ...


class _StoredNumbers(Stored, tag_field="kind"):
    marginal: StoredMarginal
    atoms: list[Finite]
    counts: list[HowOften]
    step: Positive | None
    origin: Finite
    limits: tuple[Finite, Finite]
    bounds: tuple[Finite | None, Finite | None]

    def __post_init__(self):
        low, high = self._bounds()
        _demand(bool((np.diff(self.atoms) > 0).all()), "the atoms of a column do not rise")
        _demand(len(self.counts) == len(self.atoms) + 1, "a column has a count for each atom and for the rest")
        _demand(self.limits[0] <= self.limits[1], "the limits of a column are the wrong way round")
        _demand(low < high or (low == high and self.step is not None), "the bounds of a column are the wrong way round")

    def _bounds(self) -> tuple[float, float]:
        low, high = self.bounds
        return -np.inf if low is None else low, np.inf if high is None else high

    def read(self) -> Numeric:
        atoms, counts = tuple(self.atoms), tuple(self.counts)
        return _kind_of(self)(self.marginal.read(), atoms, counts, self.step, self.origin, self.limits, self._bounds())


class StoredContinuous(_StoredNumbers, tag="continuous"):
    step: None


class StoredGrid(_StoredNumbers, tag="grid"):
    step: Positive


class StoredCount(StoredGrid, tag="count"): ...


class StoredLevels(Stored, tag_field="kind", tag="levels"):
    counts: Annotated[list[HowOften], Meta(min_length=2, max_length=65536)]
    n_channels: Annotated[int, Meta(ge=1, le=len(CELL))]

    def read(self) -> Levels:
        return Levels(tuple(self.counts), self.n_channels)


StoredColumn = StoredCategorical | StoredBinary | StoredOrdinal | StoredContinuous | StoredGrid | StoredCount


def _kind_of(stored: Struct) -> Any:
    return KINDS[str(stored.__struct_config__.tag)]


class StoredStorage(Stored):
    kind: Literal["float", "integer", "boolean", "string", "date", "datetime", "timedelta"]
    native: str
    categories: list[Value] | None
    is_ordered: bool
    format: str | None

    def read(self) -> Storage:
        categories = None if self.categories is None else tuple(self.categories)
        return Storage(self.kind, self.native, categories, self.is_ordered, self.format)
