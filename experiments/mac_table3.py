"""MAC's Table 3 on a part of CIFAR-10: joint and marginal bits per dimension when each channel is a variable.

ARDM and MAC (Eq. 7 with cardinality reweighting) are U-Nets that look once; "whole path" is path convolutions trained
on whole paths of all kinds of questions. Same time of one core for each; masses of all 256 levels, as in MAC. Along
full canonical paths; a marginal asks a uniform number of values, and is divided by all dimensions, as MAC does.
"""

from __future__ import annotations

from _images import CONVOLUTIONS, PAPER_CIFAR, PAPER_CONVOLUTIONS, UNET, bits_of, domains_of, fit, held, nats
from anygiven.estimators.workload import image_objective_of
from anygiven.lattice import CardMask, Glimpse, Joint, Looks

SET = "cifar10"
METHODS = {
    "ARDM": ("unet", Looks(Joint())),
    "MAC": ("unet", Glimpse(CardMask(), cardinality=True)),
    "whole path": ("convolutions", None),
}
SCALES = {
    "laptop": {"unet": UNET, "convolutions": {**CONVOLUTIONS, "width": 48, "depth": 6, "batch_size": 4},
               "minutes": 12.0, "images": {"unet": 4, "convolutions": 100}},
    "paper": {"unet": {**PAPER_CIFAR, "batch_size": 24}, "convolutions": PAPER_CONVOLUTIONS, "minutes": 60 * 24 * 14,
              "images": {"unet": 2000, "convolutions": 2000}},
}  # fmt: skip


def measure(run) -> dict:
    methods = {name: run.part(name, lambda m=method: one(run, *m)) for name, method in METHODS.items()}
    return {"data": f"{SET}, its first 12,000 and 2,000 images", "methods": methods}


def one(run, which: str, objective) -> dict:
    smoke, domains, method = run.steps is not None, domains_of(SET, "channel"), run.settings[which]
    chosen = objective or image_objective_of("any", method["network"], domains.shape)
    model, outcome = fit(run, SET, method, chosen, domains)
    data = held(SET, 2 if smoke else run.settings["images"][which], domains)
    found = {"joint": nats(model, data, Joint(), smoke=smoke), "marginal": nats(model, data, CardMask(), smoke=smoke)}
    return {**{kind: bits_of(value, len(domains)) for kind, value in found.items()}, "images": len(data),
            "steps": outcome.steps, "parameters": model.n_parameters, "train_seconds": outcome.seconds}  # fmt: skip


def table(results: dict) -> str:
    lines = [f"{'bits per dimension':<20}{'joint':>18}{'marginal':>18}{'images':>10}"]
    for name, part in results["methods"].items():
        cells = [f"{part[k]['mean']:.3f} ± {part[k]['standard_error']:.3f}" for k in ("joint", "marginal")]
        lines.append(f"{name:<20}" + "".join(f"{cell:>18}" for cell in cells) + f"{part['images']:>10}")
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained", sharey=True)
    names = list(results["methods"])
    for axis, kind in zip(axes, ("joint", "marginal"), strict=True):
        scores = [results["methods"][name][kind] for name in names]
        axis.barh(names, [s["mean"] for s in scores], xerr=[s["standard_error"] for s in scores])
        axis.set_title(f"{kind}, bits per dimension")
    axes[0].invert_yaxis()
    return figure
