"""A model is a folder: config.json, schema.json, weights.safetensors, report.json. Never pickle.

config.json holds the checksums of the others, so a folder that was cut short or edited is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from anygiven.errors import ModelFolderError, OutputError

FORMAT = 1
FILES = ("schema.json", "weights.safetensors", "report.json")


def save_folder(folder: Path, config: dict, schema: dict, weights: dict[str, Tensor], report: dict) -> None:
    """Write beside the target and rename: the folder is whole or it is not there."""
    if not folder.absolute().parent.exists():
        raise OutputError(f"There is no folder {folder.parent}; create it first.")
    if folder.exists() and not is_model(folder):
        raise OutputError(f"{folder} exists and is not a model; choose another name.")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        _write_files(temporary, config, schema, weights, report)
        _swap(temporary, folder)
    except OSError as error:
        raise OutputError(f"The model could not be written to {folder}: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_files(folder: Path, config: dict, schema: dict, weights: dict[str, Tensor], report: dict) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _write_json(folder / "schema.json", schema)
    _write_json(folder / "report.json", report)
    try:
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, folder / "weights.safetensors")
    except SafetensorError as error:
        raise OSError(str(error)) from None
    checksums = {name: _checksum(folder / name) for name in FILES}
    _write_json(folder / "config.json", {"format": FORMAT, **config, "checksums": checksums})


def _write_json(path: Path, data: dict) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, separators=(",", ":") if path.name == "schema.json" else None)
        file.flush()
        os.fsync(file.fileno())


def _swap(new: Path, target: Path) -> None:
    """Put the new folder in the target's place; an old model stays until the new one is whole."""
    if not target.exists():
        os.rename(new, target)
        return
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() and (folder / "schema.json").is_file()


def load_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor], dict[str, Any]]:
    """config, schema, weights, report; refused in one sentence if anything is not as it was written."""
    config = _read_config(folder)
    for name in FILES:
        _check_file(folder, name, config["checksums"].get(name))
    from safetensors.torch import load_file

    weights = load_file(folder / "weights.safetensors")
    return config, _read_json(folder / "schema.json"), weights, _read_json(folder / "report.json")


def kind_of(folder, kinds: tuple[str, ...]) -> str:
    """Which kind of density a folder holds."""
    kind = _read_config(Path(folder)).get("kind")
    if kind not in kinds:
        raise ModelFolderError(f"{folder} holds a model of a kind that this anygiven does not know: {kind!r}.")
    return str(kind)


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise ModelFolderError(f"There is no model {folder}; check the path, or make one with anygiven fit.")
    if not folder.is_dir() or not (folder / "config.json").is_file():
        raise ModelFolderError(f"{folder} is not a model: a model is a folder made by anygiven fit.")
    config = _read_json(folder / "config.json")
    if not isinstance(config.get("format"), int) or "checksums" not in config:
        raise ModelFolderError(f"{folder} is not a model: its config.json is not anygiven's.")
    if config["format"] > FORMAT:
        raise ModelFolderError(f"{folder} was made by a newer anygiven ({config.get('version')}); update to read it.")
    return config


def _check_file(folder: Path, name: str, expected: str | None) -> None:
    if not (folder / name).is_file():
        raise ModelFolderError(f"{folder} is not whole: {name} is missing; fit or copy the model again.")
    if _checksum(folder / name) != expected:
        raise ModelFolderError(f"{folder} is damaged: {name} was cut short or edited; fit or copy the model again.")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError):
        raise ModelFolderError(f"{path.parent} is damaged: {path.name} cannot be read; fit or copy it again.") from None
    if not isinstance(data, dict):
        raise ModelFolderError(f"{path.parent} is not a model: {path.name} is not anygiven's.")
    return data
