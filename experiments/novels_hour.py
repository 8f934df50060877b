"""At most an hour of one core against a 6-gram: joint bits per character of novels, in chunks of 64 and of 250.

One path Transformer a length, trained for scoring and filling alike. The 6-gram with Witten-Bell smoothing counts the
same 20 million characters and scores the same chunks: the first 2,000 of the test books, and 2,000 spread over them.
"""

from __future__ import annotations

import numpy as np
import torch

from _ngram import WittenBell
from _novels import HOUR, PAPER, bits, corpus, held_chunks, hour_model
from anygiven.estimators.text import Tiles
from anygiven.lattice import BernoulliEvidence, Joint
from anygiven.variables.domains import SYMBOL
from anygiven.variables.rows import Data

LENGTHS = (64, 250)
SCALES = {
    "laptop": {**HOUR, "chunks": 2000},
    "paper": {**PAPER, "chunks": 2000},
}


def measure(run) -> dict:
    lengths = {str(n): run.part(f"{n} characters", lambda n=n: one(run, n)) for n in LENGTHS}
    return {"data": f"novels, {len(corpus('train')):,} training characters", "lengths": lengths}


def one(run, length: int) -> dict:
    smoke = run.max_steps is not None
    model, facts = hour_model(run, length)
    n = 2 if smoke else run.settings["chunks"]
    symbols = np.asarray(corpus("train").symbols[: 10_000 if smoke else None])
    rival = WittenBell(symbols, len(corpus("train").alphabet.characters))
    scored = {"first": Tiles(corpus("test"), length).rows(torch.arange(n)), "spread": held_chunks(length, n)}
    found = {name: {"ours": bits(model, data, Joint(), smoke), "6-gram": judged(rival, data)}
             for name, data in scored.items()}  # fmt: skip
    hidden = {f"{share:.0%}": bits(model, scored["spread"].rows(slice(0, n // 4 + 1)), BernoulliEvidence(1 - share),
                                   smoke, per_query=True) for share in (0.1, 0.3, 0.5)}  # fmt: skip
    return {"scored": found, "hidden": hidden, **facts}


def judged(rival: WittenBell, data: Data) -> dict:
    per_character = -rival.log2_prob(data.x[..., SYMBOL].numpy()) / data.x.shape[1]
    return {"bits": float(per_character.mean()),
            "standard_error": float(per_character.std() / len(per_character) ** 0.5)}  # fmt: skip


def table(results: dict) -> str:
    lines = [f"{'joint bits per character':<40}{'ours':>18}{'6-gram':>18}"]
    for length, part in results["lengths"].items():
        for name, found in part["scored"].items():
            cells = [f"{found[k]['bits']:.3f} ± {found[k]['standard_error']:.3f}" for k in ("ours", "6-gram")]
            lines.append(f"{f'{length} characters, {name}':<40}" + "".join(f"{cell:>18}" for cell in cells))
        costs = ", ".join(f"{share} {cost['bits']:.3f}" for share, cost in part["hidden"].items())
        lines.append(f"  per hidden character when so many are hidden: {costs}")
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results["lengths"]), figsize=(9, 3.4), layout="constrained", squeeze=False)
    for axis, (length, part) in zip(axes[0], results["lengths"].items(), strict=True):
        points = [p for p in part["curve"] if p[1] > 0] or part["curve"]
        axis.plot([p[1] / 60 for p in points], [p[2] for p in points], marker=".", label="joint, validation chunks")
        found = part["scored"]["first"]
        axis.axhline(found["ours"]["bits"], color="C0", linestyle="--", label="joint, first 2,000 test chunks")
        axis.axhline(found["6-gram"]["bits"], color="0.5", linestyle=":", label="6-gram on the same")
        axis.set_title(f"{length} characters")
        axis.set_xlabel("minutes of training on one core")
        axis.set_ylim(None, 2.6)
    axes[0][0].set_ylabel("bits per character")
    axes[0][0].legend(frameon=False)
    return figure
