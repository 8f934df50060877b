"""What parts of a batch save in training, a core for each: python benchmarks/parts.py [--quick] [--json]

The gradients of one batch by the wall clock, the median of several, in turn: the whole batch with all threads inside
each operation, against parts of it that are computed at the same time. Fresh weights, the default sizes and batches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path as FilePath

import torch

import anygiven
from anygiven.estimators.defaults import Architecture, image_architecture_for, text_architecture_for
from anygiven.estimators.fitting import build_model
from anygiven.estimators.images import PARTS
from anygiven.estimators.workload import image_objective_of, text_objective_of
from anygiven.lattice import Objective
from anygiven.training.gradients import Gradients
from anygiven.training.memory import keep_freed_memory
from anygiven.variables.domains import Alike, Categorical, Levels

RESULT = FilePath(__file__).parent / "results" / "parts.json"
SIDE, LENGTH, SYMBOLS = 28, 64, "abcdefghijklmnopqrstuvwxyz "


def gradient_seconds(domains: Alike, architecture: Architecture, objective: Objective, batch: int, n: int) -> dict:
    """Medians over n batches of the objective, for whole batches and in parts."""
    model = build_model(domains, architecture, 0).train()
    generator = torch.Generator().manual_seed(0)
    is_present = torch.ones(batch, len(domains), dtype=torch.bool)
    x = torch.zeros(batch, len(domains), 4)
    x[..., 0] = torch.randint(2, x.shape[:2], generator=generator).float()
    found: dict[int, list[float]] = {1: [], PARTS: []}
    for k in range(n + 1):
        path, weights = objective.draw(is_present, generator)
        for n_parts, seconds in found.items():
            gradients = Gradients(model, n_parts)
            with gradients.workers():
                gradients.set(x[:PARTS], path.rows(torch.arange(PARTS)), weights[:PARTS])  # threads start
                started = time.perf_counter()
                gradients.set(x, path, weights)
                seconds += [time.perf_counter() - started] if k else []  # the first one warms up
    return {n_parts: statistics.median(seconds) for n_parts, seconds in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    keep_freed_memory()
    grid, text = Alike(Levels((3, 1)), (SIDE, SIDE)), Alike(Categorical(tuple(SYMBOLS), (1,) * len(SYMBOLS)), (LENGTH,))
    cases = {
        name: (grid, image_architecture_for(50_000, name), image_objective_of("any", name, grid.shape), 16)
        for name in ("convolutions", "unet")
    }
    cases["path, text"] = (text, text_architecture_for(10**7, "path"), text_objective_of("any"), 64)
    found = {name: gradient_seconds(*case, 2 if arguments.quick else 30) for name, case in cases.items()}
    result = {
        "ratios": {name: seconds[1] / seconds[PARTS] for name, seconds in found.items()},
        "seconds": {name: {"whole": seconds[1], "in parts": seconds[PARTS]} for name, seconds in found.items()},
        "parts": PARTS, "threads": torch.get_num_threads(), "command": "python benchmarks/parts.py", "seed": 0,
        "version": anygiven.__version__,
    }  # fmt: skip
    if not arguments.quick:
        RESULT.write_text(json.dumps(result, indent=1))
    shown = (f"{name}: {ratio:.2f}" for name, ratio in result["ratios"].items())
    print(json.dumps(result) if arguments.json else "\n".join(shown))


if __name__ == "__main__":
    main()
