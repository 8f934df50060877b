"""SFARM's Fig. 4 with numbers: training on uniform masks against the mixture of modes, on seven kinds of evidence.

Two U-Nets of the same size and time on binarized MNIST: one trained on uniform activations (ARDM), one on the seven
modes (SFARM); beside them the path convolutions of sfarm-table2, which were trained longer. Conditional nats per hidden
pixel: on average over random orders of the hidden pixels, and at the first step, from the evidence alone; and
completions of the same evidence.
"""

from __future__ import annotations

import numpy as np
import torch

from _images import (
    CHUNK,
    LAPTOP,
    PAPER,
    PAPER_MNIST,
    SHORT,
    UNET,
    domains_of,
    evidence_kinds,
    held,
    image_nats_by_looks,
    mean_of,
    nats,
    packed,
    short_minutes_of,
    show_rows,
    told,
    trained,
    unpacked,
)
from anygiven.inference import draw as draw_cells
from anygiven.lattice import Canonical, Grouped, Path, Question, RandomOrder

SET = "binarized-mnist"
UNIFORM = "uniform masks (ARDM)"
METHODS = {
    UNIFORM: ("unet", "random"),
    "seven modes (SFARM)": ("unet", "modes"),
    "path convolutions": ("convolutions", "any"),
}
# Uniform training cannot be told a mode: what is told is compared with its measure without.
AGAINST = {"looks, told the mode": "looks", "first look, told the mode": "first look"}
SCALES = {
    "laptop": {**LAPTOP, "unet": UNET, "short_minutes": SHORT, "images": 500, "looks": 4, "steps": 98},
    "paper": {**PAPER, "unet": PAPER_MNIST, "short_minutes": 60 * 24 * 14, "images": 10_000, "looks": 8, "steps": 784},
}  # fmt: skip


def measure(run) -> dict:
    methods = {name: run.part(name, lambda m=method: one(run, *m)) for name, method in METHODS.items()}
    images = {name: part.pop("images") for name, part in methods.items()}
    for name, part in methods.items():
        part["ahead"] = {m: compared(images[UNIFORM][AGAINST.get(m, m)], images[name][m]) for m in images[name]}
    return {"data": SET, "methods": methods}


def compared(uniform: dict, other: dict) -> dict:
    """By how many nats per hidden pixel the other is ahead, image by image, as both were asked the same."""
    return {kind: mean_of(torch.tensor(uniform[kind]) - torch.tensor(other[kind])) for kind in uniform}


def one(run, which: str, workload: str) -> dict:
    smoke, domains = run.max_steps is not None, domains_of(SET)
    minutes = short_minutes_of(run) if which == "unet" else None
    model, facts = trained(run, SET, which, workload, minutes=minutes)
    data = held(SET, 2 if smoke else run.settings["images"], domains)
    kinds = evidence_kinds(domains.shape)
    n = 1 if smoke else run.settings["looks"]
    images = {
        "looks": {kind: image_nats_by_looks(model, data, asked, n) for kind, asked in kinds.items()},
        "first look": {kind: first_look(model, data, asked) for kind, asked in kinds.items()},
    }
    if workload == "modes":  # SFARM's network may also be told the mode; MODES are numbered from one in this order
        numbered = list(enumerate(kinds.items(), start=1))
        images["looks, told the mode"] = {
            kind: image_nats_by_looks(model, data, asked, n, mode) for mode, (kind, asked) in numbered
        }
        images["first look, told the mode"] = {
            kind: first_look(model, data, asked, mode) for mode, (kind, asked) in numbered
        }
    found = {
        "nats": {measure: {kind: mean_of(values) for kind, values in of.items()} for measure, of in images.items()},
        "images": {measure: {kind: values.tolist() for kind, values in of.items()} for measure, of in images.items()},
        "pictures": completions(model, data, kinds, 2 if smoke else run.settings["steps"]),
    }
    if which == "convolutions":
        found["nats"]["raster order"] = {
            kind: nats(model, data, asked, per_query=True, smoke=smoke) for kind, asked in kinds.items()
        }
    return {**found, **facts}


@torch.no_grad()
def first_look(model, data, kind, mode: int = 0) -> torch.Tensor:
    """(images,) nats per hidden pixel, all asked at once from the evidence alone."""
    question = kind.draw(data.is_present, torch.Generator().manual_seed(17))
    path = told(Path.look(question.is_evidence, question.is_query), mode)
    parts = [-model.log_prob(data.x[rows], path.rows(rows)).sum(1) for rows in torch.arange(len(data)).split(CHUNK)]
    return (torch.cat(parts) / question.is_query.sum(1).clamp(min=1)).double()


def completions(model, data, kinds: dict, steps: int) -> dict:
    """One test image for each kind of evidence, completed once, in raster order or in groups of equal size."""
    x, masks = data.x[:1], []
    drawn = []
    for kind in kinds.values():
        generator = torch.Generator().manual_seed(4)
        question = kind.draw(data.is_present[:1], generator)
        n = int(question.is_query.sum())
        sizes = tuple(np.diff(np.linspace(0, n, min(steps, n) + 1).round()).astype(int).tolist())
        protocol = Canonical() if steps >= n else Grouped(RandomOrder(), sizes)
        path = protocol.path(Question(question.is_query, question.is_evidence), generator)
        again = not isinstance(protocol, Canonical)
        drawn.append(draw_cells(model, x, path, generator, looks_again=again)[0, :, 0].view(28, 28).numpy())
        masks.append(question.is_evidence.view(28, 28).numpy())
    truth = x[0, :, 0].view(28, 28).numpy()
    evidence = np.where(np.stack(masks), 2 * truth, 1)  # grey where hidden
    return {"evidence": packed(evidence), "filled": packed(2 * np.stack(drawn)), "truth": packed(2 * truth[None])}


def table(results: dict) -> str:
    methods = results["methods"]
    kinds = list(methods[UNIFORM]["nats"]["looks"])
    lines = [f"{'nats per hidden pixel':<34}" + "".join(f"{kind:>18}" for kind in kinds)]
    for name, part in methods.items():
        lines.append(name)
        for measured, of in part["nats"].items():
            lines.append(_line(f"  {measured}", of, kinds))
            if name != UNIFORM and measured in part["ahead"]:
                lines.append(_line("    ahead of uniform", part["ahead"][measured], kinds))
    return "\n".join(lines)


def _line(title: str, of: dict, kinds: list[str]) -> str:
    return f"{title:<34}" + "".join(f"{of[k]['mean']:>9.4f} ± {of[k]['standard_error']:.4f}" for k in kinds)


def draw(results: dict):
    """Above the completions; below by how much each method is ahead of uniform training, with standard errors."""
    import matplotlib.pyplot as plt

    methods = results["methods"]
    rows = {"evidence": unpacked(methods[UNIFORM]["pictures"]["evidence"])}
    rows |= {name: unpacked(part["pictures"]["filled"]) for name, part in methods.items()}
    figure = show_rows(rows, 2, 1.0)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 4)
    figure.subplots_adjust(bottom=4 / (height + 4))
    axis = figure.add_axes((figure.subplotpars.left, 0.5 / (height + 4), 1 - figure.subplotpars.left, 3 / (height + 4)))
    kinds = list(methods[UNIFORM]["nats"]["looks"])
    shown = [(name, m) for name, part in methods.items() if name != UNIFORM for m in part["ahead"]]
    for k, (name, measured) in enumerate(shown):
        ahead = methods[name]["ahead"][measured]
        place = [i + 0.8 * (k + 0.5) / len(shown) - 0.4 for i in range(len(kinds))]
        axis.bar(place, [ahead[kind]["mean"] for kind in kinds], 0.8 / len(shown), label=f"{name}: {measured}",
                 yerr=[ahead[kind]["standard_error"] for kind in kinds])  # fmt: skip
    axis.axhline(0, color="0.5", linewidth=0.8)
    axis.set_xticks(range(len(kinds)), kinds, fontsize=8)
    axis.set_xlim(-0.5, len(kinds) - 0.5)
    axis.set_title("nats per hidden pixel ahead of uniform masks", fontsize=9)
    if shown:
        axis.legend(frameon=False, fontsize=7)
    plt.setp(axis.get_yticklabels(), fontsize=7)
    return figure
