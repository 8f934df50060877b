"""Tables as people have them, read into columns of plain numpy and written back in the same form.

All differences between pandas, polars, pyarrow, numpy, CSV and Parquet live in this file.
"""

from __future__ import annotations

import decimal
import gzip
import io
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import narwhals as nw
import numpy as np
import pandas as pd

from anygiven.disk import check_file_place, write_whole
from anygiven.errors import OutputError, TableError, require
from anygiven.variables.files import CSV, EXACT, PARQUET, read_file

SECONDS_PER_DAY = 86_400.0
LARGEST = 1e100  # squares and their sums must stay finite
NUMBERS = (int, float, np.number, decimal.Decimal)


@dataclass(frozen=True)
class Storage:
    """How a column is stored by the user: what comes back must be stored the same way."""

    kind: str  # "float", "integer", "boolean", "string", "date", "datetime" or "timedelta"
    native: str  # the data frame library's own name of the type
    categories: tuple | None = None  # of a categorical type, in its order
    is_ordered: bool = False
    format: str | None = None  # of dates that a file writes in another way than 2020-10-07

    @property
    def zone(self) -> str | None:
        """The time zone of a column of instants, if it has one."""
        return _time_zone(self.native) if self.kind == "datetime" else None

    def is_kin_of(self, other: Storage) -> bool:
        """Whether values of the one can be written into a column of the other."""
        kin = {"float": "number", "integer": "number", "date": "date", "datetime": "date"}
        return kin.get(self.kind, self.kind) == kin.get(other.kind, other.kind)

    @property
    def things(self) -> str:
        """What the column holds, in a sentence."""
        return {"boolean": "true and false", "string": "text"}.get(self.kind, f"{self.what}s")

    @property
    def what(self) -> str:
        """What a value of the column is called in a sentence."""
        return {"date": "date", "datetime": "date", "timedelta": "duration"}.get(self.kind, "number")

    @property
    def is_time(self) -> bool:
        """Counted in seconds: since 1970, or in all."""
        return self.kind in ("date", "datetime", "timedelta")


@dataclass(frozen=True)
class Column:
    """One column: float64 for numbers and dates (seconds since 1970), objects otherwise."""

    name: str
    values: np.ndarray  # (n,)
    is_present: np.ndarray  # (n,) bool
    storage: Storage
    label: Any = None  # what the user's frame calls it, if that is not its name: 0, 1, 2

    @property
    def present(self) -> np.ndarray:
        return self.values[self.is_present]


@dataclass(frozen=True)
class Table:
    """Columns in the user's order, with the frame they came from."""

    columns: tuple[Column, ...]
    n_rows: int
    backend: str  # "pandas", "polars", "pyarrow" or "numpy"
    native: Any
    retyped: frozenset[str] = frozenset()  # columns that are read as another type than the frame has

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def rows(self, is_kept: np.ndarray) -> Table:
        """Some of the rows, of the columns alone: the frame is not cut."""
        columns = tuple(replace(c, values=c.values[is_kept], is_present=c.is_present[is_kept]) for c in self.columns)
        return Table(columns, int(is_kept.sum()), self.backend, self.native)

    @property
    def index(self) -> Any:
        """The row labels of a pandas frame; None for all others."""
        return self.native.index if isinstance(self.native, pd.DataFrame) else None


def read_table(source: Any, names: list[str] | None = None) -> Table:
    """Read a frame, an array, or a path to CSV, CSV.gz, Parquet or Excel. `names` names an array's columns."""
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _from_frame(read_file(Path(source)), backend="pandas")
    if isinstance(source, np.ndarray) or (isinstance(source, list) and source and isinstance(source[0], (list, tuple))):
        return _from_array(np.asarray(source), names)
    if isinstance(source, list) and source and all(isinstance(row, dict) for row in source):
        source = pd.DataFrame(source)
    if isinstance(source, dict):
        source = pd.DataFrame({key: value if isinstance(value, (list, np.ndarray, pd.Series)) else [value]
                               for key, value in source.items()})  # fmt: skip
    if isinstance(source, pd.Series):
        source = source.to_frame()
    native: Any = source
    try:
        frame = nw.from_native(native)
        if isinstance(frame, nw.LazyFrame):
            native = frame.collect().to_native()
        frame = nw.from_native(native, eager_only=True)
    except TypeError:
        raise TableError(
            f"A {type(source).__name__} is not a table: give a pandas, polars or pyarrow table, "
            "a 2-D numpy array, or the path of a CSV or Parquet file."
        ) from None
    except (ValueError, nw.exceptions.DuplicateError):
        if not isinstance(native, pd.DataFrame):
            raise
        return _from_frame(native, backend="pandas")  # names the column that stands twice
    return _from_frame(native, backend=str(frame.implementation))


def read_row(row: dict[str, Any]) -> Table | None:
    """One row of plain numbers, texts and truth values, without the way through a frame; None if it holds others."""
    columns = []
    for name, value in row.items():
        if isinstance(value, (bool, np.bool_, str)):
            cell, kind = np.empty(1, dtype=object), "string" if isinstance(value, str) else "boolean"
            cell[0] = str(value) if isinstance(value, str) else bool(value)
        elif isinstance(value, (int, float, np.integer, np.floating)):
            cell, kind = np.array([float(value)]), "float"
            _finite(str(name), cell)
        else:
            return None
        columns.append(Column(str(name), cell, np.ones(1, dtype=bool), Storage(kind, kind)))
    return Table(tuple(columns), 1, "pandas", None)


def _from_array(array: np.ndarray, names: list[str] | None) -> Table:
    if array.ndim != 2:
        raise TableError(f"The array has {array.ndim} dimension(s); a table needs 2: rows and columns.")
    if names is None or len(names) != array.shape[1]:
        names = [f"x{i}" for i in range(array.shape[1])]
    frame = pd.DataFrame(array, columns=pd.Index(names, dtype=object))
    if array.dtype == object:
        frame = frame.infer_objects()
    table = _from_frame(frame, backend="numpy")
    return Table(table.columns, table.n_rows, "numpy", array)


def _from_frame(native: Any, backend: str) -> Table:
    labels = _labels(native)
    if not labels:
        raise TableError("The table has no columns.")
    names = [str(label) for label in labels]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableError(f"The column name {repeated[0]!r} stands more than once; give every column its own name.")
    formats = getattr(native, "attrs", {}).get("date_formats", {})
    frame = nw.from_native(_named(native, names), eager_only=True)
    columns = []
    for name, label in zip(names, labels, strict=True):
        column = _read_column(name, frame[name])
        storage = replace(column.storage, format=formats[name]) if name in formats else column.storage
        columns.append(replace(column, storage=storage, label=None if label == name else label))
    return Table(tuple(columns), frame.shape[0], backend, native)


def _labels(native: Any) -> list:
    """What the frame calls its columns: in pandas anything from which a plain name can be made."""
    if not isinstance(native, pd.DataFrame):
        return list(nw.from_native(native, eager_only=True).columns)
    if isinstance(native.columns, pd.MultiIndex):
        raise TableError("The columns have names of several levels; join each to one, or drop a level.")
    return [label.item() if isinstance(label, np.generic) else label for label in native.columns]


def _named(native: Any, names: list[str]) -> Any:
    """The frame with texts for names; nothing is copied."""
    return native.set_axis(names, axis=1) if isinstance(native, pd.DataFrame) else native


def _read_column(name: str, series: nw.Series) -> Column:
    dtype = series.dtype
    native = str(getattr(series.to_native(), "dtype", None) or getattr(series.to_native(), "type", ""))
    if dtype == nw.Boolean:
        return _objects(name, series.to_list(), Storage("boolean", native))
    if dtype.is_integer() and _is_beyond_floats(series):
        return _objects(name, [None if is_gap(item) else str(item) for item in series.to_list()],
                        Storage("string", native))  # fmt: skip
    if dtype.is_integer():
        return _numbers(name, series, Storage("integer", native))
    if dtype.is_float() or dtype == nw.Decimal:
        return _numbers(name, series, Storage("float", native))
    if dtype == nw.Duration:
        return _durations(name, series, Storage("timedelta", native))
    if dtype in (nw.Date, nw.Datetime):
        return _dates(name, series, Storage("date" if dtype == nw.Date else "datetime", native))
    if dtype in (nw.Categorical, nw.Enum):
        categories, is_ordered = _categories(series)
        strange = [value for value in categories if not isinstance(value, (str, bool, *NUMBERS))]
        if strange:
            raise TableError(
                f"Column {name!r} has categories of {type(strange[0]).__name__}s; make them texts or numbers, as with "
                "astype(str)."
            )
        return _objects(name, series.to_list(), Storage("string", native, categories, is_ordered))
    if dtype in (nw.String, nw.Object, nw.Unknown):
        return _objects(name, series.to_list(), Storage("string", native))
    raise TableError(
        f"Column {name!r} holds {dtype}, which is not a number, category, text or date: drop or convert it."
    )


def _is_beyond_floats(series: nw.Series) -> bool:
    """Whole numbers that a float cannot tell apart are names, not quantities."""
    low, high = series.min(), series.max()
    return not is_gap(low) and max(-int(low), int(high)) > EXACT


def _categories(series: nw.Series) -> tuple[tuple, bool]:
    native = series.to_native()
    if isinstance(native, pd.Series):
        return tuple(native.cat.categories), bool(native.cat.ordered)
    is_ordered = series.dtype == nw.Enum or bool(getattr(getattr(native, "type", None), "ordered", False))
    if series.implementation.is_pyarrow():
        chunks = native.unify_dictionaries().chunks  # type: ignore[union-attr]
        if chunks:
            return tuple(chunks[0].dictionary.to_pylist()), is_ordered
    declared = getattr(series.dtype, "categories", None)  # of an Enum; else the values in use
    return tuple(declared if declared is not None else series.drop_nulls().unique().sort().to_list()), is_ordered


def _numbers(name: str, series: nw.Series, storage: Storage) -> Column:
    values = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64).copy()
    return Column(name, _finite(name, values), ~np.isnan(values), storage)


def _finite(name: str, values: np.ndarray) -> np.ndarray:
    if np.isinf(values).any():
        raise TableError(f"Column {name!r} holds infinite values; make them gaps (NaN) or clip them.")
    with np.errstate(invalid="ignore"):
        if (np.abs(values) > LARGEST).any():
            raise TableError(f"Column {name!r} holds values beyond {LARGEST:.0e}; divide it, or take its logarithm.")
    return values


def _dates(name: str, series: nw.Series, storage: Storage) -> Column:
    native = series.to_native()
    if isinstance(native, pd.Series) and getattr(native.dtype, "tz", None) is not None:
        series = nw.from_native(native.dt.tz_convert("UTC").dt.tz_localize(None), series_only=True)
    stamps = series.dt.timestamp("us")
    return _seconds(name, series, np.asarray(stamps.cast(nw.Float64).to_numpy(), dtype=np.float64) / 1e6, storage)


def _durations(name: str, series: nw.Series, storage: Storage) -> Column:
    whole = np.asarray(series.dt.total_microseconds().cast(nw.Float64).to_numpy(), dtype=np.float64)
    return _seconds(name, series, whole / 1e6, storage)


def _seconds(name: str, series: nw.Series, seconds: np.ndarray, storage: Storage) -> Column:
    is_present = ~series.is_null().to_numpy()
    return Column(name, np.where(is_present, seconds, np.nan), is_present, storage)


def number_of(value: Any, storage: Storage) -> float:
    """A user's number, date or duration as a column of that storage counts it."""
    number = _number_of(value, storage)
    if np.isnan(number):
        raise ValueError("nan is no number")
    return number


def _is_bare_number(value: Any) -> bool:
    """A duration of numpy's is one of its numbers too, but has a unit."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, np.timedelta64)


def _number_of(value: Any, storage: Storage) -> float:
    if storage.is_time and _is_bare_number(value):
        raise TypeError("a bare number has no unit")
    if storage.kind == "timedelta":
        return float(pd.Timedelta(value).total_seconds())
    if not storage.is_time:
        return float(value)
    if storage.format and isinstance(value, str):
        try:
            return float(pd.to_datetime(value, format=storage.format).timestamp())
        except ValueError:
            pass  # also as 2020-10-07
    stamp: Any = pd.Timestamp(value)
    if stamp is pd.NaT:
        raise ValueError("no date")
    if storage.zone and stamp.tzinfo is None:
        stamp = stamp.tz_localize(storage.zone)
    return float(stamp.timestamp())


def _objects(name: str, items: list, storage: Storage) -> Column:
    """Text, categories, booleans, or pandas objects that may be any of these or numbers."""
    values = np.empty(len(items), dtype=object)
    values[:] = items
    is_present = ~np.asarray(pd.isna(values), dtype=bool)
    is_present[is_present] = values[is_present] != ""
    kinds = {type(item) for item, present in zip(items, is_present, strict=True) if present}
    kinds = {bool if kind is np.bool_ else kind for kind in kinds}
    if storage.categories is None and kinds and all(issubclass(k, NUMBERS) for k in kinds - {bool}):
        if bool not in kinds:
            values = np.array([float(i) if p else np.nan for i, p in zip(items, is_present, strict=True)])
            return Column(name, _finite(name, values), is_present, Storage("float", storage.native))
        if kinds == {bool}:
            storage = Storage("boolean", storage.native)
    if storage.categories is None and not (kinds <= {str} or kinds == {bool}):
        import datetime

        if all(issubclass(kind, (datetime.timedelta, np.timedelta64)) for kind in kinds):
            lengths = pd.to_timedelta(pd.Series(items)).dt.as_unit("us")
            return _durations(name, nw.from_native(lengths, series_only=True), Storage("timedelta", storage.native))
        if all(issubclass(kind, datetime.date) for kind in kinds):
            stamps = pd.to_datetime(pd.Series(items)).dt.as_unit("us")
            kind = "datetime" if any(issubclass(k, datetime.datetime) for k in kinds) else "date"
            return _dates(name, nw.from_native(stamps, series_only=True), Storage(kind, storage.native))
        found = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise TableError(f"Column {name!r} mixes {found}; make it one type (all text, or all numbers).")
    values[~is_present] = None
    if storage.kind == "boolean":
        values[is_present] = [bool(value) for value in values[is_present]]
    return Column(name, values, is_present, storage)


def is_gap(item: Any) -> bool:
    """None, NaN, NaT, NA or an empty text."""
    if item is None or item is pd.NaT or item is pd.NA:
        return True
    if isinstance(item, str):
        return item == ""
    return isinstance(item, (float, np.floating)) and bool(np.isnan(item))


# ------------------------------------------------------------------ back to the user


def native_values(values: np.ndarray, storage: Storage) -> np.ndarray:
    """Decoded values → what the user's column holds: whole numbers, booleans, timestamps."""
    if storage.kind == "integer":
        return np.round(np.asarray(values, dtype=np.float64)).astype(np.int64)
    if storage.kind == "boolean":
        return np.array([bool(value) for value in values], dtype=bool)
    if storage.is_time:
        microseconds = np.round(np.asarray(values, dtype=np.float64) * 1e6).astype("int64")
        return microseconds.astype("timedelta64[us]" if storage.kind == "timedelta" else "datetime64[us]")
    return values


def build_frame(columns: dict[str, tuple[np.ndarray, Storage]], backend: str) -> Any:
    """Decoded columns → a new frame of the user's kind, with the user's types."""
    if backend == "numpy":
        arrays = [native_values(values, storage) for values, storage in columns.values()]
        kinds = {storage.kind for _, storage in columns.values()}
        dtype = np.float64 if kinds <= {"float", "integer"} else object
        return np.stack([np.asarray(a).astype(dtype) for a in arrays], axis=1)
    if backend == "pandas":
        frame = {name: _pandas_series(values, storage) for name, (values, storage) in columns.items()}
        return pd.DataFrame(frame)
    if backend == "pyarrow":
        return _arrow_table(columns)
    library: Any = backend
    series = [_other_series(name, values, storage, library) for name, (values, storage) in columns.items()]
    return nw.from_dict({s.name: s for s in series}, backend=library).to_native()


def _pandas_series(values: np.ndarray, storage: Storage) -> pd.Series:
    native = pd.Series(native_values(values, storage))
    if storage.categories is not None:
        return native.astype(pd.CategoricalDtype(list(storage.categories), ordered=storage.is_ordered))
    if storage.kind == "date" and storage.native == "object":
        return native.dt.date.astype(object)
    if storage.kind == "float" and storage.native == "object":
        return native  # Decimals come back as numbers
    if storage.kind == "datetime" and (zone := _time_zone(storage.native)):
        native = native.dt.tz_localize("UTC").dt.tz_convert(zone)
    try:
        return native.astype(storage.native)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return native


def _time_zone(native: str) -> str | None:
    """From "datetime64[ns, UTC]", "Datetime(time_unit='us', time_zone='UTC')" or "timestamp[us, tz=UTC]"."""
    found = re.search(r"(?:time_zone='|tz=|\[[a-z]+, (?!tz=))([A-Za-z][\w/+-]*)", native)
    return found[1] if found else None


def _other_series(name: str, values: np.ndarray, storage: Storage, backend: str) -> nw.Series:
    items = native_values(values, storage)
    dtype = {"integer": nw.Int64, "float": nw.Float64, "boolean": nw.Boolean, "string": nw.String,
             "date": nw.Datetime("us"), "datetime": nw.Datetime("us"),
             "timedelta": nw.Duration("us")}[storage.kind]  # fmt: skip
    listed = items.tolist()
    series = nw.new_series(name, listed, dtype, backend=backend)  # type: ignore[arg-type]
    if storage.kind == "date":
        series = series.cast(nw.Date)
    if storage.kind == "datetime":
        series = _datetime_series(series, storage.native)
    if storage.categories is not None:
        series = series.cast(nw.Enum(list(storage.categories)) if storage.is_ordered and backend == "polars"
                             else nw.Categorical)  # fmt: skip
    return _cast_back(series, storage)


def _datetime_series(series: nw.Series, native: str) -> nw.Series:
    unit = re.search(r"time_unit='(\w+)'", native)
    series = series.cast(nw.Datetime(unit[1] if unit else "us"))  # type: ignore[arg-type]
    zone = _time_zone(native)
    return series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else series


def _arrow_table(columns: dict[str, tuple[np.ndarray, Storage]]) -> Any:
    import pyarrow as pa

    arrays = {}
    for name, (values, storage) in columns.items():
        array = pa.array(native_values(values, storage).tolist())
        arrays[name] = array.cast(_arrow_type(storage, array.type))
    return pa.table(arrays)


def _arrow_type(storage: Storage, found: Any) -> Any:
    """The arrow type that the user's column has, from its printed name."""
    import pyarrow as pa

    if storage.native.startswith("dictionary"):
        text = pa.large_string() if "large_string" in storage.native else pa.string()
        index = re.search(r"indices=(\w+)", storage.native)
        return pa.dictionary(pa.type_for_alias(index[1] if index else "int32"), text, storage.is_ordered)
    stamp = re.match(r"timestamp\[(\w+)", storage.native)
    if stamp:
        return pa.timestamp(stamp[1], _time_zone(storage.native))
    try:
        return pa.type_for_alias(storage.native.split("[")[0])
    except ValueError:
        return found


def _cast_back(series: nw.Series, storage: Storage) -> nw.Series:
    """The narrow types (Int32, Float32, …) that narwhals names as polars and pyarrow do."""
    wanted = storage.native.lower()
    narrow = {"int8": nw.Int8, "int16": nw.Int16, "int32": nw.Int32, "uint8": nw.UInt8, "uint16": nw.UInt16,
              "uint32": nw.UInt32, "uint64": nw.UInt64, "float32": nw.Float32, "float": nw.Float32}  # fmt: skip
    return series.cast(narrow[wanted]) if wanted in narrow else series


def fill_frame(table: Table, filled: dict[str, np.ndarray]) -> Any:
    """A copy of the user's frame with the gaps of some columns filled; every present cell is left as it is.

    `filled[name]` holds one decoded value for each gap of that column, in row order. A retyped column is written anew.
    """
    by_name = {column.name: column for column in table.columns}
    if table.backend == "numpy":
        return _fill_array(table, by_name, filled)
    frame = nw.from_native(_named(table.native, table.names), eager_only=True)
    changed = []
    for name, values in filled.items():
        column = by_name[name]
        if name in table.retyped:
            changed.append(_whole_series(column, values, table.backend))
        else:
            changed.append(_fill_series(frame[name], ~column.is_present, values, column.storage))
    after = frame.with_columns(*changed).to_native() if changed else frame.clone().to_native()
    return after.set_axis(table.native.columns, axis=1) if isinstance(after, pd.DataFrame) else after


def _whole_series(column: Column, filled: np.ndarray, backend: str) -> nw.Series:
    values = column.values.astype(object)
    values[~column.is_present] = filled
    built = nw.from_native(build_frame({column.name: (values, column.storage)}, backend), eager_only=True)
    return built[column.name]


def _fill_array(table: Table, by_name: dict[str, Column], filled: dict[str, np.ndarray]) -> np.ndarray:
    array = table.native.copy()
    for name, values in filled.items():
        column = by_name[name]
        items = native_values(values, column.storage)
        array[~column.is_present, table.names.index(name)] = items
    return array


def _fill_series(series: nw.Series, is_gap: np.ndarray, values: np.ndarray, storage: Storage) -> nw.Series:
    rows = np.flatnonzero(is_gap)
    native = series.to_native()
    if storage.categories is not None:  # those of this table may lack what is filled in
        missing = [value for value in dict.fromkeys(values) if value not in storage.categories]
        storage = replace(storage, categories=(*storage.categories, *missing))
    if isinstance(native, pd.Series):
        native = native.copy()
        if storage.categories is not None:
            native = native.cat.set_categories(list(storage.categories))
        native.iloc[rows] = _decimals_like(native, values) or _pandas_series(values, storage).array
        return nw.from_native(native, series_only=True)
    listed = native_values(values, storage).tolist()
    if storage.kind == "date":
        listed = [item.date() for item in listed]
    if series.implementation.is_pyarrow():
        return _fill_arrow(series, rows, listed)
    patch = nw.new_series(series.name, listed, None, backend=series.implementation)
    if storage.categories is not None:
        filled = series.cast(nw.String).scatter(rows.tolist(), patch.cast(nw.String))
        return filled.cast(nw.Enum(list(storage.categories)) if series.dtype == nw.Enum else series.dtype)
    if storage.kind == "datetime" and getattr(series.dtype, "time_zone", None):
        patch = patch.dt.replace_time_zone("UTC")
    return series.scatter(rows.tolist(), patch.cast(series.dtype))


def _decimals_like(native: pd.Series, values: np.ndarray) -> list[decimal.Decimal] | None:
    """Numbers with as many places as the Decimals of a column have; None if it has none."""
    places = [-int(item.as_tuple().exponent) for item in native if isinstance(item, decimal.Decimal)]
    return [decimal.Decimal(f"{value:.{max(places)}f}") for value in values] if places else None


def _fill_arrow(series: nw.Series, rows: np.ndarray, listed: list) -> nw.Series:
    import pyarrow as pa

    native = series.to_native()
    items = native.to_pylist()
    for row, item in zip(rows.tolist(), listed, strict=True):
        items[row] = item
    filled = pa.chunked_array([pa.array(items, type=native.type)])
    return nw.from_native(filled, series_only=True).alias(series.name)


def write_table(frame: Any, path: Path) -> None:
    """Write CSV, CSV.gz, Parquet or Excel whole, or not at all."""
    from pyarrow import csv, parquet

    check_writable(path)
    table = nw.from_native(frame, eager_only=True)

    def write(file: BinaryIO) -> None:
        if path.suffix in PARQUET:
            parquet.write_table(table.to_arrow(), file)
        elif path.suffix == ".xlsx":
            file.write(_excel(table.to_pandas()))
        elif path.suffix == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
                csv.write_csv(table.to_arrow(), packed)
        else:
            csv.write_csv(table.to_arrow(), file)

    write_whole(path, write)


def _excel(frame: pd.DataFrame) -> bytes:
    """Made in memory: a zip file that cannot be closed on a full disk complains once more at the end."""
    whole = io.BytesIO()
    try:
        with pd.ExcelWriter(whole, engine="openpyxl") as book:
            frame.to_excel(book, index=False)
    except ValueError as error:
        raise OutputError(f"Excel cannot hold this table ({str(error).rstrip('.')}); write CSV or Parquet.") from None
    return whole.getvalue()


def check_writable(path: Path) -> None:
    """Before long work: a name that promises another format than we write, or a place that cannot be written."""
    if path.suffix not in (*PARQUET, *CSV, ".xlsx"):
        raise OutputError(f"{path.name} ends in {path.suffix}; tables are written as .csv, .csv.gz, .parquet or .xlsx.")
    if path.suffix == ".xlsx":
        require("openpyxl", "excel")
    check_file_place(path)
