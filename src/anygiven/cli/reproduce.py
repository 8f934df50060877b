"""anygiven reproduce: the tables and figures of the papers, one file each in experiments/.

An experiment is a file with SCALES (the settings of "laptop" and "paper"), measure(run) → figures,
table(results) → text, and draw(results) → a matplotlib figure. It is found by its file name. One that trains for the
steps it kept (run.recorded) says REPEATS = True.
"""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from anygiven import __version__
from anygiven.disk import make_folders, write_text, write_whole
from anygiven.errors import QuestionError, require


@dataclass(frozen=True)
class Run:
    """What an experiment is given: its settings, what it may spend, and where a stopped run goes on."""

    settings: dict[str, Any]
    minutes: float | None  # training time of each model; by default the settings' own
    max_steps: int | None  # at most so many optimiser steps of each model; 1 is a smoke run
    seed: int
    folder: Path  # for checkpoints and finished parts; kept until the experiment ends
    recorded: dict[str, Any] = field(default_factory=dict)  # the figures to be found again, with the steps they took
    say: Callable[[str], None] = field(default=lambda _: None)

    def part(self, name: str, measure: Callable[[], dict]) -> dict:
        """A finished part is kept, so that a stopped experiment goes on after it."""
        kept = self.folder / f"{name}.json"
        if kept.exists():
            return json.loads(kept.read_text())
        self.say(name)
        started = time.perf_counter()
        figures = {**measure(), "seconds": round(time.perf_counter() - started, 1)}
        write_json(kept, figures)
        return figures


def experiments_folder() -> Path:
    """In the current folder, or beside the source that is installed in place."""
    for place in (Path.cwd(), Path(__file__).parents[3]):
        if (place / "experiments" / "results").is_dir():
            return place / "experiments"
    raise QuestionError("The experiments are part of the repository: run this command in a clone of it.")


def find_experiments() -> dict[str, Path]:
    return {path.stem.replace("_", "-"): path for path in sorted(experiments_folder().glob("[a-z]*.py"))}


def load_experiment(name: str) -> ModuleType:
    found = find_experiments()
    if name not in found:
        raise QuestionError(f"There is no experiment {name!r}; there are {', '.join(found)}.")
    spec = importlib.util.spec_from_file_location(f"experiments.{found[name].stem}", found[name])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(found[name].parent) not in sys.path:
        sys.path.append(str(found[name].parent))  # what several experiments share stands beside them
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def list_experiments() -> list[tuple[str, str]]:
    """Names and the first lines of their docstrings, without running them."""
    import ast

    titles = []
    for name, path in find_experiments().items():
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        titles.append((name, text.split("\n")[0]))
    return titles


def reproduce(
    name: str,
    scale: str,
    minutes: float | None,
    max_steps: int | None,
    seed: int,
    out: Path | None,
    again: bool = False,
) -> dict:
    """Run one experiment; its figures and its picture are written when it is through, complete or not at all.

    With `again` its models are trained for the steps that the results in the repository tell, not for a time."""
    experiment = load_experiment(name)
    if scale not in experiment.SCALES:
        raise QuestionError(f"There is no scale {scale!r}; use {' or '.join(experiment.SCALES)}.")
    _check_numbers(minutes, max_steps, again)
    place = (out or experiments_folder() / "results") / (name if scale == "laptop" else f"{name}-{scale}")
    recorded = _recorded(experiment, place, seed) if again else {}
    folder = place.with_name(f".{place.name}-seed{seed}-{minutes}-{max_steps}" + ("-again" if again else ""))
    make_folders(folder)
    started = time.perf_counter() - seconds_kept(folder)
    say = lambda text: print(text, file=sys.stderr)  # noqa: E731
    run = Run(experiment.SCALES[scale], minutes, max_steps, seed, folder, recorded, say)
    figures = experiment.measure(run)
    command = f"anygiven reproduce {name} --scale {scale} --seed {seed}"
    command += f" --minutes {minutes:g}" if minutes else ""
    command += f" --max-steps {max_steps}" if max_steps else ""
    command += " --again" if again else ""
    results = {
        "experiment": name, "scale": scale, "command": command, "seed": seed, "version": __version__,
        "seconds": round(time.perf_counter() - started, 1), "settings": experiment.SCALES[scale], **figures,
    }  # fmt: skip
    write_json(place.with_suffix(".json"), results)
    _draw(experiment, results, place.with_suffix(".png"))
    shutil.rmtree(folder, ignore_errors=True)
    return results


def _check_numbers(minutes: float | None, max_steps: int | None, again: bool) -> None:
    if minutes is not None and not 0 < minutes < math.inf:
        raise QuestionError(f"--minutes is {minutes:g}; it must be a number greater than 0.")
    if max_steps is not None and max_steps < 1:
        raise QuestionError(f"--max-steps is {max_steps}; it must be a whole number of at least 1.")
    if again and (minutes is not None or max_steps is not None):
        raise QuestionError("--again takes the steps from the kept results; leave --minutes and --max-steps out.")


def _recorded(experiment: ModuleType, place: Path, seed: int) -> dict:
    """The results of an earlier run of the same seed: where the new ones are to be, or else those of the repository."""
    if not getattr(experiment, "REPEATS", False):
        raise QuestionError(f"The models of {place.name} are trained for a time, not for steps; leave --again out.")
    kept = [folder / f"{place.name}.json" for folder in (place.parent, experiments_folder() / "results")]
    path = next((path for path in kept if path.exists()), None)
    if path is None:
        raise QuestionError(f"There are no results of {place.name} yet; run it without --again first.")
    recorded = json.loads(path.read_text())
    if recorded["seed"] != seed:
        raise QuestionError(f"{path.name} is of seed {recorded['seed']}; use --seed {recorded['seed']} with --again.")
    if "--max-steps" in recorded["command"]:
        raise QuestionError(f"{path} is of a trial with --max-steps; run it again without that first.")
    return recorded


def seconds_kept(folder: Path) -> float:
    """What the parts that an earlier run finished have taken."""
    parts = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return sum(part.get("seconds", 0.0) for part in parts if isinstance(part, dict))


def show_experiment(name: str, as_json: bool, **options: Any) -> None:
    results = reproduce(name, **options)
    print(json.dumps(results, default=float) if as_json else load_experiment(name).table(results))


def _draw(experiment: ModuleType, results: dict, path: Path) -> None:
    plt = require("matplotlib.pyplot", "plot")
    plt.switch_backend("agg")
    figure = experiment.draw(results)
    write_whole(path, lambda file: figure.savefig(file, dpi=130, format="png"))
    plt.close(figure)


def write_json(path: Path, data: dict) -> None:
    write_text(path, json.dumps(data, indent=1, default=float))
