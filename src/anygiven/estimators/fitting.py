"""From domains and rows to a trained model: what every density does when it is fitted."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as FilePath

import numpy as np
import torch
from torch import Tensor

from anygiven.estimators.defaults import Architecture
from anygiven.estimators.options import check_architecture
from anygiven.estimators.progress import training_bar
from anygiven.heads import joint_head_for
from anygiven.lattice import Objective
from anygiven.model import AnyOrderModel, EnsembleModel, any_order_model
from anygiven.networks import NETWORKS
from anygiven.training import Outcome, Settings, train
from anygiven.training.checkpoint import remove_checkpoint
from anygiven.variables.domains import Domain, SharedDomain
from anygiven.variables.rows import Data, Rows

OF_THE_CLOCK = ("max_minutes", "processor_time", "checkpoint_seconds")  # a run may be given more time and go on
Split = Callable[[int], tuple[Rows, Data]]  # seed → rows to learn from, rows for the validation questions


@dataclass(frozen=True)
class Recipe:
    """What is trained, and how."""

    domains: Sequence[Domain]
    architecture: Architecture
    objective: Objective
    settings: Settings
    device: torch.device


def fit_models(
    recipe: Recipe,
    split: Split,
    n_members: int = 1,
    checkpoint: str | None = None,
    fingerprint: str = "",
    verbose: bool | None = None,
    began: float | None = None,
    closing: float = 1.0,
) -> tuple[AnyOrderModel, list[Outcome]]:
    """Each member from its own seed, on its own hold-out; together they share what is left of the time allowed.

    `began` is the monotonic time from which it counts; `closing` is what is kept for after the training, see train.
    """
    check_architecture(recipe.architecture)
    settings = recipe.settings
    if settings.max_minutes is not None:
        passed = 0.0 if began is None else (time.monotonic() - began) / 60
        left = max(settings.max_minutes - passed, 0.02 * settings.max_minutes)
        settings = replace(settings, max_minutes=left / n_members)
    folder = FilePath(checkpoint) if checkpoint else None
    members, outcomes = [], []
    with training_bar(verbose, n_members) as report, _threads_for(recipe.architecture):
        for k in range(n_members):
            mine = replace(settings, seed=settings.seed + 1000 * k)
            model = build_model(recipe.domains, recipe.architecture, mine.seed).to(recipe.device)
            learn, held = split(mine.seed)
            outcomes.append(train(model, learn, held, recipe.objective, mine, report and partial(report, k),
                                  folder / f"member-{k}" if folder else None, f"{fingerprint}-{k}",
                                  closing=closing, keep_finished=k < n_members - 1))  # fmt: skip
            members.append(model)
    return joined(members), outcomes


def remove_checkpoints(folder: FilePath) -> None:
    """What fit_models has written, when the model is saved."""
    remove_checkpoint([*folder.glob("member-[0-9]*"), folder])


def joined(members: list[AnyOrderModel]) -> AnyOrderModel:
    return (members[0] if len(members) == 1 else EnsembleModel(members)).eval()


def build_model(domains: Sequence[Domain], architecture: Architecture, seed: int) -> AnyOrderModel:
    """Network and head for some domains, with weights from a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        kind = NETWORKS[architecture.network]
        network = kind(domains, **{name: getattr(architecture, name) for name in kind.settings})
        return any_order_model(
            network, joint_head_for(network.width, domains, architecture.n_components, architecture.head)
        )


@contextmanager
def _threads_for(architecture: Architecture) -> Iterator[None]:
    """One thread trains a narrow MLP as fast as two, and does not stall when other programs share the cores."""
    before = torch.get_num_threads()
    if architecture.network == "mlp" and architecture.width <= 256:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def hold_out(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to learn from and rows for the validation questions (all rows for both in tiny tables)."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + 3))
    if n < 20:
        return order, order
    size = min(max(n // 10, 10), 3000)
    return order[size:], order[:size]


def fingerprint_of(recipe: Recipe, workload: str, *arrays) -> str:
    """What a checkpoint must agree with to be resumed."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    domains = recipe.domains
    kinds = [domains.domain] if isinstance(domains, SharedDomain) else domains
    shape = domains.shape if isinstance(domains, SharedDomain) else (len(domains),)
    settings = {name: value for name, value in recipe.settings.__dict__.items() if name not in OF_THE_CLOCK}
    facts = [recipe.architecture.to_json(), settings, workload, shape, [d.to_json() for d in kinds]]
    digest.update(json.dumps(facts, default=str).encode())
    return digest.hexdigest()
