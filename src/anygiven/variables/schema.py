"""What each column of a table represents: found from the data, printed, overridden per column."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from scipy.ndimage import uniform_filter1d

from anygiven.errors import AnyGivenWarning, SchemaError, TableError
from anygiven.variables.domains import (
    CELL,
    ON_GRID,
    OTHER,
    SYMBOL,
    Binary,
    CategoricalDomain,
    Continuous,
    Count,
    Domain,
    Grid,
    Numeric,
    Ordinal,
    UnseenValueError,
    plain_text,
)
from anygiven.variables.marginals import Marginal, fit_marginal, weighted_values
from anygiven.variables.modelled import Variables
from anygiven.variables.stored import Stored, StoredColumn, StoredStorage
from anygiven.variables.tables import (
    SECONDS_PER_DAY,
    Column,
    Storage,
    Table,
    build_frame,
    native_values,
    number_of,
    read_table,
)

MAX_ATOMS = 64
ATOM_SHARE = 0.02  # a value this frequent may have a symbol of its own
FEW_VALUES = 32
MAX_CATEGORIES = 2000
ID_NAME = re.compile(r"(^|[_\s.-])(id|no|nr|nbr|uuid|guid|key|index|number)$|ID$|Id$", re.IGNORECASE)
CODE_NAME = re.compile(r"(^|[_\s.-])(id|code|type|class|category|zip|zipcode|postcode|group)$", re.IGNORECASE)
NUMERIC = ("continuous", "grid", "count")
OVERRIDES = (*NUMERIC, "categorical", "binary", "ordinal", "leave out")
TIME_STEPS = (SECONDS_PER_DAY, 3600.0, 60.0)
Fit = Callable[..., Marginal]  # (values, is_grid, bounds=…) → their marginal
N_IN_A_HURRY = 400  # values from which a column is fitted where there are many columns and little time
FEW_TO_BOUND = 30  # values tell nothing of where they must end
MISSED_BEYOND = 5  # values expected beyond a bound, and not one there: the bound is real
Bounds = tuple[float, float]
OPEN: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True)
class Variable:
    """One modelled column."""

    name: str
    domain: Domain
    storage: Storage
    label: Any = None  # what the user's frame calls it, if that is not its name

    def describe(self) -> str:
        if isinstance(self.domain, Numeric) and self.storage.is_time:
            low, high = native_values(np.array(self.domain.limits), self.storage)
            if self.storage.kind == "timedelta":
                return f"{low.item()} to {high.item()}"
            return f"{low} to {high}" if self.domain.step is None else f"{low.item().date()} to {high.item().date()}"
        return self.domain.describe()


class StoredVariable(Stored):
    name: str
    label: str | int | None
    domain: StoredColumn
    storage: StoredStorage


class StoredSchema(Stored):
    """A table's schema as schema.json keeps it."""

    variables: Annotated[list[StoredVariable], Meta(min_length=1)]
    left_out: dict[str, str]
    backend: Literal["pandas", "polars", "pyarrow", "numpy"]

    def __post_init__(self):
        names = [variable.name for variable in self.variables]
        if len({*names, *self.left_out}) < len(names) + len(self.left_out):
            raise ValueError("a column stands twice")


class _LeftOut(Exception):
    """The column cannot be modelled, and why."""


@dataclass(frozen=True)
class Schema(Variables):
    """The modelled columns in order, and those left out with the reason."""

    variables: tuple[Variable, ...]
    left_out: dict[str, str]
    backend: str
    stored_type = StoredSchema

    def name_of(self, variable: int) -> str:
        return self.names[variable]

    @property
    def names(self) -> list[str]:
        return [variable.name for variable in self.variables]

    @property
    def domains(self) -> list[Domain]:
        return [variable.domain for variable in self.variables]

    def index(self, name: Any) -> int:
        """The place of a column, or one sentence that says which columns there are."""
        name = str(name)
        if name in self.left_out:
            raise SchemaError(f"Column {name!r} is not modelled: it was left out as {self.left_out[name]}.")
        if name not in self.names:
            near = _nearest(name, self.names)
            raise SchemaError(f"There is no column {name!r}" + (f"; did you mean {near!r}?" if near else "."))
        return self.names.index(name)

    def encode(self, table: Table, unseen: str = "error") -> tuple[np.ndarray, np.ndarray]:
        """Table → cells (rows, variables, 4) and is_present (rows, variables). Absent columns are gaps.

        `unseen` says what to do with a category never seen in training: "error" or "gap".
        """
        cells = np.zeros((table.n_rows, len(self.variables), len(CELL)), dtype=np.float32)
        is_present = np.zeros((table.n_rows, len(self.variables)), dtype=bool)
        by_name = {column.name: column for column in table.columns}
        for name in by_name:
            if name not in self.left_out:
                self.index(name)
        for i, variable in enumerate(self.variables):
            if variable.name in by_name:
                column = _as_stored(by_name[variable.name], variable)
                is_present[:, i] = _known(column, variable, unseen)
                cells[is_present[:, i], i] = _encode(column, is_present[:, i], variable)
        return cells, is_present

    def is_possible(self, table: Table) -> np.ndarray:
        """(rows, variables) False where a number is off its column's grid or outside its bounds."""
        found = np.ones((table.n_rows, len(self.variables)), dtype=bool)
        by_name = {column.name: column for column in table.columns}
        for i, variable in enumerate(self.variables):
            if variable.name in by_name and isinstance(variable.domain, Numeric):
                column = _as_stored(by_name[variable.name], variable)
                found[column.is_present, i] = variable.domain.is_possible(column.present)
        return found

    def warn_of_strange(self, table: Table) -> None:
        """Say which numbers are not possible, or far from all that was seen: answers from them are guesses."""
        by_name = {column.name: column for column in table.columns}
        for variable in self.variables:
            if variable.name in by_name and isinstance(variable.domain, Numeric):
                _warn_of_strange(_as_stored(by_name[variable.name], variable), variable)

    def as_trained(self, table: Table) -> Table:
        """The table with every column as the training table had it: one without a value has no type of its own, and
        one of another type is read as its column is, which is said, or refused."""
        variables = {variable.name: variable for variable in self.variables}
        columns, retyped = [], set()
        for column in table.columns:
            variable = variables.get(column.name)
            if variable is not None and not column.storage.is_kin_of(variable.storage):
                column = _retyped(column, variable)
                retyped.add(column.name)
            columns.append(column)
        if retyped and table.backend == "numpy" and table.native.dtype != object:
            name = sorted(retyped)[0]
            things = variables[name].storage.things
            raise SchemaError(f"An array of numbers cannot hold column {name!r}, which is {things}; give a data frame.")
        return replace(table, columns=tuple(columns), retyped=frozenset(retyped))

    def decode(self, cells: np.ndarray, given: Table | None = None) -> Any:
        """Cells (rows, variables, 4) → a frame of the user's kind and types. What was given, for as many rows in turn
        as each of its rows has, comes back as it is."""
        by_name = {column.name: column for column in given.columns} if given else {}
        columns = {}
        for i, variable in enumerate(self.variables):
            values = variable.domain.decode(cells[:, i].astype(np.float64))
            if variable.name in by_name:
                column = _as_stored(by_name[variable.name], variable)
                each = len(values) // max(len(column.values), 1)
                values = np.where(column.is_present.repeat(each), column.values.repeat(each), values)
            columns[variable.name if variable.label is None else variable.label] = (values, variable.storage)
        return build_frame(columns, self.backend)

    def describe(self) -> list[tuple[str, str, str]]:
        """(name, kind, one line) per column, left-out columns last."""
        rows = [(v.name, v.domain.kind, v.describe()) for v in self.variables]
        return rows + [(name, "left out", reason) for name, reason in self.left_out.items()]

    def __str__(self) -> str:
        rows = self.describe()
        width = max(len(name) for name, _, _ in rows)
        return "\n".join(f"{name:<{width}}  {kind:<11}  {line}" for name, kind, line in rows)

    def to_json(self) -> dict[str, Any]:
        variables = [
            {
                "name": v.name,
                "label": v.label if isinstance(v.label, (str, int)) else None,  # else by its name
                "domain": v.domain.to_json(),
                "storage": {**v.storage.__dict__, "categories": v.storage.categories and list(v.storage.categories)},
            }
            for v in self.variables
        ]
        return {"variables": variables, "left_out": self.left_out, "backend": self.backend}

    @classmethod
    def from_stored(cls, stored: StoredSchema) -> Schema:
        variables = [Variable(v.name, v.domain.read(), v.storage.read(), v.label) for v in stored.variables]
        return cls(tuple(variables), stored.left_out, stored.backend)


def _warn_of_strange(column: Column, variable: Variable) -> None:
    domain = variable.domain
    assert isinstance(domain, Numeric)
    present = column.present
    wrong = ~domain.is_possible(present)
    far = ~wrong & domain.is_far(present)
    is_time, storage = variable.storage.is_time, variable.storage
    for which, why in ((wrong, "is not possible: the nearest possible value is taken"),
                       (far, "is far from what was seen in training: the answer is a guess")):  # fmt: skip
        if which.any():
            value = native_values(present[which][:1], storage)[0] if is_time else present[which][0]
            more = f" (and {int(which.sum()) - 1} more)" if which.sum() > 1 else ""
            seen = variable.describe().split("; masses")[0]
            warnings.warn(f"{column.name} = {plain_text(value)}{more} {why} ({seen}).", AnyGivenWarning, stacklevel=5)


def _nearest(name: str, names: list[str]) -> str | None:
    from difflib import get_close_matches

    lowered = {n.lower(): n for n in names}
    found = get_close_matches(name.lower(), list(lowered), n=1)
    return lowered[found[0]] if found else None


def _as_stored(column: Column, variable: Variable) -> Column:
    """Read a column of a question as the training column was read: 1 and 1.0 and '1' alike where that is safe."""
    if not column.is_present.any():
        return column
    was_number = isinstance(variable.domain, (Continuous, Grid))
    is_number = column.values.dtype != object
    if column.storage.is_time and not column.storage.is_kin_of(variable.storage):
        raise SchemaError(
            f"Column {column.name!r} holds {column.storage.things} and held {variable.storage.things} in training; "
            "write it as it was."
        )
    if variable.storage.is_time and is_number and not column.storage.is_time:
        raise SchemaError(
            f"{plain_text(column.present[0])} is not a {variable.storage.what}, but column {column.name!r} holds "
            f"{variable.storage.what}s."
        )
    if was_number and not is_number:
        return Column(column.name, _parse_numbers(column, variable), column.is_present, variable.storage)
    if isinstance(variable.domain, CategoricalDomain) and not variable.domain.is_seen(column.present).all():
        return Column(column.name, _parse_categories(column, variable), column.is_present, variable.storage)
    return column


def _retyped(column: Column, variable: Variable) -> Column:
    """A column of another type than in training, read as the training column."""
    storage = variable.storage
    if not column.is_present.any():
        dtype = np.float64 if isinstance(variable.domain, Numeric) else object
        return replace(column, values=np.full(len(column.values), None, dtype=dtype), storage=storage)
    found = _as_stored(column, variable)
    if isinstance(variable.domain, CategoricalDomain):
        is_seen = variable.domain.is_seen(found.present)
        if not is_seen.any() or (storage.kind != "string" and not is_seen.all()):
            known = ", ".join(plain_text(value) for value in variable.domain.values[:4])
            raise SchemaError(
                f"Column {column.name!r} holds {column.storage.things} ({plain_text(column.present[0])}) and held "
                f"{storage.things} in training ({known}); write it as it was."
            )
        texts = [plain_text(value) if storage.kind == "string" else value for value in found.present]
        values = np.full(len(found.values), None, dtype=object)
        values[found.is_present] = texts
        found = replace(found, values=values)
        storage = storage if is_seen.all() else Storage(storage.kind, "object")
    warnings.warn(
        f"Column {column.name!r} holds {column.storage.things} here and held {storage.things} in training; it is read "
        "and written as that.",
        AnyGivenWarning,
        stacklevel=5,
    )
    return replace(found, storage=storage)


def _parse_numbers(column: Column, variable: Variable) -> np.ndarray:
    values = np.full(len(column.values), np.nan)
    for row in np.flatnonzero(column.is_present):
        try:
            values[row] = number_of(column.values[row], variable.storage)
        except (TypeError, ValueError, OverflowError):
            wanted = variable.storage.what
            raise SchemaError(
                f"{column.values[row]!r} is not a {wanted}, but column {column.name!r} holds {wanted}s."
            ) from None
    if np.isinf(values).any():
        raise SchemaError(f"Column {column.name!r} was given an infinite value; give a finite number.")
    return values


def _parse_categories(column: Column, variable: Variable) -> np.ndarray:
    """Match by text: 'True' for True, '3' for 3.0, 3 for '3'."""
    by_text = {plain_text(value): value for value in variable.domain.values}  # type: ignore[attr-defined]
    values = np.empty(len(column.values), dtype=object)
    for row in np.flatnonzero(column.is_present):
        value = column.values[row]
        values[row] = by_text.get(plain_text(value), value)
    return values


def _known(column: Column, variable: Variable, unseen: str) -> np.ndarray:
    """Which cells are present and can be encoded."""
    if not isinstance(variable.domain, CategoricalDomain):
        return column.is_present
    seen = np.zeros(len(column.values), dtype=bool)
    seen[column.is_present] = variable.domain.is_seen(column.present)
    is_new = column.is_present & ~seen
    if is_new.any() and unseen == "gap":
        examples = sorted({plain_text(value) for value in column.values[is_new]})[:3]
        warnings.warn(
            f"Column {column.name!r}: {int(is_new.sum())} cell(s) hold values never seen in training "
            f"({', '.join(examples)}); they are treated as gaps.",
            AnyGivenWarning,
            stacklevel=4,
        )
        return seen
    return column.is_present


def _encode(column: Column, is_present: np.ndarray, variable: Variable) -> np.ndarray:
    try:
        return variable.domain.encode(column.values[is_present])
    except UnseenValueError as error:
        known = ", ".join(plain_text(v) for v in variable.domain.values[:6])  # type: ignore[attr-defined]
        raise SchemaError(
            f"Column {column.name!r} was never {error} in training; it can be {known}"
            + (", …" if len(variable.domain.values) > 6 else "")  # type: ignore[attr-defined]
            + "."
        ) from None
    except (TypeError, ValueError):
        raise SchemaError(
            f"Column {column.name!r} was given a value of the wrong type; it holds {variable.storage.kind}s."
        ) from None


# ------------------------------------------------------------------ inference


def infer_schema(
    table: Table, overrides: dict[str, Any] | None = None, seed: int = 0, soon: float | None = None
) -> Schema:
    """Decide what every column represents. `overrides` maps a column to a kind, or to its values in order.

    Columns reached after the monotonic time `soon` are fitted from fewer values.
    """
    overrides = {str(name): override for name, override in (overrides or {}).items()}
    if table.n_rows == 0:
        raise TableError("The table has no rows; give at least one row to learn from.")

    def infer(column: Column, place: int) -> Domain | _LeftOut:
        if not column.is_present.any():
            raise TableError(f"Column {column.name!r} has no value at all; drop it before fitting.")
        rng = np.random.default_rng([seed, place])
        is_late = soon is not None and time.monotonic() > soon
        fit = partial(fit_marginal, rng=rng, is_quick=is_late)
        try:
            return _infer_domain(_some(column, rng) if is_late else column, overrides.get(column.name), fit)
        except _LeftOut as reason:
            return reason

    unknown = [name for name in overrides if name not in table.names]
    if unknown:
        raise SchemaError(f"The schema names a column {unknown[0]!r} that the table does not have.")
    variables, left_out = [], {}
    # numpy lets go of the interpreter in what takes most of the time, so columns are looked at side by side.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for column, found in zip(table.columns, pool.map(infer, table.columns, range(len(table.columns))), strict=True):
            if isinstance(found, _LeftOut):
                left_out[column.name] = str(found)
            else:
                variables.append(Variable(column.name, found, column.storage, column.label))
    if not variables:
        raise TableError(
            "No column can be modelled: all look like identifiers or free text; override them in the schema."
        )
    return Schema(tuple(variables), left_out, table.backend)


def _some(column: Column, rng: np.random.Generator) -> Column:
    """At most so many numbers, the outermost among them, as quickly tell the marginal; categories as they are."""
    present = np.flatnonzero(column.is_present)
    if column.values.dtype == object or len(present) <= N_IN_A_HURRY:
        return column
    ends = [present[column.present.argmin()], present[column.present.argmax()]]
    kept = np.union1d(rng.choice(present, N_IN_A_HURRY, replace=False), ends)
    return replace(column, values=column.values[kept], is_present=column.is_present[kept])


def _infer_domain(column: Column, override: Any, fit: Fit) -> Domain:
    if isinstance(override, Domain):
        return override
    if isinstance(override, (list, tuple)) and not _is_bounded(override):
        return _categories_in_order(column, override)
    if override is not None:
        return _overridden(column, override, fit)
    if column.values.dtype == object:
        return _infer_category(column)
    return _infer_number(column, fit)


def _is_bounded(override: Sequence) -> bool:
    """("continuous", 0, 1), with None for a side without a bound."""
    return len(override) == 3 and override[0] in NUMERIC and all(
        bound is None or (isinstance(bound, (int, float, np.number)) and not isinstance(bound, bool))
        for bound in override[1:]
    )  # fmt: skip


def _given_bounds(column: Column, override: Any) -> tuple[str, Bounds | None]:
    """The kind, and the bounds if they were given."""
    if isinstance(override, str):
        return override, None
    kind, low, high = override
    low, high = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    if not low < high:
        raise SchemaError(f"Column {column.name!r} is bounded by {low:g} and {high:g}; the first must be the lower.")
    if column.values.dtype != object and (column.present.min() < low or column.present.max() > high):
        worst = column.present.min() if column.present.min() < low else column.present.max()
        raise SchemaError(f"Column {column.name!r} holds {plain_text(worst)}, which its bounds do not allow.")
    return kind, (low, high)


def _overridden(column: Column, override: Any, fit: Fit) -> Domain:
    kind, bounds = _given_bounds(column, override)
    if kind not in OVERRIDES:
        raise SchemaError(f"Column {column.name!r} cannot be {kind!r}; choose one of {', '.join(OVERRIDES)}.")
    if kind == "leave out":
        raise _LeftOut("asked for")
    if kind == "binary" and len(set(column.present.tolist())) > 2:
        raise SchemaError(f"Column {column.name!r} has more than two values, so it cannot be 'binary'.")
    if kind in ("categorical", "binary", "ordinal"):
        return _as_categories(column, ordered=kind == "ordinal")
    if column.values.dtype == object:
        raise SchemaError(f"Column {column.name!r} holds text, so it cannot be {kind!r}.")
    if kind == "continuous":
        return _continuous(column.present, fit, bounds)
    step = _step_of_any(column.present)
    if step is None or (kind == "count" and step != np.round(step)):
        raise SchemaError(f"Column {column.name!r} stands on no grid of that kind, so it cannot be {kind!r}.")
    return _grid(column.present, 1.0 if kind == "count" else step, Count if kind == "count" else Grid, fit, bounds)


def _categories_in_order(column: Column, values: Sequence) -> Ordinal:
    if values and values[0] in OVERRIDES and values[0] not in set(column.present.tolist()):
        raise SchemaError(
            f"Column {column.name!r} cannot be {tuple(values)!r}: bounds are given as ('continuous', low, high), None "
            "for a side without one."
        )
    values = tuple(float(v) if column.values.dtype != object else v for v in values)
    counts = Counter(column.present.tolist())
    missing = [value for value in counts if value not in values]
    if missing:
        raise SchemaError(f"Column {column.name!r} holds {missing[0]!r}, which the given order does not name.")
    return Ordinal(values, tuple(counts.get(value, 0) for value in values))


def _as_categories(column: Column, ordered: bool = False) -> CategoricalDomain:
    counts = Counter(column.present.tolist())
    declared = column.storage.categories
    values = [v for v in declared if v in counts] if declared else sorted(counts, key=lambda v: (str(type(v)), v))
    cls = Ordinal if ordered and len(values) > 2 else Binary if len(values) == 2 else CategoricalDomain
    return cls(tuple(values), tuple(counts[v] for v in values))


def _infer_category(column: Column) -> Domain:
    present = column.present
    n, distinct = len(present), len(set(present.tolist()))
    if column.storage.categories is None and column.storage.kind == "string":
        if n >= 20 and distinct > 0.9 * n:
            raise _LeftOut("an identifier (nearly every value is different)")
        if distinct > 20 and distinct > 0.5 * n:
            raise _LeftOut("free text (too many different values)")
    if distinct > MAX_CATEGORIES and column.storage.categories is None:
        return _frequent_categories(column)
    return _as_categories(column, ordered=column.storage.is_ordered)


def _frequent_categories(column: Column) -> CategoricalDomain:
    """The most frequent values, and one symbol for all others."""
    counts = Counter(column.present.tolist())
    kept = sorted(value for value, _ in counts.most_common(MAX_CATEGORIES - 1))
    rest = len(column.present) - sum(counts[value] for value in kept)
    warnings.warn(
        f"Column {column.name!r} has {len(counts):,} different values: the {len(kept):,} most frequent are kept apart, "
        f"the others are one, {OTHER!r}.",
        AnyGivenWarning,
        stacklevel=2,
    )
    return CategoricalDomain((*kept, OTHER), (*(counts[value] for value in kept), rest))


def _infer_number(column: Column, fit: Fit) -> Domain:
    present = column.present
    distinct, counts = np.unique(present, return_counts=True)
    if column.storage.is_time:
        bounds = None if column.storage.kind == "timedelta" else OPEN  # durations end at zero, dates nowhere
        steps = [step for step in TIME_STEPS if (present % step == 0).all()]
        return _grid(present, steps[0], Grid, fit, bounds) if steps else _continuous(present, fit, bounds)
    if len(distinct) <= 2:
        return _as_categories(column)
    is_whole = bool((distinct == np.round(distinct)).all()) and column.storage.kind in ("float", "integer")
    if is_whole and _looks_like_id(column.name, present, len(distinct)):
        raise _LeftOut("an identifier (most of its numbers occur once)")
    if is_whole and _looks_like_code(column.name, distinct, counts):
        return _as_categories(column)
    step = _grid_step(present)
    if step is None:
        return _continuous(present, fit)
    is_count = is_whole and distinct[0] in (0, 1) and step == 1 and distinct[-1] < 1000
    return _grid(present, step, Count if is_count else Grid, fit)


def _looks_like_id(name: str, present: np.ndarray, n_distinct: int) -> bool:
    n = len(present)
    if n < 20:
        return False
    # Row numbers count from 0 or 1 in steps of one; years and readings of a meter rise too, and are no identifiers.
    if n_distinct == n and present[0] in (0, 1) and (np.diff(present) == 1).all():
        return True
    return bool(ID_NAME.search(name)) and n_distinct > 0.6 * n


def _looks_like_code(name: str, distinct: np.ndarray, counts: np.ndarray) -> bool:
    """A code's name says so, or its frequencies jump up and down as no quantity's do."""
    if CODE_NAME.search(name) and len(distinct) <= 200:
        return True
    if len(distinct) < 5 or len(distinct) > 40:
        return False
    turns = np.diff(np.sign(np.diff(np.log(counts))))
    jumps = np.abs(np.diff(np.log(counts)))
    return bool((turns != 0).sum() >= 0.7 * (len(distinct) - 2) and np.median(jumps) > 1.5)


def _grid_step(present: np.ndarray) -> float | None:
    """The step of the grid that the values stand on, or None where they hardly ever tie."""
    distinct = np.unique(present)
    is_whole = bool((distinct == np.round(distinct)).all())
    if not is_whole and len(distinct) > 0.5 * len(present):
        return None
    return _step_of_any(present)


def _step_of_any(present: np.ndarray) -> float | None:
    """The step of the coarsest grid of at most four decimals on which all values stand."""
    distinct = np.unique(present)
    if len(distinct) == 1:
        return 1.0 if distinct[0] == np.round(distinct[0]) else None
    for decimals in range(5):
        scaled = distinct * 10.0**decimals
        if np.abs(scaled).max() > 2**50:
            return None
        if np.allclose(scaled, np.round(scaled), rtol=0, atol=1e-6 * max(1.0, 10.0 ** (decimals - 3))):
            differences = np.diff(np.round(scaled).astype(np.int64))
            return float(np.gcd.reduce(differences)) / 10.0**decimals
    return None


def _frequent(values: np.ndarray) -> np.ndarray:
    """Values with a mass of their own: often hit, and standing out unless there are few values at all."""
    distinct, counts = np.unique(values, return_counts=True)
    share = counts / len(values)
    around = uniform_filter1d(counts.astype(float), 7, mode="nearest") * 7 - counts  # three on either side
    stands_out = counts > 3 * around / 6
    is_atom = (share >= ATOM_SHARE) & (counts >= 10)
    is_atom &= stands_out | (share >= 0.05) | (len(distinct) <= FEW_VALUES)
    if is_atom.sum() > MAX_ATOMS:
        is_atom &= counts >= np.sort(counts)[-MAX_ATOMS]
    return distinct[is_atom]


def _continuous(present: np.ndarray, fit: Fit, bounds: Bounds | None = None) -> Continuous:
    atoms = _frequent(present)
    smooth = present[~np.isin(present, atoms)]
    bounds = _shown_bounds(present) if bounds is None else bounds
    marginal = fit(smooth if len(smooth) else present, False, bounds=bounds)
    counts = [int((present == atom).sum()) for atom in atoms] + [len(smooth)]
    return Continuous(marginal, tuple(atoms.tolist()), tuple(counts), None, 0.0, _limits(present), bounds)


def _grid(present: np.ndarray, step: float, cls: type[Grid], fit: Fit, bounds: Bounds | None = None) -> Grid:
    origin = float(np.min(present))
    origin = 0.0 if abs(origin / step - np.round(origin / step)) < 1e-6 else origin
    cells = np.round((present - origin) / step)
    atoms = _frequent(cells)
    is_smooth = ~np.isin(cells, atoms)
    if bounds is None:
        is_complete = not is_smooth.any() and len(atoms) > 1
        bounds = _limits(present) if is_complete else (0.0, np.inf) if cls is Count else _shown_bounds(present)
    ends = tuple(float(end) for end in (np.array(bounds) - origin) / step)
    smooth = cells[is_smooth] if is_smooth.sum() >= 5 else cells
    inner = (np.ceil(ends[0] - ON_GRID), np.floor(ends[1] + ON_GRID))
    marginal = fit(smooth, True, bounds=inner).without([(atom - 0.5, atom + 0.5) for atom in atoms])
    counts = [int((cells == atom).sum()) for atom in atoms] + [int(is_smooth.sum())]
    values = tuple(np.round(atoms * step + origin, 12).tolist())
    return cls(marginal, values, tuple(counts), step, origin, _limits(present), bounds)


def _limits(present: np.ndarray) -> Bounds:
    return float(present.min()), float(present.max())


def _shown_bounds(present: np.ndarray) -> Bounds:
    """Zero, where the values show that nothing lies below it; then one or a hundred, where nothing lies above."""
    if len(present) < FEW_TO_BOUND or present.min() < 0 or not _ends_at_nought(present):
        return OPEN
    for top in (1.0, 100.0):
        if present.max() <= top and _ends_at_nought(top - present):
            return 0.0, top
    return 0.0, np.inf


def _ends_at_nought(distances: np.ndarray) -> bool:
    """Whether no value would be likely to stay this side of zero by chance: it is hit itself, or the values crowd
    before it, or their tail would have passed it several times."""
    if (distances == 0).mean() >= 0.01:
        return True
    low, median, high = np.quantile(distances, [0.1, 0.5, 0.95])
    if median < (high - median) / 2:
        return True
    below = low - distances[distances < low]
    expected = len(below) * np.exp(-low / max(below.mean(), 1e-300)) if len(below) else 0.0
    return bool(expected >= MISSED_BEYOND)


def reweighted(schema: Schema, table: Table, weight: np.ndarray, seed: int = 0) -> Schema:
    """The same columns, with the masses and marginals of rows that count as much as their weights (n,) say."""
    by_name = {column.name: column for column in table.columns}
    rng = np.random.default_rng(seed)
    variables = [
        replace(v, domain=_reweighted(v.domain, by_name[v.name], weight[by_name[v.name].is_present], rng))
        for v in schema.variables
    ]
    return replace(schema, variables=tuple(variables))


def _reweighted(domain: Domain, column: Column, weight: np.ndarray, rng: np.random.Generator) -> Domain:
    present, n_effective = column.present, weight.sum() ** 2 / (weight**2).sum()
    symbols = domain.encode(present)[:, SYMBOL].astype(int)
    counts = np.bincount(symbols, weight, domain.n_symbols) * (n_effective / weight.sum())
    if not isinstance(domain, Numeric):
        return replace(domain, counts=tuple(counts.tolist()))  # type: ignore[call-arg]
    is_smooth = symbols == len(domain.atoms)
    if is_smooth.sum() < 5:
        return replace(domain, counts=tuple(counts.tolist()))
    axis = domain.to_axis(present[is_smooth])
    values = weighted_values(axis, weight[is_smooth], int(np.ceil(counts[-1])), domain.step is not None)
    ends = domain.to_axis(np.array(domain.bounds))
    marginal = fit_marginal(values, domain.step is not None, rng, (ends[0], ends[1]))
    cells = domain.to_axis(domain.atom_values) if domain.step is not None else []
    return replace(
        domain,
        counts=tuple(counts.tolist()),
        marginal=marginal.without([(cell - 0.5, cell + 0.5) for cell in cells]),
    )


def schema_of(
    source: Any,
    overrides: dict[str, Any] | None = None,
    seed: int = 0,
    weight: np.ndarray | None = None,
    soon: float | None = None,
) -> Schema:
    """Read a table and infer its schema, warning about what was left out."""
    table = read_table(source)
    schema = infer_schema(table, overrides, seed, soon)
    if weight is not None:
        schema = reweighted(schema, table, weight, seed)
    for name, reason in schema.left_out.items():
        if reason != "asked for":
            warnings.warn(f"Column {name!r} is left out: it looks like {reason}.", AnyGivenWarning, stacklevel=3)
    return schema
