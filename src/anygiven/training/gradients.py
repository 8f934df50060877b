"""The gradients of a batch, in parts that are computed at the same time.

Inside one operation a second core often helps little; a part of the batch for each core keeps all of them busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from anygiven.lattice.question import Path
from anygiven.model import AnyOrderModel


class Gradients:
    """Sets the gradients of −Σ weights · log p / rows, and returns that loss.

    Parts are added in their order, so what is learnt does not depend on the number of cores. Where a network drops
    units at random they are computed one after another: threads would take turns at the one source of chance.
    """

    def __init__(self, model: AnyOrderModel, n_parts: int):
        self.model, self.n_parts = model, n_parts
        drops = any(isinstance(module, nn.Dropout) and module.p > 0 for module in model.modules())
        self.n_workers = 1 if drops else min(n_parts, torch.get_num_threads())
        self.pool: ThreadPoolExecutor | None = None

    @contextmanager
    def workers(self) -> Iterator[None]:
        """A thread for each part, as far as there are cores; operations inside share what is left of them."""
        if self.n_workers == 1:
            yield
            return
        before = torch.get_num_threads()
        each = before // self.n_workers
        torch.set_num_threads(each)
        try:
            with ThreadPoolExecutor(self.n_workers, initializer=torch.set_num_threads, initargs=(each,)) as self.pool:
                yield
        finally:
            self.pool = None
            torch.set_num_threads(before)

    def set(self, x: Tensor, path: Path, weights: Tensor) -> float:
        parameters = list(self.model.parameters())

        def part(rows: Tensor) -> tuple[float, tuple[Tensor | None, ...]]:
            with torch.enable_grad():
                loss = -(weights[rows] * self.model.log_prob(x[rows], path.rows(rows))).sum() / len(x)
            return float(loss.detach()), torch.autograd.grad(loss, parameters, allow_unused=True)

        parts = torch.arange(len(x)).chunk(self.n_parts)
        found = list(self.pool.map(part, parts) if self.pool else map(part, parts))
        for p, *pieces in zip(parameters, *(gradients for _, gradients in found), strict=True):
            known = [piece for piece in pieces if piece is not None]
            p.grad = sum(known[1:], known[0]) if known else None
        return sum(loss for loss, _ in found)
