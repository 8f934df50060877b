"""How likely: log p of any query given any evidence, along one path or averaged over several orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from anygiven.lattice import (
    ARDM,
    N_SCANS,
    Canonical,
    Joint,
    Path,
    Protocol,
    Question,
    RandomOrder,
    WholePath,
    scan_order,
)
from anygiven.lattice.question import random_subset
from anygiven.model import AnyOrderModel, PathModel, Unrolled

MAX_ROWS, MAX_VARIABLES = 4096, 2**17  # scored at a time


def log_prob(
    model: AnyOrderModel,
    x: Tensor,
    question: Question,
    protocols: Sequence[Protocol] = (Canonical(),),
    generator: torch.Generator | None = None,
    report: Callable[[float], None] | None = None,
) -> Tensor:
    """(B,) log p(query | evidence): Algorithm 2 along each protocol's path, then log-mean-exp over them.

    This is section 5.2's second method, the direct path from evidence to query.
    """
    out = []
    chunks = torch.arange(len(x)).split(max(1, min(MAX_ROWS, MAX_VARIABLES // max(1, x.shape[1]))))
    for done, rows in enumerate(chunks):
        part = Question(question.is_query[rows], question.is_evidence[rows])
        totals = _along_each(model, x[rows].to(model.device), part, protocols, generator)  # (orders, rows)
        out.append(totals.double().logsumexp(0) - math.log(len(totals)))
        if report:
            report((done + 1) / len(chunks))
    return torch.cat(out) if out else torch.zeros(0, dtype=torch.float64)


@torch.no_grad()
def _along_each(
    model: AnyOrderModel, x: Tensor, question: Question, protocols: Sequence[Protocol], generator
) -> Tensor:
    """(protocols, B) log p along each one's path."""
    if isinstance(model, Unrolled) and all(type(protocol) is Canonical for protocol in protocols):
        return _by_shared_looks(model, x, question, [protocol.order for protocol in protocols])  # type: ignore[attr-defined]
    return torch.stack([model.log_prob(x, protocol.path(question, generator)).sum(1) for protocol in protocols]).cpu()


def _by_shared_looks(model: Unrolled, x: Tensor, question: Question, orders: list) -> Tensor:
    """(orders, B) the same for orders that all rows share: what has been revealed is a set, and orders that have come
    to the same set look once."""
    n = x.shape[1]
    asked_after: dict[frozenset, list[tuple[int, int]]] = {}  # revealed → (order, the variable it asks next)
    for k, order in enumerate(orders):
        order = tuple(range(n)) if order is None else order
        for t, variable in enumerate(order):
            asked_after.setdefault(frozenset(order[:t]), []).append((k, variable))
    out = x.new_zeros(len(orders), len(x))
    for revealed, asked in asked_after.items():
        columns = torch.tensor(sorted({variable for _, variable in asked}))
        rows = question.is_query[:, columns].any(1).nonzero().squeeze(1)
        if len(rows) == 0:
            continue
        every = len(rows) == len(x)
        is_query, is_evidence, cells = (
            part if every else part[rows] for part in (question.is_query, question.is_evidence, x)
        )
        is_revealed = torch.zeros(n, dtype=torch.bool)
        is_revealed[list(revealed)] = True
        look = model.look(cells, is_evidence | (is_query & is_revealed), columns)
        is_asked = is_query[:, columns]
        log_p = look.log_prob(cells[:, columns.to(x.device)], is_asked)
        log_p = torch.where(is_asked.to(x.device), log_p, 0.0)
        for k, variable in asked:
            out[k, rows] += log_p[:, int((columns == variable).nonzero())]
    return out.cpu()


def log_prob_by_ratio(
    model: AnyOrderModel,
    x: Tensor,
    question: Question,
    protocols: Sequence[Protocol] = (Canonical(),),
    generator: torch.Generator | None = None,
) -> Tensor:
    """(B,) log p(query, evidence) − log p(evidence): section 5.2's first method, two marginals."""
    nothing = torch.zeros_like(question.is_evidence)
    both = Question(question.is_query | question.is_evidence, nothing)
    evidence = Question(question.is_evidence, nothing)
    return log_prob(model, x, both, protocols, generator) - log_prob(model, x, evidence, protocols, generator)


def order_ensemble(n_variables: int, n_orders: int, seed: int = 0) -> list[Protocol]:
    """The canonical order and further orders, the same for every row, so an answer does not depend on its batch."""
    return [Canonical(), *random_orders(n_variables, n_orders - 1, seed + 11)]


def random_orders(n_variables: int, n_orders: int, seed: int) -> list[Protocol]:
    """Orders drawn once, the same for every row."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(n_variables, generator=generator).tolist() for _ in range(n_orders)]
    return [Canonical(tuple(order)) for order in drawn]


@torch.no_grad()
def losses_by_evidence(model: AnyOrderModel, data, n_sizes: int = 12, seed: int = 0) -> tuple[list[int], list[float]]:
    """What a variable costs, in nats, when so many random others are known: sizes of the evidence, and losses.

    `data` has cells x (n, N, 4) and is_present (n, N); the rows with the most variables tell.
    """
    generator = torch.Generator().manual_seed(seed)
    n = int(data.is_present.sum(1).max())
    data = data.rows(data.is_present.sum(1) == n)
    sizes = sorted({round(k * max(n - 1, 0) / max(n_sizes - 1, 1)) for k in range(n_sizes)})
    losses = []
    for size in sizes:
        known = random_subset(data.is_present, torch.full((len(data.x),), size), generator)
        path = Path.look(known, data.is_present & ~known)
        losses.append(float(-model.log_prob(data.x.to(model.device), path).sum()) / max(1, int(path.is_query.sum())))
    return sizes, losses


def scan_orders(shape: tuple[int, ...], n_orders: int, seed: int = 0) -> list[Protocol]:
    """Orders of a grid: the raster order, its mirror images, their transposes, and then random ones."""
    scans = [Canonical(scan_order(shape, number)) for number in range(1, min(n_orders, N_SCANS))]
    return [Canonical(), *scans, *random_orders(math.prod(shape), n_orders - N_SCANS, seed + 13)]


@torch.no_grad()
def elbo(
    model: AnyOrderModel, x: Tensor, n: int, generator: torch.Generator, report: Callable[[float], None] | None = None
) -> Tensor:
    """(B,) log p along a random order, averaged over n draws (Eqs. 7 and 8): on average below log p(x).

    A draw is one step of an order, weighted by how many there are; of a model that reads paths the whole order, which
    costs the same.
    """
    objective = WholePath(Joint(), RandomOrder()) if isinstance(model, PathModel) else ARDM(Joint())
    total = x.new_zeros(len(x), dtype=torch.float64)
    size = max(1, min(MAX_ROWS, MAX_VARIABLES // max(1, x.shape[1])))
    for rows in torch.arange(len(x)).split(size):
        for _ in range(n):
            path, weights = objective.draw(torch.ones(len(rows), x.shape[1], dtype=torch.bool), generator)
            total[rows] += (weights * model.log_prob(x[rows].to(model.device), path).cpu()).sum(1).double() / n
        if report:
            report(int(rows[-1] + 1) / len(x))
    return total
