"""What was tried to make anygiven lose, tear or believe something, how often, and what survived.

    python benchmarks/faults.py [--quick] [--seed 0] [--only kills,questions]

The large run of tests/faults: kills at random moments and at every call that writes, 100,000 questions, 10,000 tables,
5,000 model folders, hostile ones with their time and memory, and the order of system calls as strace sees them. It
stops at the first thing that is wrong, and writes benchmarks/results/faults.json and the table of docs/promises.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "faults")]

import hostile  # noqa: E402
import test_hostile_folders as folders  # noqa: E402
import test_writing as writing  # noqa: E402
from fuzz import answer, files, fill, questions, texts  # noqa: E402
from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from kills import SIGNALS, commands, leftovers  # noqa: E402
from recorder import Recorder, in_another_process, unsynced_renames  # noqa: E402

import anygiven as ag  # noqa: E402
from anygiven import __version__  # noqa: E402
from conftest import mixed_table  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "faults.json"
PAGE = ROOT / "docs" / "promises.md"
BOOK = "the cat sat on the mat and the dog lay by the door " * 60
SIZES = {"kills": 200, "questions": 80_000, "questions of texts": 20_000, "tables": 10_000, "damaged": 2000,
         "mutated": 3000}  # fmt: skip


class Trial:
    """Where it all happens: models of each kind, a table, random numbers, how many of each."""

    def __init__(self, place: Path, seed: int, share: float):
        self.place, self.seed, self.rng = place, seed, np.random.default_rng(seed)
        self.table = mixed_table(120, seed)
        self.size = {name: max(1, int(size * share)) for name, size in SIZES.items()}
        pictures = self.rng.integers(0, 4, (30, 4, 4)).astype(np.uint8)
        small: dict[str, Any] = {"max_steps": 20, "width": 16, "depth": 1, "verbose": False}
        self.densities = {
            "table": ag.TabularDensity(max_steps=100, verbose=False).fit(self.table),
            "text": ag.TextDensity(length=8, **small).fit(BOOK),
            "image": ag.ImageDensity(**small).fit(pictures),
        }
        self.models = {kind: place / f"{kind}.model" for kind in self.densities}
        for kind, density in self.densities.items():
            density.save(self.models[kind])

    def folder(self, name: str) -> Path:
        path = self.place / name
        path.mkdir()
        return path


def kills(trial: Trial) -> dict[str, Any]:
    """Commands killed at random moments: SIGKILL half of the time, else SIGTERM or SIGINT."""
    folder = trial.folder("kills")
    printed, seen = folder / "printed", Counter()
    all_of_them = commands(folder, trial.models["table"], mixed_table(60, trial.seed))
    for command in all_of_them:
        command.prepare(printed)
    k = 0
    while seen["killed"] < trial.size["kills"]:
        k += 1
        command, number = all_of_them[k % len(all_of_them)], SIGNALS[int(trial.rng.integers(len(SIGNALS)))]
        seen[command.kill(int(number), float(trial.rng.uniform(0.02, 0.98)), printed)] += 1
    for command in all_of_them:
        command.prepare(printed)  # the same command then finishes, and clears what the killed left
    assert leftovers(folder) == []
    return {"tried": seen["killed"], "with all whole": seen["killed"], "more came too late": seen["finished"]}


def every_call(trial: Trial) -> dict[str, Any]:
    """Stopped before each call of the writing room and in the middle of each write, and each call made to fail."""
    fits = [ag.TabularDensity(max_steps=k, width=8, depth=1, verbose=False, random_state=k) for k in (1, 2)]
    models, seen = [fit.fit(trial.table) for fit in fits], Counter()
    for output in writing.OUTPUTS:
        for can_exchange in (True, False):
            name = f"{output.__name__}-{can_exchange}"
            n_calls = len(writing.calls_of(output(trial.folder(name), models).act, can_exchange=can_exchange).calls)
            for at in range(1, n_calls + 1):
                place = trial.folder(f"{name}-{at}")
                made = output(place, models)
                in_another_process(made.act, Recorder(at, lambda: os._exit(9), can_exchange))
                is_aside = output is writing.Model and not made.path.exists()  # only where nothing can be exchanged
                seen["old one aside, then brought back" if is_aside else f"with the {made.state()} one standing"] += 1
                made.act()
                assert made.state() == "new"
                assert writing.leftovers(place) == []
                shutil.rmtree(place)
                seen["tried"] += 1
    return dict(seen)


def _hypothesis(size: int, strategy, trial: Trial, check: Callable[[Any], str]) -> dict[str, Any]:
    seen = Counter()

    @seed(trial.seed)
    @settings(max_examples=size, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(strategy)
    def once(example) -> None:
        seen[check(example)] += 1

    once()
    return {"tried": seen.total(), **seen}


def ask_tables(trial: Trial) -> dict[str, Any]:
    """Questions in the language and near it."""
    density = trial.densities["table"]
    return _hypothesis(trial.size["questions"], questions(trial.table), trial, lambda q: answer(density, q))


def ask_texts(trial: Trial) -> dict[str, Any]:
    """Blanks among the model's characters, and others."""
    density = trial.densities["text"]
    strategy = texts(density.variables_.alphabet.characters)
    return _hypothesis(trial.size["questions of texts"], strategy, trial, lambda q: answer(density, q))


def fill_tables(trial: Trial) -> dict[str, Any]:
    """Mutated CSV and Parquet through impute: present cells are kept, gaps are filled, or one sentence."""
    folder = trial.folder("tables")
    return _hypothesis(
        trial.size["tables"], files(trial.table), trial, lambda file: fill(trial.densities["table"], folder, *file)
    )


def damaged(trial: Trial) -> dict[str, Any]:
    """Bytes flipped, cut, doubled, blanked: all are refused."""
    seen = Counter()
    for k in range(trial.size["damaged"]):
        kind = list(trial.models)[k % 3]
        folder = hostile.copy_of(trial.models[kind], trial.place / "damaged")
        if hostile.damage(folder, trial.rng) != "nothing":
            found = hostile.try_out(folder)
            assert found == "refused"
            seen[found] += 1
    return {"tried": seen.total(), **seen}


def mutated(trial: Trial) -> dict[str, Any]:
    """Fields of the JSON files changed and the folder signed again: refused, or asked and answered."""
    seen = Counter()
    for k in range(trial.size["mutated"]):
        kind = list(trial.models)[k % 3]
        folder = hostile.copy_of(trial.models[kind], trial.place / "mutated")
        what = hostile.mutate(folder, trial.rng)
        try:
            seen[hostile.try_out(folder)] += 1
        except Exception as error:
            raise AssertionError(f"{kind}: {what}") from error
    return {"tried": seen.total(), **seen}


def huge(trial: Trial) -> dict[str, Any]:
    """Folders that would take for ever or all memory: the worst time and memory beyond the library's own."""
    seconds, megabytes = [], []
    for k, change in enumerate(folders.HUGE.values()):
        folder = folders.changed(hostile.copy_of(trial.models["table"], trial.place / f"huge-{k}"), *change)
        command = [sys.executable, "-c", folders.CHECK, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        _, figures = done.stdout.splitlines()
        seconds.append(float(figures.split()[0]))
        megabytes.append(float(figures.split()[1]))
    return {"tried": len(seconds), "refused": len(seconds), "most seconds": round(max(seconds), 2),
            "most megabytes": round(max(megabytes))}  # fmt: skip


def system_calls(trial: Trial) -> dict[str, Any]:
    """What strace sees of fit over a model and of impute, by the same rule as the tests."""
    if shutil.which("strace") is None:
        return {"tried": 0, "left out": "strace is not installed"}
    folder = trial.folder("traced")
    trial.table.to_csv(folder / "in.csv", index=False)
    model = hostile.copy_of(trial.models["table"], folder / "old.model")
    wanted = "openat,write,fsync,rename,renameat,renameat2,mkdir,unlink,unlinkat"
    n_calls = 0
    for arguments in (["fit", "in.csv", "--minutes", "0.02", "--out", "old.model"],
                      ["impute", str(model), "in.csv", "--out", "out.csv"]):  # fmt: skip
        log = folder / "log"
        command = [
            "strace",
            "-f",
            "-y",
            "-qq",
            "-e",
            f"trace={wanted}",
            "-o",
            str(log),
            sys.executable,
            "-m",
            "anygiven.cli.main",
        ]
        subprocess.run([*command, *arguments], cwd=folder, check=True, capture_output=True, timeout=300)
        calls = _calls(log.read_text(), folder)
        assert any(name == "renamed to" for name, _ in calls)
        assert unsynced_renames(calls) == []
        n_calls += len(calls)
    return {"tried": n_calls, "in order": n_calls}


def _calls(log: str, folder: Path) -> list[tuple[str, Path]]:
    """strace's lines as the recorder's, of what lies in a folder."""
    found: list[tuple[str, Path]] = []
    for line in log.splitlines():
        call = re.sub(r"^\d+ +", "", line)
        names = [Path(name if name.startswith("/") else folder / name) for name in re.findall(r'"([^"]*)"', call)]
        opened = re.match(r"(?:write|fsync)\(\d+<([^>]*)>", call)
        if opened and Path(opened[1]).is_relative_to(folder):
            path = Path(opened[1])
            found.append(("write" if call.startswith("write") else "sync", path))
        elif call.startswith("openat") and "O_CREAT" in call and names and names[0].is_relative_to(folder):
            found.append(("create", names[0]))
        elif call.startswith("rename") and len(names) == 2 and "= 0" in call:
            found += [("rename", names[0]), ("renamed to", names[1])]
    return found


PARTS: dict[str, tuple[Callable[[Trial], dict[str, Any]], str]] = {
    "kills": (kills, "kills of fit (table, text, images), impute, score, sample at random moments"),
    "every call": (every_call, "stops at every call that writes, and in the middle of every write"),
    "system calls": (system_calls, "system calls of fit and impute, their order as strace records it"),
    "questions": (ask_tables, "questions to a table's model, in the language and near it"),
    "questions of texts": (ask_texts, "questions to a text's model"),
    "tables": (fill_tables, "mutated tables, CSV and Parquet, filled"),
    "damaged": (damaged, "model folders with damaged bytes (table, text, images)"),
    "mutated": (mutated, "model folders with strange fields, signed again"),
    "huge": (huge, "model folders that ask for too much"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    with tempfile.TemporaryDirectory() as place:
        trial = Trial(Path(place), options.seed, 0.01 if options.quick else 1.0)
        for name in options.only.split(","):
            measure, what = PARTS[name]
            started = time.perf_counter()
            rows[name] = {"what": what, **measure(trial), "seconds": round(time.perf_counter() - started, 1)}
            rows[name]["peak_megabytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            print(f"{name}: {rows[name]}", file=sys.stderr, flush=True)
            if not options.quick:
                keep(rows, options.seed)
    print(table(rows))


def keep(rows: dict[str, Any], seed: int) -> None:
    """What is through is kept, beside the other parts of an earlier run."""
    kept = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else {}
    rows = {name: rows.get(name) or kept[name] for name in PARTS if name in rows or name in kept}
    results = {
        "command": "python benchmarks/faults.py", "seed": seed, "version": __version__,
        "seconds": round(sum(row["seconds"] for row in rows.values()), 1), "rows": rows,
    }  # fmt: skip
    RESULTS.write_text(json.dumps(results, indent=1))
    before, _, rest = PAGE.read_text().partition("<!-- faults -->")
    after = rest[rest.index("\nThe figures are in") :]
    PAGE.write_text(f"{before}<!-- faults -->\n\n{table(rows)}\n{after}")


def table(rows: dict[str, dict[str, Any]]) -> str:
    lines = ["| what was tried | how often | what came of it |", "|---|---:|---|"]
    for row in rows.values():
        outcome = {k: v for k, v in row.items() if k not in ("what", "tried", "seconds", "peak_megabytes")}
        shown = ", ".join(f"{v:,} {k}" if isinstance(v, int) else f"{k}: {v}" for k, v in outcome.items())
        lines.append(f"| {row['what']} | {row['tried']:,} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
