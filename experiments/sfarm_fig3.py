"""SFARM's Fig. 3: completion when 5 to 90 % of the pixels are missing at random.

Path convolutions trained for scoring and inpainting alike, one model a data set. Beside the pictures: nats per missing
pixel, and how far the expected pixels are from the truth (root mean square, of the whole range of levels).
"""

from __future__ import annotations

import numpy as np
import torch

from _images import LAPTOP, PAPER, domains_of, held, nats, packed, show_rows, trained, unpacked
from anygiven.inference import draw as draw_cells
from anygiven.inference import expected
from anygiven.lattice import BernoulliEvidence, Budget, Canonical

MISSING = (0.05, 0.1, 0.2, 0.3, 0.5, 0.9)
SETS = ("binarized-mnist", "fashion-mnist", "cifar10")
SCALES = {
    "laptop": {**LAPTOP, "images": 200},
    "paper": {**PAPER, "images": 2000},
}


def measure(run) -> dict:
    sets = {name: run.part(name, lambda n=name: one(run, n)) for name in SETS}
    return {"data": ", ".join(SETS), "sets": sets}


def one(run, name: str) -> dict:
    smoke, domains = run.steps is not None, domains_of(name)
    model, facts = trained(run, name)
    data = held(name, 2 if smoke else run.settings["images"], domains)
    shares = {f"{share:.0%}": completed(model, data, share, domains, smoke) for share in MISSING}
    truth = data.x[: len(MISSING), :, : domains.domain.n_channels].numpy()
    return {"shares": shares, "truth": packed(shown(truth, domains)), **facts}


def completed(model, data, share: float, domains, smoke: bool) -> dict:
    generator, which = torch.Generator().manual_seed(3), [round(share * 100) % 7 % len(data)]
    workload = BernoulliEvidence(1 - share)
    question = workload.draw(data.is_present, generator)
    channels = domains.domain.n_channels
    means = expected(model, data.x, question.is_evidence)[..., :channels]
    error = ((means - data.x[..., :channels]) / (domains.domain.n_symbols - 1))[question.is_query].square().mean()
    part = workload.draw(data.is_present[which], generator)
    protocol = Budget(Canonical(), 2) if smoke else Canonical()
    drawn = draw_cells(model, data.x[which], protocol.path(part), generator)[..., :channels].numpy()
    hidden = np.where(part.is_evidence[..., None].numpy(), data.x[which][..., :channels].numpy(),
                      (domains.domain.n_symbols - 1) / 2)  # fmt: skip
    return {"nats": nats(model, data, workload, per_query=True, smoke=smoke), "error": float(error) ** 0.5,
            "hidden": packed(shown(hidden, domains)), "filled": packed(shown(drawn, domains)),
            "truth": packed(shown(data.x[which][..., :channels].numpy(), domains))}  # fmt: skip


def shown(levels: np.ndarray, domains) -> np.ndarray:
    """(n, height, width, 1 or 3), 0 to 255."""
    bright = levels * (255 / (domains.domain.n_symbols - 1))
    return bright.round().reshape(len(levels), *domains.shape[:2], domains.domain.n_channels).astype(np.uint8)


def table(results: dict) -> str:
    lines = []
    for name, part in results["sets"].items():
        lines.append(f"{name}: nats per missing pixel, root mean square error of the expected pixels")
        for share, found in part["shares"].items():
            lines.append(f"  {share:>4} missing  {found['nats']['mean']:.4f} ± {found['nats']['standard_error']:.4f}   "
                         f"{found['error']:.4f}")  # fmt: skip
    return "\n".join(lines)


def draw(results: dict):
    rows = {}
    for name, part in results["sets"].items():
        for kind in ("hidden", "filled", "truth"):
            images = [unpacked(found[kind])[0] for found in part["shares"].values()]
            rows[f"{name} {kind}"] = [image[..., 0] if image.shape[-1] == 1 else image for image in images]
    return show_rows(rows, 255, 1.0)
