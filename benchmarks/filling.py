"""Filling 10,000 rows × 15 mixed columns, and starting the command line: ratios in one run.

    python benchmarks/filling.py [--quick] [--json]

The table is adult's shape (8 categorical, 7 numeric columns, 30 % of the cells hidden). IterativeImputer uses trees
(ExtraTrees and its own defaults: 100 trees, 10 rounds; categories as codes). Both have been fitted before, on 2,000
rows, and only the filling is timed. Our fit is short: how long it trained does not change how long filling takes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import anygiven


def mixed(n: int, seed: int) -> pd.DataFrame:
    """15 dependent columns: 7 numbers, 8 categories, 30 % of the cells hidden."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 3))
    columns = {f"n{j}": hidden @ rng.normal(size=3) + rng.normal(size=n) for j in range(7)}
    for j in range(8):
        cuts = np.quantile(hidden @ rng.normal(size=3), [0.2, 0.5, 0.8])
        columns[f"c{j}"] = np.array(list("abcd"))[np.searchsorted(cuts, hidden @ rng.normal(size=3))]
    frame = pd.DataFrame(columns).astype({f"c{j}": object for j in range(8)})
    return frame.mask(rng.random(frame.shape) < 0.3)


def codes(frame: pd.DataFrame) -> np.ndarray:
    return np.stack([frame[c].map({v: i for i, v in enumerate("abcd")}).to_numpy(dtype=float) if c[0] == "c"
                     else frame[c].to_numpy(dtype=float) for c in frame], axis=1)  # fmt: skip


def timed(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def start_up(arguments: list[str], repeats: int) -> float:
    return statistics.median(
        timed(lambda: subprocess.run(arguments, capture_output=True, check=True)) for _ in range(repeats)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = 2_000 if arguments.quick else 10_000
    train, gaps = mixed(2_000, 0), mixed(rows, 1)
    ours = anygiven.TabularDensity(max_steps=200, verbose=False).fit(train)
    trees = IterativeImputer(ExtraTreesRegressor(n_jobs=1, random_state=0), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trees.fit(codes(train))
        theirs_seconds = timed(lambda: trees.transform(codes(gaps)))
    ours_seconds = statistics.median(timed(lambda: ours.impute(gaps)) for _ in range(3))
    help_seconds = start_up([sys.executable, "-m", "anygiven.cli.main", "--help"], 5)
    pass_seconds = start_up([sys.executable, "-c", "pass"], 5)
    figures = {
        "ratio": round(theirs_seconds / ours_seconds, 1), "rows": rows, "columns": 15,
        "anygiven_seconds": round(ours_seconds, 3), "iterative_trees_seconds": round(theirs_seconds, 3),
        "help_minus_pass_seconds": round(help_seconds - pass_seconds, 3), "seed": 0, "version": anygiven.__version__,
    }  # fmt: skip
    print(json.dumps(figures) if arguments.json else "\n".join(f"{k}: {v}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
