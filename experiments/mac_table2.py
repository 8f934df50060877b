"""MAC's Table 2 on ImageNet at 32 pixels: joint and marginal bits per dimension when each channel is a variable.

The methods, networks and questions of mac-table3. The images are not part of the repository: docs/methods.md says where
they are looked for.
"""

from __future__ import annotations

import _cifar
from _cifar import METHODS, draw, table
from _images import CONVOLUTIONS, PAPER_CONVOLUTIONS, PAPER_MAC, UNET

__all__ = ["METHODS", "SCALES", "draw", "measure", "table"]

SCALES = {
    "laptop": {"unet": UNET, "convolutions": {**CONVOLUTIONS, "width": 48, "depth": 6, "batch_size": 4},
               "minutes": 4.0, "images": 100, "edges": 32, "looks": 8, "n_components": 0},
    "paper": {"unet": PAPER_MAC, "convolutions": PAPER_CONVOLUTIONS, "minutes": 60 * 24 * 16,
              "images": 2000, "edges": 32, "looks": 32, "n_components": 0},
}  # fmt: skip


def measure(run) -> dict:
    return _cifar.measure(run, METHODS, "channel", "imagenet32, downsampled by Chrabaszcz et al.")
