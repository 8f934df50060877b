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
    nats_by_looks,
    packed,
    short_minutes_of,
    show_rows,
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
SHOWN_TOO = {"ahead_of_uniform": "  ahead of uniform", "at_first": "  from the evidence alone",
             "ahead_at_first": "    ahead of uniform", "by_looks_told": "  told the mode",
             "raster": "  in raster order"}  # fmt: skip
SCALES = {
    "laptop": {**LAPTOP, "unet": UNET, "short_minutes": SHORT, "images": 500, "looks": 4, "steps": 98},
    "paper": {**PAPER, "unet": PAPER_MNIST, "short_minutes": 60 * 24 * 14, "images": 10_000, "looks": 8, "steps": 784},
}  # fmt: skip


def measure(run) -> dict:
    methods = {name: run.part(name, lambda m=method: one(run, *m)) for name, method in METHODS.items()}
    for kept, title in (("images_by_looks", "ahead_of_uniform"), ("images_at_first", "ahead_at_first")):
        images = {name: part.pop(kept) for name, part in methods.items()}
        for name, part in methods.items():
            part[title] = compared(images[UNIFORM], images[name])
    return {"data": SET, "methods": methods}


def compared(uniform: dict, other: dict) -> dict:
    """By how many nats per hidden pixel the other is ahead, image by image, as both were asked the same."""
    return {kind: mean_of(torch.tensor(uniform[kind]) - torch.tensor(other[kind])) for kind in uniform}


def one(run, which: str, workload: str) -> dict:
    smoke, domains = run.steps is not None, domains_of(SET)
    minutes = short_minutes_of(run) if which == "unet" else None
    model, facts = trained(run, SET, which, workload, minutes=minutes)
    data = held(SET, 2 if smoke else run.settings["images"], domains)
    kinds = evidence_kinds(domains.shape)
    n = 1 if smoke else run.settings["looks"]
    looks = {name: image_nats_by_looks(model, data, kind, n) for name, kind in kinds.items()}
    first = {name: first_look(model, data, kind) for name, kind in kinds.items()}
    told = {}  # SFARM's network may also be told the mode; MODES are numbered from one in this order
    if workload == "modes":
        told = {name: nats_by_looks(model, data, kind, n, mode=k + 1) for k, (name, kind) in enumerate(kinds.items())}
    found = {
        "by_looks": {name: mean_of(values) for name, values in looks.items()},
        "by_looks_told": told,
        "images_by_looks": {name: values.tolist() for name, values in looks.items()},
        "at_first": {name: mean_of(values) for name, values in first.items()},
        "images_at_first": {name: values.tolist() for name, values in first.items()},
        "pictures": completions(model, data, kinds, 2 if smoke else run.settings["steps"]),
    }
    if which == "convolutions":
        raster = {name: nats(model, data, kind, per_query=True, smoke=smoke) for name, kind in kinds.items()}
        found["raster"] = raster
    return {**found, **facts}


@torch.no_grad()
def first_look(model, data, kind) -> torch.Tensor:
    """(images,) nats per hidden pixel, all asked at once from the evidence alone."""
    question = kind.draw(data.is_present, torch.Generator().manual_seed(17))
    path = Path.look(question.is_evidence, question.is_query)
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
    kinds = list(next(iter(methods.values()))["by_looks"])
    lines = [f"{'nats per hidden pixel':<26}" + "".join(f"{kind:>18}" for kind in kinds)]
    for name, part in methods.items():
        cells = [f"{part['by_looks'][k]['mean']:.4f} ± {part['by_looks'][k]['standard_error']:.4f}" for k in kinds]
        lines.append(f"{name:<26}" + "".join(f"{cell:>18}" for cell in cells))
        for also, title in SHOWN_TOO.items():
            if part.get(also):
                cells = [f"{part[also][k]['mean']:.4f} ± {part[also][k]['standard_error']:.4f}" for k in kinds]
                lines.append(f"{title:<26}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def draw(results: dict):
    methods = results["methods"]
    first = next(iter(methods.values()))["pictures"]
    rows = {"evidence": unpacked(first["evidence"])}
    rows |= {name: unpacked(part["pictures"]["filled"]) for name, part in methods.items()}
    return show_rows(rows, 2, 1.0)
