"""Strategies for what people type and bring: questions near the language's own, tables near a model's own."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from anygiven.cli.answers import answer_question
from anygiven.cli.tables import impute_table
from anygiven.cli.text import ask_text
from anygiven.errors import AnyGivenError
from anygiven.variables.files import read_file

# ------------------------------------------------------------------ questions

SIGNS = ["|", ",", "=", "==", "'", '"', "?", "(", ")", "P(", " given ", "<", ">", "≤", "!=", " ", "\n", "\t", "\0"]
VALUES = ["nan", "NaN", "inf", "-inf", "1e400", "-1", "0", "51", "3.5", "1_000", "1e-300", "''", '""', "'New York'",
          "Oslo", "True", "false", "2020-01-31", "1985-13-45", "high", "?", "None", "NULL", "0x10", "१२", "½", "~",
          "x" * 200, "💥", "\ud800", "O'Brien", "=", "1,5", "1e", "--3", "+4", "9" * 400]  # fmt: skip


def questions(base: pd.DataFrame) -> st.SearchStrategy[str]:
    """Good ones about a table, ones with something wrong, and noise."""
    names = [str(name) for name in base.columns]
    own = {name: [f"{name}={str(value)!r}" for value in base[name].dropna()[:20]] for name in names}
    good = st.permutations(names).flatmap(
        lambda order: st.tuples(st.integers(1, 2), st.integers(0, 4)).flatmap(
            lambda n: st.tuples(*(st.sampled_from(own[name]) for name in order[n[0] : sum(n)])).map(
                lambda known: f"{', '.join(order[: n[0]])} | {', '.join(known)}"
            )
        )
    )
    name = st.sampled_from([*names, *(f"'{n}'" for n in names), "wait", "", names[0].upper()])
    pair = st.builds("{}={}".format, name, st.sampled_from(VALUES) | st.floats().map(repr))
    item = name | pair
    side = st.lists(item, max_size=4).map(", ".join)
    formed = st.builds("{} | {}".format, side, st.lists(pair, max_size=4).map(", ".join)) | side
    tokens = st.lists(name | st.sampled_from(SIGNS) | st.sampled_from(VALUES), max_size=14).map("".join)
    return good | good | formed | formed | tokens | st.text(max_size=40)


def texts(characters: str) -> st.SearchStrategy[str]:
    """Questions to a text model: its own characters, blanks, and others."""
    own = st.text(alphabet=[*characters, "_"], max_size=9)
    return own | own | st.text(max_size=9)


def _quietly(act: Callable[[], Any]) -> str:
    """What it printed, or its one sentence."""
    printed = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("ignore")
        try:
            act()
        except AnyGivenError:
            return "refused"
    assert printed.getvalue()
    assert not re.search(r"[ =]nan\b", printed.getvalue())
    return "answered"


def answer(density: Any, question: str) -> str:
    if density.kind == "text":
        return _quietly(lambda: ask_text(density, Path("m"), question, "_", False))
    return _quietly(lambda: answer_question(density, question, None, False))


# ------------------------------------------------------------------ tables

CELLS = ["", "", "NA", "nan", "NULL", "0", "-1", "1e200", "inf", "-inf", "1e-320", "true", "False", "Oslo", "Rome", "x",
         "12,5", "1985-03-01", "31/12/1999", "9" * 20, "💥", '"', "'", "a\nb", "a,b", "\0", " ", "3.0"]  # fmt: skip


Cells = list[list[str]]  # rows of texts, the header first


@st.composite
def tables(draw, base: pd.DataFrame) -> Cells:
    """Some rows of a table, as text, with cells, columns and headers changed."""
    some = base.iloc[: draw(st.integers(0, 12))].astype(object)
    cells = [list(base.columns), *some.where(some.notna(), "").astype(str).to_numpy().tolist()]
    for _ in range(draw(st.integers(0, 4))):
        how = draw(st.sampled_from(["cell", "cell", "column", "drop", "add", "rename", "double", "turn", "ragged"]))
        row, place = draw(st.integers(0, len(cells) - 1)), draw(st.integers(0, len(cells[0]) - 1))
        strange = draw(st.sampled_from(CELLS))
        if how == "cell":
            cells[row][place] = strange
        elif how == "column":
            cells = [cells[0], *([*r[:place], strange, *r[place + 1 :]] for r in cells[1:])]
        elif how == "drop" and len(cells[0]) > 1:
            cells = [r[:place] + r[place + 1 :] for r in cells]
        elif how == "add":
            cells = [[*r, str(k and 7) or cells[0][place]] for k, r in enumerate(cells)]
        elif how == "rename":
            cells[0][place] = draw(st.sampled_from(["", "größe", "a\nb", *cells[0]]))
        elif how == "double":
            cells += [list(r) for r in cells[1:]]
        elif how == "turn":
            cells = [r[::-1] for r in cells]
        else:
            cells[row] = cells[row][:place] or cells[row]
            return cells  # rows of different lengths are not changed further
    return cells


@st.composite
def files(draw, base: pd.DataFrame) -> tuple[str, bytes]:
    """An ending and the bytes of a table file: a dialect, an encoding, and perhaps some noise."""
    cells = draw(tables(base))
    ending = draw(st.sampled_from([".csv", ".csv", ".csv", ".tsv", ".csv.gz", ".parquet", ".parquet"]))
    if ending == ".parquet":
        data = _parquet(draw, cells)
    else:
        text = io.StringIO()
        csv.writer(text, delimiter=draw(st.sampled_from([",", ";", "\t", "|"]))).writerows(cells)
        data = text.getvalue().encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"])), "replace")
        data = gzip.compress(data) if ending == ".csv.gz" else data
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        data = data[:place] + draw(st.binary(max_size=4)) + data[place + draw(st.integers(0, 4)) :]
    return ending, data


def _parquet(draw, cells: Cells) -> bytes:
    """Each column as text, numbers, categories, instants, or of no type at all."""
    columns = {}
    for place, name in enumerate(cells[0]):
        column = pd.Series([row[place] if place < len(row) else "" for row in cells[1:]], dtype=object).replace(
            "", None
        )
        kind = draw(st.sampled_from(["text", "number", "category", "time", "zoned time", "nothing"]))
        columns[name] = {
            "text": lambda column=column: column,
            "number": lambda column=column: pd.to_numeric(column, errors="coerce"),
            "category": lambda column=column: column.astype("category"),
            "time": lambda column=column: pd.to_datetime(column, errors="coerce", format="mixed").astype("M8[us]"),
            "zoned time": lambda column=column: pd.to_datetime(column, errors="coerce", format="mixed", utc=True),
            "nothing": lambda column=column: pd.Series([None] * len(column), dtype=object),
        }[kind]()
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


def fill(density: Any, folder: Path, ending: str, data: bytes) -> str:
    """The command impute on such a file: refused in one sentence, or filled and nothing else touched."""
    source, out = folder / f"in{ending}", folder / f"out{ending}"
    for path in folder.iterdir():
        path.unlink()
    source.write_bytes(data)
    found = _quietly(lambda: impute_table(density, source, read_file(source), out, "mean", None, 0, False))
    if found == "answered":
        _check_filled(density, source, out)
    else:
        assert not out.exists()
    assert {path.name for path in folder.iterdir()} <= {source.name, out.name}
    return found


def _check_filled(density: Any, source: Path, out: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = (read_file(path) for path in (source, out))
    assert list(before.columns) == list(after.columns)
    assert len(before) == len(after)
    for name in density.schema_.names:
        assert not after[name].isna().any(), name
    for place in range(before.shape[1]):
        for old, new in zip(before.iloc[:, place], after.iloc[:, place], strict=True):
            assert _is_gap(old) or _alike(old, new), (before.columns[place], old, new)


def _is_gap(value: Any) -> bool:
    return value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _alike(old: Any, new: Any) -> bool:
    """The same cell, also where its column is read as another type now that its gaps are filled."""
    if type(old) is type(new) and old == new:
        return True
    if isinstance(old, (bool, np.bool_)) or isinstance(new, (bool, np.bool_)):
        return str(old).lower() == str(new).lower()
    try:
        return float(old) == float(new)
    except (TypeError, ValueError):
        return str(old).strip() == str(new).strip() or pd.Timestamp(old) == pd.Timestamp(new)
