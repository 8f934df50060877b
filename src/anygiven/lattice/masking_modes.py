"""SFARM's masking modes: activations of a grid as Markov chains in two stages over complementary regions.

A mode draws a region for each row: stage (a). Its elements are activated first, one at a time and uniformly (Eq. 11),
then those outside: stage (b) (Eq. 12). A mode is a protocol, so it says in which order a question is answered; as a
workload it asks for stage (b) given stage (a). For a mode of your own, write `region` in a subclass, or hand a
function to RegionMode.
"""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from anygiven.errors import QuestionError
from anygiven.lattice.protocols import Canonical, Protocol
from anygiven.lattice.question import EVIDENCE, NEVER, Path, Question, draw_index, random_integers
from anygiven.lattice.workloads import Workload

Shape = tuple[int, ...]  # (height, width), or (height, width, channels) where each channel is a variable


class Staged(Protocol, ABC):
    """Any order in stages: whatever is in an earlier stage comes first, uniformly inside a stage."""

    is_random = True

    @abstractmethod
    def stages(self, shape: torch.Size, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(B, N) the stage of each variable, and (B,) the number of the row's mode, from 1 on."""

    @property
    @abstractmethod
    def masking_modes(self) -> tuple[Staged, ...]:
        """In the order of their numbers."""

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        assert generator is not None, "a mode needs a generator"
        stage, _ = self.stages(shape, generator)
        return stage + torch.rand(shape, generator=generator, dtype=torch.float64)


@dataclass(frozen=True)
class MaskingMode(Staged):
    """One way of masking a grid."""

    shape: Shape

    @abstractmethod
    def region(self, n: int, generator: torch.Generator) -> Tensor:
        """(n, height, width) bool: what is activated first."""

    @property
    def masking_modes(self) -> tuple[Staged, ...]:
        return (self,)

    def regions(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """(B, N): all channels of a pixel are in the same stage."""
        n_channels, left = divmod(shape[1], self.shape[0] * self.shape[1])
        if left or not n_channels:
            size = f"{self.shape[0]} by {self.shape[1]}"
            raise QuestionError(f"A mode for {size} cannot mask {shape[1]} variables; make one for their grid.")
        if shape[0] == 0:  # a function of the user's need not know of empty batches
            return torch.zeros(shape, dtype=torch.bool)
        region = torch.as_tensor(self.region(shape[0], generator))
        if region.shape != (shape[0], *self.shape[:2]) or region.dtype != torch.bool:
            raise QuestionError(
                f"A region must be bool of shape (n, {self.shape[0]}, {self.shape[1]}); "
                f"this one is {region.dtype} of shape {tuple(region.shape)}."
            )
        return region.flatten(1).repeat_interleave(n_channels, dim=1)

    def stages(self, shape: torch.Size, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        stage = (~self.regions(shape, generator)).long()
        return stage, torch.ones(shape[0], dtype=torch.int64)

    def _rows_and_columns(self) -> tuple[Tensor, Tensor]:
        """(height, 1) and (1, width)."""
        return torch.arange(self.shape[0]).view(-1, 1), torch.arange(self.shape[1]).view(1, -1)

    def _cut(self, n: int, size: int, generator: torch.Generator) -> Tensor:
        """(n, 1, 1) where a grid of `size` rows or columns is cut in two, uniform in 1 … size − 1."""
        low, high = torch.ones(n, dtype=torch.int64), torch.full((n,), size - 1)
        return random_integers(low, high, generator).view(-1, 1, 1)


@dataclass(frozen=True)
class Anywhere(MaskingMode):
    """Uniform over all elements: one stage, ARDM."""

    def region(self, n: int, generator: torch.Generator) -> Tensor:
        return torch.ones(n, *self.shape[:2], dtype=torch.bool)


@dataclass(frozen=True)
class LeftToRight(MaskingMode):
    """The columns left of a cut, then those right of it."""

    def region(self, n: int, generator: torch.Generator) -> Tensor:
        _, column = self._rows_and_columns()
        return (column < self._cut(n, self.shape[1], generator)).expand(n, *self.shape[:2])


@dataclass(frozen=True)
class RightToLeft(MaskingMode):
    """The columns right of a cut, then those left of it."""

    def region(self, n: int, generator: torch.Generator) -> Tensor:
        return LeftToRight(self.shape).region(n, generator).flip(2)


@dataclass(frozen=True)
class TopToBottom(MaskingMode):
    """The rows above a cut, then those below it."""

    def region(self, n: int, generator: torch.Generator) -> Tensor:
        row, _ = self._rows_and_columns()
        return (row < self._cut(n, self.shape[0], generator)).expand(n, *self.shape[:2])


@dataclass(frozen=True)
class BottomToTop(MaskingMode):
    """The rows below a cut, then those above it."""

    def region(self, n: int, generator: torch.Generator) -> Tensor:
        return TopToBottom(self.shape).region(n, generator).flip(1)


@dataclass(frozen=True)
class ExteriorPatch(MaskingMode):
    """A box anywhere, from a quarter to three quarters of each side, then what is around it."""

    def region(self, n: int, generator: torch.Generator) -> Tensor:
        row, column = self._rows_and_columns()
        inside = torch.ones(n, *self.shape[:2], dtype=torch.bool)
        for place, size in ((row, self.shape[0]), (column, self.shape[1])):
            low, high = torch.full((n,), max(1, size // 4)), torch.full((n,), max(1, 3 * size // 4))
            length = random_integers(low, high, generator)
            start = random_integers(torch.zeros_like(length), size - length, generator).view(-1, 1, 1)
            inside &= (place >= start) & (place < start + length.view(-1, 1, 1))
        return inside


@dataclass(frozen=True)
class InteriorPatch(MaskingMode):
    """What is around a box, then the box."""

    def region(self, n: int, generator: torch.Generator) -> Tensor:
        return ~ExteriorPatch(self.shape).region(n, generator)


@dataclass(frozen=True)
class ForgottenFunction:
    """Stands for a function of the user's in a model that was loaded: it is known again, and cannot be called."""

    number: str

    def __call__(self, *_: object) -> Tensor:
        raise QuestionError("A function is not saved with a model; give the masking mode again to draw from it.")


def number_of(function: Callable) -> str:
    """A number that tells functions apart, and is the same in another process."""
    if isinstance(function, ForgottenFunction):
        return function.number
    code = getattr(function, "__code__", None)
    told_by = (code.co_code, repr(code.co_consts), code.co_names) if code else type(function).__qualname__
    return f"{zlib.crc32(repr(told_by).encode()):08x}"


@dataclass(frozen=True, eq=False)
class RegionMode(MaskingMode):
    """A mode of your own: function(n, (height, width), generator) → (n, height, width) bool, activated first.

    Two are the same if their functions have the same code, also in a model that was loaded.
    """

    function: Callable[[int, Shape, torch.Generator], Tensor]

    def region(self, n: int, generator: torch.Generator) -> Tensor:
        return self.function(n, self.shape[:2], generator)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegionMode) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"RegionMode({tuple(self.shape)}, {number_of(self.function)})"


@dataclass(frozen=True)
class ModeMixture(Staged):
    """Each row has one of several modes (Eq. 2), uniformly or by weights."""

    modes: tuple[MaskingMode, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self):
        if not self.modes:
            raise QuestionError("A mixture needs at least one mode.")
        if self.weights is not None and len(self.weights) != len(self.modes):
            raise QuestionError(
                f"There are {len(self.modes)} modes and {len(self.weights)} weights; give one for each."
            )
        if self.weights is not None and not (min(self.weights) >= 0 and 0 < sum(self.weights) < math.inf):
            raise QuestionError(f"The weights {self.weights} must be numbers of at least 0, and not all 0.")

    @property
    def masking_modes(self) -> tuple[Staged, ...]:
        return self.modes

    def stages(self, shape: torch.Size, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        which = draw_index(self.weights or (1.0,) * len(self.modes), shape[0], generator)
        stage = torch.zeros(shape, dtype=torch.int64)
        for k, mode in enumerate(self.modes):
            rows = which == k
            stage[rows], _ = mode.stages(torch.Size((int(rows.sum()), shape[1])), generator)
        return stage, which + 1


@dataclass(frozen=True)
class Told(Protocol):
    """Another protocol, for networks that are told the masking mode: its number among those that were trained."""

    order: Protocol
    number: int
    is_random = True

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        return self.order.priority(shape, generator)

    def path(self, question: Question, generator: torch.Generator | None = None) -> Path:
        step = self.order.path(question, generator).step
        return Path(step, torch.full((len(step),), self.number))


@dataclass(frozen=True)
class RegionEvidence(Workload):
    """The first stage of a mode is evidence, all else is asked."""

    modes: Staged

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Question:
        stage, _ = self.modes.stages(is_present.shape, generator)
        is_evidence = is_present & (stage == 0) & (stage > 0).any(1, keepdim=True)
        return Question(is_present & ~is_evidence, is_evidence)


def scan_order(shape: Shape, number: int) -> tuple[int, ...]:
    """One of eight: the raster order, its mirror images, and their transposes.

    Where each channel is a variable, they stand side by side in a row: mirrored, they come in reverse.
    """
    place = torch.arange(math.prod(shape)).view(shape[0], -1)
    sides = [d for k, d in enumerate((1, 0)) if number % 4 >> k & 1]
    turned = place.flip(sides) if sides else place
    return tuple((turned.transpose(0, 1) if number >= 4 else turned).flatten().tolist())


N_SCANS = 8


@dataclass(frozen=True)
class RandomScan(Protocol):
    """One of eight scanning orders for all rows of a batch."""

    shape: Shape
    is_random = True

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        number = int(torch.randint(N_SCANS, (1,), generator=generator))
        return Canonical(scan_order(self.shape, number)).priority(shape, generator)


@dataclass(frozen=True)
class Slanted(Protocol):
    """All pixels of a slanted line together: (y, x) at step x + slant · y, width + slant · (height − 1) steps.

    What raster order knows and this does not are pixels of the rows above that stand at least `slant` farther right for
    each row. Where each channel is a variable, those of a pixel come one after another.
    """

    shape: Shape
    slant: int = 2

    def __post_init__(self):
        if self.slant < 1:
            raise QuestionError(f"The slant is {self.slant}; it must be a whole number of at least 1.")

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        row = torch.arange(math.prod(self.shape)) // math.prod(self.shape[1:])
        return (self.lines() * self.shape[0] + row).double().expand(shape)

    def path(self, question: Question, generator: torch.Generator | None = None) -> Path:
        if question.is_query.shape[1] != math.prod(self.shape):
            raise ValueError(f"its lines are of {self.shape}, which are not {question.is_query.shape[1]} variables")
        line = self.lines().expand(question.is_query.shape)  # (B, N)
        is_met = torch.zeros(len(line), int(self.lines().max()) + 1, dtype=torch.int64)
        is_met.scatter_reduce_(1, line, question.is_query.long(), "amax")
        step = torch.where(question.is_query, (is_met.cumsum(1) - 1).gather(1, line), NEVER)
        return Path(torch.where(question.is_evidence, EVIDENCE, step))

    def lines(self) -> Tensor:
        """(N,) the number of each variable's line."""
        place = torch.arange(math.prod(self.shape)).view(self.shape[0], -1)  # channels side by side in a row
        row, column = place // place.shape[1], place % place.shape[1]
        n_channels = place.shape[1] // self.shape[1]
        return (column + self.slant * n_channels * row).flatten()


SLANTS = (1, 2)  # that are trained: 15 and 10 times fewer steps for a square of 28 or 32 pixels


@dataclass(frozen=True)
class RandomSlant(Protocol):
    """Lines of one slant for all rows of a batch."""

    shape: Shape
    is_random = True

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        return self._drawn(generator).priority(shape, generator)

    def path(self, question: Question, generator: torch.Generator | None = None) -> Path:
        return self._drawn(generator).path(question, generator)

    def _drawn(self, generator: torch.Generator | None) -> Slanted:
        return Slanted(self.shape, SLANTS[int(torch.randint(len(SLANTS), (1,), generator=generator))])


MODES: dict[str, type[MaskingMode]] = {
    "random": Anywhere, "left to right": LeftToRight, "right to left": RightToLeft, "top to bottom": TopToBottom,
    "bottom to top": BottomToTop, "interior patch": InteriorPatch, "exterior patch": ExteriorPatch,
}  # fmt: skip


def seven_modes(shape: Shape) -> ModeMixture:
    """SFARM's uniform mixture."""
    return ModeMixture(tuple(mode(shape) for mode in MODES.values()))


def activation_probability(stage: Tensor, i: Tensor) -> Tensor:
    """(B, N) p(z_i = 1): how likely each element is active after i (B,) steps, given the stages (Eqs. 19–22).

    Stages before the current one are active, those after it are not; inside it α = i′ / |stage| with i′ the steps
    spent there.
    """
    before = torch.stack([(stage < k).sum(1) for k in range(int(stage.max()) + 1)], dim=1).gather(1, stage)
    size = torch.stack([(stage == k).sum(1) for k in range(int(stage.max()) + 1)], dim=1).gather(1, stage)
    return ((i.unsqueeze(1) - before) / size).clamp(0, 1)
