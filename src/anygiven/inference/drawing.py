"""Draw the query given the evidence: walk a path, reveal what is drawn, look again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anygiven.lattice import Path
from anygiven.model import AnyOrderModel, Walk

MAX_ROWS, MAX_VARIABLES = 8192, 2**17  # drawn at a time; a wide row has more to remember

Report = Callable[[float], None]
Choice = Callable[[Walk, Tensor], Tensor]  # (walk, entropies of its columns (B, C)) → what is revealed now (B, C)


@torch.no_grad()
def draw(
    model: AnyOrderModel,
    x: Tensor,
    path: Path,
    generator: torch.Generator,
    temperature: float = 1.0,
    report: Report | None = None,
    choose: Choice | None = None,
    looks_again: bool = False,
) -> Tensor:
    """(B, N, 4) x with every query variable of the path drawn in its turn.

    With `choose`, each step looks at all that it asks and reveals what is chosen; the rest is asked again. With
    `looks_again`, each step is a new look with all that is known as evidence, also where a path has a memory: right for
    networks that were not trained on paths in groups.
    """
    out = x.clone()
    chunks = torch.arange(len(x)).split(max(1, min(MAX_ROWS, MAX_VARIABLES // max(1, x.shape[1]))))
    for c, rows in enumerate(chunks):
        start = x[rows].to(model.device)
        walk = Walk(model, start, path.rows(rows)) if looks_again else model.walk(start, path.rows(rows))
        n_asked = max(1, int(path.rows(rows).is_query.sum()))
        while not walk.is_done:
            conditionals = walk.conditionals()
            chosen = choose(walk, conditionals.entropy().cpu()) if choose else None
            if temperature != 1.0:
                conditionals = conditionals.temperature(temperature)
            walk.reveal(conditionals.sample(generator), chosen)
            if report:
                open_ones = int(((walk.step >= walk.t) & path.rows(rows).is_query).sum())
                report((c + 1 - open_ones / n_asked) / len(chunks))
        out[rows] = walk.x.cpu()
    return out


def nearly_independent(bound: float) -> Choice:
    """Reveal together what can hardly depend on each other: the surest variables, as many as keep the sum of all
    their entropies but the greatest, which bounds what they can know of each other, within `bound` nats."""

    def choose(walk: Walk, entropy: Tensor) -> Tensor:
        asked = walk.is_asked[:, walk.columns]
        ordered, order = entropy.masked_fill(~asked, torch.inf).sort(dim=1)
        before = ordered.clamp(min=0).cumsum(1) - ordered.clamp(min=0)  # of all that are surer
        kept = (before.nan_to_num(torch.inf) <= bound) & ordered.isfinite()
        kept[:, 0] |= ordered[:, 0].isfinite()
        return torch.zeros_like(asked).scatter(1, order, kept)

    return choose


def surest_first(n_steps: int) -> Choice:
    """In so many steps of about equal size: each reveals what is surest of all that is still asked."""

    def choose(walk: Walk, entropy: Tensor) -> Tensor:
        asked = walk.is_asked[:, walk.columns]
        n = (asked.sum(1, keepdim=True) / max(1, n_steps - walk.t)).ceil()
        rank = entropy.masked_fill(~asked, torch.inf).argsort(1).argsort(1)
        return asked & (rank < n)

    return choose


@torch.no_grad()
def expected(model: AnyOrderModel, x: Tensor, is_known: Tensor) -> Tensor:
    """(B, N, 4) x with the mean of every variable that is not known, seen at once; for variables that are alike."""
    means = model.look(x.to(model.device), is_known).mean.cpu()  # type: ignore[attr-defined]
    out = x.clone()
    out[..., : means.shape[-1]] = torch.where(is_known.unsqueeze(-1), x[..., : means.shape[-1]], means)
    return out
