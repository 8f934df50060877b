"""The state of a training run on disk, so that a killed run goes on where it was. Never pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from anygiven.errors import OutputError


def save_checkpoint(folder: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """One file a checkpoint, written under another name and renamed: the last whole one survives kill -9."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".state.{os.getpid()}.part"
        whole = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
        save_file(whole, temporary, metadata={"facts": json.dumps(facts)})
        os.replace(temporary, folder / "state.safetensors")
    except (OSError, SafetensorError) as error:
        raise OutputError(f"The checkpoint in {folder} could not be written: {error}.") from None


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The last whole checkpoint, or None if there is none that can be used."""
    path = folder / "state.safetensors"
    if not path.exists():
        return None
    try:
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["facts"])
        return load_file(path), facts
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None


def remove_checkpoint(folder: Path) -> None:
    """What save_checkpoint wrote, and the folder if nothing else is in it: it may be one that the user has already."""
    with suppress(OSError):
        for path in [folder / "state.safetensors", *folder.glob(".state.*.part")]:
            path.unlink(missing_ok=True)
        folder.rmdir()


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """The optimisers' states as named tensors."""
    states = [optimizer.state_dict()["state"] for optimizer in optimizers]
    return {
        f"optimizer.{o}.{i}.{key}": value
        for o, state in enumerate(states)
        for i, parts in state.items()
        for key, value in parts.items()
    }


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
