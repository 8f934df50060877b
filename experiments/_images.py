"""What the experiments on images share: data, a fit of one method, nats and bits with standard errors, pictures."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Sequence

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from _runs import Curve, threads
from anygiven.cli.reproduce import write_json
from anygiven.datasets.images import image_set
from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import build_model
from anygiven.estimators.images import Pictures
from anygiven.estimators.workload import image_workload
from anygiven.inference import raster_order
from anygiven.lattice import (
    ARDM,
    MODES,
    Budget,
    Canonical,
    Joint,
    Objective,
    Path,
    Protocol,
    Question,
    RegionEvidence,
    UniformEvidence,
    Workload,
)
from anygiven.model import AnyOrderModel, PathModel
from anygiven.training import Outcome, Settings, train
from anygiven.training.checkpoint import remove_checkpoint
from anygiven.variables.domains import SharedDomain
from anygiven.variables.images import image_domains, read_images
from anygiven.variables.rows import Data

CONVOLUTIONS = {"network": "convolutions", "width": 64, "depth": 8, "kernel": 5, "learning_rate": 4e-3, "muon": True,
                "batch_size": 16}  # fmt: skip
UNET = {"network": "unet", "width": 32, "depth": 2, "n_sizes": 2, "learning_rate": 1e-3, "muon": False,
        "batch_size": 32}  # fmt: skip
# SFARM's Table 4: 32 base channels and one size for 28×28, 128 channels and 32 blocks for CIFAR-10.
PAPER_MNIST = {"network": "unet", "width": 32, "depth": 4, "n_sizes": 1, "learning_rate": 2e-4, "muon": False,
               "batch_size": 128}  # fmt: skip
PAPER_CIFAR = {"network": "unet", "width": 128, "depth": 32, "n_sizes": 1, "learning_rate": 2e-4, "muon": False,
               "batch_size": 32}  # fmt: skip
# MAC's appendix D.
PAPER_MAC = {**PAPER_CIFAR, "width": 256, "learning_rate": 1e-4, "batch_size": 128, "turns": True,
             "clip": 100.0 / 3072**0.5}  # fmt: skip
PAPER_CONVOLUTIONS = {**CONVOLUTIONS, "width": 128, "depth": 24, "kernel": 7, "batch_size": 128}
# What is trained once for several experiments, on one core.
LAPTOP = {"convolutions": CONVOLUTIONS, "minutes": {"binarized-mnist": 84.0, "fashion-mnist": 72.0, "cifar10": 6.0}}
# A larger network, on two cores.
OVERNIGHT = {"convolutions": {**CONVOLUTIONS, "width": 80, "depth": 9, "n_strides": 3, "threads": 2}, "minutes": 160.0}
SHORT = 15.0  # minutes of one core, where methods are compared on binarized MNIST
PAPER = {"convolutions": PAPER_CONVOLUTIONS, "minutes": 60 * 24 * 14, "n_components": 30}
CHUNK = 50  # images scored at a time
WATCHED = 100  # images along the way
N_VALID = 50  # training images left out, by which the best weights are chosen
VALIDATION = {"binarized-mnist": "valid"}  # the others have a training and a test part alone


def held(name: str, n: int, domains: SharedDomain, part: str = "test") -> Data:
    """n images of a part, evenly spread over it: the first ones may be easier or harder than others."""
    images = image_set(name, part)
    places = np.linspace(0, len(images) - 1, min(n, len(images))).round().astype(int)
    levels = read_images(images[places], domains.domain.n_symbols).levels
    return Pictures(levels, domains).rows(torch.arange(len(levels)))


def domains_of(name: str, element: str = "pixel") -> SharedDomain:
    return image_domains(read_images(image_set(name)), element)


def minutes_of(run, name: str) -> float:
    allowed = run.settings["minutes"]
    return run.minutes or (allowed[name] if isinstance(allowed, dict) else allowed)


def short_minutes_of(run) -> float:
    allowed = run.settings["short_minutes"]
    return min(run.minutes or allowed, allowed)


def fit(run, name: str, method: dict, objective: Objective, domains: SharedDomain, model: AnyOrderModel, minutes: float,
        watch, facts: str) -> Outcome:  # fmt: skip
    """Train a fresh model for some minutes of processor time, whatever else the machine does, on as many cores
    as the method says, or on one; a smoke run takes a step."""
    smoke = run.max_steps is not None
    levels = read_images(image_set(name)[: 80 if smoke else None], domains.domain.n_symbols).levels
    settings = Settings(
        max_steps=run.max_steps or 10_000_000, max_minutes=minutes, processor_time=True, seed=run.seed,
        batch_size=2 if smoke else method["batch_size"], learning_rate=method["learning_rate"], muon=method["muon"],
        weight_decay=0.02, clip=method.get("clip", 1.0), ema=0.998, validation_rows=0, patience=1000,
        evaluations=run.settings.get("evaluations", 10),
    )  # fmt: skip
    learn, left = Pictures(levels[:-N_VALID], domains), Pictures(levels[-N_VALID:], domains)
    learn = Turned(learn, run.seed) if method.get("turns") else learn
    place = None if smoke else run.folder / "training"
    with threads(method.get("threads", 1)):
        valid = left.rows(torch.arange(len(left)))
        outcome = train(model, learn, valid, objective, settings, None, place, facts, watch)
    remove_checkpoint([run.folder / "training"])
    return outcome


class Turned:
    """Half of the images mirrored, half of them turned by a right angle: MAC's way to have more of CIFAR-10."""

    def __init__(self, pictures: Pictures, seed: int):
        self.pictures, self.rng = pictures, np.random.default_rng(seed)

    def __len__(self) -> int:
        return len(self.pictures)

    def rows(self, index: torch.Tensor) -> Data:
        levels = self.pictures.levels[index.numpy()].copy()  # (n, height, width, channels)
        is_mirrored, is_turned = self.rng.random((2, len(levels))) < 0.5
        levels[is_mirrored] = levels[is_mirrored, :, ::-1]
        levels[is_turned] = np.rot90(levels[is_turned], axes=(1, 2))
        return Pictures(levels, self.pictures.domains).rows(torch.arange(len(levels)))


def architecture_of(method: dict, n_components: int) -> Architecture:
    return Architecture(method["network"], method["width"], method["depth"], 0.0, n_components,
                        kernel=method.get("kernel", 5), n_sizes=method.get("n_sizes", 2),
                        n_strides=method.get("n_strides", 2))  # fmt: skip


def trained(run, name: str, which: str = "convolutions", workload: str = "any", element: str = "pixel",
            minutes: float | None = None) -> tuple[AnyOrderModel, dict]:  # fmt: skip
    """A method's model, trained once for all experiments that ask for it, then kept beside the results.

    By default path convolutions for scoring and inpainting alike. The curve holds raster nats, of networks that score
    in one pass, and nats in random orders. What is kept knows its settings, not the code: remove .images-* after a
    change of a network.
    """
    s, domains, method = run.settings, domains_of(name, element), run.settings[which]
    n_components = 0 if domains.domain.n_symbols == 2 else s.get("n_components", 10)
    minutes = minutes or minutes_of(run, name)
    objective = image_workload(workload, method["network"], domains.shape).objective
    model = build_model(domains, architecture_of(method, n_components), run.seed)
    facts = f"{name} {element} {method} {n_components} {minutes} {run.seed} {objective} {model.n_parameters}"
    place = run.folder.parent / f".images-{name}-{which}-{zlib.crc32(facts.encode()):08x}"
    if (place / "facts.json").exists():
        model.load_state_dict(load_file(place / "model.safetensors"))
        return model.eval(), json.loads((place / "facts.json").read_text())
    curve = image_curve(run, name, domains)
    outcome = fit(run, name, method, objective, domains, model, minutes, curve, facts)
    found = {"parameters": model.n_parameters, "steps": outcome.steps, "train_seconds": outcome.seconds,
             "images_seen": outcome.steps * method["batch_size"], "curve": curve.points}  # fmt: skip
    if run.max_steps is None:
        place.mkdir(parents=True, exist_ok=True)
        save_file({name: p.contiguous() for name, p in model.state_dict().items()}, place / "model.safetensors")
        write_json(place / "facts.json", found)
    return model.eval(), found


def image_curve(run, name: str, domains: SharedDomain) -> Curve:
    smoke = run.max_steps is not None
    watched = held(name, 2 if smoke else WATCHED, domains, VALIDATION.get(name, "test"))

    def measure(model: AnyOrderModel) -> list[float | None]:
        raster = nats(model, watched, smoke=smoke)["mean"] if isinstance(model, PathModel) else None
        return [raster, len(domains) * nats_by_looks(model, watched, Joint(), 1 if smoke else 2)["mean"]]

    return Curve(run, measure)


def evidence_kinds(shape: Sequence[int]) -> dict[str, Workload]:
    """SFARM's seven kinds of evidence; in the random one any number of pixels is known."""
    kinds: dict[str, Workload] = {name: RegionEvidence(mode(tuple(shape))) for name, mode in MODES.items()}
    return {**kinds, "random": UniformEvidence()}


@torch.no_grad()
def nats(model: AnyOrderModel, data: Data, workload: Workload | None = None, per_query: bool = False,
         smoke: bool = False, protocol: Protocol | None = None) -> dict:  # fmt: skip
    """−log p(query | evidence) along the raster order (or another): mean and standard error over the images."""
    question = (workload or Joint()).draw(data.is_present, torch.Generator().manual_seed(17))
    protocol = protocol or Canonical()
    found = []
    for rows in torch.arange(len(data)).split(CHUNK):
        part = Question(question.is_query[rows], question.is_evidence[rows])
        path = (Budget(protocol, 2) if smoke else protocol).path(part, torch.Generator().manual_seed(1))
        total = -model.log_prob(data.x[rows], path).sum(1).double()
        found.append(total / path.is_query.sum(1).clamp(min=1) if per_query else total)
    return mean_of(torch.cat(found))


@torch.no_grad()
def nats_by_edges(model: AnyOrderModel, data: Data, workload: Workload, n: int, mode: int = 0) -> dict:
    """The total along the raster order for networks that look: n edges of each path, spread over its length, each
    counted for its share. The same questions as nats() asks, and the same expectation."""
    generator = torch.Generator().manual_seed(17)
    path = Canonical().path(workload.draw(data.is_present, generator))
    size = path.is_query.sum(1)
    total = torch.zeros(len(data), dtype=torch.float64)
    for k in range(n):
        place = (k + torch.rand(len(data), generator=generator, dtype=torch.float64)) / n
        t = (place * size).long().clamp(max=size - 1).unsqueeze(1)  # (B, 1)
        look = told(Path.look(path.step < t, path.step == t), mode)
        for rows in torch.arange(len(data)).split(CHUNK):
            total[rows] -= model.log_prob(data.x[rows], look.rows(rows)).sum(1).double() * size[rows] / n
    return mean_of(total)


def nats_by_looks(model: AnyOrderModel, data: Data, workload: Workload, n: int, mode: int = 0) -> dict:
    """−log p(query | evidence) per asked pixel: mean and standard error over the images."""
    return mean_of(image_nats_by_looks(model, data, workload, n, mode))


@torch.no_grad()
def image_nats_by_looks(model: AnyOrderModel, data: Data, workload: Workload, n: int, mode: int = 0) -> torch.Tensor:
    """(images,) on average over random orders, from n looks an image, the same for every model."""
    objective, generator = ARDM(workload), torch.Generator().manual_seed(17)
    total = torch.zeros(len(data), dtype=torch.float64)
    for _ in range(n):
        for rows in torch.arange(len(data)).split(CHUNK):
            path, weights = objective.draw(data.is_present[rows], generator)
            asked = weights.sum(1).clamp(min=1)  # |query|
            total[rows] -= ((weights * model.log_prob(data.x[rows], told(path, mode))).sum(1) / asked).double() / n
    return total


def told(path: Path, mode: int) -> Path:
    """The same for a network that is told the masking mode; 0 is unsaid."""
    return Path(path.step, torch.full((len(path.step),), mode))


def mean_of(values: torch.Tensor) -> dict:
    spread = float(values.std(unbiased=len(values) > 1))
    return {"mean": float(values.mean()), "standard_error": spread / len(values) ** 0.5}


def bits_of(found: dict, n_dimensions: int) -> dict:
    return {key: value / math.log(2) / n_dimensions for key, value in found.items()}


# ------------------------------------------------------------------ pictures


def drawing_order(model: AnyOrderModel, domains: SharedDomain, smoke: bool = False) -> Protocol:
    """Draws of raster order; a smoke run takes two steps."""
    return Budget(Canonical(), 2) if smoke else raster_order(model, domains.shape)


def packed(images: np.ndarray) -> dict:
    """Images as text, so that a figure can be drawn from the results alone."""
    data = np.ascontiguousarray(images.astype(np.uint8))
    return {"shape": list(data.shape), "data": base64.b64encode(zlib.compress(data.tobytes(), 9)).decode()}


def unpacked(kept: dict) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(kept["data"])), np.uint8).reshape(kept["shape"])


def show_rows(rows: dict[str, np.ndarray], highest: int, scale: float = 0.7):
    """A figure with one named row of images (n, height, width[, channels]) under another."""
    import matplotlib.pyplot as plt

    n, margin = max(len(images) for images in rows.values()), 0.2 + 0.07 * max(map(len, rows))  # inches for the names
    figure, axes = plt.subplots(len(rows), n, figsize=(scale * n + margin, scale * len(rows)), squeeze=False)
    for line, (name, images) in zip(axes, rows.items(), strict=True):
        for axis, image in zip(line, images, strict=False):
            axis.imshow(image, cmap="gray", vmin=0, vmax=highest)
        for axis in line:
            axis.set_xticks([])
            axis.set_yticks([])
            for side in axis.spines.values():
                side.set_visible(False)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    figure.subplots_adjust(left=margin / (scale * n + margin), right=1, top=1, bottom=0, wspace=0.05, hspace=0.05)
    return figure
