"""POWER, GAS, HEPMASS, MINIBOONE and BSDS300 as MAF (Papamakarios et al. 2017) prepared them: the density benchmarks.

Each set is looked for as the archive has it (data.tar.gz unpacked as maf/: maf/power/data.npy, …) or as its source has
it; then as the part that fits a laptop. What is found is checked: another file, a cut one, another version is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from anygiven.datasets.files import find_file, read_array
from anygiven.errors import TableError, require

ARCHIVE = "MAF's archive, https://zenodo.org/record/1161203 (data.tar.gz, unpacked as maf/)"
TOO_ALIKE = 0.98  # of two columns of GAS with a higher correlation one goes
MOST_REPEATS = 5  # a column of HEPMASS with a value that comes oftener goes


@dataclass(frozen=True)
class Splits:
    """(rows, columns) each, standardised as MAF does; and whether it is the whole set or the part for a laptop."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    is_whole: bool

    @property
    def n_columns(self) -> int:
        return self.train.shape[1]


def maf_set(name: str, whole: bool = True) -> Splits:
    """One of the five; with whole=False a part of it will do, where the whole is not here."""
    if name not in SETS:
        raise TableError(f"There is no density set {name!r}; there are {', '.join(SETS)}.")
    splits = SETS[name]()
    if whole and not splits.is_whole:
        n = sum(len(part) for part in (splits.train, splits.valid, splits.test))
        raise TableError(f"Of {name} only {n:,} rows are here: get the whole from {ARCHIVE}, or say whole=False.")
    return splits


def power(seed: int = 42) -> Splits:
    """Household power: two columns go, noise fills the gaps between what the meters can show."""
    path, is_whole = _whole_or_part("power/data.npy", "density/household_power_one_month.csv.gz")
    if is_whole:
        data = read_array(path)
        _check(path, data, columns=8, rows=2_049_280)
    else:
        data = _meters(path)
    rng = np.random.RandomState(seed)
    rng.shuffle(data)
    data = np.delete(data, [1, 3], axis=1)
    n = len(data)
    # MAF leaves the clock without noise; in a month every minute comes some thirty times: a spike a minute would win.
    clock = np.zeros((n, 1)) if is_whole else rng.rand(n, 1)
    noise = np.hstack([0.001 * rng.rand(n, 1), 0.01 * rng.rand(n, 1), rng.rand(n, 3), clock])
    return _split(data + noise, is_whole)


def _meters(path: Path) -> np.ndarray:
    """(rows, 8) of UCI's own file: the seven meters and the minute of the day."""
    try:
        frame = pd.read_csv(path, sep=None, engine="python", na_values=["?"]).dropna()
        meters = frame[[c for c in frame.columns if c not in ("Date", "Time")]].to_numpy(dtype=float)
        clock = pd.to_timedelta(frame["Time"]).dt.total_seconds().to_numpy() / 60
    except (ValueError, KeyError, UnicodeDecodeError, OSError, EOFError) as error:
        raise TableError(
            f"{path} is not UCI's household power ({type(error).__name__}); get it again from UCI."
        ) from None
    _check(path, meters, columns=7)
    return np.column_stack([meters, clock])


def gas() -> Splits:
    """Gas sensors: time and the two gases go, then columns that say nearly the same as another."""
    path = find_file("maf/gas/ethylene_CO.txt", "UCI's gas sensor array under dynamic mixtures (MAF's own is a pickle)")
    try:
        data = pd.read_csv(path, sep=r"\s+", skiprows=1, header=None).to_numpy(dtype=float)
    except (ValueError, OSError, EOFError, UnicodeDecodeError) as error:
        raise TableError(f"{path} is not ethylene_CO.txt ({type(error).__name__}); get it again from UCI.") from None
    _check(path, data, columns=19)
    data = data[:, 3:]
    while True:
        alike = (np.corrcoef(data.T) > TOO_ALIKE).sum(1)
        if not (alike > 1).any():
            break
        data = np.delete(data, int(np.flatnonzero(alike > 1)[0]), axis=1)
    return _split((data - data.mean(0)) / data.std(0), True)


def hepmass() -> Splits:
    """Collisions of the signal class; columns whose values repeat go."""
    train, test = (_collisions(find_file(f"maf/hepmass/1000_{part}.csv", ARCHIVE)) for part in ("train", "test"))
    test = test[:, : train.shape[1]]  # the test file has a column more
    mean, std = train.mean(0), train.std(0)
    train, test = (train - mean) / std, (test - mean) / std
    kept = [i for i, column in enumerate(train.T) if max(Counter(column).values()) <= MOST_REPEATS]
    train, test = train[:, kept], test[:, kept]
    cut = len(train) - int(0.1 * len(train))
    return Splits(train[:cut], train[cut:], test, True)


def _collisions(path: Path) -> np.ndarray:
    try:
        frame = pd.read_csv(path, index_col=False)
        data = frame.to_numpy(dtype=float)
    except (ValueError, OSError, EOFError, UnicodeDecodeError) as error:
        raise TableError(f"{path} is not HEPMASS ({type(error).__name__}); get it again from {ARCHIVE}.") from None
    if data.shape[1] < 28 or not set(np.unique(data[:, 0])) <= {0.0, 1.0}:
        raise TableError(f"{path} is not HEPMASS: its first column must be the class, 0 or 1, and 27 more follow.")
    return data[data[:, 0] == 1, 1:]


def miniboone() -> Splits:
    """Neutrinos: as the archive has it, standardised."""
    path, is_whole = _whole_or_part("miniboone/data.npy", "density/miniboone_first1523rows.npz")
    data = read_array(path, "data")
    _check(path, data, columns=43, rows=36_488 if is_whole else None)
    return _split(data, is_whole)


def bsds300(seed: int = 0) -> Splits:
    """Patches of natural images: 63 of 64 grey values, less their mean."""
    path, is_whole = _whole_or_part("BSDS300/BSDS300.hdf5", "density/bsds300_patches_uint8.npz")
    if is_whole:
        h5py = require("h5py", "data")
        try:
            with h5py.File(path, "r") as file:
                parts = [np.asarray(file[part], dtype=np.float64) for part in ("train", "validation", "test")]
        except (OSError, KeyError) as error:
            raise TableError(f"{path} is not MAF's BSDS300.hdf5 ({error}); get it again from {ARCHIVE}.") from None
        for part, rows in zip(parts, (1_000_000, 50_000, 250_000), strict=True):
            _check(path, part, columns=63, rows=rows)
        return Splits(parts[0], parts[1], parts[2], True)
    rng = np.random.default_rng(seed)
    parts = [_patches(read_array(path, part), rng, path) for part in ("train", "val", "test")]
    return Splits(parts[0], parts[1], parts[2], False)


def _patches(grey: np.ndarray, rng: np.random.Generator, path: Path) -> np.ndarray:
    _check(path, grey, columns=64)
    data = (grey + rng.random(grey.shape)) / 256
    return (data - data.mean(1, keepdims=True))[:, :-1]


SETS: dict[str, Callable[[], Splits]] = {
    "power": power, "gas": gas, "hepmass": hepmass, "miniboone": miniboone, "bsds300": bsds300,
}  # fmt: skip


def _whole_or_part(whole: str, part: str) -> tuple[Path, bool]:
    """The archive's file, or else the part for a laptop."""
    try:
        return find_file(f"maf/{whole}", ARCHIVE), True
    except TableError as missing:
        try:
            return find_file(part, ARCHIVE), False
        except TableError:
            raise missing from None


def _check(path: Path, data: np.ndarray, columns: int, rows: int | None = None) -> None:
    if data.ndim != 2 or data.shape[1] != columns or (rows is not None and len(data) != rows) or len(data) < 10:
        wanted = f"{rows:,}" if rows is not None else "some"
        raise TableError(f"{path} is another version or cut short: it has the shape {data.shape}, not {wanted} rows of "
                         f"{columns} columns; get it again from {ARCHIVE}.")  # fmt: skip
    if not np.isfinite(data).all():
        raise TableError(f"{path} holds something else than numbers; get it again from {ARCHIVE}.")
    if (data.min(0) == data.max(0)).any():
        raise TableError(f"{path} is another file: a column of it is always the same; get it again from {ARCHIVE}.")


def _split(data: np.ndarray, is_whole: bool) -> Splits:
    """The last tenth to test, the last tenth of the others to validate; by mean and spread of what is not tested."""
    cut = len(data) - int(0.1 * len(data))
    seen, test = data[:cut], data[cut:]
    inner = cut - int(0.1 * cut)
    mean, std = seen.mean(0), seen.std(0)
    scale = lambda part: (part - mean) / std  # noqa: E731
    return Splits(scale(seen[:inner]), scale(seen[inner:]), scale(test), is_whole)
