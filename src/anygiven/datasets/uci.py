"""Small numeric tables of the UCI repository, as arrays."""

from __future__ import annotations

import numpy as np

from anygiven.datasets.files import find_file, read_array
from anygiven.errors import TableError

ORIGIN = "the UCI repository, as an array `data` in an npz file"
SHAPES = {
    "concrete": (1030, 9), "energy": (768, 9), "yacht": (308, 7), "power-plant": (9568, 5),
    "wine-quality-red": (1599, 12), "protein-tertiary-structure": (45730, 10),
}  # fmt: skip


def uci_table(name: str) -> np.ndarray:
    """(rows, columns) of "concrete", "energy", "power-plant", …; the last column is the usual target."""
    if name not in SHAPES:
        raise TableError(f"There is no UCI table {name!r}; there are {', '.join(SHAPES)}.")
    path = find_file(f"uci/{name}.npz", ORIGIN)
    data = read_array(path, "data")
    if data.shape != SHAPES[name] or data.dtype.kind not in "fiu" or not np.isfinite(data).all():
        raise TableError(
            f"{path} is another file or another version: {name} has {SHAPES[name][0]:,} rows of {SHAPES[name][1]} "
            f"numbers, this has the shape {data.shape}; get it again from {ORIGIN}."
        )
    return data.astype(float)
