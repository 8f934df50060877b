"""Held-out likelihood and imputation on fifteen real tables, side by side with the rivals.

    python benchmarks/tables.py                     everything (about two hours on two cores)
    python benchmarks/tables.py --tables penguins   some tables
    python benchmarks/tables.py --part ours --steps 1500    ours alone, by steps: to compare versions
    python benchmarks/tables.py --quick --json      penguins and yacht, half a minute of fitting each

Each figure is kept in results/tables/TABLE.json as it is measured, so a stopped run goes on where it was; --part
splits the work between two processes. Prints a table, or one JSON object with --json.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

import anygiven
from anygiven import TabularDensity
from noised import TABLES, Split, split
from peers import imputation, likelihood

RESULTS = Path(__file__).parent / "results" / "tables"
HIDDEN = 0.3
MAX_TEST = 4000  # test rows scored, the first of the shuffled test part; the same for every method
OURS = "anygiven"
RIVAL_MINUTES = 10


def test_rows(s: Split) -> Split:
    return Split(s.name, s.train, s.test.iloc[:MAX_TEST].reset_index(drop=True), s.numeric)


STEPS: int | None = None  # so many optimiser steps instead of minutes: the same on any machine


def density(minutes: float, seed: int) -> TabularDensity:
    if STEPS:
        return TabularDensity(max_minutes=600.0, max_steps=STEPS, random_state=seed, verbose=False)
    return TabularDensity(max_minutes=minutes, random_state=seed, verbose=False)


# ------------------------------------------------------------------ likelihood


def our_likelihood(s: Split, minutes: float, seed: int) -> dict:
    started = time.perf_counter()
    model = density(minutes, seed).fit(s.train)
    fitted = time.perf_counter() - started
    one, many = model.log_prob(s.test, orders=1), model.log_prob(s.test)
    return {**_nats(many), "one_order": float(one.mean()), "fit_seconds": round(fitted, 1),
            "parameters": model.report_["parameters"], "steps": model.report_["steps"]}  # fmt: skip


def _nats(log_p: np.ndarray) -> dict:
    return {"nats": float(np.mean(log_p)), "standard_error": float(np.std(log_p) / np.sqrt(len(log_p)))}


# ------------------------------------------------------------------ imputation


def hidden_test(s: Split, seed: int) -> pd.DataFrame:
    """The test rows with 30 % of the cells hidden, whatever the column."""
    rng = np.random.default_rng(seed + 1)
    return s.test.mask(rng.random(s.test.shape) < HIDDEN)


def imputation_error(s: Split, gappy: pd.DataFrame, filled: pd.DataFrame) -> dict:
    """RMSE over the training standard deviation, or the share of wrong categories, per column; then the mean."""
    errors = {}
    for name in s.train.columns:
        asked = gappy[name].isna() & s.test[name].notna()
        if not asked.any() or s.train[name].nunique() < 2:
            continue
        truth, guess = s.test[name][asked], filled[name][asked]
        if name in s.numeric:
            gap = truth.to_numpy(dtype=float) - guess.to_numpy(dtype=float)
            errors[name] = float(np.sqrt(np.mean(gap**2)) / s.train[name].std())
        else:
            errors[name] = float((truth.to_numpy() != guess.to_numpy()).mean())
    return {"error": float(np.mean(list(errors.values()))), "columns": errors}


def our_imputation(s: Split, gappy: pd.DataFrame, minutes: float, seed: int) -> dict:
    model = density(minutes, seed).fit(s.train)
    started = time.perf_counter()
    filled = model.impute(gappy)
    return {**imputation_error(s, gappy, filled), "fill_seconds": round(time.perf_counter() - started, 2)}


# ------------------------------------------------------------------ running


def run_table(name: str, minutes: float, seed: int, part: str) -> dict:
    """Measure what is not measured yet, saving after every figure."""
    results = _load(name)
    noised, raw = test_rows(split(name, True, seed)), test_rows(split(name, False, seed))
    gappy = hidden_test(raw, seed)
    jobs = {}
    if part in ("all", "ours"):
        jobs["likelihood", OURS] = lambda: our_likelihood(noised, minutes, seed)
        jobs["imputation", OURS] = lambda: our_imputation(raw, gappy, minutes, seed)
    if part in ("all", "rivals"):
        for rival, fill in imputation.RIVALS.items():
            jobs["imputation", rival] = lambda f=fill: imputation_error(raw, gappy, f(imputation.Coded(raw, gappy)))
        for rival, score in likelihood.RIVALS.items():
            jobs["likelihood", rival] = lambda f=score: _nats(f(likelihood.Prepared(noised)))
    for (task, method), job in jobs.items():
        if method not in results.get(task, {}):
            started = time.perf_counter()
            try:
                with time_limit(0 if method == OURS else RIVAL_MINUTES):
                    figures = job()
            except Exception as error:  # a rival that fails is reported, not hidden
                if method == OURS:
                    raise
                figures = {"failed": f"{type(error).__name__}: {error}"[:200]}
            figures["seconds"] = round(time.perf_counter() - started, 1)
            results = _save(name, task, method, figures, raw, seed)
            print(name, task, method, {k: v for k, v in figures.items() if k != "columns"}, file=sys.stderr, flush=True)
    return results


@contextmanager
def time_limit(minutes: int) -> Iterator[None]:
    """A rival that does not come to an end is stopped, and says so; 0 is no limit."""

    def stop(*_):
        raise TimeoutError(f"stopped after {minutes} minutes")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(60 * minutes)
    try:
        yield
    finally:
        signal.alarm(0)


def _load(name: str) -> dict:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _save(name: str, task: str, method: str, figures: dict, s: Split, seed: int) -> dict:
    """Read, add, write: two processes may work on one table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = _load(name)
    command = " ".join(["python benchmarks/tables.py", *sys.argv[1:]])
    results |= {"table": name, "train_rows": len(s.train), "test_rows": len(s.test), "columns": s.train.shape[1],
                "seed": seed, "version": anygiven.__version__, "command": command}  # fmt: skip
    results.setdefault(task, {})[method] = figures
    temporary = RESULTS / f".{name}.{os.getpid()}"
    temporary.write_text(json.dumps(results, indent=1))
    os.replace(temporary, RESULTS / f"{name}.json")
    return results


def summary(all_results: dict[str, dict]) -> dict:
    """Ours against the best rival, per table."""
    rows = {}
    for name, results in all_results.items():
        scores = {m: f["nats"] for m, f in results.get("likelihood", {}).items() if "nats" in f}
        errors = {m: f["error"] for m, f in results.get("imputation", {}).items() if "error" in f}
        silent = [m for m, e in errors.items() if m != "mean/mode" and abs(e - errors.get("mean/mode", -1)) < 1e-12]
        rows[name] = {
            "likelihood": scores, "imputation": errors, "silently_like_the_mean": silent,
            "first_in_likelihood": bool(scores) and max(scores, key=lambda m: scores[m]) == OURS,
            "imputation_over_best_rival": errors.get(OURS, np.nan) / min(e for m, e in errors.items() if m != OURS)
            if len(errors) > 1 else None,
        }  # fmt: skip
    return rows


def print_summary(rows: dict) -> None:
    for task, better in (("likelihood", max), ("imputation", min)):
        methods = list(dict.fromkeys(m for row in rows.values() for m in row[task]))
        print(f"\n{task} ({'nats per row, higher is better' if better is max else 'mean error, lower is better'})")
        print(f"{'table':<28}" + "".join(f"{m[:16]:>18}" for m in methods))
        for name, row in rows.items():
            best = better(row[task].values()) if row[task] else None
            cells = [
                f"{row[task][m]:.3f}{'*' if row[task][m] == best else ' '}" if m in row[task] else "-" for m in methods
            ]
            print(f"{name:<28}" + "".join(f"{c:>18}" for c in cells))
    for name, row in rows.items():
        for method in row["silently_like_the_mean"]:
            print(f"\n{name}: {method} scores exactly like the mean; it failed silently.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=TABLES, choices=TABLES)
    parser.add_argument("--minutes", type=float, default=4.0, help="fitting time per table at most")
    parser.add_argument("--steps", type=int, help="a number of steps instead of minutes, to compare versions by")
    parser.add_argument("--part", choices=("all", "ours", "rivals", "none"), default="all")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    global RESULTS
    if arguments.quick:
        RESULTS = RESULTS.parent / "tables-quick"
        arguments.tables, arguments.minutes = ["penguins", "yacht"], 0.5
    if arguments.steps:
        global STEPS
        STEPS, RESULTS = arguments.steps, RESULTS.parent / f"tables-{arguments.steps}-steps"
    results = {name: run_table(name, arguments.minutes, arguments.seed, arguments.part) for name in arguments.tables}
    rows = summary(results)
    if arguments.json:
        ratios = {name: row["imputation_over_best_rival"] for name, row in rows.items()}
        print(json.dumps({"ratios": ratios, "tables": rows, "version": anygiven.__version__}))
    else:
        print_summary(rows)


if __name__ == "__main__":
    main()
