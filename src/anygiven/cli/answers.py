"""Answers on the screen: numbers, a small picture in characters, JSON, a PNG."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from anygiven.errors import require
from anygiven.estimators.conditional import CategoricalConditional, Conditional, NumericConditional
from anygiven.estimators.language import parse_question
from anygiven.variables.tables import write_whole

BLOCKS = " ▁▂▃▄▅▆▇█"
WIDTH = 48


def answer_question(density, text: str, plot: Path | None, as_json: bool) -> None:
    question = parse_question(text)
    values = {name: value for name, value in question.query.items() if value is not None}
    conditionals = {
        name: density.conditional(name, question.evidence) for name, value in question.query.items() if value is None
    }
    if values and conditionals:
        # Columns with a value become evidence for those without: p(a=1, b | c) reads as two steps.
        conditionals = {name: density.conditional(name, {**question.evidence, **values}) for name in conditionals}
    log_p = None
    if values:
        log_p = float(density.log_prob(query={k: [v] for k, v in values.items()},
                                       evidence={k: [v] for k, v in question.evidence.items()} or None)[0])  # fmt: skip
    if as_json:
        print(json.dumps(_as_json(text, log_p, conditionals), default=str, ensure_ascii=False))
    else:
        _print(density, values, log_p, conditionals)
    if plot:
        _save_plot(list(conditionals.values()), plot)


def _as_json(text: str, log_p: float | None, conditionals: dict[str, Conditional]) -> dict[str, Any]:
    answer: dict[str, Any] = {"question": text}
    if log_p is not None:
        answer |= {"log_prob": log_p, "prob": float(np.exp(log_p))}
    answer["columns"] = {name: summary(conditional) for name, conditional in conditionals.items()}
    return answer


def summary(conditional: Conditional) -> dict[str, Any]:
    """The figures of one conditional, for programs."""
    if isinstance(conditional, CategoricalConditional):
        masses = {str(value): p for value, p in conditional.probabilities.items()}
        return {"mode": conditional.mode, "entropy": conditional.entropy(), "probabilities": masses}
    assert isinstance(conditional, NumericConditional)
    low, high = conditional.interval(0.9)
    return {
        "mean": conditional.mean, "std": conditional.std, "mode": conditional.mode,
        "median": conditional.quantile(0.5), "interval90": [low, high], "entropy": conditional.entropy(),
        "probabilities": {str(value): p for value, p in conditional.probabilities.items() if p >= 1e-4},
    }  # fmt: skip


def _print(density, values: dict, log_p: float | None, conditionals: dict[str, Conditional]) -> None:
    if log_p is not None:
        shown = ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items())
        domains = [density.schema_.domains[density.schema_.index(name)] for name in values]
        kind = "density" if any(getattr(d, "step", 1) is None for d in domains) else "probability"
        print(f"{kind} of {shown}: {np.exp(log_p):.4g} (log {log_p:.3f} nats)")
    for conditional in conditionals.values():
        print(_picture(conditional))


def _picture(conditional: Conditional) -> str:
    if isinstance(conditional, CategoricalConditional):
        return _bars(conditional)
    assert isinstance(conditional, NumericConditional)
    return _curve(conditional)


def _bars(conditional: CategoricalConditional, most: int = 8) -> str:
    shown = list(conditional.probabilities.items())
    shown = sorted(shown, key=lambda pair: -pair[1])[:most]
    width = max(len(str(value)) for value, _ in shown)
    lines = [conditional._title()]
    lines += [f"  {value!s:<{width}}  {p:6.1%}  {'█' * round(p * WIDTH)}" for value, p in shown]
    rest = len(conditional.probabilities) - len(shown)
    return "\n".join(lines + ([f"  … and {rest} more"] if rest > 0 else []))


def _curve(conditional: NumericConditional) -> str:
    low, high = conditional.interval(0.9)
    lines = [conditional._title()]
    lines.append(
        f"  mean {_number(conditional.mean)}   std {_number(conditional.std)}   mode {_number(conditional.mode)}"
    )
    lines.append(f"  90 % between {_number(low)} and {_number(high)}, median {_number(conditional.quantile(0.5))}")
    left, right = (conditional._number(conditional.quantile(level)) for level in (0.005, 0.995))
    if right > left:
        edges = np.linspace(left, right, WIDTH + 1)
        cdf = [conditional.cdf(_as_value(conditional, edge)) for edge in edges]
        mass = np.maximum(np.diff(cdf), 0)
        height = np.ceil(mass / max(mass.max(), 1e-12) * (len(BLOCKS) - 1)).astype(int)
        lines.append("  " + "".join(BLOCKS[h] for h in height))
        ends = [_number(_as_value(conditional, edge)) for edge in (left, right)]
        lines.append(f"  {ends[0]}{ends[1]:>{max(WIDTH - len(ends[0]), 1)}}")
    heavy = sorted(conditional.probabilities.items(), key=lambda pair: -pair[1])[:4]
    if heavy and heavy[0][1] > 0.02:
        lines.append("  likeliest: " + ", ".join(f"{_number(value)} ({p:.1%})" for value, p in heavy if p > 0.01))
    return "\n".join(lines)


def _as_value(conditional: NumericConditional, number: float) -> Any:
    is_date = conditional.variable.storage.kind in ("date", "datetime")
    return conditional._native(number) if is_date else number


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    text = str(value)
    return text.removesuffix(" 00:00:00").split(".")[0] if " " in text else text


def _save_plot(conditionals: list[Conditional], path: Path) -> None:
    plt = require("matplotlib.pyplot", "plot")
    plt.switch_backend("Agg")
    figure, axes = plt.subplots(
        1, max(len(conditionals), 1), figsize=(5 * max(len(conditionals), 1), 3.2), squeeze=False
    )
    for ax, conditional in zip(axes[0], conditionals, strict=False):
        conditional.plot(ax)  # type: ignore[attr-defined]
    figure.tight_layout()
    write_whole(path, lambda temporary: figure.savefig(temporary, dpi=120, format="png"))
    plt.close(figure)
