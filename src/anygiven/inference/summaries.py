"""One number for each gap: the mean, the median or the likeliest value, in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from anygiven.heads import Conditionals
from anygiven.inference.distributions import Distribution, distribution_of, point_of
from anygiven.lattice import Path
from anygiven.model import AnyOrderModel
from anygiven.variables.domains import Domain

CHUNK = 4096


@torch.no_grad()
def looks(model: AnyOrderModel, x: Tensor, path: Path) -> Iterator[tuple[Tensor, Tensor, Conditionals]]:
    """(rows, asked, conditionals) chunk by chunk, for a path of one step."""
    for rows in torch.arange(len(x)).split(CHUNK):
        asked = path.asked_at(0)[rows]
        columns = asked.any(dim=0).nonzero().squeeze(1)
        if len(columns):
            yield rows, asked, model.look(x[rows].to(model.device), path.known_at(0)[rows], columns)


def distribution_at(
    model: AnyOrderModel, domains: Sequence[Domain], x: Tensor, is_evidence: Tensor, column: int
) -> Distribution:
    """p(column | evidence) of every row, from one look."""
    parts, columns = zip(x.to(model.device).split(CHUNK), is_evidence.split(CHUNK), strict=True), torch.tensor([column])
    with torch.no_grad():
        first, *others = [distribution_of(domains[column], model.look(*part, columns).of(column)) for part in parts]
    return first.followed_by(others) if others else first


def fill(
    model: AnyOrderModel,
    domains: Sequence[Domain],
    x: Tensor,
    is_present: Tensor,
    statistic: str = "mean",
    report: Callable[[float], None] | None = None,
) -> dict[int, np.ndarray]:
    """For each variable with gaps, one value per gap in row order: one look from all that is present."""
    path = Path.look(is_present, ~is_present)
    found: dict[int, list[np.ndarray]] = {}
    for rows, asked, conditionals in looks(model, x, path):
        for column in asked.any(dim=0).nonzero().squeeze(1).tolist():
            gaps = asked[:, column].numpy()
            distribution = distribution_of(domains[column], conditionals.of(column)).rows(gaps)
            found.setdefault(column, []).append(point_of(distribution, statistic))
        if report:
            report(float(rows[-1] + 1) / len(x))
    return {column: np.concatenate(parts) for column, parts in found.items()}
