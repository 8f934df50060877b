"""The smooth part of a table's numeric columns, on the axis of normal scores: the seam for kinds of column heads.

To add a kind, write a `Smooth` (the distribution) and a `ColumnHead` (features → that distribution) in a file of its
own, and name it in COLUMN_HEADS (heads/__init__.py): tables, saving, the CLI and the contract tests find it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Self

from anygiven.heads.conditional import Conditional, uniform

Function = Callable[[Tensor, Tensor], Tensor]  # scores (P, M) of some rows (P,) → (P, M)
N_NODES, FARTHEST = 257, 5.9  # of a quadrature over quantiles: at the levels Φ(t), t from −FARTHEST to FARTHEST
LEAST_LEVEL = 1e-9  # quantiles further out are those of this level
ENTRIES = 2**22  # numbers of a table at a time
MAX_ITERATIONS = 60
N_PARTS = 32


class Smooth(Conditional):
    """A density of scores; a frozen dataclass whose tensors begin with the batch shape.

    What a kind must say is its log_prob, cdf, log_mass, quantile, temperature, mixed and centres; the rest follows by
    quadrature over its quantiles, unless it knows better.
    """

    def each(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same with every tensor changed: some rows, another type, another device."""
        return replace(self, **{name: _each(part, change) for name, part in self._parts().items()})  # type: ignore[type-var]

    def followed_by(self, others: Sequence[Self]) -> Self:
        """Those of all rows, one part after the other."""
        mine, theirs = self._parts(), [other._parts() for other in others]
        joined = {name: _followed_by(part, [their[name] for their in theirs]) for name, part in mine.items()}
        return replace(self, **joined)  # type: ignore[type-var]

    def _parts(self) -> dict[str, Any]:
        """The fields that have a row for each of the batch: tensors, and distributions that this one is made of."""
        named: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in named.items() if isinstance(value, Tensor | Smooth | tuple)}

    @abstractmethod
    def log_mass(self, low: Tensor, high: Tensor) -> Tensor:
        """log P(low < score ≤ high), with its digits also in the tails."""

    @abstractmethod
    def temperature(self, t: float) -> Smooth: ...

    def mixed(self, others: Sequence[Self], log_shares: Sequence[Tensor]) -> Smooth:
        """The mixture with others, in proportion to exp(log_shares), each of the batch shape."""
        return Together((self, *others), torch.stack(list(log_shares), dim=-1))

    @property
    @abstractmethod
    def centres(self) -> Tensor:
        """(…, K) where the density may be highest."""

    @property
    def n_parts(self) -> int:
        """How many numbers a row takes at each score: bounds the size of tables."""
        return 1

    is_costly = False  # whether a density takes so long that it is worth choosing which are wanted

    def those(self, chosen: tuple[Tensor, ...]) -> Self:
        """Of a batch (B, C) those in some rows (P,) and columns (P,), as a batch of one side."""
        return self.each(lambda tensor: tensor[chosen])

    # ------------------------------------------------------------------ what follows from the quantiles

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        centres = self.centres
        return self.quantile(uniform(centres.shape[:-1], generator, centres.device)).to(centres)

    def quadrature(self) -> tuple[Tensor, Tensor]:
        """Scores (M, …) and weights (M, …) or (M, 1, …) whose sums are means: the trapezoidal rule on the axis of a
        normal's quantiles, which reaches far into the tails."""
        centres = self.centres
        levels, weights = normal_levels(N_NODES, centres)
        shape = (-1, *[1] * (centres.dim() - 1))
        return self.quantile(levels.view(shape).expand(-1, *centres.shape[:-1])), weights.view(shape)

    def log_prob_at(self, z: Tensor) -> Tensor:
        """log_prob of (M, …) scores, some at a time."""
        size = max(1, ENTRIES // max(1, z[0].numel() * self.n_parts))
        return torch.cat([self.log_prob(some) for some in z.split(size)])

    @property
    def mean(self) -> Tensor:
        z, weights = self.quadrature()
        return (z * weights).sum(0)

    @property
    def std(self) -> Tensor:
        z, weights = self.quadrature()
        return ((z - (z * weights).sum(0)) ** 2 * weights).sum(0).sqrt()

    def entropy(self) -> Tensor:
        z, weights = self.quadrature()
        return -(self.log_prob_at(z) * weights).sum(0)

    @property
    def mode(self) -> Tensor:
        """The densest of the centres and of the nodes of a quadrature."""
        candidates = torch.cat([self.centres.movedim(-1, 0), self.quadrature()[0]])
        return candidates.gather(0, self.log_prob_at(candidates).argmax(0, keepdim=True)).squeeze(0)

    def expect(self, function: Function, n: int) -> Tensor:
        """(B,) the mean of a function of the score over each row, by about n nodes or more; for a batch of one side."""
        z, weights = self.quadrature()  # (M, B)
        return (function(z.T.contiguous(), torch.arange(z.shape[1])) * weights.T).sum(1)


def normal_levels(n: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """(n,) levels Φ(t) for t evenly from −FARTHEST to FARTHEST, and the weights of a mean over them."""
    t = torch.linspace(-FARTHEST, FARTHEST, n, dtype=torch.float64)
    weights = torch.exp(-0.5 * t**2)
    return torch.special.ndtr(t).to(like), (weights / weights.sum()).to(like)


def inside(level: Tensor | float, like: Tensor) -> Tensor:
    """Levels as the type and on the device of another tensor, away from 0 and 1 as far as that type can tell."""
    least = max(LEAST_LEVEL, torch.finfo(like.dtype).eps)
    return torch.as_tensor(level, dtype=like.dtype, device=like.device).clamp(least, 1 - least)


def _each(part: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(part, tuple):
        return tuple(_each(one, change) for one in part)
    return change(part) if isinstance(part, Tensor) else part.each(change)


def _followed_by(part: Any, others: Sequence[Any]) -> Any:
    if isinstance(part, tuple):
        return tuple(_followed_by(one, [other[k] for other in others]) for k, one in enumerate(part))
    return torch.cat([part, *others]) if isinstance(part, Tensor) else part.followed_by(others)


@dataclass(frozen=True)
class Together(Smooth):
    """A mixture of a few densities, whatever they are: the members of an ensemble."""

    parts: tuple[Smooth, ...]  # P of them
    logits: Tensor  # (…, P)

    @property
    def log_weights(self) -> Tensor:
        return self.logits.log_softmax(dim=-1)

    def _weighed(self, log_values: Sequence[Tensor]) -> Tensor:
        return (torch.stack(list(log_values), dim=-1) + self.log_weights).logsumexp(dim=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._weighed([part.log_prob(value) for part in self.parts])

    def log_mass(self, low: Tensor, high: Tensor) -> Tensor:
        return self._weighed([part.log_mass(low, high) for part in self.parts])

    def cdf(self, value: Tensor) -> Tensor:
        below = torch.stack([part.cdf(value) for part in self.parts], dim=-1)
        return (below * self.log_weights.exp()).sum(-1)

    def quantile(self, level: Tensor | float) -> Tensor:
        level = inside(level, self.logits)
        own = torch.stack([part.quantile(level) for part in self.parts])  # (P, …)
        return solved(self.cdf, lambda z: self.log_prob(z).exp(), own.amin(0), own.amax(0), level)

    def temperature(self, t: float) -> Together:
        """Each part, with weights of the same temperature."""
        return Together(tuple(part.temperature(t) for part in self.parts), self.log_weights / t)

    @property
    def centres(self) -> Tensor:
        return torch.cat([part.centres for part in self.parts], dim=-1)

    @property
    def n_parts(self) -> int:
        return sum(part.n_parts for part in self.parts)


def solved(
    cdf: Callable[[Tensor], Tensor], density: Callable[[Tensor], Tensor], low: Tensor, high: Tensor, level: Tensor
) -> Tensor:
    """Where a cdf reaches the levels, between low and high: closed in on in two rounds, then by Newton's steps while
    they stay inside what is known, else by halves."""
    shares = torch.arange(1, N_PARTS).to(low) / N_PARTS
    for _ in range(2):
        width = (high - low) / N_PARTS
        inner = low + (high - low) * shares.view(-1, *[1] * low.dim())  # (parts − 1, …)
        passed = (cdf(inner) < level).sum(0)
        low, high = low + width * passed, low + width * (passed + 1)
    z = (low + high) / 2
    for _ in range(MAX_ITERATIONS):
        missed = cdf(z) - level
        low, high = torch.where(missed < 0, z, low), torch.where(missed < 0, high, z)
        newton = z - missed / density(z).clamp(min=1e-30)
        after = torch.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        # Newton has about squared the error of the step before; halves go on until nothing is left to halve.
        if z.device.type == "cpu" and bool(
            ((after - z).abs() <= torch.finfo(z.dtype).eps ** 0.7 * (1 + z.abs())).all()
        ):
            return after
        z = after
    return z


@dataclass(frozen=True)
class Phase:
    """Where the training stands: what a head that is not trained by its likelihood alone wants to know."""

    step: int = 0
    energy_warmup: int = 0  # steps in which the proposal alone is trained
    energy_regulariser: float = 0.0  # holds log p near log q


class ColumnHead(nn.Module, ABC):
    """Features → the Smooth of some columns, with batch shape (B, C); started near N(0, 1), the columns' marginal.

    A head serves columns whose values are points, or (is_grid) columns whose values are cells of a grid.
    """

    is_costly = False  # whether its answers take so long that training is judged by fewer of them

    def __init__(self, width: int, n_columns: int, n_components: int, is_grid: bool):
        super().__init__()

    @abstractmethod
    def forward(self, features: Tensor, places: Tensor) -> Smooth:
        """Features (B, width) for all columns together, or (B, C, width) for each of them, and which of the head's
        columns (C,) are asked."""

    def begin(self, phase: Phase) -> None:
        """Before a step of the training."""
        return


def outputs(linear: nn.Linear, features: Tensor, blocks: Tensor, size: int) -> Tensor:
    """(B, C, size): of a linear layer whose outputs come in blocks of `size`, some blocks (C,)."""
    if features.dim() == 2:
        rows = (blocks.unsqueeze(1) * size + torch.arange(size, device=blocks.device)).flatten()
        return nn.functional.linear(features, linear.weight[rows], linear.bias[rows]).unflatten(1, (-1, size))
    weight, bias = linear.weight.unflatten(0, (-1, size)), linear.bias.unflatten(0, (-1, size))
    return torch.einsum("bcw,csw->bcs", features, weight[blocks]) + bias[blocks]
