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
    "laptop": {**LAPTOP, "images": 128, "real": 5000, "scored": 500, "repeats": 4, "epochs": 3},
    "paper": {**PAPER, "images": 10_000, "real": 10_000, "scored": 10_000, "repeats": 1,
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


class Judge:
    """Draws along paths, and how far the images are from real ones."""

    def __init__(self, run):
        self.smoke, self.seed, self.domains = run.max_steps is not None, run.seed, domains_of(SET)
        self.model, self.facts = trained(run, SET)
        self.classifier, self.accuracy = trained_classifier(run.settings["epochs"], self.smoke)
        self.n = 4 if self.smoke else run.settings["images"]
        self.real = image_set(SET, "test")[: 50 if self.smoke else run.settings["real"]]
        nothing = torch.zeros(self.n, 784, dtype=torch.bool)
        self.question, self.look = Question(~nothing, nothing), Path.look(nothing, ~nothing)

    def point(self, steps: int, path: Path, repeats: int = 1, **how) -> dict:
        """Of as many draws: their distances, seconds an image, and ten images of the first."""
        drawn, started = [], time.perf_counter()
        for k in range(repeats):
            generator = torch.Generator().manual_seed(self.seed + k)
            cells = draw_cells(self.model, torch.zeros(self.n, 784, 4), path, generator, **how)
            drawn.append(shown(cells[..., :1].numpy(), self.domains)[..., 0])
        seconds = (time.perf_counter() - started) / self.n / repeats
        distances = [frechet(self.classifier, images, self.real) for images in drawn]
        return {"steps": steps, "distances": distances, "seconds": round(seconds, 4), "picture": packed(drawn[0][:10])}


def measure(run) -> dict:
    groups, lines = (
        run.part(name, lambda m=part: m(run)) for name, part in (("groups", by_groups), ("lines", by_lines))
    )
    return {"data": SET, **lines, "ways": {**groups["ways"], **lines["ways"]}}


def by_groups(run) -> dict:
    judge = Judge(run)
    losses = losses_by_evidence(judge.model, held(SET, 2 if judge.smoke else 100, judge.domains, "train"))
    falling = np.interp(np.arange(784), *losses).tolist()
    ways: dict[str, list] = {"equal groups": [], "planned groups": [], "surest first": []}
    for steps in STEPS:
        generator = torch.Generator().manual_seed(4)
        equal = Budget(RandomOrder(), steps).path(judge.question, generator)
        planned = Grouped(RandomOrder(), planned_sizes(falling, steps)).path(judge.question, generator)
        ways["equal groups"].append(judge.point(steps, equal, looks_again=True))
        ways["planned groups"].append(judge.point(steps, planned, looks_again=True))
        ways["surest first"].append(judge.point(steps, judge.look, choose=surest_first(steps), looks_again=True))
    return {"ways": ways}


def by_lines(run) -> dict:
    judge, repeats = Judge(run), run.settings["repeats"]
    data, points, exact = held(SET, 2 if judge.smoke else run.settings["scored"], judge.domains), [], {}
    for slant in range(1, judge.model.network.lossless_slant + 1):
        lines = Slanted(judge.domains.shape, slant)
        n_steps = lines.path(judge.question).n_steps
        path = (Budget(lines, 2) if judge.smoke else lines).path(judge.question)
        points.append(judge.point(n_steps, path, 1 if judge.smoke else repeats))
        exact[n_steps] = nats(judge.model, data, protocol=lines)
    real = [frechet(judge.classifier, images, judge.real)
            for images in np.split(image_set(SET)[: repeats * judge.n], repeats)]  # fmt: skip
    return {"ways": {"slanted lines": points}, "nats_along_lines": exact, "real_against_real": real,
            "accuracy": judge.accuracy, "images": judge.n, **judge.facts}  # fmt: skip


def shown_distance(distances: list[float]) -> str:
    spread = f" ± {np.std(distances, ddof=1) / len(distances) ** 0.5:.1f}" if len(distances) > 1 else ""
    return f"{np.mean(distances):.1f}{spread}"


def table(results: dict) -> str:
    real = shown_distance(results["real_against_real"])
    lines = [f"Fréchet distance of {results['images']} samples in the features of a classifier that is right on "
             f"{results['accuracy']:.1%}; of real images {real}"]  # fmt: skip
    for way, points in results["ways"].items():
        lines += [f"{way:<18}{point['steps']:>6} steps{shown_distance(point['distances']):>16}"
                  f"{point['seconds']:>10.3f} s an image" for point in points]  # fmt: skip
    lines += [f"test nats by lines of {steps} steps: {found['mean']:.1f} ± {found['standard_error']:.1f}"
              for steps, found in results["nats_along_lines"].items()]  # fmt: skip
    return "\n".join(lines)


def draw(results: dict):
    rows = {f"{way}, {point['steps']} steps": unpacked(point["picture"])
            for way, points in results["ways"].items() for point in points}  # fmt: skip
    figure = show_rows(rows, 255, 0.6)
    width, height = figure.get_size_inches()
    left = figure.subplotpars.left * width
    figure.set_size_inches(width + 5, height)
    figure.subplots_adjust(left=left / (width + 5), right=width / (width + 5))
    axis = figure.add_axes((0.05 + width / (width + 5), 0.2, 4.2 / (width + 5), 0.6))
    for way, points in results["ways"].items():
        axis.plot([p["steps"] for p in points], [np.mean(p["distances"]) for p in points], marker="o", label=way)
    real = np.mean(results["real_against_real"])
    axis.axhline(real, color="0.5", linestyle=":", label="real against real")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("steps")
    axis.set_title("Fréchet distance, features of a small classifier", fontsize=8)
    axis.legend(frameon=False, fontsize=7)
    return figure
