"""A progress bar on standard error for whatever takes a while; silent where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from anygiven.training import Progress


def is_shown(verbose: bool | None) -> bool:
    return sys.stderr.isatty() if verbose is None else bool(verbose)


@contextmanager
def _bar(title: str, verbose: bool | None) -> Iterator:
    if not is_shown(verbose):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[note]}"))
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0, note="")
        yield lambda share, note="": bar.update(task, completed=share, note=note)


@contextmanager
def training_bar(verbose: bool | None, n_members: int) -> Iterator:
    """A callback for the training loop: which member, and how far it is."""
    with _bar("training", verbose) as move:
        if move is None:
            yield None
        else:
            yield lambda k, p: move((k + p.step / p.max_steps) / n_members, _note(p))


def _note(progress: Progress) -> str:
    return f"held-out log probability {-progress.valid_nats:.3f} nats (best {-progress.best_nats:.3f})"


@contextmanager
def share_bar(title: str, verbose: bool | None) -> Iterator:
    """A callback that takes the share done, 0 to 1."""
    with _bar(title, verbose) as move:
        yield move
