"""Peak memory of fitting 100,000 × 50: python benchmarks/memory.py [--quick] [--json]

The whole of diabetes130 (101,766 rows, 50 columns, some with 700 categories), read from its file and fitted; then 2,000
rows are scored and filled. Peak resident memory of the process, over the 4 GB that the goal allows.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import anygiven
from anygiven import TabularDensity
from anygiven.datasets import find_file
from anygiven.datasets.demo import hide_cells

RESULT = Path(__file__).parent / "results" / "memory.json"
GOAL_GB = 4.0


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a quarter of a minute of training")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    minutes = 0.25 if arguments.quick else 1.0
    path = find_file("tables/diabetes130.csv.gz", "UCI")
    started = time.perf_counter()
    density = TabularDensity(max_minutes=minutes, verbose=False).fit(path)
    fitted, fit_gb = time.perf_counter() - started, peak_gb()
    rows = density.sample(2000)
    density.log_prob(rows)
    density.impute(hide_cells(rows, 0.3, seed=0))
    result = {
        "ratio": peak_gb() / GOAL_GB, "peak_gb_of_fit": fit_gb, "peak_gb_in_all": peak_gb(), "goal_gb": GOAL_GB,
        "rows": density.report_["rows"], "columns": density.report_["columns"], "minutes": minutes,
        "fit_seconds": round(fitted, 1), "version": anygiven.__version__,
        "command": "python benchmarks/memory.py", "seed": 0,
    }  # fmt: skip
    if not arguments.quick:
        RESULT.write_text(json.dumps(result, indent=1))
    print(json.dumps(result) if arguments.json else f"peak {peak_gb():.2f} GB (fit: {fit_gb:.2f} GB)")


if __name__ == "__main__":
    main()
