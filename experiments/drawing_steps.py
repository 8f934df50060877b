"""Drawing in fewer steps: bits of the draws under a held-out judge, against the number of network calls.

Half of the characters of test chunks are hidden and drawn again by the path Transformer of novels-hour: one at a
time; in equal groups; in groups planned by ARDM's dynamic programme over the measured losses, of random characters or
of characters a stride apart, as TextDensity does; in groups that are nearly independent. The judge is another model,
left to right, trained on the validation books, that scores the whole chunk; real text is the line to reach.
"""

from __future__ import annotations

import numpy as np
import torch

from _novels import HOUR, PAPER, bits, corpus, fit, held_chunks, hour_model
from anygiven.inference import draw as draw_cells
from anygiven.inference import losses_by_evidence, nearly_independent
from anygiven.lattice import (
    Budget,
    Canonical,
    Grouped,
    Joint,
    Path,
    RandomOrder,
    Strided,
    WholePath,
    planned_sizes,
)
from anygiven.lattice.question import Question, random_subset
from anygiven.variables.rows import Data

STEPS = (1, 2, 4, 8, 16)
BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0)  # nats
SCALES = {
    "laptop": {**HOUR, "length": 64, "judge_minutes": 8.0, "texts": 400},
    "paper": {**PAPER, "length": 250, "judge_minutes": PAPER["minutes"], "texts": 2000},
}


def measure(run) -> dict:
    part = run.part("drawn", lambda: drawn_texts(run))
    return {"data": f"novels, {len(corpus('train')):,} training characters", **part}


def drawn_texts(run) -> dict:
    smoke, length = run.max_steps is not None, run.settings["length"]
    model, facts = hour_model(run, length)
    minutes = run.minutes or run.settings["judge_minutes"]
    judge, _ = fit(run, "path", WholePath(Joint()), length, part="valid", max_minutes=minutes)
    data = held_chunks(length, 2 if smoke else run.settings["texts"], "test")
    half = torch.full((len(data),), length // 2)
    known = random_subset(data.is_present, half, torch.Generator().manual_seed(3))
    losses = losses_by_evidence(model, held_chunks(length, 2 if smoke else 100, "valid"))
    asked = np.interp(np.arange(length // 2, length), *losses).tolist()
    question = Question(~known, known)
    ways: dict[str, list] = {}

    def note(way: str, path: Path, choose=None) -> None:
        calls, drawn = counted(model, data, path, run.seed, choose)
        ways.setdefault(way, []).append([calls, bits(judge, drawn, Joint(), smoke)["bits"]])

    note("one at a time", Canonical().path(question))
    for steps in STEPS:
        generator, sizes = torch.Generator().manual_seed(4), planned_sizes(asked, steps)
        note("equal groups, at random", Budget(RandomOrder(), steps).path(question, generator))
        note("planned groups, at random", Grouped(RandomOrder(), sizes).path(question, generator))
        note("planned groups, strided", Grouped(Strided(steps), sizes).path(question))
    for bound in BOUNDS:
        note("nearly independent", Path.look(known, ~known), nearly_independent(bound))
    return {"real_text": bits(judge, data, Joint(), smoke), "losses": losses, "ways": ways, **facts}


def counted(model, data: Data, path: Path, seed: int, choose) -> tuple[float, Data]:
    """Network calls of a row on average, and the data with the draws in place."""
    calls = []

    def choosing(walk, entropy):
        calls.append(float(walk.is_asked.any(1).float().mean()))
        return choose(walk, entropy) if choose else torch.ones_like(entropy, dtype=torch.bool)

    drawn = draw_cells(model, data.x, path, torch.Generator().manual_seed(seed), choose=choosing)
    return sum(calls), Data(drawn, data.is_present)


def table(results: dict) -> str:
    lines = [f"{'real text':<28}{'':>8}{results['real_text']['bits']:>10.3f} bits per character under the judge"]
    for way, points in results["ways"].items():
        lines += [f"{way:<28}{calls:>8.1f}{judged:>10.3f}" for calls, judged in points]
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    for way, points in results["ways"].items():
        calls, judged = zip(*sorted(points), strict=True)
        axis.plot(calls, judged, marker="o", label=way)
    axis.axhline(results["real_text"]["bits"], color="0.5", linestyle=":", label="real text")
    axis.set_xscale("log")
    axis.set_xlabel("network calls")
    axis.set_ylabel("bits per character under the judge")
    axis.legend(frameon=False)
    return figure
