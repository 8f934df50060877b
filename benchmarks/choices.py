"""What the defaults for tables are chosen by: the network, and the orders that a likelihood is averaged over.

    python benchmarks/choices.py                     fifteen tables, a minute of one core for each fit
    python benchmarks/choices.py --tables penguins   some tables

For each table an MLP and a path Transformer have the same time; then the MLP's likelihood along the column order,
random orders, orders found by conditional entropy, and the best of many by held-out rows. Figures are kept in
results/choices/TABLE.json as they are measured. Prints a table, or one JSON object with --json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import anygiven
from anygiven import TabularDensity
from anygiven.estimators.fitting import hold_out
from anygiven.inference import log_prob
from anygiven.inference.orders import entropy_order, ranked_orders
from anygiven.lattice import Canonical, Question
from anygiven.variables.rows import Data
from noised import TABLES, Split, split
from tables import hidden_test, imputation_error, test_rows

RESULTS = Path(__file__).parent / "results" / "choices"
N_ORDERS = 8
N_TRIED = 48
N_SCORED = 1000  # rows along each of many orders


class Timed(TabularDensity):
    """Time is that of one core, so that whatever else runs, both networks have the same."""

    def _settings(self, n_rows: int):
        return replace(super()._settings(n_rows), processor_time=True)


def measure(name: str, minutes: float, seed: int) -> dict:
    s = test_rows(split(name, seed=seed))
    found: dict = {}
    for network in ("mlp", "path"):
        torch.set_num_threads(1)
        model = Timed(network=network, max_minutes=minutes, max_steps=1_000_000, random_state=seed, verbose=False)
        started = time.process_time()
        model.fit(s.train)
        found[network] = {
            "nats": float(model.log_prob(s.test).mean()), "parameters": model.report_["parameters"],
            "steps": model.report_["steps"], "fit_seconds": round(time.process_time() - started, 1),
            **imputation_error(s, hidden_test(s, seed), model.impute(hidden_test(s, seed))),
        }  # fmt: skip
        if network == "mlp":
            found["orders"] = orders(model, s, seed)
    return found


def orders(model: TabularDensity, s: Split, seed: int) -> dict:
    """Nats per row, along one order and averaged over eight."""
    _, rows = hold_out(len(s.train), seed)  # what the fit validated on
    held, test = data_of(model, s.train.iloc[rows[:N_SCORED].numpy()]), data_of(model, s.test.iloc[:N_SCORED])

    def nats(*chosen: Canonical) -> float:
        question = Question(test.is_present, torch.zeros_like(test.is_present))
        return float(log_prob(model.model_, test.x, question, chosen).mean())

    ranked = ranked_orders(model.model_, held, N_TRIED, seed)
    random = [Canonical(tuple(np.random.default_rng(k).permutation(len(model.schema_.variables)))) for k in range(8)]
    return {
        "one": {
            "column order": nats(Canonical()), "random": float(np.mean([nats(order) for order in random])),
            "easiest first": nats(entropy_order(model.model_, held)),
            "hardest first": nats(entropy_order(model.model_, held, hardest_first=True)),
            "best of many": nats(ranked[0]),
        },
        "eight": {"random": nats(*random), "best of many": nats(*ranked[:N_ORDERS])},
    }  # fmt: skip


def data_of(model: TabularDensity, frame) -> Data:
    cells, present = model.schema_.encode(anygiven.variables.read_table(frame))
    return Data(torch.from_numpy(cells), torch.from_numpy(present))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    tables = ["penguins"] if wanted.quick else wanted.tables
    minutes = 0.1 if wanted.quick else wanted.minutes
    results = {}
    for name in tables:
        kept = RESULTS / f"{name}.json"
        if not wanted.quick and kept.exists():
            results[name] = json.loads(kept.read_text())
            continue
        results[name] = measure(name, minutes, wanted.seed)
        if not wanted.quick:
            facts = {"command": f"python benchmarks/choices.py --tables {name} --minutes {minutes:g}",
                     "seed": wanted.seed, "version": anygiven.__version__}  # fmt: skip
            RESULTS.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps({**facts, **results[name]}, indent=1))
        print(line(name, results[name]), file=sys.stderr)
    print(json.dumps(results) if wanted.json else "\n".join(line(name, found) for name, found in results.items()))


def line(name: str, found: dict) -> str:
    networks = "; ".join(f"{k} {found[k]['nats']:8.3f} nats, error {found[k]['error']:.3f}" for k in ("mlp", "path"))
    one, eight = (", ".join(f"{k} {v:.3f}" for k, v in found["orders"][size].items()) for size in ("one", "eight"))
    return f"{name}\n  {networks}\n  one order: {one}\n  eight orders: {eight}"


if __name__ == "__main__":
    main()
