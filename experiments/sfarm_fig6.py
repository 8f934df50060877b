"""SFARM's Figs. 1 and 6: samples at several temperatures, and a drawing as it grows.

Path convolutions, one model a data set (those of sfarm-fig3). A drawing in random order is shown after shares of its
steps: what is drawn so far, and below what the network expects of the rest.
"""

from __future__ import annotations

import numpy as np
import torch

from _images import LAPTOP, PAPER, domains_of, drawing_order, packed, show_rows, trained, unpacked
from anygiven.inference import draw as draw_cells
from anygiven.inference import expected
from anygiven.lattice import Path, RandomOrder
from anygiven.lattice.question import EVIDENCE, NEVER, Question
from sfarm_fig3 import SETS, shown

TEMPERATURES = (0.5, 0.8, 1.0)
SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 1.0)
SCALES = {
    "laptop": {**LAPTOP, "images": 8},
    "paper": {**PAPER, "images": 16},
}


def measure(run) -> dict:
    sets = {name: run.part(name, lambda n=name: one(run, n)) for name in SETS}
    return {"data": ", ".join(SETS), "sets": sets}


def one(run, name: str) -> dict:
    smoke, domains = run.max_steps is not None, domains_of(name)
    model, facts = trained(run, name)
    n = 1 if smoke else run.settings["images"]
    channels = domains.domain.n_channels
    nothing = torch.zeros(n, len(domains), dtype=torch.bool)
    path = drawing_order(model, domains, smoke).path(Question(~nothing, nothing))
    samples = {}
    for t in TEMPERATURES:
        generator = torch.Generator().manual_seed(run.seed)
        drawn = draw_cells(model, torch.zeros(n, len(domains), 4), path, generator, t)[..., :channels].numpy()
        samples[f"{t:g}"] = packed(shown(drawn, domains))
    return {"samples": samples, "growing": growing(model, domains, smoke), **facts}


def growing(model, domains, smoke: bool) -> dict:
    """One drawing in random order: so far, and expected."""
    generator, channels = torch.Generator().manual_seed(11), domains.domain.n_channels
    x, everything = torch.zeros(1, len(domains), 4), torch.ones(1, len(domains), dtype=torch.bool)
    step = RandomOrder().path(Question(everything, ~everything), generator).step
    so_far, means = [], []
    for before, share in zip((0.0, *SHARES), SHARES, strict=False):
        low, high = round(before * len(domains)), round(share * len(domains))
        part = torch.where(step < low, EVIDENCE, torch.where(step < high, step - low, NEVER))
        part = torch.where((part >= 0) & (part != NEVER) & smoke, 0, part)  # a smoke run draws each piece at once
        x = draw_cells(model, x, Path(part), generator, looks_again=True)
        known = step < high
        grey = (domains.domain.n_symbols - 1) / 2
        so_far.append(torch.where(known.unsqueeze(-1), x[..., :channels], grey)[0].numpy())
        means.append(expected(model, x, known)[0, :, :channels].numpy())
    return {"drawn": packed(shown(np.stack(so_far), domains)), "expected": packed(shown(np.stack(means), domains))}


def table(results: dict) -> str:
    lines = [f"{name}: {part['parameters']:,} parameters, {part['train_seconds'] / 60:.0f} minutes of training"
             for name, part in results["sets"].items()]  # fmt: skip
    return "\n".join(lines)


def draw(results: dict):
    rows = {}
    for name, part in results["sets"].items():
        for t, samples in part["samples"].items():
            rows[f"{name}, temperature {t}"] = _grey(unpacked(samples))
        rows[f"{name}, growing"] = _grey(unpacked(part["growing"]["drawn"]))
        rows["expected" + " " * len(rows)] = _grey(unpacked(part["growing"]["expected"]))
    return show_rows(rows, 255, 0.9)


def _grey(images: np.ndarray) -> np.ndarray:
    return images[..., 0] if images.shape[-1] == 1 else images
