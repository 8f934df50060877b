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
from anygiven.cli.commands import Commands, commands_for
from anygiven.cli.outputs import check_not_read, checkpoint_of
from anygiven.errors import AnyGivenError, AnyGivenWarning, QuestionError, Stopped
from anygiven.kinds import kind_of_file

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
    " anygiven fit book.txt --out book.model, or anygiven fit pictures --out pictures.model"
)
def fit(
    table: Annotated[
        Path, typer.Argument(help="A table (CSV, Parquet), a text, or images (folder, npz).", metavar="FILE")
    ],
    out: Annotated[Path, typer.Option(help="Where the model folder goes.")],
    minutes: Annotated[float, typer.Option(help="Time at most, from start to end.")] = 4.0,
    workload: Annotated[
        str | None,
        typer.Option(
            help="Which questions will be asked: any, joint, marginals, conditionals; of tables also bernoulli, gaps; "
            "of images also modes, random. By default any."
        ),
    ] = None,
    known: Annotated[str, typer.Option(help="Columns that will always be known, comma-separated.")] = "",
    asked: Annotated[str, typer.Option(help="Columns that will be asked, with --known.")] = "",
    method: Annotated[
        str | None,
        typer.Option(help="The settings of a paper: ace, mac, ardm or sfarm; what else is said here comes first."),
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="auto, mlp, transformer, path, ace, sfarm; for images convolutions, unet.")
    ] = None,
    head: Annotated[
        str | None, typer.Option(help="Of a table's numbers: mixture (the default), spline, energy or ace.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Optimiser steps at most.", min=1)] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Override a column's kind: NAME=continuous|grid|count|categorical|ordinal|leave out; "
            "with bounds NAME=continuous:0:1, or continuous:0: for one."
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="table, text or image; by default as the file's name says.")] = None,
    length: Annotated[int | None, typer.Option(help="Of texts: characters modelled at a time, by default 64.")] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="Of texts: text8, bytes, or the characters; by default those that occur.")
    ] = None,
    element: Annotated[
        str | None, typer.Option(help="What of an image is revealed at a time: pixel (the default) or channel.")
    ] = None,
    n_components: Annotated[
        int | None, typer.Option(help="Logistics in the mixture of an image's level; 0: a mass for each level.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    device: Annotated[str, typer.Option(help="Where to train: auto, cpu, cuda or mps.")] = "auto",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a table, a text or images. Killed on the way, the same command goes on where it was."""
    if not minutes > 0:
        raise QuestionError("--minutes must be greater than zero.")
    if asked and not known:
        raise QuestionError("--asked needs --known: say what will be known.")
    if known and workload is not None:
        raise QuestionError("--known says what will be asked, and so does --workload; leave one of them out.")
    _check_out(out)
    commands, options = commands_for(kind or kind_of_file(table)), {
        "--known": known, "--asked": asked, "--head": head, "--column": column or None, "--length": length,
        "--alphabet": alphabet, "--element": element, "--n-components": n_components, "--delimiter": delimiter,
        "--encoding": encoding,
    }  # fmt: skip
    commands.check("fit", options)
    stated = {"workload": workload, "network": network, "max_steps": max_steps}
    common = {
        **{name: value for name, value in stated.items() if value is not None}, "max_minutes": minutes,
        "device": device, "random_state": seed, "checkpoint": str(checkpoint_of(out)), "method": method,
    }  # fmt: skip
    with _told_what_is_kept(out):
        commands.fit(table, out, common, options, as_json)


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


@app.command(epilog="Example: anygiven describe patients.model")
def describe(model: ModelPath, as_json: AsJson = False) -> None:
    """What a model was fitted on, and what it learnt."""
    density, commands = _load(model)
    if as_json:
        print(json.dumps(commands.facts(density), default=str, ensure_ascii=False))
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
    density, commands = _load(model)
    options = {"--plot": plot, "--blank": blank}
    commands.check("ask", options)
    commands.ask(density, model, question, options, as_json)


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
    density, commands = _load(model)
    options = {"--query": query, "--given": given, "--delimiter": delimiter, "--encoding": encoding}
    commands.check("score", options)
    commands.score(density, table, out, options, as_json)


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
    density, commands = _load(model)
    own = {"--groups": groups, "--refine": refine or None, "--blank": blank}
    commands.check("sample", {**own, "--json": as_json or None})
    options = {**own, "--steps": steps, "--temperature": temperature, "--seed": seed}
    commands.sample(density, rows, given, out, options, as_json)


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
    check_not_read(out, image, Path(mask), model)
    density, commands = _load(model)
    options = {
        "--mask": mask, "--n": n, "--index": index, "--steps": steps, "--temperature": temperature, "--groups": groups,
        "--seed": seed,
    }  # fmt: skip
    commands.inpaint(density, model, image, out, options)


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
    density, commands = _load(model)
    options = {
        "--statistic": statistic, "--draws": draws, "--delimiter": delimiter, "--encoding": encoding, "--force": force,
        "--seed": seed,
    }  # fmt: skip
    commands.impute(density, model, table, out, options, as_json)


@app.command(epilog="Example: anygiven reproduce mac-tradeoff --scale laptop")
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Without a name: what there is.")] = None,
    scale: Annotated[str, typer.Option(help="laptop, or paper with the papers' own settings.")] = "laptop",
    minutes: Annotated[float | None, typer.Option(help="Training time of each model.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Optimiser steps of each model at most; 1 to try it.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the figures; by default experiments/results.")] = None,
    seed: Seed = 0,
    again: Annotated[
        bool, typer.Option("--again", help="For the steps that the kept results tell, not a time: the same figures.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """A table or figure of the papers: its numbers as JSON, and its picture beside them."""
    from anygiven.cli.reproduce import list_experiments, show_experiment

    if name is None:
        titles = list_experiments()
        print(json.dumps(dict(titles)) if as_json else "\n".join(f"{n:<24}{title}" for n, title in titles))
        return
    show_experiment(name, as_json, scale=scale, minutes=minutes, max_steps=max_steps, seed=seed, out=out, again=again)


def _load(model: Path) -> tuple[Any, Commands]:
    from anygiven import load

    density = load(model)
    return density, commands_for(density.kind)


if __name__ == "__main__":
    run()
