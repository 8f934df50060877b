"""MAC's trade-off on power-plant: its law is better on marginals, ARDM's on conditionals.

One MLP with ten Gaussians a column, the same time for each training law. Mean test log-likelihood in nats per row, on
standardised values with uniform noise of 0.01 standard deviations: of the joint, of card-mask marginals
(|query| uniform) and of conditionals (each column evidence with probability ½, all the rest asked), along
the canonical order, and averaged over the orders that the default answers with.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from anygiven import TabularDensity
from anygiven.datasets.uci import uci_table
from anygiven.inference import log_prob, order_ensemble
from anygiven.lattice import ARDM, BernoulliEvidence, Blend, CardMask, Glimpse, Joint
from anygiven.variables import read_table

LAWS = {
    "MAC": Glimpse(CardMask(), cardinality=True),
    "ARDM, the default": ARDM(Joint()),
    "half of each": Blend((Glimpse(CardMask(), cardinality=True), ARDM(Joint())), (0.5, 0.5)),
}
QUESTIONS = {"joint": Joint(), "marginal": CardMask(), "conditional": BernoulliEvidence(0.5)}
N_ORDERS = 8

SCALES = {
    "laptop": {"table": "power-plant", "minutes": 2.0, "width": 128, "n_components": 10, "questions_per_row": 4},
    "paper": {"table": "power-plant", "minutes": 60.0, "width": 512, "n_components": 10, "questions_per_row": 20},
}


def tables(name: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train and test part (4 : 1), standardised, with the same noise for all."""
    rng = np.random.default_rng(seed)
    data = uci_table(name)
    data = data + 0.01 * data.std(0) * (rng.random(data.shape) - 0.5)
    data = (data - data.mean(0)) / data.std(0)
    data = data[rng.permutation(len(data))]
    frame = pd.DataFrame(data, columns=pd.Index([f"x{i + 1}" for i in range(data.shape[1])]))
    cut = len(frame) // 5
    return frame.iloc[cut:].reset_index(drop=True), frame.iloc[:cut].reset_index(drop=True)


def measure(run) -> dict:
    settings = run.settings
    train, test = tables(settings["table"], run.seed)
    laws = {}
    for name, law in LAWS.items():
        density = TabularDensity(
            schema=dict.fromkeys(train.columns, "continuous"), workload=law, width=settings["width"],
            n_components=settings["n_components"], max_minutes=run.minutes or settings["minutes"],
            max_steps=run.max_steps or 1_000_000, random_state=run.seed,
        )  # fmt: skip
        laws[name] = run.part(name, lambda d=density: scores(d.fit(train), test, settings["questions_per_row"]))
    return {"data": f"UCI {settings['table']}, {len(train)} train and {len(test)} test rows", "laws": laws}


def scores(density: TabularDensity, test: pd.DataFrame, repeats: int) -> dict:
    """Mean and standard error of each kind of question, along one order and over several."""
    cells, present = density.schema_.encode(read_table(test))
    x, is_present = torch.from_numpy(cells).repeat(repeats, 1, 1), torch.from_numpy(present).repeat(repeats, 1)
    found = {}
    for kind, workload in QUESTIONS.items():
        question = workload.draw(is_present, torch.Generator().manual_seed(1))  # the same questions for every law
        for orders in (1, N_ORDERS):
            log_p = log_prob(density.model_, x, question, order_ensemble(x.shape[1], orders)).numpy()
            by_row = log_p.reshape(repeats, len(test)).mean(0)
            name = kind if orders == 1 else f"{kind}, {orders} orders"
            found[name] = {"nats": by_row.mean(), "standard_error": by_row.std() / np.sqrt(len(by_row))}
    return {"scores": found, "steps": density.report_["steps"]}


def table(results: dict) -> str:
    kinds = list(next(iter(results["laws"].values()))["scores"])
    lines = [f"{'nats per row':<22}" + "".join(f"{kind:>24}" for kind in kinds)]
    for law, part in results["laws"].items():
        cells = [f"{part['scores'][k]['nats']:.3f} ± {part['scores'][k]['standard_error']:.3f}" for k in kinds]
        lines.append(f"{law:<22}" + "".join(f"{cell:>24}" for cell in cells))
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
    for axis, kind in zip(axes, QUESTIONS, strict=True):
        for k, part in enumerate(results["laws"].values()):
            for orders, shift, colour in ((kind, -0.12, "C0"), (f"{kind}, {N_ORDERS} orders", 0.12, "C1")):
                score = part["scores"][orders]
                label = ("one order" if shift < 0 else f"{N_ORDERS} orders") if k == 0 else None
                axis.errorbar(k + shift, score["nats"], score["standard_error"], fmt="o", color=colour, label=label)
        axis.set_xticks(range(len(results["laws"])), results["laws"], rotation=20)
        axis.set_title(kind)
    axes[0].set_ylabel("test log-likelihood (nats per row)")
    axes[0].legend(frameon=False)
    return figure
