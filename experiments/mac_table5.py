"""MAC's Table 5: test log-likelihood of what is hidden, each cell known with probability ½, of ACE, MAC and ours.

Also the error of the conditional mean (one look, RMSE over the column's spread, averaged), and what training and
answers cost. The models are those of mac-table4, trained once for both tables.
"""

from __future__ import annotations

from _mac_tables import N_ORDERS, REPEATS, SCALES, figures_of, lines_of, picture

__all__ = ["REPEATS", "SCALES", "draw", "measure", "table"]
COLUMNS = {
    "one order": ("conditionals", "1"), f"{N_ORDERS} orders": ("conditionals", str(N_ORDERS)),
    "NRMSE": ("conditionals", "nrmse"), "s / 1000 answers": ("conditionals", "1", "seconds_per_1000_rows"),
    "s / step": ("seconds_per_step",),
}  # fmt: skip


def measure(run) -> dict:
    return figures_of(run)


def table(results: dict) -> str:
    return "\n".join(lines_of(results, dict.fromkeys(results["sets"], COLUMNS)))


def draw(results: dict):
    shown = {name: COLUMNS[name] for name in ("one order", f"{N_ORDERS} orders")}
    return picture(results, dict.fromkeys(results["sets"], shown))
