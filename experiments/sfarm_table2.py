"""SFARM's Table 2: binarized MNIST, test nats of one model along one path (the raster order), and how it learns.

Path convolutions trained by whole paths, on one core; beside them, for the learning curves at equal time, the U-Net of
SFARM trained by glimpses on its seven modes. Nats over all test images; conditional nats per hidden pixel for the seven
kinds of evidence; and nats of images drawn in fewer steps, by slanted lines. `--scale overnight` trains a larger
network on two cores, alone; stopped at any time, the same command goes on.
"""

from __future__ import annotations

from _images import (
    LAPTOP,
    OVERNIGHT,
    PAPER,
    PAPER_MNIST,
    SHORT,
    UNET,
    WATCHED,
    domains_of,
    evidence_kinds,
    held,
    nats,
    nats_by_edges,
    nats_by_looks,
    short_minutes_of,
    trained,
)
from anygiven.lattice import SLANTS, Joint, Slanted

SET = "binarized-mnist"
WHOLE, GLIMPSES = "whole paths (convolutions)", "glimpses (U-Net)"
PUBLISHED = {"SFARM": 78.12, "Locally Masked PixelCNN": 77.58, "EoNADE, best ensemble": 84.55, "PixelCNN": 81.30}
SCALES = {
    "laptop": {**LAPTOP, "unet": UNET, "short_minutes": SHORT, "images": 10_000, "edges": 98, "evaluations": 12},
    "overnight": {**OVERNIGHT, "images": 10_000, "evaluations": 16},
    "paper": {**PAPER, "unet": PAPER_MNIST, "short_minutes": 60 * 24 * 14, "images": 10_000, "edges": 784,
              "evaluations": 40},
}  # fmt: skip


def measure(run) -> dict:
    results = {"data": SET, "long": run.part("long", lambda: long_run(run)), "published": PUBLISHED}
    return {**results, "glimpses": run.part("glimpses", lambda: short_run(run))} if "unet" in run.settings else results


def long_run(run) -> dict:
    smoke, domains = run.max_steps is not None, domains_of(SET)
    model, facts = trained(run, SET)
    test = held(SET, 2 if smoke else run.settings["images"], domains)
    some = held(SET, 2 if smoke else 1000, domains)
    kinds = {name: nats(model, some, kind, per_query=True, smoke=smoke)
             for name, kind in evidence_kinds(domains.shape).items()}  # fmt: skip
    lines = {} if smoke else {slant: nats(model, some, protocol=Slanted(domains.shape, slant))
                              for slant in (*SLANTS, model.network.lossless_slant)}  # fmt: skip
    return {"test": nats(model, test, Joint(), smoke=smoke), "kinds": kinds, "lines": lines, "order": "raster", **facts}


def short_run(run) -> dict:
    """Nats of whole images in raster order and in random orders, by looks."""
    smoke, domains = run.max_steps is not None, domains_of(SET)
    model, facts = trained(run, SET, "unet", "modes", minutes=short_minutes_of(run))
    few = held(SET, 2 if smoke else WATCHED, domains, "valid")  # those of the curves
    raster = nats_by_edges(model, few, Joint(), 1 if smoke else run.settings["edges"])
    looks = nats_by_looks(model, few, Joint(), 1 if smoke else 8)
    random_orders = {key: len(domains) * value for key, value in looks.items()}
    return {"random_orders": random_orders, "raster": raster, "images": len(few), **facts}


def at_equal_time(results: dict) -> list[float]:
    """Of whole paths: the last point of the curve that the time of the glimpses allows."""
    allowed = results["glimpses"]["train_seconds"]
    return [p for p in results["long"]["curve"] if p[1] <= allowed][-1]


def table(results: dict) -> str:
    best = results["long"]
    lines = [
        f"test nats, raster order: {best['test']['mean']:.2f} ± {best['test']['standard_error']:.2f}",
        f"  {best['parameters']:,} parameters, {best['images_seen']:,} images, {best['train_seconds'] / 60:.0f} min",
        "1,000 test images, evenly spread over the part, in raster order:",
    ]
    lines += [f"  {name:<18}{found['mean']:.4f} nats per hidden pixel" for name, found in best["kinds"].items()]
    lines += [f"  drawn by lines of slant {slant}: {found['mean']:.2f} ± {found['standard_error']:.2f} nats an image"
              for slant, found in best["lines"].items()]  # fmt: skip
    return "\n".join(lines + (beside_glimpses(results) if "glimpses" in results else []))


def beside_glimpses(results: dict) -> list[str]:
    part, same = results["glimpses"], at_equal_time(results)
    figures = [f"{part[k]['mean']:.1f} ± {part[k]['standard_error']:.1f}" for k in ("raster", "random_orders")]
    return [f"{GLIMPSES}, {part['train_seconds'] / 60:.0f} min: {figures[0]} nats in raster order, {figures[1]} "
            f"in random orders ({part['images']} validation images)",
            f"{WHOLE} after {same[1] / 60:.0f} min: {same[2]:.1f} nats in raster order, {same[3]:.1f} in random "
            "orders (the same images)"]  # fmt: skip


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    curves = {title: learnt(results[name]["curve"])
              for name, title in (("long", WHOLE), ("glimpses", GLIMPSES)) if name in results}  # fmt: skip
    whole = curves[WHOLE]
    left.plot([p[1] / 60 for p in whole], [p[2] for p in whole], marker=".", label=f"{WHOLE}, validation")
    if "glimpses" in results:
        end, raster = results["glimpses"]["train_seconds"] / 60, results["glimpses"]["raster"]
        left.errorbar(end, raster["mean"], raster["standard_error"], marker="s", capsize=3,
                      label=f"{GLIMPSES}, validation")  # fmt: skip
    for k, (name, value) in enumerate(results["published"].items()):
        left.axhline(value, linestyle=":", color="0.5", linewidth=0.8)
        side = {"x": 0.01, "ha": "left"} if k % 2 else {"x": 0.99, "ha": "right"}  # some are close to each other
        left.text(y=value, s=name, fontsize=7, va="bottom", color="0.4", transform=left.get_yaxis_transform(), **side)
    left.set_ylabel("nats, raster order")
    left.set_ylim(76, 110)
    for name, points in curves.items():
        right.plot([p[1] / 60 for p in points], [p[3] for p in points], marker=".", label=name)
    right.set_ylabel("nats, random orders")
    right.set_ylim(76, 110)
    for axis in (left, right):
        axis.set_xlabel("minutes of processor time")
        axis.legend(frameon=False, fontsize=8)
    return figure


def learnt(curve: list) -> list:
    """Without the point before training, unless there is no other."""
    return [p for p in curve if p[1] > 0] or curve
