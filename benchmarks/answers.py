"""How quick is an answer: one row, a thousand, ten thousand; as ratios in one run.

    python benchmarks/answers.py [--quick] [--json] [--before REVISION]

A table of 10 mixed columns (and one of 50), one core, the fit short: how long it trained does not change an answer's
time. Ratios: a thousand rows at once against one call a row; all summaries of an answer against one look of the
network; log_prob of 5,000 × 50 against 5,000 × 10; and everything against an earlier commit (by default the one before
answers in bulk), checked out beside and run by the same interpreter on the same table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parent.parent
BEFORE = "fe8f691"
N_BULK = 1000


def mixed(n: int, n_columns: int, seed: int = 0) -> pd.DataFrame:
    """Dependent columns: points, a grid, counts, categories, zero-inflated numbers, in turn."""
    rng = np.random.default_rng(seed)
    hidden, columns = rng.normal(size=(n, 3)), {}
    for j in range(n_columns):
        v = hidden @ rng.normal(size=3) + 0.5 * rng.normal(size=n)
        columns[f"c{j}"] = (
            v,
            np.round(10 * v),
            rng.poisson(np.exp(np.clip(v, -3, 2))),
            np.array(list("abc"))[np.searchsorted([-1, 0], v)],
            np.where(v < 0, 0.0, np.exp(v)),
        )[j % 5]
    return pd.DataFrame(columns)


def timed(call, repeats: int) -> float:
    """Seconds of the quickest of some calls, the first not counted."""
    call()
    return min(_seconds(call) for _ in range(repeats))


def _seconds(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def measure(quick: bool) -> dict[str, float]:
    """Seconds, by what both versions can do; what only one can is left out by the other."""
    import torch

    import anygiven as ag
    from anygiven.estimators.table_questions import encoded

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    n = 2000 if quick else 10_000
    table, wide = mixed(n, 10), mixed(n // 2, 50)
    density = ag.TabularDensity(max_steps=30, verbose=False).fit(table)
    broad = ag.TabularDensity(max_steps=10, verbose=False).fit(wide)
    rows = [{k: v for k, v in row.items() if k != "c0"} for row in table.head(N_BULK).to_dict("records")]

    def everything(name: str) -> None:
        answer = density.conditional(name, {k: v for k, v in rows[0].items() if k != name})
        figures = (answer.mean, answer.std, answer.mode, answer.quantile(0.5), answer.interval(0.9), answer.entropy())
        assert None not in (*figures, answer.probabilities)

    def one_by_one(some: int) -> None:
        for row in rows[:some]:
            density.conditional("c0", row).interval(0.9)

    x, is_present = encoded(density.schema_, _read(table.head(1)))
    found = {
        "one look": timed(lambda: density.model_.look(x, is_present, torch.tensor([0])), 20),
        "an answer with all its summaries": max(timed(lambda c=c: everything(c), 5) for c in ("c0", "c1", "c2", "c4")),
        "1,000 rows' intervals, one call a row": timed(lambda: one_by_one(20), 1) * N_BULK / 20,
        "log_prob, 10 columns": timed(lambda: density.log_prob(table), 2),
        "log_prob, half the rows, 10 columns": timed(lambda: density.log_prob(table.head(n // 2)), 2),
        "log_prob, half the rows, 50 columns": timed(lambda: broad.log_prob(wide), 1),
        "filling, a third hidden": timed(lambda: density.impute(_hidden(table)), 1),
    }
    if hasattr(density, "predict_quantiles"):
        head = table.head(N_BULK)
        found["1,000 rows' intervals at once"] = timed(lambda: density.conditional("c0", head).interval(0.9), 3)
    return found


def _read(frame):
    from anygiven.variables import read_table

    return read_table(frame)


def _hidden(table: pd.DataFrame) -> pd.DataFrame:
    return table.mask(np.random.default_rng(1).random(table.shape) < 1 / 3)


def earlier(revision: str, quick: bool) -> dict[str, float]:
    """The same measured with the source of an earlier commit."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        environment = {**os.environ, "PYTHONPATH": f"{folder}/src", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--measure", *(["--quick"] if quick else [])]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--before", default=BEFORE, help="a commit; 'none' to leave it out")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.quick)))
        return
    import anygiven

    now = measure(arguments.quick)
    ratios = {
        "1,000 rows at once against one call a row":
            now["1,000 rows' intervals, one call a row"] / now["1,000 rows' intervals at once"],
        "all summaries of an answer against one look": now["an answer with all its summaries"] / now["one look"],
        "log_prob of 50 columns against 10": now["log_prob, half the rows, 50 columns"]
            / now["log_prob, half the rows, 10 columns"],
    }  # fmt: skip
    before = {}
    if arguments.before != "none":
        before = earlier(arguments.before, arguments.quick)
        ratios |= {f"{name}, before against now": before[name] / now[name] for name in before}
    report = {
        "ratios": {name: round(ratio, 2) for name, ratio in ratios.items()},
        "seconds": {name: round(seconds, 5) for name, seconds in now.items()},
        "seconds_before": {name: round(seconds, 5) for name, seconds in before.items()},
        "before": arguments.before,
        "command": " ".join(["python benchmarks/answers.py", *sys.argv[1:]]),
        "version": anygiven.__version__,
        "data": "made by the script, seed 0",
    }
    if arguments.json:
        print(json.dumps(report))
    else:
        for group in ("ratios", "seconds", "seconds_before"):
            print(f"\n{group}")
            for name, value in report[group].items():
                print(f"  {name:<60}{value:>12}")
    if not arguments.quick:
        target = Path(__file__).parent / "results" / "answers.json"
        target.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
