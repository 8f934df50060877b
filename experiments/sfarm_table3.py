"""SFARM's Table 3 on a part of CIFAR-10: bits per dimension when a pixel is revealed with all its channels.

U-Nets trained on uniform activations (ARDM), on MAC's glimpses and on the seven modes (SFARM), path convolutions on
whole paths: same time of one core, mixtures of discretised logistics with tied channels. Joint and marginal along the
raster order, the same images and questions for all; a marginal asks a uniform number of pixels and is divided by all
dimensions, as MAC does. Beside them the bound of Eq. 8 on random orders.
"""

from __future__ import annotations

import _cifar
from _cifar import METHODS, draw, table
from _images import CONVOLUTIONS, PAPER_CIFAR, PAPER_CONVOLUTIONS, UNET

__all__ = ["METHODS", "SCALES", "draw", "measure", "table"]

SCALES = {
    "laptop": {"unet": UNET, "convolutions": CONVOLUTIONS, "minutes": 6.0, "images": 100, "edges": 32, "looks": 8,
               "n_components": 10},
    "paper": {"unet": PAPER_CIFAR, "convolutions": PAPER_CONVOLUTIONS, "minutes": 60 * 24 * 14, "images": 2000,
              "edges": 32, "looks": 32, "n_components": 30},
}  # fmt: skip


def measure(run) -> dict:
    return _cifar.measure(run, METHODS, "pixel")
