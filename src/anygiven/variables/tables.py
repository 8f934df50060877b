"""Tables as people have them, read into columns of plain numpy and written back in the same form.

All differences between pandas, polars, pyarrow, numpy, CSV and Parquet live in this file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from anygiven.errors import OutputError, TableError

SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True)
class Storage:
    """How a column is stored by the user: what comes back must be stored the same way."""

    kind: str  # "float", "integer", "boolean", "string", "date" or "datetime"
    native: str  # the data frame library's own name of the type
    categories: tuple | None = None  # of a categorical type, in its order
    is_ordered: bool = False


@dataclass(frozen=True)
class Column:
    """One column: float64 for numbers and dates (seconds since 1970), objects otherwise."""

    name: str
    values: np.ndarray  # (n,)
    is_present: np.ndarray  # (n,) bool
    storage: Storage

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

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def read_table(source: Any, names: list[str] | None = None) -> Table:
    """Read a frame, an array, or a path to CSV, CSV.gz or Parquet. `names` names an array's columns."""
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _from_frame(read_file(Path(source)), backend="pandas")
    if isinstance(source, np.ndarray) or (isinstance(source, list) and source and isinstance(source[0], (list, tuple))):
        return _from_array(np.asarray(source), names)
    if isinstance(source, dict):
        source = pd.DataFrame({key: value if isinstance(value, (list, np.ndarray)) else [value]
                               for key, value in source.items()})  # fmt: skip
    if isinstance(source, pd.Series):
        source = source.to_frame()
    native: Any = source
    try:
        frame = nw.from_native(native, eager_only=True)
    except TypeError:
        raise TableError(
            f"A {type(source).__name__} is not a table: give a pandas, polars or pyarrow table, "
            "a 2-D numpy array, or the path of a CSV or Parquet file."
        ) from None
    return _from_frame(native, backend=str(frame.implementation))


def read_file(path: Path) -> pd.DataFrame:
    """CSV, CSV.gz or Parquet → pandas, types found by pyarrow."""
    if not path.exists():
        raise TableError(f"There is no file {path}; check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; give a CSV or Parquet file, or say --images for a folder of pictures.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty; give a table with a header and at least one row.")
    table = _read_parquet(path) if path.suffix in (".parquet", ".pq") else _read_csv(path)
    return table.to_pandas()


def _read_parquet(path: Path):
    import pyarrow
    from pyarrow import parquet

    try:
        return parquet.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise TableError(f"{path} is not a whole Parquet file ({_first_line(error)}).") from None


def _read_csv(path: Path):
    import pyarrow
    from pyarrow import csv

    try:
        table = csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    except (pyarrow.ArrowInvalid, OSError, EOFError) as error:
        if "UTF8" in str(error) or "UTF-8" in str(error):
            raise TableError(f"{path} is not UTF-8 text; save it as UTF-8 and try again.") from None
        raise TableError(f"{path} cannot be read as CSV: {_first_line(error)}.") from None
    # pyarrow takes text that is not UTF-8 for bytes
    if any(pyarrow.types.is_binary(column.type) for column in table.schema):
        raise TableError(f"{path} is not UTF-8 text; save it as UTF-8 and try again.")
    return table


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


def _from_array(array: np.ndarray, names: list[str] | None) -> Table:
    if array.ndim != 2:
        raise TableError(f"The array has {array.ndim} dimension(s); a table needs 2: rows and columns.")
    if names is None or len(names) != array.shape[1]:
        names = [f"x{i}" for i in range(array.shape[1])]
    frame = pd.DataFrame(array, columns=pd.Index(names))
    if array.dtype == object:
        frame = frame.infer_objects()
    table = _from_frame(frame, backend="numpy")
    return Table(table.columns, table.n_rows, "numpy", array)


def _from_frame(native: Any, backend: str) -> Table:
    frame: nw.DataFrame = nw.from_native(native, eager_only=True)
    names = [str(name) for name in frame.columns]
    if not names:
        raise TableError("The table has no columns.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableError(f"The column name {repeated[0]!r} stands more than once; give every column its own name.")
    columns = tuple(_read_column(name, frame[original]) for name, original in zip(names, frame.columns, strict=True))
    return Table(columns, frame.shape[0], backend, native)


def _read_column(name: str, series: nw.Series) -> Column:
    dtype = series.dtype
    native = str(getattr(series.to_native(), "dtype", None) or getattr(series.to_native(), "type", ""))
    if dtype == nw.Boolean:
        return _objects(name, series.to_list(), Storage("boolean", native))
    if dtype.is_integer():
        return _numbers(name, series, Storage("integer", native))
    if dtype.is_float() or dtype == nw.Decimal:
        return _numbers(name, series, Storage("float", native))
    if dtype in (nw.Date, nw.Datetime):
        return _dates(name, series, Storage("date" if dtype == nw.Date else "datetime", native))
    if dtype in (nw.Categorical, nw.Enum):
        categories, is_ordered = _categories(series)
        return _objects(name, series.to_list(), Storage("string", native, categories, is_ordered))
    if dtype in (nw.String, nw.Object, nw.Unknown):
        return _objects(name, series.to_list(), Storage("string", native))
    raise TableError(
        f"Column {name!r} holds {dtype}, which is not a number, category, text or date: drop or convert it."
    )


def _categories(series: nw.Series) -> tuple[tuple, bool]:
    native = series.to_native()
    if isinstance(native, pd.Series):
        return tuple(native.cat.categories), bool(native.cat.ordered)
    is_ordered = series.dtype == nw.Enum or bool(getattr(getattr(native, "type", None), "ordered", False))
    declared = getattr(series.dtype, "categories", None)  # of an Enum; else the values in use
    return tuple(declared if declared is not None else series.drop_nulls().unique().sort().to_list()), is_ordered


def _numbers(name: str, series: nw.Series, storage: Storage) -> Column:
    values = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64).copy()
    return Column(name, _finite(name, values), ~np.isnan(values), storage)


def _finite(name: str, values: np.ndarray) -> np.ndarray:
    if np.isinf(values).any():
        raise TableError(f"Column {name!r} holds infinite values; make them gaps (NaN) or clip them.")
    return values


def _dates(name: str, series: nw.Series, storage: Storage) -> Column:
    is_present = ~series.is_null().to_numpy()
    stamps = series.dt.timestamp("us")
    seconds = np.asarray(stamps.cast(nw.Float64).to_numpy(), dtype=np.float64) / 1e6
    return Column(name, np.where(is_present, seconds, np.nan), is_present, storage)


def _objects(name: str, items: list, storage: Storage) -> Column:
    """Text, categories, booleans, or pandas objects that may be any of these or numbers."""
    is_present = np.array([not _is_gap(item) for item in items], dtype=bool)
    kinds = {type(item) for item, present in zip(items, is_present, strict=True) if present}
    kinds = {bool if kind is np.bool_ else kind for kind in kinds}
    if storage.categories is None and kinds and all(issubclass(k, (int, float, np.number)) for k in kinds - {bool}):
        if bool not in kinds:
            values = np.array([float(i) if p else np.nan for i, p in zip(items, is_present, strict=True)])
            return Column(name, _finite(name, values), is_present, Storage("float", storage.native))
        if kinds == {bool}:
            storage = Storage("boolean", storage.native)
    if storage.categories is None and not (kinds <= {str} or kinds == {bool}):
        import datetime

        if all(issubclass(kind, datetime.date) for kind in kinds):
            stamps = pd.to_datetime(pd.Series(items)).dt.as_unit("us")
            kind = "datetime" if any(issubclass(k, datetime.datetime) for k in kinds) else "date"
            return _dates(name, nw.from_native(stamps, series_only=True), Storage(kind, storage.native))
        found = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise TableError(f"Column {name!r} mixes {found}; make it one type (all text, or all numbers).")
    values = np.empty(len(items), dtype=object)
    values[:] = [item if present else None for item, present in zip(items, is_present, strict=True)]
    if storage.kind == "boolean":
        values[is_present] = [bool(value) for value in values[is_present]]
    return Column(name, values, is_present, storage)


def _is_gap(item: Any) -> bool:
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
    if storage.kind in ("date", "datetime"):
        microseconds = np.round(np.asarray(values, dtype=np.float64) * 1e6).astype("int64")
        return microseconds.astype("datetime64[us]")
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
             "date": nw.Datetime("us"), "datetime": nw.Datetime("us")}[storage.kind]  # fmt: skip
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

    `filled[name]` holds one decoded value for each gap of that column, in row order.
    """
    by_name = {column.name: column for column in table.columns}
    if table.backend == "numpy":
        return _fill_array(table, by_name, filled)
    frame = nw.from_native(table.native, eager_only=True)
    changed = []
    for name, values in filled.items():
        column = by_name[name]
        changed.append(_fill_series(frame[name], ~column.is_present, values, column.storage))
    return frame.with_columns(*changed).to_native() if changed else frame.clone().to_native()


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
    if isinstance(native, pd.Series):
        native = native.copy()
        native.iloc[rows] = _pandas_series(values, storage).array
        return nw.from_native(native, series_only=True)
    listed = native_values(values, storage).tolist()
    if storage.kind == "date":
        listed = [item.date() for item in listed]
    if series.implementation.is_pyarrow():
        return _fill_arrow(series, rows, listed)
    patch = nw.new_series(series.name, listed, None, backend=series.implementation)
    if storage.categories is not None:
        return series.cast(nw.String).scatter(rows.tolist(), patch.cast(nw.String)).cast(series.dtype)
    if storage.kind == "datetime" and getattr(series.dtype, "time_zone", None):
        patch = patch.dt.replace_time_zone("UTC")
    return series.scatter(rows.tolist(), patch.cast(series.dtype))


def _fill_arrow(series: nw.Series, rows: np.ndarray, listed: list) -> nw.Series:
    import pyarrow as pa

    native = series.to_native()
    items = native.to_pylist()
    for row, item in zip(rows.tolist(), listed, strict=True):
        items[row] = item
    filled = pa.chunked_array([pa.array(items, type=native.type)])
    return nw.from_native(filled, series_only=True).alias(series.name)


def write_table(frame: Any, path: Path) -> None:
    """Write CSV, CSV.gz or Parquet whole, or not at all."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if isinstance(frame, pd.DataFrame):
        table = pa.Table.from_pandas(frame, preserve_index=False)
    else:
        table = nw.from_native(frame, eager_only=True).to_arrow()

    def write(temporary: Path) -> None:
        if path.suffix in (".parquet", ".pq"):
            parquet.write_table(table, temporary)
        elif path.suffix == ".gz":
            with pa.CompressedOutputStream(str(temporary), "gzip") as stream:
                csv.write_csv(table, stream)
        else:
            csv.write_csv(table, temporary)

    write_whole(path, write)


def write_whole(path: Path, write) -> None:
    """Call write(temporary path) and rename: the file is complete or absent."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if not path.parent.exists():
            raise OutputError(f"There is no folder {path.parent}; create it first.")
        write(temporary)
        os.replace(temporary, path)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path} could not be written: {error.strerror or error}.") from None
    finally:
        temporary.unlink(missing_ok=True)
