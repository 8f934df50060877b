"""MAC's Table 4: test log-likelihood of the first 3, 5 and 10 variables, of ACE, MAC and ours, equal processor time.

Laptop: a month of POWER, 1,523 rows of MINIBOONE, BSDS300 patches, UCI protein and power-plant. The models are those of
mac-table5, trained once for both tables.
"""

from __future__ import annotations

from _mac_tables import N_ORDERS, REPEATS, SCALES, figures_of, lines_of, picture

__all__ = ["REPEATS", "SCALES", "draw", "measure", "table"]


def measure(run) -> dict:
    return figures_of(run)


def columns(results: dict) -> dict:
    """Per set: of each k along one order, and over the orders that the default answers with."""
    found = {}
    for set_name, by_method in results["sets"].items():
        kinds = max((runs[0]["marginals"] for runs in by_method.values()), key=len)
        name = {kind: kind.replace(", 1", "").replace(f", {N_ORDERS}", f" ({N_ORDERS} orders)") for kind in kinds}
        found[set_name] = {f"first {name[kind]}": ("marginals", kind) for kind in kinds}
    return found


def table(results: dict) -> str:
    return "\n".join(lines_of(results, columns(results)))


def draw(results: dict):
    most = {name: dict(list(found.items())[-2:]) for name, found in columns(results).items()}  # of the largest k
    return picture(results, most)
