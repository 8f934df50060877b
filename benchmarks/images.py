"""What path convolutions save on 28 × 28 images, and their memory: python benchmarks/images.py [--quick] [--json]

Fresh weights (speed does not depend on them), the networks' default sizes, one thread, its processor time:
    likelihood      joint log p of images by path convolutions in one pass, against one U-Net call per pixel
    drawing         64 images pixel by pixel: path convolutions with their memory, against without, and the U-Net
    fewer steps     slanted lines, for 64 images and for one: those that are raster order itself (109 steps of 784),
                    and steeper ones (82 and 55); the U-Net with a tenth of the steps
    memory          peak of the process after scoring 1,000 images and drawing 64 at once, over the 4 GB allowed
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path as FilePath

import torch

import anygiven
from anygiven.estimators.defaults import image_architecture_for
from anygiven.estimators.fitting import build_model
from anygiven.inference import draw, log_prob
from anygiven.lattice import Budget, Canonical, Protocol, Question, Slanted
from anygiven.model import AnyOrderModel
from anygiven.variables.domains import Levels, SharedDomain

RESULT = FilePath(__file__).parent / "results" / "images.json"
SIDE = 28
PIXELS = SIDE * SIDE
GOAL_GB = 4.0


def everything(n: int) -> Question:
    is_query = torch.ones(n, PIXELS, dtype=torch.bool)
    return Question(is_query, ~is_query)


def images(n: int) -> torch.Tensor:
    cells = torch.zeros(n, PIXELS, 4)
    cells[..., 0] = torch.randint(2, (n, PIXELS), generator=torch.Generator().manual_seed(0)).float()
    return cells


def seconds(call) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def draw_seconds(model: AnyOrderModel, n: int, protocol: Protocol, looks_again: bool, share: float = 1.0) -> float:
    """Seconds of drawing n images, from so large a share of the pixels, the last ones."""
    first = PIXELS - round(share * PIXELS)
    is_known = (torch.arange(PIXELS) < first).expand(n, -1)
    path = protocol.path(Question(~is_known, is_known))
    generator = torch.Generator().manual_seed(0)
    return seconds(lambda: draw(model, images(n), path, generator, looks_again=looks_again)) / share


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    domains = SharedDomain(Levels((3, 1)), (SIDE, SIDE))
    paths, unet = (build_model(domains, image_architecture_for(50_000, name), 0).eval()
                   for name in ("convolutions", "unet"))  # fmt: skip
    n_scored, n_drawn, share = (2, 4, 0.02) if arguments.quick else (4, 64, 0.1)
    x, path = images(n_scored), Canonical().path(everything(n_scored))
    paths.log_prob(x, path), unet.look(x, path.is_evidence)  # warm up
    one_pass = min(seconds(lambda: paths.log_prob(x, path)) for _ in range(3))
    per_pixel = seconds(lambda: unet.log_prob(x, path))
    walked = draw_seconds(paths, n_drawn, Canonical(), looks_again=False)
    looked = draw_seconds(paths, n_drawn, Canonical(), looks_again=True, share=share)
    unet_all = draw_seconds(unet, n_drawn, Canonical(), looks_again=True, share=share)
    unet_tenth = draw_seconds(unet, n_drawn, Budget(Canonical(), max(1, round(0.1 * share * PIXELS))), True, share)
    one_walked = draw_seconds(paths, 1, Canonical(), looks_again=False)
    lines = {}
    for n in (n_drawn, 1):
        for slant in (3, 2, 1):
            found = draw_seconds(paths, n, Slanted((SIDE, SIDE), slant), looks_again=False)
            lines[f"{n} image{'s' * (n > 1)}, slant {slant}"] = (n, found)
    n = 100 if arguments.quick else 1000
    scoring = seconds(lambda: log_prob(paths, images(n), everything(n)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    result = {
        "ratios": {
            "likelihood in one pass against one U-Net call per pixel": per_pixel / one_pass,
            "drawing with the memory against without": looked / walked,
            "drawing by path convolutions against the U-Net, all steps": unet_all / walked,
            "drawing by the U-Net with a tenth of the steps against all": unet_all / unet_tenth,
            **{f"drawing by lines against pixel by pixel, {name}": (one_walked if n == 1 else walked) / found
               for name, (n, found) in lines.items()},
            "peak memory over the goal": peak / GOAL_GB,
        },
        "seconds": {"one pass": one_pass, "one U-Net call per pixel": per_pixel, "drawing with the memory": walked,
                    "drawing without": looked, "drawing by the U-Net": unet_all,
                    "with a tenth of the steps": unet_tenth, "one image with the memory": one_walked,
                    **{f"by lines, {name}": found for name, (_, found) in lines.items()},
                    f"scoring {n} images": scoring},
        "peak_gb": peak, "images_scored": n_scored, "images_drawn": n_drawn,
        "share_of_pixels_drawn_without_memory": share, "threads": torch.get_num_threads(),
        "parameters": {"convolutions": paths.n_parameters, "unet": unet.n_parameters},
        "command": "python benchmarks/images.py", "seed": 0, "version": anygiven.__version__,
    }  # fmt: skip
    if not arguments.quick:
        RESULT.write_text(json.dumps(result, indent=1))
    shown = (f"{name}: {ratio:.1f}" for name, ratio in result["ratios"].items())
    print(json.dumps(result) if arguments.json else "\n".join(shown))


if __name__ == "__main__":
    main()
