"""Orders chosen from data: MAC leaves better protocols open, and a trained model is not equally good along all."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import Tensor

from anygiven.inference.likelihood import log_prob, order_ensemble
from anygiven.lattice import Canonical, Path, Protocol, Question, Slanted
from anygiven.model import AnyOrderModel
from anygiven.networks import PathNetwork


@torch.no_grad()
def entropy_order(model: AnyOrderModel, data, hardest_first: bool = False) -> Canonical:
    """Greedy: next comes the variable that costs least (or most) given those before it, on average over the rows.

    `data` has cells x (n, N, 4) and is_present (n, N).
    """
    n = data.is_present.shape[1]
    order: list[int] = []
    while len(order) < n:
        cost = _costs(model, data, order)
        cost[order] = -torch.inf if hardest_first else torch.inf
        order.append(int(cost.argmax() if hardest_first else cost.argmin()))
    return Canonical(tuple(order))


def _costs(model: AnyOrderModel, data, known: list[int]) -> Tensor:
    """(N,) mean −log p(x_i | the known ones)."""
    is_known = torch.zeros_like(data.is_present)
    is_known[:, known] = data.is_present[:, known]
    path = Path.look(is_known, data.is_present & ~is_known)
    nats = -model.log_prob(data.x.to(model.device), path).cpu()  # (n, N)
    return nats.sum(0) / path.is_query.sum(0).clamp(min=1)


def ranked_orders(
    model: AnyOrderModel, data, n_tried: int = 48, seed: int = 0, until: float | None = None
) -> list[Canonical]:
    """The column order, random ones and the two by conditional entropy, the likeliest on these rows first; those that
    were not come to before the monotonic time `until` are left out."""
    question = Question(data.is_present, torch.zeros_like(data.is_present))
    ranked: list[tuple[float, Canonical]] = []
    for order in _orders_to_try(model, data, n_tried, seed):
        ranked.append((float(log_prob(model, data.x, question, [order]).mean()), order))
        if until is not None and time.monotonic() > until:
            break
    return [order for _, order in sorted(ranked, key=lambda pair: -pair[0])]


def _orders_to_try(model: AnyOrderModel, data, n: int, seed: int) -> Iterator[Canonical]:
    yield from (order for order in order_ensemble(data.is_present.shape[1], n, seed) if isinstance(order, Canonical))
    yield entropy_order(model, data)
    yield entropy_order(model, data, hardest_first=True)


def raster_order(model: AnyOrderModel, shape: tuple[int, ...]) -> Protocol:
    """The fewest steps whose answers are those of raster order: what a network cannot see need not be waited for."""
    network = model.network
    slant = network.lossless_slant if isinstance(network, PathNetwork) else 0
    return Slanted(shape, slant) if slant else Canonical()
