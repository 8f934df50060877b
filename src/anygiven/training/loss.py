"""The loss as a module, so that whatever wraps a module (several processes, a compiler) sees the whole forward pass."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anygiven.lattice import Path
from anygiven.model import AnyOrderModel


class PathLoss(nn.Module):
    """−Σ weights · log p along the path, of a batch: what an Objective asks to be made small, in nats."""

    def __init__(self, model: AnyOrderModel):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, path: Path, weights: Tensor) -> Tensor:
        with autocast(x.device):
            return -(weights.to(x.device) * self.model.log_prob(x, path)).sum()


def autocast(device: torch.device) -> torch.autocast:
    """bfloat16 for the matrices where the device gains by it: on CUDA that has it. A CPU stays in float32."""
    gains = device.type == "cuda" and torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type if device.type in ("cuda", "cpu") else "cpu", torch.bfloat16, enabled=gains)
