"""MAC's Fig. 3 on novels: the six training laws of the ablation, as learning curves.

A masked Transformer, the same time for each law; joint and marginal bits per character of validation chunks, along full
canonical paths. "(A) only" is read as: a mask e of uniform cardinality, and only the edges that the canonical order
walks from it, all alike: the variables after the last of e.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from _novels import LAPTOP, PAPER, corpus, fit, held_chunks, joint_and_marginal, text_curve
from anygiven.lattice import ARDM, Canonical, CardMask, Glimpse, Joint, Objective, Path, RandomOrder
from anygiven.lattice.question import random_integers, random_subset


@dataclass(frozen=True)
class CanonicalEdges(Objective):
    """Insight (A) alone: the canonical order's edges without their frequencies."""

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        n = is_present.sum(1)
        before = is_present & (is_present.cumsum(1) < n[:, None])  # a mask with the last variable has no edge
        known = random_subset(before, random_integers(torch.zeros_like(n), n - 1, generator), generator)
        after = known.long().flip(1).cumsum(1).flip(1) == 0  # beyond the last known variable
        asked = is_present & after
        return Path.look(known, asked), asked / asked.sum(1, keepdim=True).clamp(min=1)


LAWS = {
    "M (ARDM)": ARDM(Joint()),
    "D, (A) only": CanonicalEdges(),
    "D, w-RND": Glimpse(CardMask(), RandomOrder(), cardinality=False),
    "D, w-MAC": Glimpse(CardMask(), Canonical(), cardinality=False),
    "D^CR, w-RND": Glimpse(CardMask(), RandomOrder(), cardinality=True),
    "D^CR, w-MAC": Glimpse(CardMask(), Canonical(), cardinality=True),
}
SCALES = {
    "laptop": {**LAPTOP, "length": 32, "minutes": 5.0, "test_chunks": 200, "evaluations": 10},
    "paper": {**PAPER, "length": 250, "test_chunks": 1000, "evaluations": 40},
}


def measure(run) -> dict:
    laws = {name: run.part(name, lambda o=law: one(run, o)) for name, law in LAWS.items()}
    return {"data": f"novels, {len(corpus('train')):,} training characters", "laws": laws}


def one(run, objective: Objective) -> dict:
    smoke, length = run.max_steps is not None, run.settings["length"]
    held = held_chunks(length, 2 if smoke else run.settings["test_chunks"], "valid")
    watch = text_curve(run, held)
    model, outcome = fit(run, "transformer", objective, length, watch)
    return {**joint_and_marginal(model, held, smoke), "steps": outcome.steps, "train_seconds": outcome.seconds,
            "curve": watch.points}  # fmt: skip


def table(results: dict) -> str:
    lines = [f"{'bits per character':<20}{'joint':>18}{'marginal':>18}"]
    for name, part in results["laws"].items():
        cells = [f"{part[k]['bits']:.3f} ± {part[k]['standard_error']:.3f}" for k in ("joint", "marginal")]
        lines.append(f"{name:<20}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    colours = ["0.5", "plum", "lightblue", "orange", "navy", "chocolate"]
    for axis, place, title in zip(axes, (2, 3), ("joint", "marginal"), strict=True):
        for (name, part), colour in zip(results["laws"].items(), colours, strict=False):
            points = [p for p in part["curve"] if p[1] > 0] or part["curve"]
            axis.plot([p[1] / 60 for p in points], [p[place] for p in points], marker=".", color=colour, label=name)
        axis.set_title(title)
        axis.set_xlabel("minutes of training")
    axes[0].set_ylabel("bits per character")
    axes[0].legend(frameon=False)
    return figure
