"""Path convolutions: one pass scores every edge of any path over a grid.

Each place has one vector h, which knows only what may be seen there: for evidence other evidence and itself, for a
query the content of earlier steps. A block mixes the vectors and the values of the neighbours that are visible (a
vector up to and including the own step, a value only of earlier ones), then thinks about each place alone. Values
enter every block again, since the vector of a query never holds its own.

Who sees whom would need a mask for each pair. Two kinds of paths do without, and are as fast as plain convolutions:
queries in one of eight scanning orders (one at a time, whatever the evidence), and looks (all at once).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from anygiven.networks.activation import SquaredReLU
from anygiven.networks.grids import Planes, grid_of
from anygiven.networks.hiding import EVIDENCE, NEVER, hide
from anygiven.networks.path import PathNetwork, PathWalk, asks, last_step
from anygiven.variables.domains import Domain

VALUE_WIDTH = 16
FEW = 32  # places of a step are gathered one by one if they are at most this part of all


# ------------------------------------------------------------------ who sees whom


@lru_cache(maxsize=8)
def scans(height: int, width: int) -> Tensor:
    """(8, N) the raster order, its mirror images and their transposes: which place comes when."""
    place = torch.arange(height * width).view(height, width)
    mirrored = [place, place.flip(1), place.flip(0), place.flip(0, 1)]
    return torch.stack([m.flatten() for m in mirrored] + [m.T.flatten() for m in mirrored])


@lru_cache(maxsize=64)
def before(scan: int, kernel: int) -> Tensor:
    """(kernel, kernel) which neighbours come before the middle in a scan."""
    order = scans(kernel, kernel)[scan]
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
    return (rank < rank[len(rank) // 2]).float().view(kernel, kernel)


def depthwise(x: Tensor, weight: Tensor) -> Tensor:
    """(B, H, W, C) with kernels (C, K, K), nought beyond the border."""
    mixed = conv2d(x.permute(0, 3, 1, 2), weight.unsqueeze(1), padding=weight.shape[-1] // 2, groups=len(weight))
    return mixed.permute(0, 2, 3, 1)


def around_only(weight: Tensor, n: int) -> Tensor:
    """The kernels with the middle of the first n, the vectors', left out: a query does not see its own twice."""
    middle = weight.shape[-1] // 2
    kept = torch.ones_like(weight)
    kept[:n, middle, middle] = 0.0
    return weight * kept


class Sight(ABC):
    """What the places of some rows see of each other."""

    @abstractmethod
    def mix(self, h: Tensor, v: Tensor, weight: Tensor) -> Tensor:
        """(B, H, W, width + values): what is visible of vectors h and values v, weighted by kernels (…, K, K)."""


@dataclass(frozen=True)
class ScanSight(Sight):
    """Queries one at a time in a scanning order: evidence is seen everywhere, queries only behind."""

    is_evidence: Tensor  # (B, H, W, 1) float
    is_query: Tensor
    scan: int
    has_evidence: bool

    def mix(self, h: Tensor, v: Tensor, weight: Tensor) -> Tensor:
        content = torch.cat([h, v], dim=-1)
        behind = depthwise(content * self.is_query, weight * before(self.scan, weight.shape[-1]))
        if not self.has_evidence:
            return behind * self.is_query
        return depthwise(content * self.is_evidence, weight) + behind * self.is_query


@dataclass(frozen=True)
class LookSight(Sight):
    """All queries at once: they see evidence, and each other's vectors, which hold nothing but evidence."""

    is_evidence: Tensor
    is_query: Tensor

    def mix(self, h: Tensor, v: Tensor, weight: Tensor) -> Tensor:
        known = depthwise(torch.cat([h, v], dim=-1) * self.is_evidence, weight)
        n = h.shape[-1]
        beside = depthwise(h * self.is_query, around_only(weight[:n], n)) * self.is_query
        return torch.cat([known[..., :n] + beside, known[..., n:]], dim=-1)


@dataclass(frozen=True)
class PathSight(Sight):
    """Any path: a mask for every pair of neighbours."""

    step: Tensor  # (B, H, W)

    def mix(self, h: Tensor, v: Tensor, weight: Tensor) -> Tensor:
        reach, (height, width) = weight.shape[-1] // 2, h.shape[1:3]
        margins = (0, 0, reach, reach, reach, reach)
        content = pad(torch.cat([h, v], dim=-1), margins)
        step = pad(self.step.unsqueeze(-1), margins, value=NEVER)
        total = torch.zeros_like(content[:, :height, :width])
        for dy in range(2 * reach + 1):
            for dx in range(2 * reach + 1):
                window = (slice(None), slice(dy, dy + height), slice(dx, dx + width))
                sees_vector, sees_value = seen(step[window], self.step.unsqueeze(-1), dy == dx == reach)
                mask = torch.cat([sees_vector.expand(h.shape), sees_value.expand(v.shape)], dim=-1)
                total = total + content[window] * mask * weight[:, dy, dx]
        return total


def seen(content: Tensor, own: Tensor, is_middle: Tensor | bool) -> tuple[Tensor, Tensor]:
    """Whether a place of step `own` sees the vector and the value of one of step `content`, which may be itself."""
    among_evidence = (content == EVIDENCE) & (own == EVIDENCE)
    value = ((content < own) & (own != NEVER)) | among_evidence
    vector = value | ((content == own) & (own != NEVER) & ~torch.as_tensor(is_middle))
    return vector, value


def sights(step: Tensor, shape: tuple[int, int]) -> Iterator[tuple[Tensor, Sight]]:
    """(rows, their sight): rows of one kind together."""
    asked = asks(step)
    has_evidence = (step == EVIDENCE).any(1)
    kind = torch.full((len(step),), -1)  # −1 any path, 0 … 7 a scan, 8 a look
    for scan, order in enumerate(scans(*shape)):
        kind[(kind < 0) & follows(step[:, order], asked[:, order])] = scan
    first, last = step.where(asked, NEVER).amin(1), step.where(asked, 0).amax(1)
    kind[(kind < 0) & (first == last)] = len(scans(*shape))
    for which in kind.unique().tolist():
        for with_evidence in (False, True):
            rows = ((kind == which) & (has_evidence == with_evidence)).nonzero().squeeze(1)
            if len(rows) == 0:
                continue
            known = (step[rows] == EVIDENCE).float().unflatten(1, shape).unsqueeze(-1)
            query = asked[rows].float().unflatten(1, shape).unsqueeze(-1)
            if which < 0:
                yield rows, PathSight(step[rows].unflatten(1, shape))
            elif which == len(scans(*shape)):
                yield rows, LookSight(known, query)
            else:
                yield rows, ScanSight(known, query, which, with_evidence)


def follows(step: Tensor, asked: Tensor) -> Tensor:
    """(B,) whether the asked steps only rise along the order in which they stand."""
    latest = torch.where(asked, step, -1).cummax(dim=1).values
    return ((step[:, 1:] > latest[:, :-1]) | ~asked[:, 1:]).all(1)


# ------------------------------------------------------------------ the network


class Pointwise(nn.Linear):
    """A linear map of each place (…, C); of whole grids as a convolution, which is faster on a CPU."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            return super().forward(input)
        return conv2d(input.permute(0, 3, 1, 2), self.weight[:, :, None, None], self.bias).permute(0, 2, 3, 1)


class PathBlock(nn.Module):
    """What is seen nearby, then a feed-forward layer at each place."""

    def __init__(self, width: int, kernel: int, dropout: float, growth: int = 4):
        super().__init__()
        n = width + VALUE_WIDTH
        self.near = nn.Parameter(torch.randn(n, kernel, kernel) / kernel)
        self.own = nn.Parameter(torch.ones(width))
        self.norm = nn.LayerNorm(n)
        self.feed = nn.Sequential(
            Pointwise(n, growth * width), SquaredReLU(), nn.Dropout(dropout), Pointwise(growth * width, width)
        )

    def forward(self, h: Tensor, v: Tensor, sight: Sight) -> Tensor:
        return self.think(h, sight.mix(h, v, self.near))

    def think(self, h: Tensor, mixed: Tensor) -> Tensor:
        width = h.shape[-1]
        mixed = torch.cat([mixed[..., :width] + self.own * h, mixed[..., width:]], dim=-1)
        return h + self.feed(self.norm(mixed))


class PathConvolutions(PathNetwork):
    settings = ("width", "depth", "dropout", "kernel")
    kinds = ("image",)
    sees_the_asked = True

    def __init__(
        self, domains: Sequence[Domain], width: int = 64, depth: int = 8, dropout: float = 0.0, kernel: int = 5,
        growth: int = 4,
    ):  # fmt: skip
        super().__init__()
        domain, self.shape = grid_of(domains)
        self.width = width
        self.planes = Planes(domain)
        self.values = nn.Linear(self.planes.n_planes, VALUE_WIDTH)
        self.places = nn.Parameter(0.1 * torch.randn(*self.shape, width))
        self.is_known = nn.Parameter(0.1 * torch.randn(width))
        self.blocks = nn.ModuleList(PathBlock(width, kernel, dropout, growth) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, cells: Tensor, step: Tensor) -> Tensor:
        out = cells.new_zeros(*step.shape, self.width)
        for rows, sight in sights(step, self.shape):
            h, v = self.start(cells[rows], step[rows])
            for block in self.blocks:
                h = block(h, v, sight)
            out = out.index_put((rows,), self.norm(h).flatten(1, 2))
        return out

    def start(self, cells: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors (B, H, W, width) that know their place and whether it is evidence, and values (B, H, W, …)."""
        is_evidence = (step == EVIDENCE).float().unflatten(1, self.shape).unsqueeze(-1)
        v = self.value_of(hide(cells, step < last_step(step))).unflatten(1, self.shape)
        return self.places + self.is_known * is_evidence, v

    def value_of(self, cells: Tensor) -> Tensor:
        """(…, values) of cells (…, 4)."""
        return self.values(self.planes(cells))

    def walk(self, cells: Tensor, step: Tensor) -> PathWalk:
        return ConvolutionWalk(self, cells, step)


class ConvolutionWalk(PathWalk):
    """A path with the vectors of all blocks kept: each step computes those of its own places alone."""

    def __init__(self, network: PathConvolutions, cells: Tensor, step: Tensor):
        self.network, self.step, self.t, self.is_found = network, step.clone(), 0, False
        self.out = cells.new_zeros(*step.shape, network.width)
        known = hide(cells, step == EVIDENCE)
        h, v = network.start(known, torch.where(step == EVIDENCE, EVIDENCE, NEVER))
        is_evidence = (step == EVIDENCE).float().unflatten(1, network.shape).unsqueeze(-1)
        sight = LookSight(is_evidence, torch.zeros_like(is_evidence))
        self.v, self.h = v.flatten(1, 2), []  # (B, N, …), the vectors before each block
        for block in network.blocks:
            self.h.append(h.flatten(1, 2))
            h = block(h, v, sight)

    def features(self) -> Tensor:
        if not self.is_found:
            self._advance(*(self.step == self.t).nonzero(as_tuple=True))
            self.is_found = True
        return self.out

    def reveal(self, cells: Tensor, step: Tensor) -> None:
        self.features()  # others may see the vectors of this step
        are_all_taken = bool(((self.step == self.t) <= (step == self.t)).all())
        row, place = (step == self.t).nonzero(as_tuple=True)
        self.v[row, place] = self.network.value_of(cells[row, place])
        self.step = step.clone()
        if not are_all_taken:  # their vectors must not know of what was put off
            self._advance(row, place)
        self.is_found, self.t = False, self.t + 1

    def _advance(self, row: Tensor, place: Tensor) -> None:
        """The vectors of M places, given by their rows and numbers, through all blocks."""
        blocks = list(self.network.blocks)
        for k, block in enumerate(blocks):
            h = block.think(self.h[k][row, place], self._mixed(k, block.near, row, place))  # type: ignore[operator,arg-type]
            target = self.h[k + 1] if k + 1 < len(blocks) else self.out
            target[row, place] = h if k + 1 < len(blocks) else self.network.norm(h)

    def _mixed(self, k: int, near: Tensor, row: Tensor, place: Tensor) -> Tensor:
        """(M, width + values): what is visible around each place."""
        if len(row) * FEW > self.step.numel():
            return self._mixed_everywhere(k, near)[row, place]
        around, is_inside = neighbourhoods(self.network.shape, near.shape[-1])  # (N, K²)
        index = (row.unsqueeze(1), around[place])  # (M, K²)
        is_other = torch.arange(around.shape[1]) != around.shape[1] // 2
        inside, step = is_inside[place], self.step[index]
        h = self.h[k][index] * ((step <= self.t) & inside & is_other).unsqueeze(-1)
        v = self.v[index] * ((step < self.t) & inside).unsqueeze(-1)
        return (torch.cat([h, v], dim=-1) * near.flatten(1).T).sum(1)

    def _mixed_everywhere(self, k: int, near: Tensor) -> Tensor:
        """(B, N, width + values): the same for all places at once, as if all were asked now."""
        h = self.h[k] * (self.step <= self.t).unsqueeze(-1)
        v = self.v * (self.step < self.t).unsqueeze(-1)
        content = torch.cat([h, v], dim=-1).unflatten(1, self.network.shape)
        return depthwise(content, around_only(near, h.shape[-1])).flatten(1, 2)


@lru_cache(maxsize=8)
def neighbourhoods(shape: tuple[int, int], kernel: int) -> tuple[Tensor, Tensor]:
    """(N, K²) the places around each place, and whether they are on the grid."""
    height, width = shape
    reach = torch.arange(kernel) - kernel // 2
    y = torch.arange(height).view(-1, 1, 1, 1) + reach.view(1, 1, -1, 1)
    x = torch.arange(width).view(1, -1, 1, 1) + reach.view(1, 1, 1, -1)
    is_inside = ((y >= 0) & (y < height) & (x >= 0) & (x < width)).flatten(0, 1).flatten(1)
    places = (y.clamp(0, height - 1) * width + x.clamp(0, width - 1)).flatten(0, 1).flatten(1)
    return places, is_inside
