"""The tables of README.md from the committed results: python benchmarks/report.py"""

from __future__ import annotations

from noised import TABLES
from tables import OURS, _load, summary


def main() -> None:
    rows = {name: row for name, row in summary({n: _load(n) for n in TABLES}).items() if OURS in row["likelihood"]}
    print("| table | nats per row: anygiven | best rival | imputation error: anygiven | best rival |")
    print("|---|---|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(cells(row['likelihood'], max, 2) + cells(row['imputation'], min, 3))} |")


def cells(figures: dict[str, float], better, digits: int) -> list[str]:
    """Ours and the best rival, the better one bold."""
    rivals = {method: value for method, value in figures.items() if method != OURS}
    if OURS not in figures or not rivals:
        return ["not measured", "not measured"]
    best = better(rivals, key=lambda m: rivals[m])
    ours_first = better(figures[OURS], rivals[best]) == figures[OURS]
    ours, theirs = f"{figures[OURS]:.{digits}f}", f"{rivals[best]:.{digits}f}"
    return [f"**{ours}**" if ours_first else ours, f"{theirs if ours_first else f'**{theirs}**'} ({best})"]


if __name__ == "__main__":
    main()
