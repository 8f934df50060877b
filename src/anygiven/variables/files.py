"""Table files as people have them: CSV of any delimiter, encoding and decimal sign, Parquet, Excel → pandas.

What was found, if it is not the plain case, is said in a warning and kept in the frame's attrs: "dialect" as the file
is written, "date_formats" of the columns whose dates are not written as 2020-10-07.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from anygiven.errors import AnyGivenWarning, TableError, require

PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xls", ".xlsm")
CSV = (".csv", ".tsv", ".txt", ".gz", ".data", "")
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
BEGINNING = 2**20  # bytes from which delimiter and encoding are found
BLOCK_SIZES = (2**20, 2**25)  # bytes read at a time: a line must fit in
UNREADABLE = (OSError, EOFError, zlib.error)  # of files, and of packed ones
N_LINES = 200
EXACT = 2**53  # whole numbers beyond it are no longer told apart as floats
CODE = re.compile(r"0[0-9]+")
GAPS = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA",
        "NULL", "NaN", "n/a", "nan", "null"}  # fmt: skip  # what pyarrow reads as a gap
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
DATE = re.compile(r"(\d{1,4})([/.-])(\d{1,2})\2(\d{1,4})(?:[ T](\d{1,2}:\d{2})(:\d{2})?)?")


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    line_end: str = "\n"

    def __str__(self) -> str:
        words = [f"delimiter {self.delimiter!r}"] if self.delimiter != "," else []
        words += [f"encoding {self.encoding}"] if self.encoding not in ("utf-8", "utf-8-sig") else []
        return ", ".join(words + (["a decimal comma"] if self.decimal == "," else []))


def read_file(path: Path, delimiter: str | None = None, encoding: str | None = None) -> pd.DataFrame:
    """CSV, CSV.gz, Parquet or Excel → pandas; types found by pyarrow."""
    if not os.path.exists(path):  # also where the name is too long to be asked for
        raise TableError(f"There is no file {path}; check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; give a CSV or Parquet file, or say --images for a folder of pictures.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty; give a table with a header and at least one row.")
    if path.suffix in PARQUET:
        return _read_parquet(path)
    if path.suffix in EXCEL:
        return _read_excel(path)
    return _read_csv(path, delimiter, encoding)


def _read_parquet(path: Path) -> pd.DataFrame:
    from pyarrow import parquet

    try:
        frame = _to_pandas(parquet.read_table(path))
    except Exception as error:  # a damaged file makes arrow and pandas raise whatever their parts raise
        raise TableError(f"{path} is not a whole Parquet file ({_first_line(error)}).") from None
    frame.attrs["date_formats"] = _read_dates(frame)
    return frame


def _to_pandas(table: Any) -> pd.DataFrame:
    """pandas takes whole numbers with gaps for floats; those that a float cannot hold stay whole."""
    import pyarrow

    frame = table.to_pandas()
    for position, column in enumerate(table.columns):
        if pyarrow.types.is_integer(column.type) and column.null_count and frame.iloc[:, position].abs().max() > EXACT:
            kind = "UInt64" if column.type == pyarrow.uint64() else "Int64"
            frame.isetitem(position, pd.array(column.to_pylist(), dtype=kind))
    return frame


def _read_excel(path: Path) -> pd.DataFrame:
    require("openpyxl", "excel")
    try:
        book: Any = pd.ExcelFile(path, engine="openpyxl")
        frame = pd.read_excel(book, sheet_name=book.sheet_names[0])
    except Exception as error:  # openpyxl raises what its parts raise
        raise TableError(f"{path} cannot be read as an Excel file ({_first_line(error)}).") from None
    if len(book.sheet_names) > 1:
        _say(f"{path} has {len(book.sheet_names)} sheets; the first, {book.sheet_names[0]!r}, is read.")
    frame.attrs["date_formats"] = _read_dates(frame)
    frame.attrs["n_sheets"] = len(book.sheet_names)
    return frame


def _read_csv(path: Path, delimiter: str | None, encoding: str | None) -> pd.DataFrame:
    found = find_dialect(path, delimiter, encoding)
    try:
        return _read_as(path, found, is_given=delimiter is not None and encoding is not None)
    except UnicodeError:
        raise TableError(f"{path} is not {found.encoding} text; say another --encoding, or none.") from None


def _read_as(path: Path, found: Dialect, is_given: bool) -> pd.DataFrame:
    table = _parse_csv(path, found)
    if found.delimiter != "," and _has_decimal_commas(table):
        found = replace(found, decimal=",")
        table = _parse_csv(path, found)
    if str(found) and not is_given:
        _say(f"{path} is read with {found}; say --delimiter and --encoding if that is wrong.")
    frame = _to_pandas(table)
    frame.attrs["date_formats"] = _read_dates(frame)
    frame.attrs["dialect"] = asdict(found)
    return frame


def find_dialect(path: Path, delimiter: str | None = None, encoding: str | None = None) -> Dialect:
    """Encoding from the first bytes, delimiter from the first lines, unless they are given."""
    beginning = _beginning(path)
    encoding = encoding or _encoding(path, beginning)
    try:
        text = beginning.decode(encoding, errors="replace")
    except LookupError:
        raise TableError(f"There is no encoding {encoding!r}; use utf-8, latin-1, cp1252 or utf-16.") from None
    if delimiter is not None and len(delimiter.replace("\\t", "\t")) != 1:
        raise TableError(f"The delimiter {delimiter!r} is not one character.")
    line_end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    return Dialect(delimiter.replace("\\t", "\t") if delimiter else _delimiter(text), encoding, line_end=line_end)


def open_text(path: Path, encoding: str, mode: str = "r") -> Any:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    return opener(path, f"{mode}t", encoding=encoding, newline="")


def _beginning(path: Path) -> bytes:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            return file.read(BEGINNING)
    except UNREADABLE as error:
        raise TableError(f"{path} cannot be read: {_first_line(error)}.") from None


def _encoding(path: Path, beginning: bytes) -> str:
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if beginning.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    try:
        with open_text(path, "utf-8") as file:
            while file.read(BEGINNING):
                pass
    except UnicodeDecodeError:
        # Latin-1 as Windows has it; its five unused bytes are Latin-1's own.
        return "cp1252" if not re.search(rb"[\x81\x8d\x8f\x90\x9d]", beginning) else "latin-1"
    except UNREADABLE as error:
        raise TableError(f"{path} cannot be read: {_first_line(error)}.") from None
    return "utf-8"


def _delimiter(text: str) -> str:
    """The one that cuts the first lines into most fields, the same number in nearly all."""
    lines = text.splitlines()[: N_LINES + 1]
    lines = lines[:-1] if len(lines) > N_LINES else lines
    best, most = ",", 1
    for delimiter in DELIMITERS:
        with long_cells():
            widths = [len(row) for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter) if row]
        if not widths or widths[0] <= most:
            continue
        if sum(width == widths[0] for width in widths) >= 0.9 * len(widths):
            best, most = delimiter, widths[0]
    return best


def _parse_csv(path: Path, dialect: Dialect) -> Any:
    import pyarrow
    from pyarrow import csv as arrow

    encoding = {"utf-8-sig": "utf-8"}.get(dialect.encoding, dialect.encoding)
    codes = {name: pyarrow.string() for name in _codes(path, dialect)}
    for block_size in BLOCK_SIZES:
        try:
            table = arrow.read_csv(
                path,
                read_options=arrow.ReadOptions(encoding=encoding, block_size=block_size),
                parse_options=arrow.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
                convert_options=arrow.ConvertOptions(
                    strings_can_be_null=True, decimal_point=dialect.decimal, column_types=codes
                ),
            )
            break
        except (pyarrow.ArrowInvalid, *UNREADABLE) as error:
            if "straddl" not in str(error):
                raise TableError(f"{path} cannot be read as CSV: {_first_line(error)}.") from None
    else:
        raise TableError(
            f"{path} cannot be read as CSV: a line has more than {BLOCK_SIZES[-1]:,} bytes; is a quote not closed?"
        )
    if any(pyarrow.types.is_binary(column.type) for column in table.schema):
        raise UnicodeError("pyarrow takes text of another encoding for bytes")
    return table


def _codes(path: Path, dialect: Dialect) -> list[str]:
    """Columns of digits some of which begin with a zero, among the first lines: codes, whose zeros must stay."""
    lines = _beginning(path).decode(dialect.encoding, errors="replace").lstrip("\ufeff").splitlines()[: N_LINES + 1]
    with long_cells():
        header, *rows = [*csv.reader(lines, delimiter=dialect.delimiter), []]
    found = []
    for place, name in enumerate(header):
        cells = [row[place].strip() for row in rows if place < len(row) and row[place].strip() not in GAPS]
        if any(CODE.fullmatch(cell) for cell in cells) and all(cell.isdigit() for cell in cells):
            found.append(name)
    return found


@contextmanager
def long_cells() -> Iterator[None]:
    """Python's csv takes cells of 128 KiB at most; people have longer ones."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _has_decimal_commas(table: Any) -> bool:
    import pyarrow

    for column in table.columns:
        if pyarrow.types.is_string(column.type):
            shown = [item for item in column.slice(0, 1000).to_pylist() if item]
            if shown and sum(bool(DECIMAL_COMMA.fullmatch(item.strip())) for item in shown) > 0.5 * len(shown):
                return True
    return False


# ------------------------------------------------------------------ dates


def _read_dates(frame: pd.DataFrame) -> dict[str, str]:
    """Turn columns of dates as 07/10/2020 into dates, in place; name → format."""
    formats = {}
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if not (column.dtype == object or isinstance(column.dtype, pd.StringDtype)):
            continue
        found = date_formats([item for item in column.dropna().unique() if isinstance(item, str)])
        if not found:
            continue
        frame.isetitem(position, pd.to_datetime(column, format=found[0]))
        formats[str(name)] = found[0]
        if len(found) > 1:
            _say(f"Column {name!r}: the dates may be read as {_plain(found[0])} or as {_plain(found[1])}; they are "
                 f"read as {_plain(found[0])}.")  # fmt: skip
    return formats


def date_formats(texts: list[str]) -> list[str]:
    """The formats by which all the texts are dates; day before month first."""
    if not texts or not DATE.fullmatch(texts[0].strip()):
        return []
    parts = [DATE.fullmatch(text) for text in texts]
    if not all(parts) or len({(part[2], part[5] is None, part[6] is None) for part in parts if part}) > 1:
        return []
    separator, has_time, has_seconds = parts[0][2], parts[0][5] is not None, parts[0][6] is not None  # type: ignore[index]
    time = (" %H:%M" + (":%S" if has_seconds else "")) if has_time else ""
    year = "%Y" if max(len(part[k]) for part in parts if part for k in (1, 4)) == 4 else "%y"
    orders = [("%d", "%m", year), ("%m", "%d", year), (year, "%m", "%d")]
    return [separator.join(order) + time for order in orders if _fits(texts, separator.join(order) + time)]


def _fits(texts: list[str], format: str) -> bool:
    return bool(pd.to_datetime(pd.Series(texts), format=format, errors="coerce").notna().all())


def _plain(format: str) -> str:
    names = {"%d": "day", "%m": "month", "%Y": "year", "%y": "year", "%H:%M:%S": "time", "%H:%M": "time"}
    for sign, name in names.items():
        format = format.replace(sign, name)
    return format


def _say(sentence: str) -> None:
    warnings.warn(sentence, AnyGivenWarning, stacklevel=2)


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
