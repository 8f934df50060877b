"""Answers on the screen: numbers, a small picture in characters, JSON, a PNG."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anygiven.cli.outputs import tell
from anygiven.disk import check_file_place, is_stream, write_whole
from anygiven.errors import QuestionError, require
from anygiven.estimators.answers import Answer
from anygiven.estimators.language import parse_question
from anygiven.inference.distributions import Categories
from anygiven.variables.domains import plain_text

BLOCKS = " ▁▂▃▄▅▆▇█"
WIDTH = 48


def answer_question(density, text: str, plot: Path | None, as_json: bool) -> None:
    if plot:
        if plot.suffix.lower() != ".png" and not is_stream(plot):
            raise QuestionError(f"{plot} does not end in .png, which is what is drawn; choose another name.")
        check_file_place(plot)
    question = parse_question(text)
    values = {name: value for name, value in question.query.items() if value is not None}
    open_ones = [name for name in question.query if name not in values]
    # Columns with a value become evidence for those without: p(a=1, b | c) reads as two steps.
    conditionals = {name: density.conditional(name, {**question.given, **values}) for name in open_ones}
    log_p = None
    if values:
        log_p = float(density.log_prob(query={k: [v] for k, v in values.items()}, given=question.given)[0])
    if as_json:
        tell(plot, json.dumps(_as_json(text, log_p, conditionals), default=str, ensure_ascii=False))
    else:
        tell(plot, "\n".join(_sentences(density, values, log_p, conditionals)))
    if plot:
        asked = [density.conditional(name, question.given) for name in values]
        _save_plot([*asked, *conditionals.values()], [*values.values(), *(None for _ in conditionals)], plot)


def _as_json(text: str, log_p: float | None, conditionals: dict[str, Answer]) -> dict[str, Any]:
    answer: dict[str, Any] = {"question": text}
    if log_p is not None:
        answer |= {"log_prob": log_p if np.isfinite(log_p) else None, "prob": float(np.exp(log_p))}
    answer["columns"] = {name: summary(conditional) for name, conditional in conditionals.items()}
    return answer


def summary(conditional: Answer) -> dict[str, Any]:
    """The figures of one conditional, for programs."""
    masses = {plain_text(value): p for value, p in conditional.probabilities.items()}
    if isinstance(conditional.distribution, Categories):
        return {"mode": conditional.mode, "entropy": conditional.entropy(), "probabilities": masses}
    return {
        "mean": conditional.mean, "std": conditional.std, "mode": conditional.mode, "median": conditional.median,
        "interval90": list(conditional.interval(0.9)), "entropy": conditional.entropy(),
        "probabilities": {value: p for value, p in masses.items() if p >= 1e-4},
    }  # fmt: skip


def _sentences(density, values: dict, log_p: float | None, conditionals: dict[str, Answer]) -> Iterator[str]:
    if log_p is not None:
        shown = ", ".join(f"{name}={plain_text(value)}" for name, value in values.items())
        domains = [density.schema_.domains[density.schema_.index(name)] for name in values]
        kind = "density" if any(getattr(d, "step", 1) is None for d in domains) else "probability"
        yield f"{kind} of {shown}: {np.exp(log_p):.4g} (log {log_p:.3f} nats)"
    for conditional in conditionals.values():
        yield picture(conditional)


def picture(conditional: Answer) -> str:
    """One answer in characters."""
    return _bars(conditional) if isinstance(conditional.distribution, Categories) else _curve(conditional)


def _bars(conditional: Answer, most: int = 8) -> str:
    shown = conditional.top(most)
    width = max(len(plain_text(value)) for value, _ in shown)
    lines = [conditional.title]
    lines += [f"  {plain_text(value):<{width}}  {p:6.1%}  {'█' * round(p * WIDTH)}" for value, p in shown]
    rest = len(conditional.probabilities) - len(shown)
    return "\n".join(lines + ([f"  … and {rest} more"] if rest > 0 else []))


def _curve(conditional: Answer) -> str:
    shown, distribution = conditional.shown, conditional.distribution
    low, high = conditional.interval(0.9)
    lines = [conditional.title]
    lines.append(f"  mean {shown(conditional.mean)}   std {shown(conditional.std)}   mode {shown(conditional.mode)}")
    lines.append(f"  90 % between {shown(low)} and {shown(high)}, median {shown(conditional.median)}")
    left, right = distribution.quantile(np.array([0.005, 0.995]))[0]
    if right > left:
        step = getattr(conditional.variable.domain, "step", None)
        edges = np.linspace(left, right, WIDTH + 1)
        if step is not None and (right - left) / step < WIDTH:  # a column for each value
            edges = np.arange(left - step, right + step / 2, step)
        mass = np.maximum(np.diff(distribution.cdf(edges[None, :])[0]), 0)
        height = np.ceil(mass / max(mass.max(), 1e-12) * (len(BLOCKS) - 1)).astype(int)
        height = np.repeat(height, WIDTH // len(height))
        lines.append("  " + "".join(BLOCKS[h] for h in height))
        ends = [shown(value) for value in conditional.quantile([0.005, 0.995]).tolist()]
        if conditional.variable.storage.is_time:
            ends = [shown(conditional.quantile(level)) for level in (0.005, 0.995)]
        lines.append(f"  {ends[0]}{ends[1]:>{max(len(height) - len(ends[0]), 1)}}")
    heavy = conditional.top(4)
    if heavy and heavy[0][1] > 0.02:
        lines.append("  likeliest: " + ", ".join(f"{_exact(value)} ({p:.1%})" for value, p in heavy if p > 0.01))
    return "\n".join(lines)


def _exact(value: Any) -> str:
    """A value that has a mass, with all its digits; a day without an empty time."""
    return plain_text(value).removesuffix(" 00:00:00")


def _save_plot(conditionals: list[Answer], marks: list, path: Path) -> None:
    """A picture of each; where a value was asked about, a line at it."""
    plt = require("matplotlib.pyplot", "plot")
    plt.switch_backend("Agg")
    n = max(len(conditionals), 1)
    figure, axes = plt.subplots(1, n, figsize=(5 * n, 3.2), squeeze=False)
    for ax, conditional, mark in zip(axes[0], conditionals, marks, strict=True):
        conditional.plot(ax, mark=mark)
    figure.tight_layout()
    write_whole(path, lambda file: figure.savefig(file, dpi=120, format="png"))
    plt.close(figure)
