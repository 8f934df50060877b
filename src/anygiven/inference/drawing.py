"""Draw the query given the evidence: walk a path, reveal what is drawn, look again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anygiven.lattice import Path
from anygiven.model import AnyOrderModel

CHUNK = 8192


@torch.no_grad()
def draw(
    model: AnyOrderModel,
    x: Tensor,
    path: Path,
    generator: torch.Generator,
    temperature: float = 1.0,
    report: Callable[[float], None] | None = None,
) -> Tensor:
    """(B, N, 4) x with every query variable of the path drawn in its turn."""
    out = x.clone()
    chunks = torch.arange(len(x)).split(CHUNK)
    for c, rows in enumerate(chunks):
        walk = model.walk(x[rows], path.rows(rows))
        while not walk.is_done:
            conditionals = walk.conditionals()
            if temperature != 1.0:
                conditionals = conditionals.temperature(temperature)
            walk.reveal(conditionals.sample(generator))
            if report:
                report((c + walk.step / path.n_steps) / len(chunks))
        out[rows] = walk.x
    return out
