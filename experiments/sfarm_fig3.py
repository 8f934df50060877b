"""SFARM's Fig. 3: completion when 5 to 90 % of the pixels are missing at random, or all that a mask hides.

Path convolutions trained for scoring and inpainting alike, one model a data set; three completions of each. Beside the
pictures, for random masks: nats per missing pixel, and how far the expected pixels are from the truth (root mean
square, of the whole range of levels).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from _images import CHUNK, LAPTOP, PAPER, domains_of, drawing_order, held, nats, packed, show_rows, trained, unpacked
from anygiven.inference import draw as draw_cells
from anygiven.inference import expected
from anygiven.lattice import BernoulliEvidence, Question, Workload
from anygiven.variables.images import draw_mask

MISSING = (0.05, 0.1, 0.2, 0.3, 0.5, 0.9)
HIDDEN_BY = {"top": "lower half", "left": "right half", "centre": "middle", "strokes": "strokes"}  # by mask
N_COMPLETIONS = 3
APART = 37  # the images shown: neighbours in a file may be alike
SETS = ("binarized-mnist", "fashion-mnist", "cifar10")
SCALES = {
    "laptop": {**LAPTOP, "images": 200},
    "paper": {**PAPER, "images": 2000},
}


def measure(run) -> dict:
    sets = {name: run.part(name, lambda n=name: one(run, n)) for name in SETS}
    return {"data": ", ".join(SETS), "sets": sets}


def one(run, name: str) -> dict:
    smoke, domains = run.max_steps is not None, domains_of(name)
    model, facts = trained(run, name)
    data = held(name, 2 if smoke else run.settings["images"], domains)
    shares = {f"{share:.0%}": {**figures(model, data, share, domains, smoke),
                               **completed(model, data, k, BernoulliEvidence(1 - share), domains, smoke)}
              for k, share in enumerate(MISSING)}  # fmt: skip
    masks = {kind: completed(model, data, k, MaskEvidence(kind, domains.shape), domains, smoke)
             for k, kind in enumerate(HIDDEN_BY, start=len(MISSING))}  # fmt: skip
    return {"shares": shares, "masks": masks, **facts}


@dataclass(frozen=True)
class MaskEvidence(Workload):
    """What a mask that people draw shows is evidence."""

    kind: str
    shape: tuple[int, ...]

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        known = torch.from_numpy(draw_mask(self.kind, self.shape[:2], 5)).flatten()
        return Question(is_present & ~known, is_present & known)


def figures(model, data, share: float, domains, smoke: bool) -> dict:
    workload, channels = BernoulliEvidence(1 - share), domains.domain.n_channels
    question = workload.draw(data.is_present, torch.Generator().manual_seed(3))
    parts = torch.arange(len(data)).split(CHUNK)
    means = torch.cat([expected(model, data.x[rows], question.is_evidence[rows]) for rows in parts])
    off = (means - data.x)[..., :channels] / (domains.domain.n_symbols - 1)
    return {"nats": nats(model, data, workload, per_query=True, smoke=smoke),
            "error": float(off[question.is_query].square().mean()) ** 0.5}  # fmt: skip


def completed(model, data, k: int, workload: Workload, domains, smoke: bool) -> dict:
    """One image: what is known of it, completions, and the image."""
    generator, channels = torch.Generator().manual_seed(3 + k), domains.domain.n_channels
    place = APART * k % len(data)
    x, present = data.x[[place]], data.is_present[[place]]
    known = workload.draw(present, generator).is_evidence.expand(N_COMPLETIONS, -1)
    path = drawing_order(model, domains, smoke).path(Question(~known, known))
    drawn = draw_cells(model, x.repeat(N_COMPLETIONS, 1, 1), path, generator)[..., :channels].numpy()
    truth = x[..., :channels].numpy()
    hidden = np.where(known[:1, :, None].numpy(), truth, (domains.domain.n_symbols - 1) / 2)
    pictures = {"hidden": hidden, "filled": drawn, "truth": truth}
    return {name: packed(shown(levels, domains)) for name, levels in pictures.items()}


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
    """A row for each kind of evidence; for each data set what is known, the completions, and the truth."""
    rows: dict[str, list] = {}
    for part in results["sets"].values():
        shares = {f"{share} missing": found for share, found in part["shares"].items()}
        masks = {f"hidden: {HIDDEN_BY[kind]}": found for kind, found in part["masks"].items()}
        for name, found in {**shares, **masks}.items():
            pictures = [image for key in ("hidden", "filled", "truth") for image in unpacked(found[key])]
            rows.setdefault(name, []).extend(image.squeeze() for image in pictures)
    figure = show_rows(rows, 255, 0.7)
    titles = ["known", *("completions" if k == N_COMPLETIONS // 2 else "" for k in range(N_COMPLETIONS)), "truth"]
    for axis, title in zip(figure.axes, titles * len(results["sets"]), strict=False):
        axis.set_title(title, fontsize=8)
    figure.subplots_adjust(top=1 - 0.25 / figure.get_size_inches()[1])
    return figure
