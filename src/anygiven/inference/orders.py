"""Orders chosen from data: MAC leaves better protocols open, and a trained model is not equally good along all."""

from __future__ import annotations

import time
from functools import partial

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
    nats = -model.log_prob(data.x, path)  # (n, N)
    return nats.sum(0) / path.is_query.sum(0).clamp(min=1)


def ranked_orders(
    model: AnyOrderModel, data, n_tried: int = 48, seed: int = 0, until: float | None = None
) -> list[Canonical]:
    """The column order, random ones and the two by conditional entropy, the likeliest on these rows first; those that
    were not come to before the monotonic time `until` are left out."""
    tried: list[Canonical] = [order for order in order_ensemble(data.is_present.shape[1], n_tried, seed)
                              if isinstance(order, Canonical)]  # fmt: skip
    question = Question(data.is_present, torch.zeros_like(data.is_present))
    nats: list[tuple[float, Canonical]] = []
    for make in [*(partial(_itself, order) for order in tried), partial(entropy_order, model, data),
                 partial(entropy_order, model, data, hardest_first=True)]:  # fmt: skip
        if nats and until is not None and time.monotonic() > until:
            break
        order = make()
        nats.append((float(log_prob(model, data.x, question, [order]).mean()), order))
    return [order for _, order in sorted(nats, key=lambda pair: -pair[0])]


def _itself(order: Canonical) -> Canonical:
    return order


def raster_order(model: AnyOrderModel, shape: tuple[int, ...]) -> Protocol:
    """The fewest steps whose answers are those of raster order: what a network cannot see need not be waited for."""
    network = model.network
    slant = network.lossless_slant if isinstance(network, PathNetwork) else 0
    return Slanted(shape, slant) if slant else Canonical()
