"""The command line. Commands import what they need when they run, so --help is instant."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from anygiven import __version__
from anygiven.cli.outputs import check_not_read, checkpoint_of
from anygiven.errors import AnyGivenError, AnyGivenWarning, QuestionError, Stopped

app = typer.Typer(
    help="Any question, given anything you know: one model answers every conditional of a table.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
)

ModelPath = Annotated[Path, typer.Argument(help="A model folder made by anygiven fit.", metavar="MODEL")]
TablePath = Annotated[Path, typer.Argument(help="A CSV, CSV.gz, Parquet or Excel file.", metavar="TABLE")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Steps = Annotated[
    str | None, typer.Option(help="Network calls; by default one a column, character or pixel. Texts, images: or auto.")
]
Groups = Annotated[str | None, typer.Option(help="With --steps: planned (by what they lose), or surest first.")]
Blank = Annotated[str | None, typer.Option(help="The sign of a blank in a text, by default _.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same answer.", min=0, max=2**62 - 1)]
Delimiter = Annotated[str | None, typer.Option(help="Of a CSV file, if it is not found: ';', '|' or '\\t'.")]
Encoding = Annotated[str | None, typer.Option(help="Of a CSV file, if it is not found: utf-8, latin-1, cp1252.")]


UsageError: Any = typer.BadParameter.__bases__[0]
MOST_SHOWN = 400  # characters of a sentence: it may name what was typed, and that may be a book


def run() -> None:
    """A user's mistake is one sentence on standard error and exit code 2; a signal is its number and 128."""
    # Threads that wait must not spin, or a small model stalls when other programs share the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", AnyGivenWarning)
    warnings.showwarning = lambda message, *_, **__: _say(f"Note: {message}")
    _stop_on_signals()
    try:
        _check_arguments()
        sys.exit(app(standalone_mode=False))
    except AnyGivenError as error:
        _say(f"Error: {error}")
        sys.exit(2)
    except UsageError as error:
        _say_usage(error)
        sys.exit(2)
    except OSError as error:  # what the machine refuses: a file without permission, a name too long
        _say(f"Error: {error.strerror or error}" + (f": {error.filename}." if error.filename else "."))
        sys.exit(2)
    except MemoryError:
        _say("Error: there is not enough memory; use fewer rows or columns.")
        sys.exit(2)
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):  # as torch has it
            raise
        _say("Error: there is not enough memory; use fewer rows or columns.")
        sys.exit(2)
    except Stopped as stopped:
        _say(str(stopped))
        sys.exit(128 + stopped.signal_number)


def _stop_on_signals() -> None:
    """Ctrl-C, a polite kill, and a closed terminal unless that is to be ignored (nohup)."""

    def stop(number: int, _: Any) -> None:
        raise Stopped(number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and not (name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN):
            signal.signal(number, stop)


def _check_arguments() -> None:
    for place, argument in enumerate(sys.argv[1:], 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise QuestionError(f"Argument {place} is not UTF-8 text; type it again, or rename the file.") from None


def _say(sentence: str) -> None:
    """On standard error; what is too long to read is cut in the middle."""
    if len(sentence) > MOST_SHOWN:
        sentence = f"{sentence[: MOST_SHOWN * 2 // 3]} … {sentence[-MOST_SHOWN // 3 :]}"
    print(sentence.encode("utf-8", "backslashreplace").decode(), file=sys.stderr)


def _say_usage(error: Any) -> None:
    command = error.ctx.command_path if error.ctx else "anygiven"
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    _say(f"Error: {error.format_message().rstrip('.')}; see {command} --help.")


def _version(asked: bool) -> None:
    if asked:
        print(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: anygiven demo --minutes 0.5")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("anygiven-demo"),
    minutes: Annotated[float, typer.Option(help="Time at most, from start to end.", min=0.0)] = 1.0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """The main job on an embedded table, in about a minute: ask, fill gaps, compare, and write a report."""
    from anygiven.cli.demo import run_demo

    run_demo(out, minutes, seed, as_json)


@app.command(
    epilog="Example: anygiven fit patients.csv --out patients.model --column code=categorical, or"
    " anygiven fit book.txt --text --out book.model, or anygiven fit pictures --images --out pictures.model"
)
def fit(
    table: Annotated[
        Path, typer.Argument(help="A table (CSV, Parquet), a text, or images (folder, npz).", metavar="FILE")
    ],
    out: Annotated[Path, typer.Option(help="Where the model folder goes.")],
    minutes: Annotated[float, typer.Option(help="Time at most, from start to end.")] = 4.0,
    workload: Annotated[
        str,
        typer.Option(
            help="Which questions will be asked: any, joint, marginals, conditionals; of tables also bernoulli, gaps; "
            "of images also modes, random."
        ),
    ] = "any",
    known: Annotated[str, typer.Option(help="Columns that will always be known, comma-separated.")] = "",
    asked: Annotated[str, typer.Option(help="Columns that will be asked, with --known.")] = "",
    network: Annotated[str, typer.Option(help="auto, mlp, transformer, path; for images convolutions, unet.")] = "auto",
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Override a column's kind: NAME=continuous|grid|count|categorical|ordinal|leave out; "
            "with bounds NAME=continuous:0:1, or continuous:0: for one."
        ),
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="The file is a text, not a table.")] = False,
    length: Annotated[
        int | None, typer.Option(help="Characters modelled at a time, with --text; by default 64.")
    ] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="With --text: text8, bytes, or the characters; by default those that occur.")
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="The file is an npz, or a folder, of images.")] = False,
    element: Annotated[
        str | None, typer.Option(help="What of an image is revealed at a time: pixel (the default) or channel.")
    ] = None,
    n_components: Annotated[
        int | None, typer.Option(help="Logistics in the mixture of an image's level; 0: a mass for each level.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a table, a text or images. Killed on the way, the same command goes on where it was."""
    if not minutes > 0:
        raise QuestionError("--minutes must be greater than zero.")
    _check_out(out)
    if text and images:
        raise QuestionError("A file is a text or images; give --text or --images.")
    _only_for("texts", text, {"--length": length, "--alphabet": alphabet})
    _only_for("images", images, {"--element": element, "--n-components": n_components})
    of_tables = {"--known": known, "--asked": asked, "--column": column or None, "--delimiter": delimiter}
    _only_for("tables", not (text or images), {**of_tables, "--encoding": encoding})
    with _told_what_is_kept(out):
        if text:
            from anygiven.cli.text import fit_text

            length = 64 if length is None else length
            return fit_text(table, out, minutes, length, alphabet, workload, network, seed, as_json)
        if images:
            from anygiven.cli.images import fit_images

            return fit_images(table, out, minutes, element or "pixel", n_components, workload, network, seed, as_json)
        if table.suffix == ".txt":
            _say(f"Note: {table} is read as a table; for a text give --text.")
        from anygiven.cli.tables import fit_table
        from anygiven.variables.files import read_file

        law: Any = workload
        if known:
            law = {"known": _names(known), **({"asked": _names(asked)} if asked else {})}
        overrides = _overrides(column or [])
        fit_table(read_file(table, delimiter, encoding), out, minutes, overrides, law, network, seed, as_json)


def _check_out(out: Path) -> None:
    """Found out now, not after hours of training."""
    from anygiven.estimators.folder import check_model_place
    from anygiven.training.checkpoint import check_checkpoint_place

    check_model_place(out)
    check_checkpoint_place(checkpoint_of(out) / "member-0")


@contextmanager
def _told_what_is_kept(out: Path) -> Iterator[None]:
    """A training that ends before its model is saved is not lost: say where it is, and how to go on."""
    from anygiven.errors import OutputError
    from anygiven.training.checkpoint import OtherTrainingError, steps_kept

    try:
        yield
    except Stopped as stopped:
        raise Stopped(stopped.signal_number, f"Stopped. {_kept(steps_kept(checkpoint_of(out)), out)}") from None
    except OtherTrainingError:
        raise
    except OutputError as error:
        steps = steps_kept(checkpoint_of(out))
        raise OutputError(f"{error} {_kept(steps, out)}" if steps is not None else str(error)) from None


def _kept(steps: int | None, out: Path) -> str:
    if steps is None:
        return "Nothing was kept: training saves its state every 20 seconds."
    return f"{steps:,} steps are kept in {checkpoint_of(out)}: the same command goes on from there."


def _only_for(kind: str, is_meant: bool, options: dict[str, Any]) -> None:
    """An option that would be ignored is a mistake."""
    given = [name for name, value in options.items() if not (value is None or value == "")]
    if given and not is_meant:
        raise QuestionError(f"{given[0]} is for {kind} alone; leave it out.")


def _whole_number(text: str | None) -> int | None:
    if text is not None and not (text.isdecimal() and text.isascii()):
        raise QuestionError(f"--steps {text!r} is not a whole number.")
    return None if text is None else int(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


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


@app.command(epilog="Example: anygiven describe patients.model")
def describe(model: ModelPath, as_json: AsJson = False) -> None:
    """What a model was fitted on, and what it learnt."""
    density = _load(model)
    if as_json and density.kind != "table":
        _print_json(density.report_)
    elif as_json:
        columns = [{"name": n, "kind": k, "values": line} for n, k, line in density.schema_.describe()]
        _print_json({**density.report_, "columns": columns})
    else:
        print(density.describe())


@app.command(epilog="Example: anygiven ask patients.model \"glucose | age=51, city='New York'\"")
def ask(
    model: ModelPath,
    question: Annotated[str, typer.Argument(help="\"price, area | rooms=3, city='New York'\"")],
    plot: Annotated[Path | None, typer.Option(help="Write a picture (PNG), of a table's answer.")] = None,
    blank: Blank = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question. A column with a value (diabetes='yes' | …) is answered with its probability.

    A text model is asked with blanks: "the c_t s_t".
    """
    check_not_read(plot, model)
    density = _load(model)
    if density.kind == "image":
        raise QuestionError(f"{model} is an image model; ask it with anygiven inpaint {model} IMAGE --mask box.")
    _only_for("tables", density.kind == "table", {"--plot": plot})
    _only_for("texts", density.kind == "text", {"--blank": blank})
    if density.kind == "text":
        from anygiven.cli.text import ask_text

        return ask_text(density, model, question, blank or "_", as_json)
    from anygiven.cli.answers import answer_question

    answer_question(density, question, plot, as_json)


@app.command(epilog="Example: anygiven score patients.model new_patients.csv --out scores.csv")
def score(
    model: ModelPath,
    table: Annotated[Path, typer.Argument(help="A CSV, CSV.gz or Parquet file; a text; images.", metavar="FILE")],
    out: Annotated[Path | None, typer.Option(help="Write one log probability a row (CSV or Parquet).")] = None,
    query: Annotated[str, typer.Option(help="Columns asked, by default all; of images a mask, as for inpaint.")] = "",
    given: Annotated[str, typer.Option(help="Columns given, with --query; of images a mask, as for inpaint.")] = "",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """How likely is each row? Log probabilities in nats, over the cells present.

    Of a text: bits per character. Of images: bits per dimension.
    """
    check_not_read(out, table, model)
    density = _load(model)
    _only_for("tables", density.kind == "table", {"--delimiter": delimiter, "--encoding": encoding})
    if density.kind == "image":
        from anygiven.cli.images import score_images

        return score_images(density, table, query, given, out, as_json)
    _only_for("tables and images", density.kind == "table", {"--query": query, "--given": given})
    if density.kind == "text":
        from anygiven.cli.text import score_text

        return score_text(density, table, out, as_json)
    from anygiven.cli.tables import score_table
    from anygiven.variables.files import read_file

    score_table(density, read_file(table, delimiter, encoding), out, _names(query), _names(given), as_json)


@app.command(epilog='Example: anygiven sample patients.model --rows 1000 --given "age=51" --out drawn.csv')
def sample(
    model: ModelPath,
    rows: Annotated[int, typer.Option(help="How many rows.")] = 10,
    given: Annotated[str, typer.Option(help="What is known: \"age=51, sex='f'\".")] = "",
    out: Annotated[
        Path | None, typer.Option(help="CSV, CSV.gz or Parquet, by default the screen; images: PNG or npz.")
    ] = None,
    steps: Steps = None,
    temperature: Annotated[float, typer.Option(help="Below 1: likelier rows.")] = 1.0,
    groups: Groups = None,
    refine: Annotated[int, typer.Option(help="How often each blank of a text is drawn again: slower, better.")] = 0,
    blank: Blank = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw rows like the training table, or texts: --given "once upon" begins them, --given "the c_t" is filled.

    Images are drawn into one picture: --out drawn.png.
    """
    check_not_read(out, model)
    density = _load(model)
    of_texts = {"--refine": refine or None, "--blank": blank, "--json": as_json or None}
    _only_for("texts", density.kind == "text", of_texts)
    _only_for("texts and images", density.kind != "table", {"--groups": groups})
    if density.kind == "table":
        from anygiven.cli.tables import sample_table

        return sample_table(density, rows, given, out, _whole_number(steps), temperature, seed)
    n_steps = "auto" if steps == "auto" else _whole_number(steps)
    if density.kind == "image":
        from anygiven.cli.images import sample_images

        return sample_images(density, rows, given, out, n_steps, temperature, groups or "planned", seed)
    from anygiven.cli.text import sample_text

    options = {"steps": n_steps, "temperature": temperature, "groups": groups or "planned", "random_state": seed}
    sample_text(density, rows, given, out, refine, blank or "_", as_json, options)


@app.command(epilog="Example: anygiven inpaint digits.model digits.npz --index 3 --mask left --out filled.png")
def inpaint(
    model: ModelPath,
    image: Annotated[Path, typer.Argument(help="A picture, a folder of them, or npz.", metavar="IMAGE")],
    out: Annotated[Path, typer.Option(help="PNG: what is given, the completions, the image. Or npz.")],
    mask: Annotated[
        str,
        typer.Option(help="A picture, white where known; or box, centre, left, right, top, bottom, noise, strokes."),
    ] = "box",
    n: Annotated[int, typer.Option("--n", help="How many completions.")] = 3,
    index: Annotated[int, typer.Option(help="Which image of a folder or npz, from 0.")] = 0,
    steps: Steps = None,
    temperature: Annotated[float, typer.Option(help="Below 1: likelier images.")] = 1.0,
    groups: Groups = None,
    seed: Seed = 0,
) -> None:
    """Complete an image: what the mask hides is drawn given what it shows."""
    from anygiven.cli.images import inpaint_image

    check_not_read(out, image, Path(mask), model)
    density = _load(model)
    if density.kind != "image":
        raise QuestionError(f"{model} is not an image model; make one with anygiven fit FOLDER --images --out MODEL.")
    n_steps = "auto" if steps == "auto" else _whole_number(steps)
    options = {"steps": n_steps, "temperature": temperature, "groups": groups or "planned", "random_state": seed}
    inpaint_image(density, image, index, mask, n, out, seed, options)


@app.command(epilog="Example: anygiven impute patients.model new_patients.csv --out filled.csv")
def impute(
    model: ModelPath,
    table: TablePath,
    out: Annotated[Path, typer.Option(help="CSV, CSV.gz, Parquet or Excel.")],
    statistic: Annotated[str, typer.Option(help="mean (the likeliest value for categories), median or mode.")] = "mean",
    draws: Annotated[int | None, typer.Option(help="Write this many tables, each a joint draw of the gaps.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Write over the table that is read.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fill every gap and touch nothing else."""
    from anygiven.cli.tables import impute_names, impute_table
    from anygiven.disk import is_stream
    from anygiven.variables.files import read_file

    density = _load(model)
    if density.kind == "text":
        raise QuestionError(f'{model} is a text model; fill blanks with anygiven sample {model} --given "the c_t".')
    if density.kind == "image":
        raise QuestionError(f"{model} is an image model; complete images with anygiven inpaint {model} IMAGE.")
    if draws is not None and draws < 1:
        raise QuestionError("--draws must be at least 1.")
    if draws is not None and is_stream(out):
        raise QuestionError("--draws writes several files; give --out the name of a file.")
    frame = read_file(table, delimiter, encoding)
    has_more_sheets = frame.attrs.get("n_sheets", 1) > 1
    for target in impute_names(out, draws):
        check_not_read(target, model)
        if has_more_sheets:
            check_not_read(target, table, remedy="choose another name, or its other sheets would be lost")
        elif not force:
            check_not_read(target, table, remedy="choose another name, or say --force to write over it")
    impute_table(density, table, frame, out, statistic, draws, seed, as_json)


@app.command(epilog="Example: anygiven reproduce mac-tradeoff --scale laptop")
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Without a name: what there is.")] = None,
    scale: Annotated[str, typer.Option(help="laptop, or paper with the papers' own settings.")] = "laptop",
    minutes: Annotated[float | None, typer.Option(help="Training time of each model.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Optimiser steps of each model at most; 1 to try it.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the figures; by default experiments/results.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """A table or figure of the papers: its numbers as JSON, and its picture beside them."""
    from anygiven.cli.reproduce import list_experiments, show_experiment

    if name is None:
        titles = list_experiments()
        print(json.dumps(dict(titles)) if as_json else "\n".join(f"{n:<24}{title}" for n, title in titles))
        return
    show_experiment(name, scale, minutes, max_steps, seed, out, as_json)


def _load(model: Path) -> Any:
    from anygiven import load

    return load(model)


def _print_json(data: dict) -> None:
    print(json.dumps(data, default=str, ensure_ascii=False))


if __name__ == "__main__":
    run()
