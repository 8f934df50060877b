"""Commands that read and write tables."""

from __future__ import annotations

import csv
import gzip
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import narwhals as nw
import numpy as np
import pandas as pd

from anygiven.cli.answers import answer_question
from anygiven.cli.commands import Commands, Options, listed, whole_number
from anygiven.cli.outputs import check_not_read, tell
from anygiven.disk import is_stream, write_whole
from anygiven.errors import AnyGivenWarning, QuestionError
from anygiven.estimators import TabularDensity
from anygiven.estimators.language import parse_given
from anygiven.variables.files import CSV, GAPS, PARQUET, Dialect, long_cells, open_text, read_file
from anygiven.variables.tables import check_writable, write_table

Formats = dict[str, str | None]  # of the dates of a column, where they are not written as 2020-10-07


class TableCommands(Commands):
    noun = "tables"
    takes: ClassVar = {
        "fit": ("--known", "--asked", "--head", "--column", "--delimiter", "--encoding"),
        "ask": ("--plot",),
        "score": ("--query", "--given", "--delimiter", "--encoding"),
    }
    instead: ClassVar = {"inpaint": "make one of images with anygiven fit FOLDER --kind image --out MODEL."}

    def own(self, options: Options) -> dict[str, Any]:
        known, asked = listed(options["--known"]), listed(options["--asked"])
        workload = {"known": known, **({"asked": asked} if asked else {})} if known else None
        return {"schema": _overrides(options["--column"] or []), "workload": workload, "head": options["--head"]}

    def read(self, source: Path, options: Options) -> pd.DataFrame:
        return read_file(source, options["--delimiter"], options["--encoding"])

    def hint(self, density: TabularDensity, out: Path) -> str:
        return f"Ask it: anygiven ask {out} {_example_question(density)}"

    def facts(self, density: TabularDensity) -> dict[str, Any]:
        columns = [{"name": n, "kind": k, "values": line} for n, k, line in density.schema_.describe()]
        return {**density.report_, "columns": columns}

    def ask(self, density: TabularDensity, model: Path, question: str, options: Options, as_json: bool) -> None:
        answer_question(density, question, options["--plot"], as_json)

    def score(self, density: TabularDensity, source: Path, out: Path | None, options: Options, as_json: bool) -> None:
        query, given = listed(options["--query"]), listed(options["--given"])
        score_table(density, self.read(source, options), out, query, given, as_json)

    def sample(
        self, density: TabularDensity, n: int, given: str, out: Path | None, options: Options, as_json: bool
    ) -> None:
        how = whole_number(options["--steps"]), options["--temperature"], options["--seed"]
        sample_table(density, n, given, out, *how)

    def impute(
        self, density: TabularDensity, model: Path, source: Path, out: Path, options: Options, as_json: bool
    ) -> None:
        draws = options["--draws"]
        if draws is not None and draws < 1:
            raise QuestionError("--draws must be at least 1.")
        if draws is not None and is_stream(out):
            raise QuestionError("--draws writes several files; give --out the name of a file.")
        frame = self.read(source, options)
        has_more_sheets = frame.attrs.get("n_sheets", 1) > 1
        for target in impute_names(out, draws):
            check_not_read(target, model)
            if has_more_sheets:
                check_not_read(target, source, remedy="choose another name, or its other sheets would be lost")
            elif not options["--force"]:
                check_not_read(target, source, remedy="choose another name, or say --force to write over it")
        impute_table(density, source, frame, out, options["--statistic"], draws, options["--seed"], as_json)


def _overrides(pairs: list[str]) -> dict[str, Any]:
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise QuestionError(f"--column {wrong[0]!r} is not NAME=KIND.")
    return {name.strip(): _override(kind.strip()) for name, kind in (pair.rsplit("=", 1) for pair in pairs)}


def _override(text: str) -> Any:
    """ "count", or "continuous:0:1" as ("continuous", 0, 1)."""
    kind, *bounds = text.split(":")
    if not bounds:
        return kind
    try:
        low, high = (float(bound) if bound.strip() else None for bound in bounds)
    except ValueError:
        raise QuestionError(f"{text!r} is not KIND:LOW:HIGH, as in continuous:0:1 or continuous:0: for one.") from None
    return kind, low, high


def _example_question(density: TabularDensity) -> str:
    """About the last column that was ever asked, given the first that was ever known with it."""
    names, support = density.schema_.names, density.workload_.support
    asked = int(support.is_asked.nonzero()[-1])
    known = [i for i in support.is_known[asked].nonzero().squeeze(1).tolist() if i != asked]
    if not known:
        return f'"{names[asked]}"'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnyGivenWarning)
        given = density.sample(1, random_state=0)
    value = nw.from_native(given, eager_only=True)[names[known[0]]].to_list()[0]
    shown = f"{value:g}" if isinstance(value, float) else f"'{value}'" if isinstance(value, str) else value
    return f'"{names[asked]} | {names[known[0]]}={shown}"'


def score_table(
    density, frame: pd.DataFrame, out: Path | None, query: list[str], given: list[str], as_json: bool
) -> None:
    if out:
        check_writable(out)
    if given and not query:
        raise QuestionError("--given needs --query: say what is asked.")
    if query:
        density.schema_.index(query[0])
        _require_columns(frame, query + given)
        log_p = density.log_prob(query=frame[query], given=frame[given] if given else None)
    else:
        log_p = density.log_prob(frame)
    if out:
        write_table(pd.DataFrame({"log_prob": log_p}), out)
    figures = {
        "rows": len(log_p),
        "mean": float(np.mean(log_p)) if len(log_p) else None,
        "standard_error": float(np.std(log_p) / np.sqrt(max(len(log_p), 1))) if len(log_p) else None,
        "lowest_row": int(np.argmin(log_p)) if len(log_p) else None,
    }
    if as_json:
        tell(out, json.dumps({**figures, "log_prob": [float(v) for v in log_p]}))
    else:
        tell(out, f"{figures['rows']:,} rows, {figures['mean']:.3f} ± {figures['standard_error']:.3f} nats per row; "
                  f"the least likely is row {figures['lowest_row']}, counted from 0.")  # fmt: skip


def _require_columns(frame: pd.DataFrame, names: list[str]) -> None:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise QuestionError(f"The table has no column {missing[0]!r}.")


def sample_table(density, rows: int, given: str, out: Path | None, steps, temperature: float, seed: int) -> None:
    if out:
        check_writable(out)
    drawn = density.sample(rows, parse_given(given) or None, steps=steps, temperature=temperature, random_state=seed)
    frame = drawn if isinstance(drawn, pd.DataFrame) else pd.DataFrame(drawn, columns=pd.Index(density.schema_.names))
    for name in frame.columns:  # a column of whole numbers that gaps made float
        if frame[name].dtype == float and (frame[name] == frame[name].round()).all():
            frame[name] = frame[name].astype("int64")
    if out:
        write_table(frame, out)
        tell(out, f"{len(frame):,} rows written to {out}.")
    else:
        print(frame.to_csv(index=False), end="")


def impute_table(
    density, path: Path, frame: pd.DataFrame, out: Path, statistic: str, draws: int | None, seed: int, as_json: bool
) -> None:
    check_writable(out)
    filled = density.impute(frame, statistic=statistic, draws=draws, random_state=seed)
    outs = impute_names(out, draws)
    tables = [filled] if draws is None else filled
    formats = {v.name: v.storage.format for v in density.schema_.variables} | frame.attrs.get("date_formats", {})
    for table, target in zip(tables, outs, strict=True):
        _write_filled(path, frame, table, target, formats)
    left = sorted(set(frame.columns[frame.isna().any()]) - set(density.schema_.names))
    n_gaps = int(frame[[c for c in frame.columns if c not in left]].isna().sum().sum())
    if as_json:
        tell(
            out, json.dumps({"rows": len(frame), "filled": n_gaps, "files": [str(o) for o in outs], "not_filled": left})
        )
    else:
        tell(out, f"{n_gaps:,} gaps filled in {len(frame):,} rows; written to {', '.join(str(o) for o in outs)}.")
        if left:
            tell(out, f"Left as they are, since they are not modelled: {', '.join(left)}.")


def impute_names(out: Path, draws: int | None) -> list[Path]:
    """What will be written: the file, or one for each draw."""
    return [out] if draws is None else [out.with_name(_numbered(out.name, m)) for m in range(1, draws + 1)]


def _numbered(name: str, m: int) -> str:
    stem, dot, rest = name.partition(".")
    return f"{stem}.{m}{dot}{rest}"


def _write_filled(source: Path, before: pd.DataFrame, after: pd.DataFrame, out: Path, formats: Formats) -> None:
    """From CSV to CSV the text of every present cell is kept as it stands, in the file's own dialect; only gaps are
    written."""
    if source.suffix in CSV and out.suffix in CSV:
        write_whole(out, lambda file: _fill_text(source, before, after, file, formats, is_packed=out.suffix == ".gz"))
    elif source.suffix in PARQUET and out.suffix in PARQUET:
        write_table(_typed_as(source, after), out)
    else:
        write_table(after, out)


def _typed_as(source: Path, after: pd.DataFrame) -> Any:
    """Numbers in the types of the file, where what was filled in can be held so: pandas takes whole numbers with gaps
    for floats."""
    import pyarrow
    from pyarrow import parquet, types

    def is_number(kind: Any) -> bool:
        return types.is_integer(kind) or types.is_floating(kind)

    table = pyarrow.Table.from_pandas(after, preserve_index=False)
    for position, (field, now) in enumerate(zip(parquet.read_schema(source), table.schema, strict=False)):
        if field.name == now.name and is_number(field.type) and is_number(now.type):
            with suppress(pyarrow.ArrowInvalid):
                table = table.set_column(position, field.name, table.column(position).cast(field.type))
    return table


def _fill_text(
    source: Path, before: pd.DataFrame, after: pd.DataFrame, file: BinaryIO, formats: Formats, is_packed: bool
) -> None:
    dialect = Dialect(**before.attrs["dialect"])
    is_gap = before.isna().to_numpy()
    texts = {}
    for j in np.flatnonzero(is_gap.any(axis=0)).tolist():
        column, format = after.iloc[:, j], formats.get(str(after.columns[j]))
        spelling = _spelling(source, dialect, j) if column.dtype in (bool, object) else str
        texts[j] = [_text(value, dialect.decimal, format, spelling) for value in column]
    with (
        long_cells(),
        open_text(source, dialect.encoding) as read,
        _text_into(file, dialect.encoding, is_packed) as write,
    ):
        rows = csv.reader(read, delimiter=dialect.delimiter)
        writer = csv.writer(write, delimiter=dialect.delimiter, lineterminator=dialect.line_end)
        writer.writerow(next(rows))
        row = 0
        for cells in rows:
            if not cells:
                continue  # pyarrow skips blank lines too
            for j in np.flatnonzero(is_gap[row]):
                if cells[j] in GAPS:
                    cells[j] = texts[j][row]
            writer.writerow(cells)
            row += 1


@contextmanager
def _text_into(file: BinaryIO, encoding: str, is_packed: bool) -> Iterator[io.TextIOWrapper]:
    """Text written to an open file, which stays open."""
    packed: Any = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if is_packed else None
    write = io.TextIOWrapper(packed or file, encoding=encoding, newline="")
    yield write
    write.detach()
    if packed:
        packed.close()


def _spelling(source: Path, dialect: Dialect, column: int) -> Any:
    """How the file writes true and false, from the first that it has."""
    with long_cells(), open_text(source, dialect.encoding) as read:
        rows = csv.reader(read, delimiter=dialect.delimiter)
        next(rows)
        found = next((cells[column] for cells in rows if cells and cells[column] not in GAPS), "True")
    if found in ("0", "1"):
        return lambda text: str(int(text == "True"))
    return str.lower if found.islower() else str.upper if found.isupper() else str


def _text(value: Any, decimal: str = ".", format: str | None = None, spelling: Any = str) -> str:
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float):
        return (f"{value:.6g}" if value != round(value) else f"{value:.0f}").replace(".", decimal)
    if isinstance(value, (bool, np.bool_)):
        return spelling(str(value))
    if format is not None and isinstance(value, pd.Timestamp):
        return value.strftime(format)
    return str(value)
