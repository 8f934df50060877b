"""What SFARM's and MAC's tables on CIFAR-10 share: four methods at equal time, joint and marginal bits."""

from __future__ import annotations

from _images import (
    CONVOLUTIONS,
    PAPER_CONVOLUTIONS,
    PAPER_MAC,
    UNET,
    bits_of,
    domains_of,
    held,
    nats,
    nats_by_edges,
    nats_by_looks,
    trained,
)
from anygiven.lattice import CardMask, Joint

SET = "cifar10"
METHODS = {  # network, what it is trained on
    "ARDM": ("unet", "random"),
    "MAC": ("unet", "marginals"),
    "SFARM": ("unet", "modes"),
    "whole path": ("convolutions", "any"),
}
MAC_SCALES = {
    "laptop": {"unet": UNET, "convolutions": {**CONVOLUTIONS, "width": 48, "depth": 6, "batch_size": 4},
               "minutes": 4.0, "images": 100, "edges": 32, "looks": 8, "n_components": 0},
    "paper": {"unet": PAPER_MAC, "convolutions": PAPER_CONVOLUTIONS, "minutes": 60 * 24 * 14,
              "images": 2000, "edges": 32, "looks": 32, "n_components": 0},
}  # fmt: skip
KINDS = {"joint": Joint(), "marginal": CardMask()}
SHOWN = {"joint": "joint", "marginal": "marginal", "random_orders": "joint, random orders"}


def measure(run, methods: dict, element: str, data: str = f"{SET}, its first 12,000 and 2,000 images") -> dict:
    found = {name: run.part(name, lambda m=method: one(run, *m, element, data.split(",")[0]))
             for name, method in methods.items()}  # fmt: skip
    return {"data": data, "methods": found}


def one(run, which: str, workload: str, element: str, images: str = SET) -> dict:
    smoke, domains = run.max_steps is not None, domains_of(images, element)
    model, facts = trained(run, images, which, workload, element)
    data = held(images, 2 if smoke else run.settings["images"], domains)
    n_dimensions, edges = domains.domain.n_channels * len(domains), 1 if smoke else run.settings["edges"]
    found = {}
    for kind, asked in KINDS.items():
        in_one_pass = which == "convolutions"
        total = nats(model, data, asked, smoke=smoke) if in_one_pass else nats_by_edges(model, data, asked, edges)
        found[kind] = bits_of(total, n_dimensions)
    looks = nats_by_looks(model, data, Joint(), 1 if smoke else run.settings["looks"])
    found["random_orders"] = bits_of(looks, domains.domain.n_channels)
    return {**found, "images": len(data), **facts}


def table(results: dict) -> str:
    lines = [f"{'bits per dimension':<20}" + "".join(f"{title:>24}" for title in SHOWN.values())]
    for name, part in results["methods"].items():
        cells = [f"{part[kind]['mean']:.3f} ± {part[kind]['standard_error']:.3f}" for kind in SHOWN]
        lines.append(f"{name:<20}" + "".join(f"{cell:>24}" for cell in cells))
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SHOWN), figsize=(10, 2.6), layout="constrained", sharey=True)
    names = list(results["methods"])
    for axis, (kind, title) in zip(axes, SHOWN.items(), strict=True):
        scores = [results["methods"][name][kind] for name in names]
        axis.barh(names, [s["mean"] for s in scores], xerr=[s["standard_error"] for s in scores])
        axis.set_title(f"{title}, bits per dimension", fontsize=9)
    axes[0].invert_yaxis()
    return figure
