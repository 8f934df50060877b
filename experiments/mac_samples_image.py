"""MAC's Appendix C.2 on a part of CIFAR-10: test images, the same with pixels hidden, and filled.

The path convolutions of sfarm-fig3; 10 to 90 % of the pixels hidden at random.
"""

from __future__ import annotations

import numpy as np
import torch

from _images import LAPTOP, PAPER, domains_of, drawing_order, held, packed, show_rows, trained, unpacked
from anygiven.inference import draw as draw_cells
from anygiven.lattice import BernoulliEvidence
from sfarm_fig3 import shown

SET = "cifar10"
HIDDEN = (0.1, 0.3, 0.5, 0.7, 0.9)
SCALES = {
    "laptop": {**LAPTOP, "images": 8},
    "paper": {**PAPER, "images": 18},
}


def measure(run) -> dict:
    return {"data": SET, **run.part("filled", lambda: filled_images(run))}


def filled_images(run) -> dict:
    smoke, domains = run.max_steps is not None, domains_of(SET)
    model, facts = trained(run, SET)
    data = held(SET, 1 if smoke else run.settings["images"], domains)
    truth = data.x[..., : domains.domain.n_channels].numpy()
    rows = {}
    for share in HIDDEN:
        generator = torch.Generator().manual_seed(run.seed + 1)
        question = BernoulliEvidence(1 - share).draw(data.is_present, generator)
        path = drawing_order(model, domains, smoke).path(question)
        drawn = draw_cells(model, data.x, path, generator)[..., : domains.domain.n_channels].numpy()
        hidden = np.where(question.is_evidence[..., None].numpy(), truth, 127)
        rows[f"{share:.0%}"] = {"hidden": packed(shown(hidden, domains)), "filled": packed(shown(drawn, domains)),
                                "error": float(np.abs(drawn - truth)[question.is_query.numpy()].mean())}  # fmt: skip
    return {"original": packed(shown(truth, domains)), "shares": rows, **facts}


def table(results: dict) -> str:
    return "\n".join(f"{share} hidden: a draw is {part['error']:.1f} levels of 255 off on average"
                     for share, part in results["shares"].items())  # fmt: skip


def draw(results: dict):
    rows = {"original": unpacked(results["original"])}
    for share, part in results["shares"].items():
        rows |= {f"{share} hidden": unpacked(part["hidden"]), f"{share} filled": unpacked(part["filled"])}
    return show_rows(rows, 255, 0.9)
