"""SFARM's Table 2: binarized MNIST, test nats of one model along one path (the raster order), and how it learns.

Path convolutions trained by whole paths, on one core; beside them, for the learning curves at equal time, path
convolutions and the U-Net of SFARM trained by glimpses. Nats over all test images; conditional nats per hidden
pixel for the seven kinds of evidence.
"""

from __future__ import annotations

from _images import (
    LAPTOP,
    PAPER,
    PAPER_MNIST,
    SHORT,
    UNET,
    domains_of,
    evidence_kinds,
    held,
    nats,
    nats_by_edges,
    nats_by_looks,
    trained,
)
from anygiven.lattice import Joint

SET = "binarized-mnist"
METHODS = {"whole paths (convolutions)": ("convolutions", "any"), "glimpses (U-Net)": ("unet", "modes")}
PUBLISHED = {"SFARM": 78.12, "Locally Masked PixelCNN": 77.58, "EoNADE, best ensemble": 84.55, "PixelCNN": 81.30}
SCALES = {
    "laptop": {**LAPTOP, "unet": UNET, "short_minutes": SHORT, "images": 10_000, "edges": 49, "evaluations": 12},
    "paper": {**PAPER, "unet": PAPER_MNIST, "short_minutes": 60 * 24 * 14, "images": 10_000, "edges": 784,
              "evaluations": 40},
}  # fmt: skip


def measure(run) -> dict:
    best = run.part("long", lambda: long_run(run))
    methods = {name: run.part(name, lambda m=method: short_run(run, *m)) for name, method in METHODS.items()}
    return {"data": SET, "long": best, "methods": methods, "published": PUBLISHED}


def long_run(run) -> dict:
    smoke, domains = run.steps is not None, domains_of(SET)
    model, facts = trained(run, SET)
    test = held(SET, 2 if smoke else run.settings["images"], domains)
    some = test.rows(slice(0, 1000))
    kinds = {name: nats(model, some, kind, per_query=True, smoke=smoke)
             for name, kind in evidence_kinds(domains.shape).items()}  # fmt: skip
    return {"test": nats(model, test, Joint(), smoke=smoke), "kinds": kinds, "order": "raster", **facts}


def short_run(run, which: str, workload: str) -> dict:
    """Nats of whole images in raster order and in random orders."""
    smoke, domains = run.steps is not None, domains_of(SET)
    allowed = run.settings["short_minutes"]
    model, facts = trained(run, SET, which, workload, minutes=min(run.minutes or allowed, allowed))
    few = held(SET, 2 if smoke else 100, domains)
    raster = nats(model, few, smoke=smoke) if which == "convolutions" else nats_by_edges(
        model, few, Joint(), 1 if smoke else run.settings["edges"])  # fmt: skip
    looks = nats_by_looks(model, few, Joint(), 1 if smoke else 8)
    random_orders = {key: len(domains) * value for key, value in looks.items()}
    return {"random_orders": random_orders, "raster": raster, "images": len(few), **facts}


def table(results: dict) -> str:
    best = results["long"]
    lines = [
        f"test nats, raster order: {best['test']['mean']:.2f} ± {best['test']['standard_error']:.2f}",
        f"  {best['parameters']:,} parameters, {best['images_seen']:,} images, {best['train_seconds'] / 60:.0f} min",
    ]
    lines += [f"  {name:<18}{found['mean']:.4f} nats per hidden pixel" for name, found in best["kinds"].items()]
    for name, part in results["methods"].items():
        figures = [f"{part[k]['mean']:.1f} ± {part[k]['standard_error']:.1f}" for k in ("raster", "random_orders")]
        lines.append(f"{name}, {part['train_seconds'] / 60:.0f} min: {figures[0]} nats in raster order, {figures[1]} "
                     f"in random orders ({part['images']} test images)")  # fmt: skip
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    points = [p for p in results["long"]["curve"] if p[1] > 0] or results["long"]["curve"]
    left.plot([p[1] / 60 for p in points], [p[2] for p in points], marker=".", label="path convolutions, validation")
    for name, value in results["published"].items():
        left.axhline(value, linestyle=":", color="0.5", linewidth=0.8)
        left.text(
            1, value, f"{name} ", fontsize=7, va="bottom", ha="right", color="0.4", transform=left.get_yaxis_transform()
        )
    left.set_xlabel("minutes of training on one core")
    left.set_ylabel("nats, raster order")
    left.set_ylim(76, 110)
    left.legend(frameon=False)
    for name, part in results["methods"].items():
        points = [p for p in part["curve"] if p[1] > 0] or part["curve"]
        right.plot([p[1] / 60 for p in points], [p[3] for p in points], marker=".", label=name)
    right.set_xlabel("minutes of training on one core")
    right.set_ylabel("nats, random orders")
    right.legend(frameon=False)
    return figure
