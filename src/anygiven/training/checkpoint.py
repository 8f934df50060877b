"""The state of a training run on disk, so that a killed run goes on where it was. Never pickle.

One safetensors file, whose metadata says that it is ours and holds the facts of the run and a checksum of all.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import torch
from msgspec import Meta, Struct
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from anygiven.disk import check_file_place, check_folder_place, make_folders, remove_files, write_whole
from anygiven.errors import OutputError

MADE_BY = "anygiven"
STATE = "state.safetensors"
Count = Annotated[int, Meta(ge=0, le=10**12)]
ALL_OR_NONE = (set(), {"step", "exp_avg", "exp_avg_sq"}, {"momentum"})  # of AdamW, and of Muon
Seconds = Annotated[float, Meta(ge=0, le=1e9)]


class Facts(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run knows beside its tensors; a figure that is not finite is None."""

    fingerprint: str
    step: Count
    max_steps: Count
    max_minutes: Annotated[float, Meta(gt=0, le=1e9)] | None
    spent: Seconds
    stale: Count
    evaluating: Seconds
    evaluation_seconds: Seconds
    train_nats: float | None
    best_nats: float | None
    best_step: Count
    stopped: str
    curve: list[tuple[Count, Seconds, float | None]]

    def __post_init__(self):
        steps = [point[0] for point in self.curve]
        if self.step > self.max_steps or steps != sorted(steps) or not steps or max(steps, default=0) > self.step:
            raise ValueError("the steps of the checkpoint do not fit together")


class OtherTrainingError(OutputError):
    """The place keeps a training that is not this one: it is not thrown away."""


class DamagedCheckpoint(Exception):
    """The file is ours, and not as we wrote it."""


def save_checkpoint(folder: Path, tensors: dict[str, Tensor], facts: Facts) -> None:
    """One file a checkpoint, whole or as it was before: the last one survives kill -9."""
    _check_ours(folder / STATE)
    whole = {name: tensor.cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = msgspec.json.encode(facts).decode()
    metadata = {"made_by": MADE_BY, "facts": text, "checksum": _checksum(whole, text)}
    make_folders(folder)
    try:
        write_whole(folder / STATE, lambda file: file.write(save(whole, metadata)))
    except OutputError:
        remove_checkpoint([folder, folder.parent] if not (folder / STATE).exists() else [])
        raise


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], Facts] | None:
    """The last whole checkpoint, None if there is none."""
    path = folder / STATE
    if not path.exists():
        return None
    _check_ours(path)
    try:
        text = _metadata(path)["facts"]
        facts = msgspec.json.decode(text, type=Facts)
        tensors = load_file(path)
        is_whole = _metadata(path)["checksum"] == _checksum(tensors, text)
    except (OSError, SafetensorError, KeyError, msgspec.MsgspecError, RecursionError) as error:
        raise DamagedCheckpoint(str(error)) from None
    if not is_whole:
        raise DamagedCheckpoint("its checksum is another")
    return tensors, facts


def check_checkpoint_place(folder: Path) -> None:
    """Say before the training what would keep its state from being written: nothing that is not ours is replaced."""
    if not folder.exists():
        nearest = folder
        while not nearest.parent.exists():
            nearest = nearest.parent
        check_folder_place(nearest, lambda _: None)
        return
    if not folder.is_dir():
        raise OutputError(f"{folder} is a file; checkpoints need a folder of that name.")
    _check_ours(folder / STATE)
    check_file_place(folder / STATE)


def remove_checkpoint(folders: Iterable[Path]) -> None:
    """What save_checkpoint wrote, and folders that are empty then: one may hold the user's own things."""
    for folder in folders:
        path = folder / STATE
        remove_files(folder, [path] if is_checkpoint(path) else [])


def is_checkpoint(path: Path) -> bool:
    """Whether the file says that it is ours; a pipe or a device is not read."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and _metadata(path).get("made_by") == MADE_BY
    except (OSError, SafetensorError):
        return False


def steps_kept(folder: Path) -> int | None:
    """How many steps the checkpoint of a run holds; of several members all together. None if there is none."""
    facts = []
    for path in sorted(folder.glob(f"member-*/{STATE}")):
        if is_checkpoint(path):
            try:
                facts.append(msgspec.json.decode(_metadata(path)["facts"], type=Facts))
            except (KeyError, msgspec.MsgspecError, RecursionError):
                return None
    return sum(one.step for one in facts) if facts else None


def _check_ours(path: Path) -> None:
    if path.exists() and not is_checkpoint(path):
        raise OutputError(f"{path} is not a checkpoint of anygiven, or a damaged one; move or delete it.")


def _metadata(path: Path) -> dict[str, str]:
    with safe_open(path, framework="pt") as file:
        return file.metadata() or {}


def _checksum(tensors: dict[str, Tensor], facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """The optimisers' states as named tensors."""
    states = [optimizer.state_dict()["state"] for optimizer in optimizers]
    return {
        f"optimizer.{o}.{i}.{key}": value
        for o, state in enumerate(states)
        for i, parts in state.items()
        for key, value in parts.items()
    }


def check_optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    """That each parameter has all of its optimiser's numbers or, before its first step, none."""
    for o, optimizer in enumerate(optimizers):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for i, parameter in enumerate(parameters):
            start = f"optimizer.{o}.{i}."
            mine = {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}
            if set(mine) not in ALL_OR_NONE:
                raise DamagedCheckpoint("an optimiser's numbers are missing")
            for key, tensor in mine.items():
                is_like = tensor.numel() == 1 if key == "step" else tensor.shape == parameter.shape
                if not is_like or not tensor.is_floating_point() or not bool(tensor.isfinite().all()):
                    raise DamagedCheckpoint("an optimiser's numbers do not fit")
    known = tuple(f"optimizer.{o}." for o in range(len(optimizers)))
    if any(name.startswith("optimizer.") and not name.startswith(known) for name in tensors):
        raise DamagedCheckpoint("it has more optimisers than the run")


def restore_optimizers(optimizers: Sequence[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    for o, optimizer in enumerate(optimizers):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith(f"optimizer.{o}."):
                _, _, i, key = name.split(".", 3)
                like = parameters[int(i)].detach()
                # Fused optimisers read memory straight on: it must lie as the parameter's does.
                laid_out = torch.empty_like(like).copy_(tensor) if tensor.shape == like.shape else tensor
                state.setdefault(int(i), {})[key] = laid_out
        whole = optimizer.state_dict()
        whole["state"] = state
        optimizer.load_state_dict(whole)
