"""What each part of the path Transformer pays on text: the same time of training with one part taken out.

Joint, marginal and conditional (half of the characters hidden, per hidden character) bits on validation chunks.
"""

from __future__ import annotations

from torch import nn

from _novels import LAPTOP, PAPER, bits, corpus, fit, held_chunks, joint_and_marginal
from anygiven.estimators.workload import text_objective_of
from anygiven.lattice import BernoulliEvidence


def without_neighbours(model) -> None:
    model.network.neighbours = None


def without_places(model) -> None:
    model.network.rotary.has_places = False


def unfused(model) -> None:
    model.network.fuses = False


def with_gelu(model) -> None:
    for block in model.network.blocks:
        block.feed[1] = nn.GELU(approximate="tanh")


METHODS = {  # what is taken out of a fresh model, and which settings differ
    "all parts": (None, {}),
    "without n-grams": (without_neighbours, {}),
    "without rotary places": (without_places, {}),
    "two kinds of tokens": (unfused, {}),
    "GELU": (with_gelu, {}),
    "AdamW": (None, {"muon": False}),
    "half the learning rate": (None, {"learning_rate": 0.5 * LAPTOP["learning_rate"]}),
    "twice the batch": (None, {"batch_size": 2 * LAPTOP["batch_size"]}),
}
KINDS = ("joint", "marginal", "conditional")
SCALES = {
    "laptop": {**LAPTOP, "length": 64, "minutes": 4.0, "chunks": 400, "evaluations": 4},
    "paper": {**PAPER, "length": 250, "chunks": 2000},
}


def measure(run) -> dict:
    parts = {name: run.part(name, lambda m=method: one(run, *m)) for name, method in METHODS.items()}
    return {"data": f"novels, {len(corpus('train')):,} training characters", "parts": parts}


def one(run, adjust, more: dict) -> dict:
    smoke, length = run.steps is not None, run.settings["length"]
    model, outcome = fit(run, "path", text_objective_of("any"), length, adjust=adjust, **({} if smoke else more))
    held = held_chunks(length, 2 if smoke else run.settings["chunks"], "valid")
    conditional = bits(model, held, BernoulliEvidence(0.5), smoke, per_query=True)
    return {**joint_and_marginal(model, held, smoke), "conditional": conditional, "steps": outcome.steps,
            "parameters": model.n_parameters, "train_seconds": outcome.seconds}  # fmt: skip


def table(results: dict) -> str:
    lines = [f"{'bits per character':<26}" + "".join(f"{kind:>18}" for kind in KINDS)]
    for name, part in results["parts"].items():
        cells = [f"{part[k]['bits']:.3f} ± {part[k]['standard_error']:.3f}" for k in KINDS]
        lines.append(f"{name:<26}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    names = list(results["parts"])
    figure, axes = plt.subplots(1, len(KINDS), figsize=(11, 3.2), layout="constrained", sharey=True)
    for axis, kind in zip(axes, KINDS, strict=True):
        scores = [results["parts"][name][kind] for name in names]
        axis.barh(names, [s["bits"] for s in scores], xerr=[s["standard_error"] for s in scores])
        axis.set_xlim(0.9 * min(s["bits"] for s in scores), None)
        axis.set_title(f"{kind}, bits per character")
    axes[0].invert_yaxis()
    return figure
