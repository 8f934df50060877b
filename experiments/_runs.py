"""What all experiments that train share: threads for a fair clock, and learning curves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from anygiven.model import AnyOrderModel


@contextmanager
def threads(n: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Curve:
    """A watcher that notes step, seconds and figures of the model as training goes on, also over a restart."""

    def __init__(self, run, measure: Callable[[AnyOrderModel], Sequence[float]]):
        self.measure, self.kept = measure, run.folder / "curve.json"
        self.points: list = json.loads(self.kept.read_text()) if self.kept.exists() else []

    def __call__(self, model: AnyOrderModel, step: int, seconds: float) -> None:
        earlier = [point for point in self.points if point[0] < step]
        self.points = [*earlier, [step, round(seconds, 1), *self.measure(model)]]
        self.kept.write_text(json.dumps(self.points))
