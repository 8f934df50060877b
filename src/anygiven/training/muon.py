"""Muon: momentum whose direction is made orthogonal, for the matrices inside a network.

The update of a matrix is its momentum with all singular values brought to about one, by five Newton-Schulz steps, so
that no direction of the matrix is left behind. torch's own computes in bfloat16, which some processors refuse.
"""

from __future__ import annotations

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
N_STEPS = 5


class Muon(torch.optim.Optimizer):
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
