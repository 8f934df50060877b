"""Do intervals cover what they say? Held-out cells of real tables, asked with half of the other columns known.

    python benchmarks/coverage.py                      the nine mixed tables, two minutes of fitting each
    python benchmarks/coverage.py --quick --json       penguins and titanic, a quarter of a minute each

For every numeric column of every table, by the kind of column: the share of held-out cells inside interval(0.9); what
the model itself claims of these intervals (where values have masses, an interval that ends on a value holds more than
90 %); and the share whose place in the distribution, drawn evenly within a mass, lies between 5 and 95 %: for a model
that is right, 90 % whatever the column. Categories: how often the likeliest value is true, and what was claimed of it.
Kept in results/coverage/TABLE.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import anygiven
from anygiven import TabularDensity
from anygiven.variables.domains import Count, Numeric
from noised import MIXED, load

RESULTS = Path(__file__).parent / "results" / "coverage"
KINDS = ("counts", "grids", "atoms", "points", "dates")
MAX_ROWS = 2000
LEVEL = 0.9


def kind_of(variable) -> str:
    domain = variable.domain
    if variable.storage.is_time:
        return "dates"
    if isinstance(domain, Count):
        return "counts"
    return "atoms" if domain.atoms else "points" if domain.step is None else "grids"


def asked(density, name: str, test: pd.DataFrame, rng: np.random.Generator):
    """The held-out cells of a column, and its conditional given a random half of the others, row by row."""
    rows = test[test[name].notna()].head(MAX_ROWS).reset_index(drop=True)
    given = rows.drop(columns=[name])
    given = given.mask(rng.random(given.shape) < 0.5)
    return rows[name], density.conditional(name, given)


def numbers(answer, truth: pd.Series, rng: np.random.Generator) -> dict:
    distribution, values = answer.distribution, truth.to_numpy(dtype=np.float64)
    low, high = distribution.quantile(np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])).T
    upto = distribution.cdf(values[:, None])[:, 0]
    below = upto - _mass(distribution, values)
    step = distribution.domain.step or 0.0
    claimed = distribution.cdf(high[:, None])[:, 0] - distribution.cdf(low[:, None] - 0.5 * step)[:, 0]
    if not step:
        claimed = claimed + _mass(distribution, low)
    place = below + rng.random(len(values)) * (upto - below)
    inside = (values >= low - 1e-9) & (values <= high + 1e-9)
    return {"n": len(values), "covered": float(inside.mean()), "claimed": float(claimed.mean()),
            "place_within": float(((place > (1 - LEVEL) / 2) & (place < (1 + LEVEL) / 2)).mean())}  # fmt: skip


def _mass(distribution, values: np.ndarray) -> np.ndarray:
    """Of each value: its mass where it has one, else zero."""
    domain = distribution.domain
    has_mass = np.full(len(values), domain.step is not None) | np.isin(values, domain.atom_values)
    return np.where(has_mass, np.exp(distribution.log_prob(values[:, None])[:, 0]), 0.0)


def categories(answer, truth: pd.Series) -> dict:
    distribution = answer.distribution
    right = np.array([a == b for a, b in zip(distribution.mode, truth.to_numpy(), strict=True)])
    return {"n": len(truth), "right": float(right.mean()), "claimed": float(distribution.p.max(1).mean())}


def run_table(name: str, minutes: float, seed: int) -> dict:
    frame, rng = load(name), np.random.default_rng(seed)
    order = rng.permutation(len(frame))
    n_test = round(0.2 * len(frame))
    test, train = frame.iloc[order[:n_test]], frame.iloc[order[n_test:]]
    started = time.perf_counter()
    density = TabularDensity(max_minutes=minutes, random_state=seed, verbose=False).fit(train)
    seconds = time.perf_counter() - started
    columns = {}
    for variable in density.schema_.variables:
        domain = variable.domain
        if not isinstance(domain, Numeric):
            test = test[test[variable.name].isna() | test[variable.name].isin(domain.values)]
    for variable in density.schema_.variables:
        truth, answer = asked(density, variable.name, test, rng)
        if len(truth) == 0:
            continue
        if isinstance(variable.domain, Numeric):
            columns[variable.name] = {"kind": kind_of(variable), **numbers(answer, truth, rng)}
        elif variable.domain.n_symbols > 1:
            columns[variable.name] = {"kind": "categories", **categories(answer, truth)}
    command = " ".join(["python benchmarks/coverage.py", *sys.argv[1:]])
    return {
        "table": name, "train_rows": len(train), "test_rows": len(test), "seed": seed, "minutes": minutes,
        "fit_seconds": round(seconds, 1), "version": anygiven.__version__, "command": command,
        "columns": columns, "kinds": by_kind(columns),
    }  # fmt: skip


def by_kind(columns: dict[str, dict]) -> dict[str, dict]:
    """Cells of all columns of a kind together."""
    found = {}
    for kind in (*KINDS, "categories"):
        mine = [column for column in columns.values() if column["kind"] == kind]
        n = sum(column["n"] for column in mine)
        names = ("right", "claimed") if kind == "categories" else ("covered", "claimed", "place_within")
        if n:
            found[kind] = {"n": n, **{k: sum(c["n"] * c[k] for c in mine) / n for k in names}}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=MIXED, choices=MIXED)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.tables, arguments.minutes = ["penguins", "titanic_seaborn"], 0.25
    results = {}
    for name in arguments.tables:
        results[name] = run_table(name, arguments.minutes, arguments.seed)
        if not arguments.quick:
            RESULTS.mkdir(parents=True, exist_ok=True)
            (RESULTS / f"{name}.json").write_text(json.dumps(results[name], indent=1))
        print(name, {k: {a: round(b, 3) for a, b in v.items()} for k, v in results[name]["kinds"].items()},
              file=sys.stderr, flush=True)  # fmt: skip
    if arguments.json:
        ratios = {f"{name}: {kind}": figures["covered"] / LEVEL for name, result in results.items()
                  for kind, figures in result["kinds"].items() if kind != "categories"}  # fmt: skip
        print(json.dumps({"ratios": ratios, "tables": results, "version": anygiven.__version__}))
        return
    print(f"| table | {' | '.join(KINDS)} |\n|---|{'---|' * len(KINDS)}")
    for name, result in results.items():
        cells = [result["kinds"].get(kind) for kind in KINDS]
        shown = [
            f"{c['covered']:.1%} ({c['claimed']:.1%}; {c['place_within']:.1%}; {c['n']:,})" if c else "" for c in cells
        ]
        print(f"| {name} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
