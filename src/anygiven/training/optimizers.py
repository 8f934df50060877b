"""The optimisers of a run: AdamW, or Muon for the matrices inside a network and AdamW for the rest."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anygiven.model import AnyOrderModel
from anygiven.training.settings import Settings

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
N_STEPS = 5


def optimizers_for(model: AnyOrderModel, settings: Settings) -> list[torch.optim.Optimizer]:
    inner = {
        name: p
        for name, p in model.named_parameters()
        if settings.muon and p.dim() == 2 and ".blocks." in name and "grams" not in name
    }
    others = [(name, p) for name, p in model.named_parameters() if name not in inner]
    groups, rate = _decayed(others, settings.weight_decay), settings.learning_rate
    adam = torch.optim.AdamW(groups, lr=rate, betas=settings.betas, fused=True)
    if not inner:
        return [adam]
    return [Muon(inner.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay), adam]


def _decayed(parameters: Sequence[tuple[str, Tensor]], weight_decay: float) -> list[dict]:
    """Matrices decay; biases, norms and tables of n-grams, most of whose rows rarely occur, do not."""
    matrices = [p for name, p in parameters if p.dim() >= 2 and "grams" not in name]
    others = [p for name, p in parameters if not (p.dim() >= 2 and "grams" not in name)]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


class Muon(torch.optim.Optimizer):
    """Momentum whose direction is made orthogonal.

    The update of a matrix is its momentum with all singular values brought to about one, by five Newton-Schulz steps,
    so that no direction of the matrix is left behind. torch's own computes in bfloat16, which some processors refuse.
    """

    def __init__(self, params, lr: float = 1e-3, momentum: float = 0.95, weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                momentum = state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                direction = orthogonal(p.grad.lerp(momentum, group["momentum"]))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                # The factor gives updates the size that Adam's would have, so that one learning rate serves both.
                p.add_(direction, alpha=-group["lr"] * 0.2 * max(p.shape) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """The matrix with all its singular values near one."""
    a, b, c = COEFFICIENTS
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(N_STEPS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x
