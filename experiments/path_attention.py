"""How the path Transformer attends, on text: normalised queries and keys, and asking from the place of the target.

As path-parts, the same time with one thing changed: joint, marginal and conditional bits on validation chunks.
"""

from __future__ import annotations

import torch

from _novels import LAPTOP, PAPER
from anygiven.estimators.workload import text_objective
from anygiven.networks.attention import Attended
from anygiven.networks.path_transformer import NONE
from path_parts import Variant, draw, measured, table

__all__ = ["METHODS", "SCALES", "draw", "measure", "table"]


def without_normalising(model) -> None:
    for block in model.network.blocks:
        block.normalised = lambda q, k: (q, k)


def asking_from_content(model) -> None:
    """Both turns from the place of what a token holds; the target is known by its name alone."""
    network = model.network

    def attended(sequence, mask, n_remembered=0) -> Attended:
        turn = network.rotary(torch.where(sequence.content != NONE, sequence.content, sequence.place))
        return Attended(mask, mask is None, turn, turn, n_remembered)

    network.attended = attended


NOW = text_objective("any")
METHODS = {
    "as it is": Variant(objective=NOW),
    "without QK-norm": Variant(without_normalising, NOW),
    "asking from the content's place": Variant(asking_from_content, NOW),
}
SCALES = {
    "laptop": {**LAPTOP, "length": 64, "minutes": 3.0, "chunks": 400, "evaluations": 4},
    "paper": {**PAPER, "length": 250, "chunks": 2000},
}


def measure(run) -> dict:
    return measured(run, METHODS)
