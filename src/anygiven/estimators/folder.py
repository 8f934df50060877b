"""A model is a folder: config.json, schema.json, workload.json, weights.safetensors, report.json. Never pickle.

config.json says that the folder is ours and holds the checksums of all files, its own too: a folder that was cut short
or edited is refused, and only a folder that is as we wrote it is ever replaced. What is read is checked before anything
is built of it: sizes first, then types and ranges, then the weights' shapes against the network's.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import torch
from msgspec import Meta
from torch import Tensor

from anygiven import disk
from anygiven.errors import ModelFolderError, OutputError
from anygiven.estimators.defaults import Architecture
from anygiven.variables.stored import Stored, read_stored

MADE_BY = "anygiven"
FORMAT = 3
CONFIG, SCHEMA, WORKLOAD, WEIGHTS, REPORT = (
    "config.json", "schema.json", "workload.json", "weights.safetensors", "report.json"
)  # fmt: skip
FILES = (SCHEMA, WORKLOAD, WEIGHTS, REPORT)
MAX_CONFIG, MAX_REPORT, MAX_HEADER = 2**20, 2**24, 2**24  # bytes
SCHEMA_TO_WEIGHTS = 16  # a schema is smaller than its weights; so much more would be strange
UNSIGNED = "0" * 64
N_TRIES = 50  # while somebody replaces the folder
T = TypeVar("T")
Shape = tuple[str, tuple[int, ...]]  # the type of a tensor's numbers, and its sides
TYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.bool: "BOOL"}


class Mark(msgspec.Struct, frozen=True):
    """By which we know what we wrote, whatever its version."""

    made_by: Literal["anygiven"]
    format: Annotated[int, Meta(ge=1)]
    version: str


class Config(Stored):
    """config.json."""

    made_by: Literal["anygiven"]
    format: Annotated[int, Meta(ge=1)]
    kind: str
    version: str
    architecture: Architecture
    parameters: dict[str, Any]
    seed: Annotated[int, Meta(ge=0, le=2**62)]
    checksums: dict[str, str]


@dataclass(frozen=True)
class StoredModel:
    """A folder that is as it was written: its files unread but for their sizes and checksums, the weights unread."""

    folder: Path
    config: Config
    schema: bytes
    workload: bytes
    report: bytes
    shapes: dict[str, Shape]  # of the weights, as their header says

    @property
    def n_weights(self) -> int:
        return sum(math.prod(shape) for _, shape in self.shapes.values())

    def weights(self) -> dict[str, Tensor]:
        """Read at once and checked, so that what is checked is what is used."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            weights = load(_checked(self.folder, WEIGHTS, self.config))
        except SafetensorError:
            raise _damaged(self.folder, WEIGHTS) from None
        if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
            raise ModelFolderError(f"{self.folder} has weights that are not finite; fit the model again.")
        return weights


# ------------------------------------------------------------------ writing


def save_folder(
    folder: Path, config: dict, schema: dict, workload: dict, weights: dict[str, Tensor], report: dict
) -> None:
    """Whole or not there; a model that is replaced stays until the new one takes its place."""
    from safetensors.torch import save

    parts = {
        SCHEMA: _plain_json(schema),
        WORKLOAD: _plain_json(workload),
        WEIGHTS: save({name: tensor.contiguous() for name, tensor in weights.items()}),
        REPORT: msgspec.json.encode(report),
    }
    parts[CONFIG] = signed_config({"made_by": MADE_BY, "format": FORMAT, **config}, parts)
    disk.write_folder(folder, {name: _writer(part) for name, part in parts.items()}, check_ours)


def _plain_json(part: dict) -> bytes:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def signed_config(config: dict, parts: dict[str, bytes]) -> bytes:
    """config.json with the checksums of all parts, and of itself with zeros where that stands."""
    checksums = {**{name: _checksum(part) for name, part in parts.items()}, CONFIG: UNSIGNED}
    unsigned = json.dumps({**config, "checksums": checksums}, ensure_ascii=False).encode()
    return unsigned.replace(UNSIGNED.encode(), _checksum(unsigned).encode())


def _writer(part: bytes) -> disk.Write:
    return lambda file: file.write(part)


def check_model_place(folder: Path) -> None:
    """Say before the training what would keep a model from being written there."""
    disk.check_folder_place(folder, check_ours)


def check_ours(folder: Path) -> None:
    """Refuse to replace anything but a model that is as we wrote it."""
    if not folder.is_dir() or not (folder / CONFIG).is_file():
        raise OutputError(f"{folder} exists and is not a model; choose another name.")
    strange = sorted(set(os.listdir(folder)) - {CONFIG, *FILES})
    if strange:
        raise OutputError(
            f"{folder} holds {strange[0]}, which is not part of a model; choose another name, or move it."
        )
    try:
        read_steadily(folder, lambda: _check_files(folder))
    except ModelFolderError:
        raise OutputError(
            f"{folder} is not a model as anygiven wrote it; choose another name, or delete it first."
        ) from None


def _check_files(folder: Path) -> None:
    config = _read_config(folder)
    for name in FILES:
        if (folder / name).exists():
            _checked(folder, name, config)


# ------------------------------------------------------------------ reading


def read_steadily(folder: Path, read: Callable[[], T]) -> T:
    """Read again if the folder was replaced meanwhile: what is read is the old model or the new one, never of both."""
    for _ in range(N_TRIES):
        with _held(folder) as held:
            try:
                return read()
            except ModelFolderError:
                if _identity(folder) == held:
                    raise
    return read()


@contextmanager
def _held(folder: Path) -> Iterator[tuple[int, int] | None]:
    """The number of a folder; while it is open, the number is not given to another."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        yield _identity(folder)
        return
    try:
        yield _identity(descriptor)
    finally:
        os.close(descriptor)


def _identity(folder: Path | int) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.stat(folder)
        return found.st_dev, found.st_ino
    return None


def load_folder(folder: Path) -> StoredModel:
    """Refused in one sentence if anything is not as it was written."""
    config = _read_config(folder)
    shapes = _read_shapes(folder)
    n_bytes = _size(folder, WEIGHTS)
    most = MAX_CONFIG + SCHEMA_TO_WEIGHTS * n_bytes
    schema, workload = _checked(folder, SCHEMA, config, most), _checked(folder, WORKLOAD, config, most)
    return StoredModel(folder, config, schema, workload, _checked(folder, REPORT, config, MAX_REPORT), shapes)


def kind_of(folder: Path, kinds: tuple[str, ...]) -> str:
    """Which kind of density a folder holds."""
    kind = _read_config(folder).kind
    if kind not in kinds:
        raise ModelFolderError(f"{folder} holds a model of a kind that this anygiven does not know: {kind!r}.")
    return kind


def _read_config(folder: Path) -> Config:
    if not os.path.exists(folder):
        raise ModelFolderError(f"There is no model {folder}; check the path, or make one with anygiven fit.")
    if not folder.is_dir() or not (folder / CONFIG).is_file():
        raise ModelFolderError(f"{folder} is not a model: a model is a folder made by anygiven fit.")
    data = _read(folder, CONFIG, MAX_CONFIG)
    try:
        mark = read_stored(data, Mark)
    except ValueError:
        raise ModelFolderError(f"{folder} is not a model: its {CONFIG} is not anygiven's, or damaged.") from None
    if mark.format != FORMAT:
        age = "a newer" if mark.format > FORMAT else "an older"
        raise ModelFolderError(f"{folder} was made by {age} anygiven ({mark.version[:20]}); use that, or fit it again.")
    try:
        config = read_stored(data, Config)
    except ValueError:
        raise _damaged(folder, CONFIG) from None
    mine = config.checksums.get(CONFIG, "")
    if len(mine) != len(UNSIGNED) or _checksum(data.replace(mine.encode(), UNSIGNED.encode())) != mine:
        raise _damaged(folder, CONFIG)
    return config


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def shapes_of(weights: dict[str, Tensor]) -> dict[str, Shape]:
    return {name: (TYPES[tensor.dtype], tuple(tensor.shape)) for name, tensor in weights.items()}


def _read_shapes(folder: Path) -> dict[str, Shape]:
    """From the header alone, so that weights of a strange size are not even read."""
    from safetensors import SafetensorError, safe_open

    _size(folder, WEIGHTS)
    with open(folder / WEIGHTS, "rb") as file:
        if int.from_bytes(file.read(8), "little") > MAX_HEADER:
            raise _damaged(folder, WEIGHTS)
    try:
        with safe_open(folder / WEIGHTS, framework="np") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}
    except (SafetensorError, OSError):
        raise _damaged(folder, WEIGHTS) from None


def _checked(folder: Path, name: str, config: Config, largest: int | None = None) -> bytes:
    data = _read(folder, name, largest)
    if _checksum(data) != config.checksums.get(name):
        raise _damaged(folder, name)
    return data


def _read(folder: Path, name: str, largest: int | None = None) -> bytes:
    size = _size(folder, name)
    if largest is not None and size > largest:
        raise ModelFolderError(f"{folder} is not a model: its {name} has {size:,} bytes, more than one can have.")
    try:
        return (folder / name).read_bytes()
    except OSError:
        raise _damaged(folder, name) from None


def _size(folder: Path, name: str) -> int:
    """Of a plain file: a pipe or a device could be read for ever."""
    try:
        found = (folder / name).stat()
    except OSError:
        found = None
    if found is None or not stat.S_ISREG(found.st_mode):
        raise ModelFolderError(f"{folder} is not whole: {name} is missing; fit or copy the model again.")
    return found.st_size


def _damaged(folder: Path, name: str) -> ModelFolderError:
    return ModelFolderError(f"{folder} is damaged: {name} was cut short or edited; fit or copy the model again.")
