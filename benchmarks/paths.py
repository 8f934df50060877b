"""What one pass over a path saves, at N = 250 characters: python benchmarks/paths.py [--quick] [--json]

Networks of the same width and depth with fresh weights (speed does not depend on them), one process, both threads:
    likelihood      joint log p of a batch by the path Transformer in one pass, against a masked Transformer called once
                    per step for the batch (as MAC's code does), and against its steps unrolled into full batches
    drawing         a batch of texts by the path Transformer with its key/value cache, against looking again each step
Both networks have the same n-gram tables.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path as FilePath

import torch

import anygiven
from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import build_model
from anygiven.inference import draw
from anygiven.lattice import Canonical, Path, Question
from anygiven.model import Walk
from anygiven.variables.domains import SharedDomain
from anygiven.variables.text import TEXT8, Alphabet

RESULT = FilePath(__file__).parent / "results" / "paths.json"
N, WIDTH, DEPTH = 250, 128, 4
UNROLLED_ROWS = 64
DRAWN = (1, 8, 32)  # texts at once; the last is the headline


def texts(n: int) -> torch.Tensor:
    cells = torch.zeros(n, N, 4)
    cells[..., 0] = torch.randint(len(TEXT8), (n, N), generator=torch.Generator().manual_seed(0)).float()
    return cells


def joint_path(n: int) -> Path:
    everything = torch.ones(n, N, dtype=torch.bool)
    return Canonical().path(Question(everything, ~everything))


def unrolled(model, x: torch.Tensor) -> torch.Tensor:
    """All prefixes of all texts as rows of looks, in batches of UNROLLED_ROWS."""
    log_p = torch.zeros(x.shape[:2])
    pairs = torch.cartesian_prod(torch.arange(len(x)), torch.arange(N))
    for text, t in (part.unbind(1) for part in pairs.split(UNROLLED_ROWS)):
        known = torch.arange(N) < t[:, None]
        look = model.look(x[text], known).log_prob(x[text])
        log_p[text, t] = look.gather(1, t[:, None]).squeeze(1)
    return log_p


def seconds(call, repeats: int = 1) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


def draw_without_cache(model, x: torch.Tensor, path: Path, generator) -> None:
    walk = Walk(model, x, path)
    while not walk.is_done:
        walk.reveal(walk.conditionals().sample(generator))


def drawing_seconds(model, n: int, generator) -> tuple[float, float]:
    """With the cache, and without."""
    x, path = texts(n), joint_path(n)
    cached = seconds(lambda: draw(model, x, path, generator), 2)
    return cached, seconds(lambda: draw_without_cache(model, x, path, generator))


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    domains = SharedDomain(Alphabet.of(TEXT8).domain, (N,))
    ours, masked = (build_model(domains, Architecture(name, WIDTH, DEPTH, 0.0, 0), 0).eval()
                    for name in ("path", "transformer"))  # fmt: skip
    n = 4 if arguments.quick else 16
    x, path, generator = texts(n), joint_path(n), torch.Generator().manual_seed(0)
    ours.log_prob(x, path), masked.look(x, path.is_evidence)  # warm up
    one_pass = seconds(lambda: ours.log_prob(x, path), 5)
    per_step = seconds(lambda: masked.log_prob(x, path))
    in_batches = seconds(lambda: unrolled(masked, x))
    drawing = {size: drawing_seconds(ours, size, generator) for size in ((4,) if arguments.quick else DRAWN)}
    cached, uncached = list(drawing.values())[-1]
    result = {
        "ratios": {
            "likelihood against one call per step": per_step / one_pass,
            "likelihood against unrolled batches": in_batches / one_pass,
            "drawing with the cache against without": uncached / cached,
        },
        "drawing ratios by texts at once": {size: slow / fast for size, (fast, slow) in drawing.items()},
        "seconds": {"one pass": one_pass, "one call per step": per_step, "unrolled batches": in_batches,
                    "drawing with the cache": cached, "drawing without": uncached},
        "texts": n, "characters": N, "width": WIDTH, "depth": DEPTH, "threads": torch.get_num_threads(),
        "parameters": {"path": ours.n_parameters, "masked": masked.n_parameters},
        "command": "python benchmarks/paths.py", "seed": 0, "version": anygiven.__version__,
    }  # fmt: skip
    if not arguments.quick:
        RESULT.write_text(json.dumps(result, indent=1))
    shown = (f"{name}: {ratio:.1f} times faster" for name, ratio in result["ratios"].items())
    print(json.dumps(result) if arguments.json else "\n".join(shown))


if __name__ == "__main__":
    main()
