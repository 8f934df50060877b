"""MAC's Table 2 on ImageNet at 32 pixels: joint and marginal bits per dimension when each channel is a variable.

The methods, networks and questions of mac-table3. The images are not part of the repository: docs/methods.md says where
they are looked for.
"""

from __future__ import annotations

import _cifar
from _cifar import MAC_SCALES as SCALES
from _cifar import METHODS, draw, table

__all__ = ["METHODS", "SCALES", "draw", "measure", "table"]


def measure(run) -> dict:
    return _cifar.measure(run, METHODS, "channel", "imagenet32, downsampled by Chrabaszcz et al.")
