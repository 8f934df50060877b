"""Where data files are looked for."""

from __future__ import annotations

import os
from pathlib import Path

from anygiven.errors import TableError


def find_file(name: str, origin: str) -> Path:
    """The path of a data file such as "tables/adult.csv.gz"; `origin` says where a user gets it."""
    places = [os.environ.get("ANYGIVEN_DATA"), Path.home() / ".cache" / "anygiven"]
    for place in places:
        if place and (Path(place) / name).exists():
            return Path(place) / name
    raise TableError(f"{name} is not here: get it from {origin} and set ANYGIVEN_DATA to the folder that holds it.")
