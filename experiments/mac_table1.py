"""MAC's Table 1 on novels: joint and marginal bits per character of ARDM, MAC, whole paths, and left to right only.

All have Transformer blocks of the same size and are trained for the same time. ARDM and MAC (Eq. 7 with cardinality
reweighting) are masked Transformers that look once, with our n-gram look-ups and Muon too; "MAC, plain" has neither, as
in the paper. "Whole path" is the path Transformer trained for scoring and filling alike, as TextDensity does; "whole
path, scoring" is trained on MAC's own questions alone, joint and marginal; "left to right" on nothing but the joint.
Bits are per character of the chunk, without context, along full canonical paths; a marginal asks |query| uniform in
1 … N characters.
"""

from __future__ import annotations

import torch

from _novels import (
    LAPTOP,
    PAPER,
    batch_of,
    chunk_bits,
    corpus,
    fit,
    held_chunks,
    mean_of,
    text_curve,
    without_neighbours,
)
from anygiven.estimators.workload import text_objective
from anygiven.lattice import ARDM, Blend, CardMask, Glimpse, Growing, Joint, SharedPaths, WholePath

SCORING = Growing(SharedPaths(Blend((WholePath(Joint()), WholePath(CardMask())), (0.5, 0.5))))
EQ7 = Glimpse(CardMask(), cardinality=True)
METHODS = {  # network, objective, what differs
    "MAC": ("transformer", EQ7, {}),
    "ARDM": ("transformer", ARDM(Joint()), {}),
    "whole path": ("path", text_objective("any"), {}),
    "left to right": ("path", text_objective("joint"), {}),
    "whole path, scoring": ("path", SCORING, {}),
    "MAC, plain": ("transformer", EQ7, {"adjust": without_neighbours, "muon": False, "learning_rate": 2e-3}),
}
KINDS = {"joint": Joint(), "marginal": CardMask()}
MAIN = list(METHODS)[:4]
SCALES = {
    "laptop": {
        **LAPTOP,
        "lengths": {"64": list(METHODS), "250": MAIN},
        "minutes": 6.0,
        "test_chunks": {"64": 300, "250": 60},
        "evaluations": 8,
        "batch_sizes": {"64": 64, "250": 16},
    },
    "paper": {**PAPER, "lengths": {"250": MAIN}, "test_chunks": {"250": 2000}},
}  # fmt: skip


def measure(run) -> dict:
    lengths = {
        length: {name: run.part(f"{name}-{length}", lambda m=METHODS[name], n=int(length): one(run, *m, n))
                 for name in names if name in METHODS}
        for length, names in run.settings["lengths"].items()
    }  # fmt: skip
    for methods in lengths.values():
        compared(methods)
    return {"data": f"novels, {len(corpus('train')):,} training characters", "lengths": lengths}


def one(run, network: str, objective, more: dict, length: int) -> dict:
    smoke = run.max_steps is not None
    held = held_chunks(length, 2 if smoke else run.settings["test_chunks"][str(length)])
    watched = held_chunks(length, 2 if smoke else len(held) // 5, "valid")
    watch = text_curve(run, watched)
    model, outcome = fit(run, network, objective, length, watch, **batch_of(run, length), **more)
    chunks = {kind: chunk_bits(model, held, workload, smoke) for kind, workload in KINDS.items()}
    facts = {"parameters": model.n_parameters, "steps": outcome.steps, "train_seconds": outcome.seconds}
    return {**{kind: mean_of(values) for kind, values in chunks.items()}, **facts, "curve": watch.points,
            "chunks": {kind: values.tolist() for kind, values in chunks.items()}}  # fmt: skip


def compared(methods: dict) -> None:
    """By how many bits each is ahead of MAC, chunk by chunk, as all were asked the same."""
    chunks = {name: part.pop("chunks") for name, part in methods.items()}
    for name, part in methods.items():
        part["ahead_of_mac"] = {
            kind: mean_of(torch.tensor(chunks["MAC"][kind]) - torch.tensor(chunks[name][kind])) for kind in KINDS
        }


def table(results: dict) -> str:
    lines = []
    for length, methods in results["lengths"].items():
        lines.append(
            f"{f'{length} characters':<22}{'joint':>18}{'marginal':>18}{'ahead of MAC: joint':>22}{'marginal':>18}"
        )
        for name, part in methods.items():
            figures = [part[kind] for kind in KINDS] + [part["ahead_of_mac"][kind] for kind in KINDS]
            cells = [f"{found['bits']:.3f} ± {found['standard_error']:.3f}" for found in figures]
            lines.append(
                f"{name:<22}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells, (18, 18, 22, 18), strict=True))
            )
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    lengths = results["lengths"]
    figure, axes = plt.subplots(len(lengths), 2, figsize=(9, 3.2 * len(lengths)), layout="constrained", squeeze=False)
    for row, (length, methods) in zip(axes, lengths.items(), strict=True):
        for axis, place, title in zip(row, (2, 3), ("joint", "marginal"), strict=True):
            for name, part in methods.items():
                points = [p for p in part["curve"] if p[1] > 0] or part["curve"]
                axis.plot([p[1] / 60 for p in points], [p[place] for p in points], marker=".", label=name)
            axis.set_title(f"{title}, {length} characters")
            axis.set_xlabel("minutes of training")
        row[0].set_ylabel("bits per character")
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=8
    )
    return figure
