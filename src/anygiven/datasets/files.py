"""Where data files are looked for, and how arrays are read from them."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np

from anygiven.errors import TableError


def find_file(name: str, origin: str) -> Path:
    """The path of a data file such as "tables/adult.csv.gz"; `origin` says where a user gets it."""
    places = [os.environ.get("ANYGIVEN_DATA"), Path.home() / ".cache" / "anygiven"]
    for place in places:
        if place and (Path(place) / name).exists():
            return Path(place) / name
    raise TableError(f"{name} is not here: get it from {origin} and set ANYGIVEN_DATA to the folder that holds it.")


def read_array(path: Path, name: str | None = None) -> np.ndarray:
    """A .npy file, or an array of a .npz file; never a pickle."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return loaded[name]
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise TableError(
            f"{path} is another file or cut short ({type(error).__name__}); get it again from where it came."
        ) from None
