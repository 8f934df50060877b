"""The binary density sets of the papers on circuits and NADE, with their own train, valid and test rows."""

from __future__ import annotations

import numpy as np

from anygiven.datasets.files import find_file, read_array
from anygiven.errors import TableError

ORIGIN = "https://github.com/UCLA-StarAI/Density-Estimation-Datasets"
N_VARIABLES = {
    "nltcs": 16, "plants": 69, "baudio": 100, "bnetflix": 100, "accidents": 111, "dna": 180, "mushrooms": 112,
}  # fmt: skip
PARTS = ("train", "valid", "test")
N_ROWS = {  # of the three parts
    "nltcs": (16181, 2157, 3236), "plants": (17412, 2321, 3482), "baudio": (15000, 2000, 3000),
    "bnetflix": (15000, 2000, 3000), "accidents": (12758, 1700, 2551), "dna": (1600, 400, 1186),
    "mushrooms": (2000, 500, 5624),
}  # fmt: skip


def binary_set(name: str, part: str = "train") -> np.ndarray:
    """(rows, variables) of 0 and 1; the part is "train", "valid" or "test".

    As the repository has it (binary/nltcs/nltcs.train.data, one row a line), or packed (binary/nltcs.npz).
    """
    if name not in N_VARIABLES:
        raise TableError(f"There is no binary set {name!r}; there are {', '.join(N_VARIABLES)}.")
    if part not in PARTS:
        raise TableError(f"A binary set has no part {part!r}; it has {', '.join(PARTS)}.")
    n = N_VARIABLES[name]
    try:
        path = find_file(f"binary/{name}.npz", ORIGIN)
        data = _unpacked(read_array(path, part), n)
    except TableError as missing:
        if "is not here" not in str(missing):
            raise
        path = find_file(f"binary/{name}/{name}.{part}.data", ORIGIN)
        try:
            data = np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2) if path.stat().st_size else np.zeros((0, n))
        except (ValueError, OSError) as error:
            raise TableError(f"{path} is another file ({error}); get it again from {ORIGIN}.") from None
    rows = N_ROWS[name][PARTS.index(part)]
    if data.shape != (rows, n) or data.max() > 1:
        raise TableError(
            f"{path} is another file, cut short or another version: the {part} part of {name} has {rows:,} rows of {n} "
            f"zeros and ones; get it again from {ORIGIN}."
        )
    return data


def _unpacked(packed: np.ndarray, n: int) -> np.ndarray:
    """(rows, n) bits; something else than packed bits as a table without rows."""
    if packed.ndim != 2 or packed.dtype != np.uint8 or packed.shape[1] != -(-n // 8):
        return np.zeros((0, n), np.uint8)
    return np.unpackbits(packed, axis=1)[:, :n]
