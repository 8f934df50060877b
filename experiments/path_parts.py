"""What each part of the path Transformer and of its training pays on text: the same time with one thing changed.

Joint, marginal and conditional (half of the characters hidden, per hidden character) bits on validation chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from _novels import (
    ALL_KINDS,
    LAPTOP,
    PAPER,
    bits,
    corpus,
    fit,
    held_chunks,
    joint_and_marginal,
    with_gelu,
    without_neighbours,
)
from anygiven.lattice import BernoulliEvidence, Blend, Objective, Path, SharedPaths


def without_places(model) -> None:
    model.network.rotary.has_places = False


def unfused(model) -> None:
    model.network.fuses = False


def shared(weights: tuple[float, ...]) -> Objective:
    """The same kinds of questions in other shares."""
    return Blend(ALL_KINDS.parts, weights)


@dataclass(frozen=True)
class CardinalityWeighted(Objective):
    """MAC's cardinality reweighting on whole paths: an edge counts in proportion to 1 + all that is known there."""

    inner: Objective

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        path, weights = self.inner.draw(is_present, generator)
        known = 1 + path.is_evidence.sum(1, keepdim=True) + path.step.clamp(min=0) * path.is_query
        return path, weights * known * (weights.sum() / (weights * known).sum())


@dataclass
class LengthCurriculum(Objective):
    """Short windows first: the rest of the chunk is not asked, and costs nothing."""

    inner: Objective
    n_steps: int = 150  # until the whole chunk is asked
    shortest: int = 16
    drawn: int = field(default=0, init=False)

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        length = is_present.shape[1]
        share = min(1.0, self.drawn / self.n_steps)
        size = min(length, round(self.shortest + share * (length - self.shortest)))
        start = torch.randint(length - size + 1, (len(is_present), 1), generator=generator)
        place = torch.arange(length)
        self.drawn += 1
        return self.inner.draw(is_present & (place >= start) & (place < start + size), generator)


@dataclass(frozen=True)
class Variant:
    adjust: Callable[[Any], None] | None = None  # what is taken out of a fresh model
    objective: Objective = ALL_KINDS
    settings: dict[str, Any] = field(default_factory=dict)  # what differs


METHODS = {
    "as it is": Variant(),
    "without n-grams": Variant(without_neighbours),
    "without rotary places": Variant(without_places),
    "two kinds of tokens": Variant(unfused),
    "GELU": Variant(with_gelu),
    "AdamW": Variant(settings={"muon": False}),
    "half the learning rate": Variant(settings={"learning_rate": 0.5 * LAPTOP["learning_rate"]}),
    "half the batch": Variant(settings={"batch_size": LAPTOP["batch_size"] // 2}),
    "no joint paths": Variant(objective=shared((0.0, 0.2, 0.6, 0.2))),
    "all kinds alike": Variant(objective=shared((0.25, 0.25, 0.25, 0.25))),
    "cardinality weights": Variant(objective=CardinalityWeighted(ALL_KINDS)),
    "eight paths a batch": Variant(objective=SharedPaths(ALL_KINDS)),
    "length curriculum": Variant(objective=LengthCurriculum(ALL_KINDS)),
}
KINDS = ("joint", "marginal", "conditional")
SCALES = {
    "laptop": {**LAPTOP, "length": 64, "minutes": 4.0, "chunks": 400, "evaluations": 4},
    "paper": {**PAPER, "length": 250, "chunks": 2000},
}


def measure(run) -> dict:
    return measured(run, METHODS)


def measured(run, methods: dict[str, Variant]) -> dict:
    parts = {name: run.part(name, lambda m=method: one(run, m)) for name, method in methods.items()}
    return {"data": f"novels, {len(corpus('train')):,} training characters", "parts": parts}


def one(run, variant: Variant) -> dict:
    smoke, length = run.max_steps is not None, run.settings["length"]
    more = {} if smoke else variant.settings
    model, outcome = fit(run, "path", variant.objective, length, adjust=variant.adjust, **more)
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
    figure, axes = plt.subplots(1, len(KINDS), figsize=(11, 4.2), layout="constrained", sharey=True)
    for axis, kind in zip(axes, KINDS, strict=True):
        scores = [results["parts"][name][kind] for name in names]
        axis.barh(names, [s["bits"] for s in scores], xerr=[s["standard_error"] for s in scores])
        axis.set_xlim(0.9 * min(s["bits"] for s in scores), None)
        axis.set_title(f"{kind}, bits per character")
    axes[0].invert_yaxis()
    return figure
