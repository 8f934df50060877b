"""The binary density sets of the papers on circuits and NADE, with their own train, valid and test rows."""

from __future__ import annotations

import numpy as np

from anygiven.datasets.files import find_file, read_array
from anygiven.errors import TableError

ORIGIN = "https://github.com/UCLA-StarAI/Density-Estimation-Datasets"
N_VARIABLES = {
    "nltcs": 16, "plants": 69, "baudio": 100, "bnetflix": 100, "accidents": 111, "dna": 180, "mushrooms": 112,
}  # fmt: skip


def binary_set(name: str, part: str = "train") -> np.ndarray:
    """(rows, variables) of 0 and 1; the part is "train", "valid" or "test".

    As the repository has it (binary/nltcs/nltcs.train.data, one row a line), or packed (binary/nltcs.npz).
    """
    if name not in N_VARIABLES:
        raise TableError(f"There is no binary set {name!r}; there are {', '.join(N_VARIABLES)}.")
    n = N_VARIABLES[name]
    try:
        path = find_file(f"binary/{name}.npz", ORIGIN)
        data = np.unpackbits(read_array(path, part), axis=1)[:, :n]
    except TableError as missing:
        if "is not here" not in str(missing):
            raise
        path = find_file(f"binary/{name}/{name}.{part}.data", ORIGIN)
        try:
            data = np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2)
        except (ValueError, OSError) as error:
            raise TableError(f"{path} is another file ({error}); get it again from {ORIGIN}.") from None
    if data.shape[1] != n or len(data) == 0 or data.max() > 1:
        raise TableError(f"{path} is not {name}: it must have rows of {n} zeros and ones; get it from {ORIGIN}.")
    return data
