"""Small numeric tables of the UCI repository, as arrays."""

from __future__ import annotations

import numpy as np

from anygiven.datasets.files import find_file


def uci_table(name: str) -> np.ndarray:
    """(rows, columns) of "concrete", "energy", "power-plant", …; the last column is the usual target."""
    with np.load(find_file(f"uci/{name}.npz", "the UCI repository")) as file:
        return np.asarray(file["data"], dtype=float)
