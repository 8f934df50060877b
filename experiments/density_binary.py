"""Seven binary density sets against the papers on circuits and NADE: mean test log-likelihood in nats per row.

One network a set, trained with ARDM's law for some minutes of one core, stopped early on the set's own validation
rows; then scored along one order and along the mean of eight and of 32 orders (log-mean-exp).
"""

from __future__ import annotations

import math

import numpy as np
import torch

from _runs import threads
from _tables import cells, fit_with_valid, mean_and_error
from anygiven import TabularDensity
from anygiven.datasets.binary import binary_set
from anygiven.inference import log_prob, order_ensemble
from anygiven.lattice import Question

ANCHORS = {  # published: ID-SPN; for dna and mushrooms also EoNADE
    "nltcs": -6.02, "plants": -12.54, "baudio": -39.79, "bnetflix": -56.36, "accidents": -26.98, "dna": -81.21,
    "mushrooms": -9.68,
}  # fmt: skip
SCALES = {
    "laptop": {"minutes": 3.0, "width": 256, "depth": 3, "dropout": {"dna": 0.5, "mushrooms": 0.2}, "test_rows": 3000},
    "paper": {"minutes": 60.0, "width": 500, "depth": 3, "dropout": {"dna": 0.5, "mushrooms": 0.2}, "test_rows": 10**6},
}
N_ORDERS = (1, 8, 32)
REPEATS = True


def measure(run) -> dict:
    return {"data": "UCLA-StarAI's density estimation sets, their own splits",
            "sets": {name: run.part(name, lambda name=name: scores(run, name)) for name in ANCHORS}}  # fmt: skip


def scores(run, name: str) -> dict:
    s, smoke = run.settings, run.max_steps is not None
    train, valid, test = (binary_set(name, part) for part in ("train", "valid", "test"))
    test = test[: 5 if smoke else s["test_rows"]]
    density = TabularDensity(
        schema=kinds(train), width=8 if smoke else s["width"], depth=s["depth"],
        dropout=s["dropout"].get(name, 0.1), weight_decay=0.05,
        max_minutes=run.minutes or s["minutes"], random_state=run.seed,
        batch_size=8 if smoke else 256, training={"validation_rows": 5 if smoke else 4000}, verbose=False,
    )  # fmt: skip
    with threads(1):
        counted = {"max_steps": run.max_steps} if smoke else run.recorded["sets"][name] if run.recorded else None
        figures = fit_with_valid(density, train, valid[:5] if smoke else valid, counted)
        x = cells(density, test)
        whole = Question(x.is_present, torch.zeros_like(x.is_present))
        orders = order_ensemble(x.x.shape[1], 1 if smoke else max(N_ORDERS))
        each = torch.stack([log_prob(density.model_, x.x, whole, [order]) for order in orders])  # (orders, rows)
    found = {f"{n} orders": mean_and_error(each[:n].logsumexp(0) - math.log(n)) for n in N_ORDERS if n <= len(each)}
    return {"scores": found, "published": ANCHORS[name], "test_rows": len(test), **figures}


def kinds(train: np.ndarray) -> dict:
    """Of each column; one that is always the same in training may still be the other in the test rows."""
    is_constant = train.min(0) == train.max(0)
    return {f"x{i + 1}": [0, 1] if constant else "binary" for i, constant in enumerate(is_constant)}


def table(results: dict) -> str:
    kinds = list(next(iter(results["sets"].values()))["scores"])
    titles = [_shown(kind) for kind in kinds]
    lines = [f"{'nats per row':<12}{'published':>12}" + "".join(f"{title:>20}" for title in titles)]
    for name, part in results["sets"].items():
        found = [f"{part['scores'][k]['nats']:.2f} ± {part['scores'][k]['standard_error']:.2f}" for k in kinds]
        lines.append(f"{name:<12}{part['published']:>12.2f}" + "".join(f"{cell:>20}" for cell in found))
    return "\n".join(lines)


def _shown(kind: str) -> str:
    return "one order" if kind == "1 orders" else kind


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for k, (_, part) in enumerate(results["sets"].items()):
        for kind, score in part["scores"].items():
            colour = f"C{list(part['scores']).index(kind)}"
            axis.errorbar(k, score["nats"] - part["published"], score["standard_error"], fmt="o", color=colour,
                          label=_shown(kind) if k == 0 else None)  # fmt: skip
    axis.axhline(0, color="grey", linewidth=0.8)
    axis.set_xticks(range(len(results["sets"])), results["sets"])
    axis.set_ylabel("nats above the published figure")
    axis.legend(frameon=False)
    return figure
