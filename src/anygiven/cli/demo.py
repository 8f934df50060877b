"""anygiven demo: no file, no network; ask, fill, compare, and a report to look at."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anygiven.cli.answers import picture
from anygiven.datasets.demo import diabetes_patients, hide_cells
from anygiven.disk import check_file_place, make_folders, write_text, write_whole
from anygiven.errors import require
from anygiven.estimators import TabularDensity

HIDDEN = 0.2


def run_demo(out: Path, minutes: float, seed: int, as_json: bool) -> None:
    say = (lambda *_: None) if as_json else print
    make_folders(out)
    check_file_place(out / "report.html")
    truth = diabetes_patients()
    table = hide_cells(truth, HIDDEN, seed)
    say(f"442 diabetes patients, {truth.shape[1]} columns; {int(table.isna().sum().sum())} cells are hidden.\n")
    started = time.perf_counter()
    density = TabularDensity(max_minutes=minutes, random_state=seed, verbose=False if as_json else None).fit(table)
    seconds = time.perf_counter() - started
    say(f"Fitted in {seconds:.0f} s.\n{density.describe()}\n")
    questions = {
        "progression | bmi=22": density.conditional("progression", {"bmi": 22.0}),
        "progression | bmi=35, pressure=110": density.conditional("progression", {"bmi": 35.0, "pressure": 110.0}),
        "glucose | age=60, bmi=30": density.conditional("glucose", {"age": 60, "bmi": 30.0}),
    }
    for conditional in questions.values():
        say(picture(conditional) + "\n")  # type: ignore[arg-type]
    started = time.perf_counter()
    errors = compare(truth, table, density.impute(table))
    filling = time.perf_counter() - started
    say(_error_table(errors))
    page = write_report(out, truth, table, density, list(questions.values()), errors)
    say(f"\nReport: {page}")
    if as_json:
        print(json.dumps({"seconds": round(seconds, 1), "filling_seconds": round(filling, 2), "report": str(page),
                          "imputation_error": errors.to_dict("index")}))  # fmt: skip


def compare(truth: pd.DataFrame, table: pd.DataFrame, ours: Any) -> pd.DataFrame:
    """Error on the hidden cells per column: RMSE over standard deviation, or the share of wrong categories."""
    fills = {"anygiven": ours, "mean/mode": _mean_mode(table), "IterativeImputer": _iterative(table)}
    rows = {}
    for name in truth.columns:
        gaps = table[name].isna()
        rows[name] = {
            method: _error(truth[name][gaps], filled[name][gaps], truth[name]) for method, filled in fills.items()
        }
    return pd.DataFrame(rows).T


def _error(truth: Any, filled: Any, whole: pd.Series) -> float:
    if whole.dtype.kind in "if":
        return float(np.sqrt(np.mean((truth.astype(float) - filled.astype(float)) ** 2)) / whole.std())
    return float((truth != filled).mean())


def _mean_mode(table: pd.DataFrame) -> pd.DataFrame:
    return table.fillna({c: table[c].mean() if table[c].dtype.kind == "f" else table[c].mode()[0] for c in table})


def _iterative(table: pd.DataFrame) -> pd.DataFrame:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    codes = table.copy()
    levels = {c: sorted(table[c].dropna().unique()) for c in table if table[c].dtype.kind != "f"}
    for name, values in levels.items():
        codes[name] = table[name].map({value: float(i) for i, value in enumerate(values)})
    filled = pd.DataFrame(IterativeImputer(random_state=0).fit_transform(codes), columns=codes.columns)
    for name, values in levels.items():
        index = filled[name].round().clip(0, len(values) - 1).astype(int)
        filled[name] = index.map(dict(enumerate(values)))
    return filled


def _error_table(errors: pd.DataFrame) -> str:
    lines = ["Hidden cells filled: error against the truth (RMSE / std; share wrong for sex)", ""]
    lines.append(f"{'column':<18}" + "".join(f"{method:>18}" for method in errors.columns))
    for name, row in errors.iterrows():
        lines.append(f"{name!s:<18}" + "".join(f"{value:>18.3f}" for value in row))
    lines.append(f"{'mean':<18}" + "".join(f"{value:>18.3f}" for value in errors.mean()))
    return "\n".join(lines)


def write_report(out: Path, truth, table, density, answers, errors: pd.DataFrame) -> Path:
    """A picture and a page that shows it with the table of errors."""
    picture = out / "report.png"
    _draw(picture, truth, table, density, answers, errors)
    page = out / "report.html"
    html = REPORT.format(
        description=density.describe().split("\n\n")[0].replace("\n", "<br>"),
        errors=errors.to_html(float_format="%.3f", border=0),
    )
    write_text(page, html)
    return page


REPORT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>anygiven demo</title>
<style>body{{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}}
table{{border-collapse:collapse}}td,th{{padding:.2rem .8rem;text-align:right}}img{{max-width:100%}}</style>
<h1>Any question, given anything you know</h1><p>{description}</p>
<img src="report.png" alt="Three conditionals, hidden cells against their fill, and errors by method">
<h2>Error on the hidden cells</h2>
<p>RMSE over the column's standard deviation; for sex the share wrong.</p>{errors}</html>
"""


def _draw(path: Path, truth, table, density, answers, errors: pd.DataFrame) -> None:
    plt = require("matplotlib.pyplot", "plot")
    plt.switch_backend("Agg")
    figure, axes = plt.subplots(2, 3, figsize=(13, 7))
    for ax, conditional in zip(axes[0], answers, strict=True):
        conditional.plot(ax)
    gaps = table["cholesterol"].isna()
    filled = density.impute(table)
    draws = density.impute(table, draws=20, random_state=0)
    spread = np.stack([d["cholesterol"][gaps].to_numpy(dtype=float) for d in draws])
    low, high = np.quantile(spread, [0.05, 0.95], axis=0)
    ax = axes[1][0]
    x, y = truth["cholesterol"][gaps], filled["cholesterol"][gaps]
    ax.vlines(x, low, high, color="#3b6ea5", alpha=0.25)
    ax.scatter(x, y, s=12, color="#3b6ea5")
    ax.axline((200, 200), slope=1, color="#999", linewidth=1)
    ax.set(xlabel="hidden truth", ylabel="filled (bars: 90 % of 20 draws)", title="cholesterol")
    errors.plot.barh(ax=axes[1][1], color=["#3b6ea5", "#bbbbbb", "#c2571a"])
    axes[1][1].set(title="error on hidden cells", xlabel="RMSE / std, or share wrong")
    axes[1][1].invert_yaxis()
    drawn = density.sample(442, random_state=1)
    axes[1][2].scatter(truth["bmi"], truth["progression"], s=8, color="#bbbbbb", label="patients")
    axes[1][2].scatter(drawn["bmi"], drawn["progression"], s=8, color="#c2571a", alpha=0.6, label="drawn")
    axes[1][2].set(xlabel="bmi", ylabel="progression", title="442 patients and 442 draws")
    axes[1][2].legend()
    figure.tight_layout()
    write_whole(path, lambda file: figure.savefig(file, dpi=110, format="png"))
    plt.close(figure)
