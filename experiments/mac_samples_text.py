"""MAC's Appendix C.1 on novels: test chunks, the same with characters hidden, and the blanks filled.

The path Transformer of novels-hour, trained for scoring and filling alike; 10 to 90 % of the characters hidden at
random. A draw is shown as it is, and refined by the joint. Beside the texts: the share of hidden characters that a draw
gets right, and the bits that each one costs.
"""

from __future__ import annotations

import torch

from _novels import HOUR, PAPER, bits, corpus, held_chunks, hour_model
from anygiven.inference import draw as draw_cells
from anygiven.inference import refine
from anygiven.lattice import BernoulliEvidence, Canonical
from anygiven.variables.domains import SYMBOL

HIDDEN = (0.1, 0.3, 0.5, 0.7, 0.9)
SCALES = {
    "laptop": {**HOUR, "length": 250, "texts": 6, "scored": 200, "rounds": 10},
    "paper": {**PAPER, "length": 250, "texts": 18, "scored": 2000, "rounds": 30},
}


def measure(run) -> dict:
    part = run.part("filled", lambda: filled_texts(run))
    return {"data": f"novels, {len(corpus('train')):,} training characters", **part}


def filled_texts(run) -> dict:
    smoke, length = run.max_steps is not None, run.settings["length"]
    model, facts = hour_model(run, length)
    texts = held_chunks(length, 1 if smoke else run.settings["texts"], "test")
    scored = held_chunks(length, 1 if smoke else run.settings["scored"], "test")
    shares, rounds = {}, 0 if smoke else run.settings["rounds"]
    for share in HIDDEN:
        cost = bits(model, scored, BernoulliEvidence(1 - share), smoke, per_query=True)
        shares[f"{share:.0%}"] = {"bits_per_hidden_character": cost, **fill(model, texts, share, run.seed, rounds)}
    return {"shares": shares, **facts}


def fill(model, texts, share: float, seed: int, rounds: int) -> dict:
    generator = torch.Generator().manual_seed(seed + 1)
    question = BernoulliEvidence(1 - share).draw(texts.is_present, generator)
    drawn = draw_cells(model, texts.x, Canonical().path(question), generator)
    refined = refine(model, drawn, question, rounds, generator)
    right = {name: float((x == texts.x)[..., SYMBOL][question.is_query].float().mean())
             for name, x in (("filled", drawn), ("refined", refined))}  # fmt: skip
    rows = zip(*(x[..., SYMBOL] for x in (texts.x, drawn, refined)), question.is_query, strict=True)
    shown = [
        {"original": text(truth), "hidden": text(truth, hidden), "filled": text(guess), "refined": text(better)}
        for truth, guess, better, hidden in rows
    ]  # fmt: skip
    return {"share_right": right, "texts": shown}


def text(symbols: torch.Tensor, is_hidden: torch.Tensor | None = None) -> str:
    characters = corpus("train").alphabet.text(symbols.numpy())
    if is_hidden is None:
        return characters
    return "".join("_" if hidden else c for c, hidden in zip(characters, is_hidden.tolist(), strict=True))


def table(results: dict) -> str:
    lines = []
    for share, part in results["shares"].items():
        cost = part["bits_per_hidden_character"]
        lines.append(
            f"{share} hidden: {cost['bits']:.3f} ± {cost['standard_error']:.3f} bits per hidden character, "
            f"{part['share_right']['filled']:.1%} of a draw right, {part['share_right']['refined']:.1%} refined"
        )
        for kind, words in part["texts"][0].items():
            lines.append(f"  {kind:<9}{words[:100]}")
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(9.5, 5), layout="constrained")
    axis.set_axis_off()
    lines = []
    for share, part in results["shares"].items():
        one = part["texts"][0]
        lines += [f"{share} hidden", *(f"  {kind:<9} {words[:110]}" for kind, words in one.items()), ""]
    axis.text(0, 1, "\n".join(lines), family="monospace", fontsize=8, va="top", transform=axis.transAxes)
    return figure
