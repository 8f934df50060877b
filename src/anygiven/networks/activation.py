"""The nonlinearity of the Transformers; path convolutions have it in fast_gradients.py."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SquaredReLU(nn.Module):
    """relu(x)²: as good as GELU and cheaper on a CPU."""

    def forward(self, h: Tensor) -> Tensor:
        return _SquaredReLU.apply(h)  # type: ignore[return-value]


class _SquaredReLU(torch.autograd.Function):
    """With one tensor saved and two products on the way back; relu and square would pass over memory five times."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:  # type: ignore[override]
        positive = x.relu()
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # type: ignore[override]
        (positive,) = ctx.saved_tensors
        return (gradient * positive).mul_(2)
