"""MAC's Table 3 on a part of CIFAR-10: joint and marginal bits per dimension when each channel is a variable.

ARDM, MAC (Eq. 7 with cardinality reweighting) and SFARM are U-Nets that look once; "whole path" is path convolutions
trained on whole paths of all kinds of questions. Same time of one core for each; masses of all 256 levels, as in MAC.
Along the canonical order, the same images and questions for all; a marginal asks a uniform number of values, and is
divided by all dimensions, as MAC does.
"""

from __future__ import annotations

import _cifar
from _cifar import MAC_SCALES as SCALES
from _cifar import METHODS, draw, table

__all__ = ["METHODS", "SCALES", "draw", "measure", "table"]


def measure(run) -> dict:
    return _cifar.measure(run, METHODS, "channel")
