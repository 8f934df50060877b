"""SPFlow 1.1's LearnSPN on binned columns; runs in an environment of its own, where spflow is installed.

    python spflow_scores.py SYMBOLS.npz OUT.npz

In: train, held and test symbols (rows, columns) with −1 for gaps, and the number of symbols of each column.
Out: log mass of every held and test row, gaps summed out. The smallest slice and the threshold of dependence are
chosen on the held rows; no new setting is tried after a minute.
"""

from __future__ import annotations

import sys
import time
from itertools import product

import numpy as np
import torch
from spflow.learn.learn_spn import learn_spn, partition_by_rdc  # type: ignore[import-not-found]
from spflow.meta import Scope  # type: ignore[import-not-found]
from spflow.modules.leaves import Categorical  # type: ignore[import-not-found]

PSEUDO = 1.0  # rows' worth of the column's own frequencies in every leaf
SECONDS = 60


def leaf_class(margin: np.ndarray) -> type:
    """LearnSPN builds leaves from their class alone: the size and the smoothing of a column live in the class."""

    prior = PSEUDO * torch.tensor(margin)
    size = len(margin)

    class SmoothedCategorical(Categorical):
        def __init__(self, scope, out_channels=1):
            super().__init__(scope=scope, out_channels=out_channels, K=size)

        def _compute_parameter_estimates(self, data, weights, bias_correction):
            counts = torch.bincount(data.flatten().long(), minlength=size).to(torch.get_default_dtype())
            smoothed = (counts + prior) / (counts.sum() + PSEUDO)
            return {"probs": smoothed.reshape(1, size).expand(self.probs.shape[0], size)}

    return SmoothedCategorical


def filled(symbols: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """LearnSPN clusters whole rows: a gap takes a random present value of its column."""
    rng = np.random.default_rng(0)
    out = symbols.copy()
    for j in range(len(sizes)):
        gap = symbols[:, j] < 0
        out[gap, j] = rng.choice(symbols[~gap, j], gap.sum())
    return out


def partition(data: torch.Tensor, threshold: float) -> torch.Tensor:
    """SPFlow's test of dependence among the columns that vary in a slice, where it fails otherwise; a constant one
    is independent of all others."""
    varies = (data != data[:1]).any(0)
    parts = torch.arange(data.shape[1]) + data.shape[1]
    if varies.any():
        parts[varies] = partition_by_rdc(data[:, varies], threshold).to(parts.dtype)
    return parts


def fit(symbols: np.ndarray, sizes: np.ndarray, slice_rows: int, threshold: float):
    torch.manual_seed(0)
    leaves = []
    for j, size in enumerate(sizes):
        counts = np.bincount(symbols[:, j], minlength=size) + 0.5
        leaves.append(leaf_class(counts / counts.sum())(Scope([j])))
    return learn_spn(
        torch.tensor(symbols, dtype=torch.get_default_dtype()), leaves,
        min_instances_slice=slice_rows, partitioning_method=partition, partitioning_args={"threshold": threshold},
    )  # fmt: skip


def log_mass(spn, symbols: np.ndarray) -> np.ndarray:
    values = torch.tensor(np.where(symbols < 0, np.nan, symbols), dtype=torch.get_default_dtype())
    with torch.no_grad():
        parts = [spn.log_likelihood(rows).flatten() for rows in values.split(500)]
    return torch.cat(parts).numpy()


def main() -> None:
    torch.set_default_dtype(torch.float64)
    with np.load(sys.argv[1]) as file:
        train, held, test, sizes = file["train"], file["held"], file["test"], file["sizes"]
    train = filled(train, sizes)
    best, best_score, started = None, -np.inf, time.monotonic()
    for slice_rows, threshold in product((200, 60, 30), (0.2, 0.1, 0.4)):
        if best is not None and time.monotonic() - started > SECONDS:
            break
        try:
            spn = fit(train, sizes, min(slice_rows, len(train) // 2), threshold)
        except RuntimeError as error:  # its dependence test fails on some small slices
            print(slice_rows, threshold, error, file=sys.stderr, flush=True)
            continue
        score = log_mass(spn, held).mean()
        print(slice_rows, threshold, round(float(score), 3), file=sys.stderr, flush=True)
        if score > best_score:
            best, best_score = spn, score
    np.savez(sys.argv[2], held=log_mass(best, held), test=log_mass(best, test))


if __name__ == "__main__":
    main()
