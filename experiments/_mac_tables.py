"""The models of MAC's Tables 4 and 5, trained once for both: laws of training × heads, equal processor time.

Every method is scored on the same rows, the same masks and in the same units (standardised columns, nats per row). ACE
and MAC have ACE's network, its energy head and their own laws (anygiven.methods), at paper scale with their own figures
and at laptop scale as wide and deep as ours; they answer along one order, as they did. All others have our networks.
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from _runs import threads
from _tables import cells, fit_with_valid, mean_and_error
from anygiven import TabularDensity, methods
from anygiven.cli.reproduce import write_json
from anygiven.datasets.maf import Splits, maf_set
from anygiven.datasets.uci import uci_table
from anygiven.inference import fill, log_prob, order_ensemble
from anygiven.lattice import ARDM, BernoulliEvidence, Blend, CardMask, FromEvidence, Glimpse, Joint, Question

BOTH = Blend((Glimpse(CardMask()), ARDM(Joint())), (0.5, 0.5))
METHODS = {  # law of training, head, network
    "ACE": ("ace", None, None),
    "MAC": ("mac", None, None),
    "ACE's law, mixture": (FromEvidence(), "mixture", "mlp"),
    "MAC's law, mixture": (Glimpse(CardMask()), "mixture", "mlp"),
    "both laws, mixture": (BOTH, "mixture", "mlp"),
    "ARDM's law, mixture (our default)": (ARDM(Joint()), "mixture", "mlp"),
    "ARDM's law, spline": (ARDM(Joint()), "spline", "mlp"),
    "ARDM's law, our energy": (ARDM(Joint()), "energy", "mlp"),
    "whole paths, mixture": ("any", "mixture", "path"),
}
UCI = {"protein": "protein-tertiary-structure", "power-plant": "power-plant"}  # all others are MAF's
DATA = "POWER, MINIBOONE and BSDS300 as MAF has them (at laptop scale a part), UCI protein and power-plant"
FIRST = (3, 5, 10)
N_ORDERS = 8
BATCH, COSTLY_BATCH = 512, 128  # where a step takes seconds, smaller ones learn more in the same time
SCALES = {
    "laptop": {"sets": ["power-plant", "power", "protein", "miniboone", "bsds300"], "minutes": 0.4, "width": 192,
               "depth": 3, "seeds": 3, "test_rows": 1000, "train_rows": 50_000, "published_figures": False},
    "paper": {"sets": ["power", "gas", "hepmass", "miniboone", "bsds300"], "minutes": 600.0, "width": 512, "depth": 4,
              "seeds": 3, "test_rows": 10**7, "train_rows": 10**7, "published_figures": True},
}  # fmt: skip
REPEATS = True


def figures_of(run) -> dict:
    """What both tables are made from: the sets, and set → method → [figures of each seed]."""
    sets = models(run)
    splits = {name: standard_splits(name, run.settings["train_rows"], whole=False) for name in sets}
    rows = {name: {"train": len(one.train), "test": min(len(one.test), run.settings["test_rows"]),
                   "is_whole": one.is_whole} for name, one in splits.items()}  # fmt: skip
    trained = sum(one["training_seconds"] for by in sets.values() for runs in by.values() for one in runs)
    return {"data": DATA, "rows": rows, "training_seconds": round(trained, 1), "sets": sets}


def models(run) -> dict:
    """set → method → [figures of each seed], from a folder that both tables share."""
    s, smoke = run.settings, run.max_steps is not None
    told_by = (s["minutes"], run.minutes, run.seed, *(["again"] if run.recorded else []))
    shared = run.folder if smoke else run.folder.parent / f".mac-tables-{'-'.join(map(str, told_by))}"
    shared.mkdir(parents=True, exist_ok=True)
    seeds = range(run.seed, run.seed + (1 if smoke else s["seeds"]))
    found: dict = {}
    for set_name in s["sets"][:1] if smoke else s["sets"]:
        splits = standard_splits(set_name, s["train_rows"], s["published_figures"] and not smoke)
        found[set_name] = {}
        for k, method in enumerate(METHODS):
            runs = found[set_name][method] = []
            for seed in seeds:  # all for as many steps as the first
                counted = runs[0] if runs else counted_before(run, set_name, method)
                measured = partial(scores, run, splits, set_name, method, seed, counted)
                runs.append(kept(shared, f"{set_name}-{k}-{seed}", run, measured))
    return found


def kept(folder: Path, name: str, run, measure) -> dict:
    path = folder / f"{name}.json"
    if not path.exists():
        run.say(name)
        write_json(path, measure())
    return json.loads(path.read_text())


def standard_splits(name: str, most: int, whole: bool) -> Splits:
    """Train, valid and test rows, standardised; UCI's sets with a little noise, shuffled, in MAF's proportions."""
    if name not in UCI:
        splits = maf_set(name, whole)
        mean, std = splits.train.mean(0), splits.train.std(0)
        train, valid, test = ((part - mean) / std for part in (splits.train[:most], splits.valid, splits.test))
        return Splits(train, valid, test, splits.is_whole)
    rng = np.random.default_rng(0)
    data = uci_table(UCI[name])
    data = data + 0.01 * data.std(0) * (rng.random(data.shape) - 0.5)
    data = (data - data.mean(0)) / data.std(0)
    data = data[rng.permutation(len(data))]
    n = len(data) // 10
    return Splits(data[2 * n :], data[n : 2 * n], data[:n], True)


def density_of(run, set_name: str, method: str, seed: int) -> TabularDensity:
    law, head, network = METHODS[method]
    s, smoke = run.settings, run.max_steps is not None
    is_costly = head in (None, "energy")
    size = {"width": 16, "depth": 1} if smoke else {"width": s["width"], "depth": s["depth"]}
    common = {"max_minutes": run.minutes or s["minutes"], "random_state": seed, "verbose": False, "orders": 1,
              "batch_size": 8 if smoke else COSTLY_BATCH if is_costly else BATCH}  # fmt: skip
    judged = 2 if smoke else 300 if is_costly else 1000
    training = {"evaluations": 10 if is_costly else 30, "validation_rows": judged, "most_validation_rows": judged}
    if head is not None:
        size = {**size, "width": size["width"] if network == "mlp" else min(size["width"], 64)}
        return TabularDensity(workload=law, head=head, network=network, **size, **common, training=training)
    if s["published_figures"] and not smoke:
        return methods.METHODS[law](data=set_name, max_minutes=common["max_minutes"], random_state=seed, verbose=False)
    quick = {**size, **common, "dropout": 0.0, "learning_rate": 1e-3, "training": {**training, "energy_warmup": 10}}
    return methods.METHODS[law](**quick)


def scores(run, splits: Splits, set_name: str, method: str, seed: int, counted: dict | None) -> dict:
    density, smoke = density_of(run, set_name, method, seed), run.max_steps is not None
    test = splits.test[: 3 if smoke else run.settings["test_rows"]]
    valid = splits.valid[: 3 if smoke else 2000]
    density.schema = {f"x{i + 1}": "continuous" for i in range(splits.n_columns)}
    orders = (1,) if METHODS[method][1] is None else (1, N_ORDERS)
    with threads(1):
        figures = fit_with_valid(density, splits.train, valid, counted)
        x = cells(density, test)
        found = {"marginals": marginals(density, x, orders),
                 "conditionals": conditionals(density, x, test, splits.train, orders)}  # fmt: skip
    return {**found, **figures, "seconds_per_step": figures["training_seconds"] / max(1, figures["steps"])}


def counted_before(run, set_name: str, method: str) -> dict | None:
    """The steps of a trial, or those of the results that are to be found again."""
    if run.max_steps is not None:
        return {"max_steps": run.max_steps}
    return run.recorded["sets"][set_name][method][0] if run.recorded else None


def marginals(density: TabularDensity, x, numbers_of_orders: tuple[int, ...]) -> dict:
    """log p of the first k variables (Table 4), along the canonical order and over several."""
    n, found = x.x.shape[1], {}
    for k in sorted({min(first, n) for first in FIRST}):
        is_query = (torch.arange(n) < k).expand(len(x.x), -1)
        question = Question(is_query, torch.zeros_like(is_query))
        for orders in numbers_of_orders:
            found[f"{k}, {orders}"] = mean_and_error(log_prob(density.model_, x.x, question, order_ensemble(n, orders)))
    return found


def conditionals(density: TabularDensity, x, test: np.ndarray, train: np.ndarray, numbers_of_orders) -> dict:
    """log p of what is hidden, each cell evidence with probability ½ (Table 5), and the error of its mean."""
    n = x.x.shape[1]
    question = BernoulliEvidence(0.5).draw(x.is_present, torch.Generator().manual_seed(1))
    found = {}
    for orders in numbers_of_orders:
        started = time.process_time()
        log_p = log_prob(density.model_, x.x, question, order_ensemble(n, orders))
        found[f"{orders}"] = {**mean_and_error(log_p), "seconds_per_1000_rows":
                              1000 * (time.process_time() - started) / len(x.x)}  # fmt: skip
    filled, errors = fill(density.model_, density.domains, x.x, question.is_evidence), []
    for column, values in filled.items():
        hidden = ~question.is_evidence[:, column].numpy()
        errors.append(np.sqrt(np.mean((values - test[hidden, column]) ** 2)) / train[:, column].std())
    return {**found, "nrmse": float(np.mean(errors))}


def figure_of(runs: list[dict], path: tuple[str, ...]) -> str:
    """As a table shows it; what a method does not have is left out."""
    try:
        return "{:.3f} ± {:.3f}".format(*mean_of(runs, *path))
    except KeyError:
        return ""


def mean_of(runs: list[dict], *path: str) -> tuple[float, float]:
    """Over the seeds, and the larger of the spread between seeds and of the rows' own standard error."""
    found = []
    for one in runs:
        for key in path:
            one = one[key]
        found.append(one)
    if isinstance(found[0], dict):
        nats, errors = [one["nats"] for one in found], [one["standard_error"] for one in found]
        return float(np.mean(nats)), float(max(np.mean(errors), np.std(nats) / np.sqrt(len(nats))))
    return float(np.mean(found)), float(np.std(found) / np.sqrt(len(found)))


def lines_of(results: dict, columns: dict) -> list[str]:
    """A table for each set: methods down, columns across."""
    lines = []
    for set_name, by_method in results["sets"].items():
        lines.append(f"{set_name:<36}" + "".join(f"{title:>20}" for title in columns[set_name]))
        for method, runs in by_method.items():
            shown = [figure_of(runs, path) for path in columns[set_name].values()]
            lines.append(f"{method:<36}" + "".join(f"{one:>20}" for one in shown))
        lines.append("")
    return lines


def picture(results: dict, columns: dict):
    """Per set: each method along one order, hollow, and over several, filled; `columns` has the two for each set."""
    import matplotlib.pyplot as plt

    sets = list(results["sets"])
    figure, axes = plt.subplots(1, len(sets), figsize=(3 * len(sets), 4), layout="constrained", sharey=True)
    for axis, set_name in zip(np.atleast_1d(axes), sets, strict=True):
        for path, face in zip(columns[set_name].values(), ("none", None), strict=True):
            for k, runs in enumerate(results["sets"][set_name].values()):
                if figure_of(runs, path):
                    mean, error = mean_of(runs, *path)
                    axis.errorbar(mean, -k, xerr=error, fmt="o", color=f"C{k}", markerfacecolor=face or f"C{k}")
        axis.set_title(f"{set_name}\n{' · '.join(columns[set_name])}", fontsize=8)
        axis.set_yticks([-k for k in range(len(METHODS))], METHODS, fontsize=8)
    figure.supxlabel("test log-likelihood (nats per row)")
    return figure
