"""Model folders that are damaged or hostile: every byte and field may be anything, and signed as if it were ours."""

from __future__ import annotations

import json
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import anygiven as ag
from anygiven.errors import AnyGivenError
from anygiven.estimators import folder as folders

STRANGE: list[Any] = [
    None, True, -1, 0, 1, 2, 7, 1e9, 10**12, 2**63, 10**30, -0.5, 0.5, 1e308, "", "x", "mlp", "nan", "\u0000",
    "💥" * 50, [], [1], [[]], ["a", "a"], {}, {"a": 1}, [None], "x" * 10_000, [0] * 1000, [1e9, -1e9],
]  # fmt: skip


def sign(folder: Path) -> None:
    """Give a folder the checksums of what is in it, as one who wants to be believed would."""
    config = json.loads((folder / folders.CONFIG).read_text())
    if not isinstance(config, dict) or not isinstance(config.get("checksums"), dict):
        return
    parts = {name: (folder / name).read_bytes() for name in folders.FILES}
    (folder / folders.CONFIG).write_bytes(folders.signed_config(config, parts))


def damage(folder: Path, rng: np.random.Generator) -> str:
    """Flip, cut, double or blank bytes of one file; nothing is signed."""
    path = folder / str(rng.choice([folders.CONFIG, *folders.FILES]))
    data, place = path.read_bytes(), 0
    place = int(rng.integers(len(data)))
    how = str(rng.choice(["flip", "cut", "double", "blank", "noise"]))
    size = int(rng.integers(1, 50))
    changed = {
        "flip": data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1 :],
        "cut": data[:place],
        "double": data[:place] + data[place : place + size] + data[place:],
        "blank": data[:place] + b"\0" * len(data[place : place + size]) + data[place + size :],
        "noise": data[:place] + rng.bytes(size) + data[place + size :],
    }[how]
    path.write_bytes(changed)
    return f"{how} {path.name} at {place}" if changed != data else "nothing"


def mutate(folder: Path, rng: np.random.Generator) -> str:
    """Change one field of one JSON file to something strange, or drop or double it, and sign the folder again."""
    path = folder / str(rng.choice([folders.CONFIG, "schema.json", "workload.json", "report.json"]))
    data = json.loads(path.read_text())
    places = list(_places(data))
    parent, key = places[int(rng.integers(len(places)))]
    strange = STRANGE[int(rng.integers(len(STRANGE)))]
    how = str(rng.choice(["change", "change", "drop", "add", "scale"]))
    old = parent[key]
    if how == "drop":
        del parent[key]
    elif how == "add" and isinstance(parent, dict):
        parent["strange"] = strange
    elif how == "add":
        parent.insert(key, old)
    elif how == "scale" and isinstance(old, (int, float)) and not isinstance(old, bool):
        parent[key] = old * float(rng.choice([-1, 0, 1e-9, 2, 10, 1e6, 1e12]))
        parent[key] = int(parent[key]) if isinstance(old, int) else parent[key]
    else:
        parent[key] = strange
    path.write_text(json.dumps(data))
    sign(folder)
    return f"{how} {path.name} {key!r}: {str(old)[:30]} → {str(strange)[:30]}"


def _places(data: Any):
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else []
    for key, value in items:
        yield data, key
        if isinstance(value, list) and len(value) > 8:  # one of a thousand knots is like another
            value = value[:3]
        yield from _places(value)


def try_out(folder: Path, most_seconds: float = 10.0) -> str:
    """Load a folder and ask it: "refused" in one sentence or "answered"; all else is an error."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            density = ag.load(folder)
        except AnyGivenError as error:
            return _in_time("refused", started, most_seconds, str(error))
        try:
            ask(density)
        except AnyGivenError as error:
            return _in_time("refused when asked", started, most_seconds, str(error))
    return _in_time("answered", started, most_seconds)


def _in_time(what: str, started: float, most_seconds: float, sentence: str = "") -> str:
    assert "\n" not in sentence
    assert len(sentence) < 1000
    assert time.perf_counter() - started < most_seconds
    return what


def ask(density: Any) -> None:
    density.describe()
    if density.kind == "tabular":
        density.sample(2, random_state=0)
        one = density.conditional(density.schema_.names[0])
        one.sample(3, random_state=0)
        density.log_prob(density.sample(2, random_state=1))
    elif density.kind == "text":
        density.sample(1, random_state=0)
        density.fill("_" * min(density.length, 4), 1, steps=2, random_state=0)
    else:
        density.sample(1, steps=2, random_state=0)


def copy_of(model: Path, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(model, place))
