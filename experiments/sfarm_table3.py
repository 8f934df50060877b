"""SFARM's Table 3 on a part of CIFAR-10: bits per dimension when a pixel is revealed with all its channels.

U-Nets trained on uniform activations (ARDM) and on the seven modes (SFARM), path convolutions on whole paths: same time
of one core, mixtures of discretised logistics with tied channels. The bound of Eq. 8 on random orders for all; for the
path convolutions, which score a path in one pass, the raster order too.
"""

from __future__ import annotations

from _images import (
    CONVOLUTIONS,
    PAPER_CIFAR,
    PAPER_CONVOLUTIONS,
    UNET,
    bits_of,
    domains_of,
    fit,
    held,
    nats,
    nats_by_looks,
)
from anygiven.estimators.workload import image_objective_of
from anygiven.lattice import Joint

SET = "cifar10"
METHODS = {"ARDM": ("unet", "random"), "SFARM": ("unet", "modes"), "whole path": ("convolutions", "any")}
SCALES = {
    "laptop": {"unet": UNET, "convolutions": CONVOLUTIONS, "minutes": 12.0, "images": 200, "looks": 8,
               "components": 10},
    "paper": {"unet": PAPER_CIFAR, "convolutions": PAPER_CONVOLUTIONS, "minutes": 60 * 24 * 14, "images": 2000,
              "looks": 32, "components": 30},
}  # fmt: skip


def measure(run) -> dict:
    methods = {name: run.part(name, lambda m=method: one(run, *m)) for name, method in METHODS.items()}
    return {"data": f"{SET}, its first 12,000 and 2,000 images", "methods": methods}


def one(run, which: str, workload: str) -> dict:
    smoke, domains, method = run.steps is not None, domains_of(SET), run.settings[which]
    objective = image_objective_of(workload, method["network"], domains.shape)
    model, outcome = fit(run, SET, method, objective, domains, components=run.settings["components"])
    data = held(SET, 2 if smoke else run.settings["images"], domains)
    looks = nats_by_looks(model, data, Joint(), 1 if smoke else run.settings["looks"])
    found = {"random_orders": bits_of(looks, domains.domain.n_channels)}
    if which == "convolutions":
        found["raster"] = bits_of(nats(model, data, Joint(), smoke=smoke), 3 * len(domains))
    return {**found, "steps": outcome.steps, "parameters": model.n_parameters, "train_seconds": outcome.seconds}


def table(results: dict) -> str:
    lines = [f"{'bits per dimension':<20}{'random orders':>18}{'raster order':>18}"]
    for name, part in results["methods"].items():
        cells = [f"{part[k]['mean']:.3f} ± {part[k]['standard_error']:.3f}" if k in part else "-"
                 for k in ("random_orders", "raster")]  # fmt: skip
        lines.append(f"{name:<20}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
    bars = {f"{name}, {kind.replace('_', ' ')}": part[kind] for name, part in results["methods"].items()
            for kind in ("random_orders", "raster") if kind in part}  # fmt: skip
    axis.barh(list(bars), [s["mean"] for s in bars.values()], xerr=[s["standard_error"] for s in bars.values()])
    axis.set_xlabel("bits per dimension")
    axis.invert_yaxis()
    return figure
