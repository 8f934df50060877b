"""Drawing training masks from MAC's D^CR at N = 250, batch 512: exactly, against the appendix's resampling.

    python benchmarks/masks.py [--quick] [--json]

The resampling is Appendix B as described: 100 times too many masks are drawn from D(M, w-MAC), weighted by
1 + |e|, and a batch is chosen from them without replacement. Ours draws (|query|, prefix length) from its exact
table and then the subset. Both run in this process, one thread, alternately; the ratio is of median times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch

import anygiven
from anygiven.lattice import CardMask, Glimpse

N, BATCH, EXCESS = 250, 512, 100


def resampled(generator: torch.Generator) -> torch.Tensor:
    """Sampling-importance-resampling of D^CR (Appendix B)."""
    many = BATCH * EXCESS
    order = torch.rand(many, N, generator=generator).argsort(dim=-1)
    size = torch.randint(1, N + 1, (many, 1), generator=generator)
    members = order < size
    length = (torch.rand(many, 1, generator=generator) * size).long()
    prefix = members & (members.cumsum(dim=-1) <= length)
    weight = 1.0 + prefix.sum(dim=-1)
    return prefix[torch.multinomial(weight, BATCH, generator=generator)]


def exact(generator: torch.Generator) -> torch.Tensor:
    path, _ = Glimpse(CardMask(), cardinality=True).draw(torch.ones(BATCH, N, dtype=torch.bool), generator)
    return path.is_evidence


def seconds(draw, generator: torch.Generator) -> float:
    started = time.perf_counter()
    draw(generator)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    exact(generator)
    rounds = 3 if arguments.quick else 15
    pairs = [(seconds(resampled, generator), seconds(exact, generator)) for _ in range(rounds)]
    slow, fast = (statistics.median(times) for times in zip(*pairs, strict=True))
    sizes = [
        float(torch.stack([d(generator).sum(1).float().mean() for _ in range(5)]).mean()) for d in (resampled, exact)
    ]
    figures = {
        "ratio": round(slow / fast, 1), "resampling_ms": round(1e3 * slow, 2), "exact_ms": round(1e3 * fast, 3),
        "mean_prefix_length": {"resampling": round(sizes[0], 2), "exact": round(sizes[1], 2)},
        "n": N, "batch": BATCH, "seed": 0, "version": anygiven.__version__,
    }  # fmt: skip
    if arguments.json:
        print(json.dumps(figures))
    else:
        print(
            f"exact {figures['exact_ms']} ms, resampling {figures['resampling_ms']} ms: {figures['ratio']} times faster"
        )


if __name__ == "__main__":
    main()
