"""SFARM's Figs. 7 and 8: samples against the number of steps, and how far they are from real images.

The path convolutions of sfarm-fig3 on Fashion-MNIST draw the same number of images in few steps: in equal groups of a
random order, in groups planned by the measured losses, the surest pixels first, each by looks; and by slanted lines,
with the memory, up to the slant that is raster order itself. The distance is Fréchet's between Gaussians in the
features of a small classifier trained here; it is not FID, whose network is another. Of lines the test nats along the
path that is drawn are exact: what fewer steps lose.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn

from _images import LAPTOP, PAPER, domains_of, held, nats, packed, show_rows, trained, unpacked
from anygiven.datasets.images import image_set, labels
from anygiven.inference import draw as draw_cells
from anygiven.inference import losses_by_evidence, surest_first
from anygiven.lattice import Budget, Grouped, Path, RandomOrder, Slanted, planned_sizes
from anygiven.lattice.question import Question
from sfarm_fig3 import shown

SET = "fashion-mnist"
STEPS = (2, 8, 32, 78)
SCALES = {
    "laptop": {**LAPTOP, "images": 128, "real": 5000, "scored": 500, "epochs": 3},
    "paper": {**PAPER, "images": 10_000, "real": 10_000, "scored": 10_000,
              "epochs": 20},
}  # fmt: skip


class Classifier(nn.Module):
    """Two convolutions and 64 features."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(),
            nn.Linear(32 * 49, 64), nn.ReLU(),
        )  # fmt: skip
        self.classes = nn.Linear(64, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(self.features(images))


def images_of(levels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(levels.reshape(-1, 1, 28, 28) / 127.5 - 1).float()


def trained_classifier(epochs: int, smoke: bool) -> tuple[Classifier, float]:
    """And its accuracy on the test images."""
    torch.manual_seed(0)
    images, classes = image_set(SET)[: 64 if smoke else None], torch.from_numpy(labels(SET)).long()
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(1 if smoke else epochs):
        for rows in torch.randperm(len(images)).split(128):
            loss = nn.functional.cross_entropy(model(images_of(images[rows.numpy()])), classes[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        guess = model(images_of(image_set(SET, "test"))).argmax(1)
    return model.eval(), float((guess == torch.from_numpy(labels(SET, "test")).long()).float().mean())


@torch.no_grad()
def frechet(model: Classifier, one: np.ndarray, other: np.ndarray) -> float:
    """|m₁ − m₂|² + tr(C₁ + C₂ − 2 (C₁ C₂)^½) of the features."""
    a, b = (model.features(images_of(images)).double().numpy() for images in (one, other))
    ca, cb = np.cov(a.T), np.cov(b.T)
    roots = np.linalg.eigvals(ca @ cb).real.clip(min=0) ** 0.5  # the eigenvalues of the matrix root
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(ca) + np.trace(cb) - 2 * roots.sum())


def measure(run) -> dict:
    return {"data": SET, **run.part("drawn", lambda: drawn_images(run))}


def drawn_images(run) -> dict:
    smoke, domains = run.steps is not None, domains_of(SET)
    model, facts = trained(run, SET)
    classifier, accuracy = trained_classifier(run.settings["epochs"], smoke)
    n = 4 if smoke else run.settings["images"]
    real = image_set(SET, "test")[: 50 if smoke else run.settings["real"]]
    losses = losses_by_evidence(model, held(SET, 2 if smoke else 100, domains, "train"))
    falling = np.interp(np.arange(784), *losses).tolist()
    nothing = torch.zeros(n, 784, dtype=torch.bool)
    question, look = Question(~nothing, nothing), Path.look(nothing, ~nothing)
    ways: dict[str, list] = {}
    pictures = {}

    def note(way: str, steps: int, path: Path, choose=None, looks_again: bool = False) -> None:
        started = time.perf_counter()
        generator = torch.Generator().manual_seed(run.seed)
        cells = draw_cells(model, torch.zeros(n, 784, 4), path, generator, choose=choose, looks_again=looks_again)
        seconds = time.perf_counter() - started
        images = shown(cells[..., :1].numpy(), domains)[..., 0]
        ways.setdefault(way, []).append([steps, frechet(classifier, images, real), round(seconds / n, 4)])
        pictures[f"{way}, {steps} steps"] = packed(images[:10])

    for steps in STEPS:
        generator = torch.Generator().manual_seed(4)
        note("equal groups", steps, Budget(RandomOrder(), steps).path(question, generator), looks_again=True)
        planned = Grouped(RandomOrder(), planned_sizes(falling, steps))
        note("planned groups", steps, planned.path(question, generator), looks_again=True)
        note("surest first", steps, look, surest_first(steps), looks_again=True)
    data, exact = held(SET, 2 if smoke else run.settings["scored"], domains), {}
    for slant in range(1, model.network.lossless_slant + 1):
        lines = Slanted(domains.shape, slant)
        n_steps = lines.path(question).n_steps
        note("slanted lines", n_steps, (Budget(lines, 2) if smoke else lines).path(question))
        exact[n_steps] = nats(model, data, protocol=lines)
    half = frechet(classifier, image_set(SET)[:n], real)
    return {
        "ways": ways,
        "nats_along_lines": exact,
        "real_against_real": half,
        "accuracy": accuracy,
        "pictures": pictures,
        **facts,
    }


def table(results: dict) -> str:
    lines = [f"classifier: {results['accuracy']:.1%} right; real against real {results['real_against_real']:.2f}"]
    for way, points in results["ways"].items():
        lines += [f"{way:<18}{steps:>6} steps{distance:>10.2f}{seconds:>10.3f} s an image"
                  for steps, distance, seconds in points]  # fmt: skip
    lines += [f"test nats by lines of {steps} steps: {found['mean']:.1f} ± {found['standard_error']:.1f}"
              for steps, found in results["nats_along_lines"].items()]  # fmt: skip
    return "\n".join(lines)


def draw(results: dict):
    names = list(results["pictures"])
    rows = {name: unpacked(results["pictures"][name]) for name in names}
    figure = show_rows(rows, 255, 0.6)
    width, height = figure.get_size_inches()
    left = figure.subplotpars.left * width
    figure.set_size_inches(width + 5, height)
    figure.subplots_adjust(left=left / (width + 5), right=width / (width + 5))
    axis = figure.add_axes((0.05 + width / (width + 5), 0.2, 4.2 / (width + 5), 0.6))
    for way, points in results["ways"].items():
        axis.plot([p[0] for p in points], [p[1] for p in points], marker="o", label=way)
    axis.axhline(results["real_against_real"], color="0.5", linestyle=":", label="real against real")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("steps")
    axis.set_title("Fréchet distance, features of a small classifier", fontsize=8)
    axis.legend(frameon=False, fontsize=7)
    return figure
