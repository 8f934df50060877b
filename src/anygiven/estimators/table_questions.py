"""Questions of tables: what is asked and what is given, as people put it, as cells; and answers put back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anygiven.errors import AnyGivenWarning, QuestionError, TableError
from anygiven.lattice import Question
from anygiven.variables import Schema, Table, read_table
from anygiven.variables.domains import CELL
from anygiven.variables.tables import Column, fill_frame, is_gap, native_values, read_row


@dataclass(frozen=True)
class Given:
    """What is known, as cells: of one row that a person gave, or of the rows of a table."""

    x: Tensor  # (B, N, 4)
    is_evidence: Tensor  # (B, N)
    row: dict[str, Any] | None = None  # as it was given; None: a table of many
    index: Any = None  # of a pandas table


def cells_of_known(schema: Schema, known: Table | None) -> tuple[Tensor, Tensor]:
    """Cells (n, N, 4) of what is known and is_evidence (n, N): of one row of nothing where nothing is."""
    if known is None:
        n = len(schema.variables)
        return torch.zeros(1, n, len(CELL)), torch.zeros(1, n, dtype=torch.bool)
    refuse_left_out(schema, known)
    schema.warn_of_strange(known)
    return encoded(schema, known)


def row_or_table(given) -> Table | None:
    """One row or a table as columns; None where nothing is known."""
    if isinstance(given, pd.Series):
        given = given.to_dict()
    if isinstance(given, dict):
        given = {key: value for key, value in given.items() if _is_list(value) or not is_gap(value)}
    if given is None or (isinstance(given, dict) and not given):
        return None
    return read_table(given)


def with_given(drawn: Any, known: Table | None, n: int) -> Any:
    """What was given in a frame of the same types comes back to the last bit, also what our seconds cannot hold."""
    if known is None or not isinstance(drawn, pd.DataFrame) or not isinstance(known.native, pd.DataFrame):
        return drawn
    for column in known.columns:
        label = column.name if column.label is None else column.label
        if column.is_present.all() and label in drawn and known.native[label].dtype == drawn[label].dtype:
            drawn[label] = known.native[label].repeat(n).array
    return drawn


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray, pd.Series))


def _shown(column: Column) -> Any:
    """The one value of a column as a person reads it."""
    return native_values(column.values, column.storage)[0]


def read_question(schema: Schema, X, query, given) -> tuple[Tensor, Question, np.ndarray]:
    """Cells, the question, and which rows ask for what is possible."""
    if X is not None and query is not None:
        raise QuestionError("Give a table, or query= and given=, not both.")
    asked = read_table(X if X is not None else query, schema.names) if (X is not None or query is not None) else None
    if asked is None:
        raise QuestionError("Nothing is asked: give a table, or query= (and given=).")
    if query is not None:
        refuse_left_out(schema, asked)
    x, is_query = encoded(schema, asked)
    is_possible = possible_rows(schema, asked)
    known = row_or_table(given)
    if known is None:
        return x, Question(is_query, torch.zeros_like(is_query)), is_possible
    refuse_left_out(schema, known)
    overlap = [name for name in known.names if name in asked.names]
    if overlap:
        raise QuestionError(f"Column {overlap[0]!r} is both asked and given; it can be only one.")
    schema.warn_of_strange(known)
    x_known, is_evidence = encoded(schema, known)
    mine, theirs = asked.index, known.index
    if mine is not None and theirs is not None and len(x) == len(x_known) > 1 and not mine.equals(theirs):
        raise QuestionError("What is asked and what is given have different row labels; give them the same index.")
    if len(x_known) not in (1, len(x)):
        raise QuestionError(f"{len(x)} rows are asked and {len(x_known)} given; they must match.")
    x_known, is_evidence = x_known.expand_as(x), is_evidence.expand_as(is_query)
    return torch.where(is_evidence.unsqueeze(-1), x_known, x), Question(is_query, is_evidence), is_possible


def possible_rows(schema: Schema, asked: Table) -> np.ndarray:
    """(rows,) False where a number is off its column's grid or outside its bounds: its probability is zero."""
    is_possible = schema.is_possible(asked)
    for i in np.flatnonzero(~is_possible.all(axis=0)):
        variable, n = schema.variables[i], int((~is_possible[:, i]).sum())
        warnings.warn(
            f"Column {variable.name!r}: {n} cell(s) are not possible ({variable.describe()}), so their probability "
            "is zero; say schema={...} to fit it as another kind or with other bounds.",
            AnyGivenWarning,
            stacklevel=4,
        )
    return np.asarray(is_possible.all(axis=1))


def encoded(schema: Schema, table: Table, unseen: str = "error") -> tuple[Tensor, Tensor]:
    cells, is_present = schema.encode(table, unseen)
    return torch.from_numpy(cells), torch.from_numpy(is_present)


def refuse_left_out(schema: Schema, table: Table) -> None:
    for name in table.names:
        schema.index(name)


def read_given(schema: Schema, given, asked: list[str]) -> Given:
    """What is known, as cells."""
    if isinstance(given, pd.Series) and set(map(str, given.index)) <= {*schema.names, *schema.left_out}:
        given = {key: value for key, value in given.items() if str(key) not in (*asked, *schema.left_out)}
    if given is None or (isinstance(given, dict) and not any(_is_list(value) for value in given.values())):
        return _given_row(schema, {str(key): value for key, value in (given or {}).items()}, asked)
    table = read_table(given, schema.names)
    table = Table(tuple(c for c in table.columns if c.name not in asked), table.n_rows, table.backend, table.native)
    schema.warn_of_strange(table)
    x, is_evidence = encoded(schema, table, unseen="gap")
    row = None
    if table.n_rows == 1:
        row = {column.name: _shown(column) for column in table.columns if column.is_present[0]}
    return Given(x, is_evidence, row, table.index)


def _given_row(schema: Schema, row: dict[str, Any], asked: list[str]) -> Given:
    row = {key: value for key, value in row.items() if not is_gap(value)}
    both = [name for name in asked if name in row]
    if both:
        raise QuestionError(f"Column {both[0]!r} is both asked and given; it can be only one.")
    if not row:
        return Given(*cells_of_known(schema, None), {})
    table = read_row(row) or read_table({key: [value] for key, value in row.items()})
    refuse_left_out(schema, table)
    schema.warn_of_strange(table)
    return Given(*encoded(schema, table), row)


def require_all_columns(schema: Schema, table: Table) -> None:
    missing = [name for name in schema.names if name not in table.names]
    if missing:
        raise TableError(
            f"The table has no column {missing[0]!r}, which the model was fitted on; add it, as gaps if need be."
        )


def filled_table(schema: Schema, table: Table, is_present: np.ndarray, found: dict[int, np.ndarray]):
    """Only true gaps are written back: a value never seen in training is present, so it stays."""
    by_name = {column.name: column for column in table.columns}
    filled = {}
    for i, values in found.items():
        name = schema.names[i]
        column = by_name[name]
        treated_as_gap = ~is_present[:, i]
        variable = schema.variables[i]
        if variable.storage.is_time:
            values = variable.domain.snap(values)  # type: ignore[attr-defined]
        filled[name] = values[~column.is_present[treated_as_gap]]
    return fill_frame(table, {name: values for name, values in filled.items() if len(values)})
