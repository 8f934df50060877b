"""A protocol in one file: from the middle outwards."""

from dataclasses import dataclass

import torch

from anygiven.lattice import Protocol


@dataclass(frozen=True)
class InsideOut(Protocol):
    """The middle first, then its neighbours, left before right."""

    def priority(self, shape, generator):
        place = torch.arange(shape[1], dtype=torch.float64) - (shape[1] - 1) / 2
        return (2 * place.abs() + (place > 0)).expand(shape)
