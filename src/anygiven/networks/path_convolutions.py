"""Path convolutions: one pass scores every edge of any path over a grid.

Each place has one vector h, which knows only what may be seen there: for evidence other evidence and itself, for a
query the content of earlier steps. A block mixes the vectors and the values of the neighbours that are visible (a
vector up to and including the own step, a value only of earlier ones), then thinks about each place alone. Values
enter every block again, since the vector of a query never holds its own.

Who sees whom would need a mask for each pair. Two kinds of paths do without, and are as fast as plain convolutions:
queries in one of eight scanning orders or along slanted lines (whatever the evidence), and looks (all at once).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from anygiven.lattice.masking_modes import N_SCANS, SLANTS, Slanted, scan_order
from anygiven.lattice.question import EVIDENCE, NEVER
from anygiven.networks.fast_gradients import depthwise, fed_forward, masked_depthwise
from anygiven.networks.grids import Planes, grid_of, is_grid
from anygiven.networks.hiding import hide
from anygiven.networks.path import PathNetwork, PathWalk, asks, last_step
from anygiven.variables.domains import Domain

VALUE_WIDTH = 16
FEW = 32  # places of a step are gathered one by one if they are at most this part of all
ANY_PATH, LOOK = -2, -1  # kinds of paths that are no scan
GATHERED = 128  # at a time: with all their neighbours they stay in the processor's cache


# ------------------------------------------------------------------ who sees whom


@dataclass(frozen=True)
class Scan:
    """An order of a grid whose steps rise along rows: a turned raster, or slanted lines of a grid as it stands."""

    turn: int = 0
    slant: int = 0  # columns by which a line falls back from row to row; 0: whole rows, a place at a time

    def lag(self, kernel: int) -> Tensor:
        """(kernel, kernel) by how much neighbours come after the middle: negative before it, 0 in its step."""
        order, line = lines(self, kernel, kernel)
        rank = torch.empty_like(line).scatter_(0, order, line)
        return (rank - rank[len(rank) // 2]).view(kernel, kernel)


@lru_cache(maxsize=256)
def lines(scan: Scan, height: int, width: int) -> tuple[Tensor, Tensor]:
    """(N,) the places in order, and the line of each."""
    if not scan.slant:
        return torch.tensor(scan_order((height, width), scan.turn)), torch.arange(height * width)
    line, order = Slanted((height, width), scan.slant).lines().sort(stable=True)
    return order, line


@lru_cache(maxsize=64)
def behind(scan: Scan, kernel: int, n_vectors: int, n_values: int, device: torch.device) -> Tensor:
    """(…, kernel, kernel) what a query sees of queries: values before it, vectors also of its own step and place."""
    lag = scan.lag(kernel)
    vectors, values = (lag <= 0).float(), (lag < 0).float()
    return torch.cat([vectors.expand(n_vectors, -1, -1), values.expand(n_values, -1, -1)]).to(device)


class Visibility(ABC):
    """What the places of some rows see of each other."""

    @abstractmethod
    def mix(self, h: Tensor, v: Tensor, weight: Tensor, stride: int) -> Tensor:
        """(B, H, W, width + values): what is visible of vectors h and values v, weighted by kernels (…, K, K) of
        neighbours `stride` places apart."""


@dataclass(frozen=True)
class ScanVisibility(Visibility):
    """Queries in a scanning order: evidence is seen everywhere, queries only behind."""

    is_evidence: Tensor  # (B, H, W, 1) float
    is_query: Tensor
    scan: Scan
    asks_all: bool

    def mix(self, h: Tensor, v: Tensor, weight: Tensor, stride: int) -> Tensor:
        content = torch.cat([h, v], dim=-1)
        weight_behind = weight * behind(self.scan, weight.shape[-1], h.shape[-1], v.shape[-1], h.device)
        if self.asks_all:
            return depthwise(content, weight_behind, stride)
        of_queries = depthwise(content * self.is_query, weight_behind, stride) * self.is_query
        return depthwise(content * self.is_evidence, weight, stride) + of_queries


@dataclass(frozen=True)
class LookVisibility(Visibility):
    """All queries at once: they see evidence, and each other's vectors, which hold nothing but evidence."""

    is_evidence: Tensor
    is_query: Tensor

    def mix(self, h: Tensor, v: Tensor, weight: Tensor, stride: int) -> Tensor:
        known = depthwise(torch.cat([h, v], dim=-1) * self.is_evidence, weight, stride)
        n = h.shape[-1]
        beside = depthwise(h * self.is_query, weight[:n], stride) * self.is_query
        return torch.cat([known[..., :n] + beside, known[..., n:]], dim=-1)


class PathVisibility(Visibility):
    """Any path: a mask for every pair of neighbours."""

    def __init__(self, step: Tensor, device: torch.device):
        self.step, self.device = step, device  # (B, H, W)
        self.masks: dict[int, tuple[Tensor, Tensor]] = {}  # by stride

    def mix(self, h: Tensor, v: Tensor, weight: Tensor, stride: int) -> Tensor:
        if stride not in self.masks:
            self.masks[stride] = self._seen_around(weight.shape[-1], stride)
        n, (sees_vectors, sees_values) = h.shape[-1], self.masks[stride]
        vectors = masked_depthwise(h, weight[:n], sees_vectors, stride)
        return torch.cat([vectors, masked_depthwise(v, weight[n:], sees_values, stride)], dim=-1)

    def _seen_around(self, kernel: int, stride: int) -> tuple[Tensor, Tensor]:
        """(B, K², H, W, 1) whether each place sees the vectors and the values of its neighbours."""
        height, width = self.step.shape[1:]
        wide = pad(self.step, (stride * (kernel // 2),) * 4, value=NEVER)
        around = wide.unfold(1, height, stride).unfold(2, width, stride).flatten(1, 2)
        vectors, values = seen(around, self.step.unsqueeze(1))
        return vectors.float().unsqueeze(-1).to(self.device), values.float().unsqueeze(-1).to(self.device)


def seen(content: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """Whether a place of step `own` sees the vector and the value of one of step `content`, which may be itself."""
    among_evidence = (content == EVIDENCE) & (own == EVIDENCE)
    value = ((content < own) & (own != NEVER)) | among_evidence
    return value | ((content == own) & (own != NEVER)), value


def visibilities(
    step: Tensor, shape: tuple[int, int], known_scans: Sequence[Scan], device: torch.device = torch.device("cpu")
) -> Iterator[tuple[Tensor, Visibility]]:
    """(rows, their visibility): rows of one kind together."""
    asked = asks(step)
    asks_all = asked.all(1)
    kind = torch.full((len(step),), ANY_PATH)  # or the number of a scan
    first, last = step.where(asked, NEVER).amin(1), step.where(asked, 0).amax(1)
    kind[first >= last] = LOOK
    for number, scan in enumerate(known_scans):
        rows = (kind == ANY_PATH).nonzero().squeeze(1)
        if len(rows) == 0:
            break
        order, line = lines(scan, *shape)
        kind[rows[follows(step[rows][:, order], asked[rows][:, order], line)]] = number
    for which in kind.unique().tolist():
        for all_of_them in (True, False):
            rows = ((kind == which) & (asks_all == all_of_them)).nonzero().squeeze(1)
            if len(rows) == 0:
                continue
            known = (step[rows] == EVIDENCE).float().unflatten(1, shape).unsqueeze(-1).to(device)
            query = asked[rows].float().unflatten(1, shape).unsqueeze(-1).to(device)
            if which == ANY_PATH:
                yield rows, PathVisibility(step[rows].unflatten(1, shape), device)
            elif which == LOOK:
                yield rows, LookVisibility(known, query)
            else:
                yield rows, ScanVisibility(known, query, known_scans[which], all_of_them)


def follows(step: Tensor, asked: Tensor, line: Tensor) -> Tensor:
    """(B,) whether the asked steps, standing in a scan's order, rise from line to line and are equal on each."""
    latest = torch.where(asked, step, -1).cummax(dim=1).values[:, :-1]
    latest_line = torch.where(asked, line, -1).cummax(dim=1).values[:, :-1]
    is_right = torch.where(line[1:] > latest_line, step[:, 1:] > latest, step[:, 1:] == latest)
    return (is_right | ~asked[:, 1:]).all(1)


# ------------------------------------------------------------------ the network


class PathBlock(nn.Module):
    """What is seen nearby, then a feed-forward layer at each place."""

    def __init__(self, width: int, kernel: int, stride: int, dropout: float, growth: int = 4):
        super().__init__()
        self.stride = stride
        n = width + VALUE_WIDTH
        self.near = nn.Parameter(torch.randn(n, kernel, kernel) / kernel)
        with torch.no_grad():
            self.near[:width, kernel // 2, kernel // 2] += 1.0  # the place's own vector
        self.norm = nn.LayerNorm(n)
        self.up = nn.Linear(n, growth * width, bias=False)
        self.down = nn.Linear(growth * width, width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, v: Tensor, visibility: Visibility) -> Tensor:
        return self.think(h, visibility.mix(h, v, self.near, self.stride))

    def think(self, h: Tensor, mixed: Tensor) -> Tensor:
        found = fed_forward(mixed, self.norm.weight, self.norm.bias, self.up.weight, self.down.weight)
        return h + self.dropout(found)


class PathConvolutions(PathNetwork):
    settings = ("width", "depth", "dropout", "kernel", "n_strides")
    sees_the_asked = True

    @classmethod
    def reads(cls, domains: Sequence[Domain]) -> bool:
        return is_grid(domains)

    def __init__(
        self, domains: Sequence[Domain], width: int = 64, depth: int = 8, dropout: float = 0.0, kernel: int = 5,
        growth: int = 4, n_strides: int = 2,
    ):  # fmt: skip
        super().__init__()
        domain, self.shape = grid_of(domains)
        self.width, self.kernel = width, kernel
        strides = [2**k for k in range(n_strides)]  # of the blocks in turn: near neighbours, then farther ones
        self.reach = strides[-1] * (kernel // 2)
        n_side_by_side = self.shape[1] // domains.shape[1]  # type: ignore[attr-defined]  # channels that are variables
        self.lossless_slant = -(-(kernel // 2 + 1) // n_side_by_side)  # no kernel reaches beyond such a line
        slants = [slant * n_side_by_side for slant in {*SLANTS, self.lossless_slant}]
        self.scans = [Scan(turn) for turn in range(N_SCANS)] + [Scan(slant=slant) for slant in slants]
        self.planes = Planes(domain)
        self.values = nn.Linear(self.planes.n_planes, VALUE_WIDTH)
        self.places = nn.Parameter(0.1 * torch.randn(*self.shape, width))
        self.is_known = nn.Parameter(0.1 * torch.randn(width))
        self.blocks = nn.ModuleList(
            PathBlock(width, kernel, strides[k % n_strides], dropout, growth) for k in range(depth)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, cells: Tensor, step: Tensor) -> Tensor:
        out = cells.new_zeros(*step.shape, self.width)
        for rows, visibility in visibilities(step, self.shape, self.scans, cells.device):
            there = rows.to(cells.device)
            h, v = self.start(cells[there], step[rows])
            for block in self.blocks:
                h = block(h, v, visibility)
            out = out.index_put((there,), self.norm(h).flatten(1, 2))
        return out

    def start(self, cells: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors (B, H, W, width) that know their place and whether it is evidence, and values (B, H, W, …)."""
        is_evidence = (step == EVIDENCE).float().unflatten(1, self.shape).unsqueeze(-1).to(cells.device)
        v = self.value_of(hide(cells, (step < last_step(step)).to(cells.device))).unflatten(1, self.shape)
        return self.places + self.is_known * is_evidence, v

    def value_of(self, cells: Tensor) -> Tensor:
        """(…, values) of cells (…, 4)."""
        return self.values(self.planes(cells))

    def walk(self, cells: Tensor, step: Tensor) -> PathWalk:
        return ConvolutionWalk(self, cells, step)


class ConvolutionWalk(PathWalk):
    """A path with what can be seen kept for each block: every step computes the vectors of its own places alone.

    Nothing is kept of a place before its turn, and grids have a margin of zero: so whatever is there may be seen.
    """

    def __init__(self, network: PathConvolutions, cells: Tensor, step: Tensor):
        self.network, self.step, self.t, self.is_found = network, step.clone(), 0, False
        self.reach = network.reach
        self.size = (network.shape[0] + 2 * self.reach, network.shape[1] + 2 * self.reach)
        self.out = cells.new_zeros(*step.shape, network.width)
        self.device, has_evidence = cells.device, bool((step == EVIDENCE).any())
        known = (step == EVIDENCE).to(self.device)
        is_evidence = known.float().unflatten(1, network.shape).unsqueeze(-1)
        h, v = network.start(hide(cells, known), torch.where(step == EVIDENCE, EVIDENCE, NEVER))
        visibility = LookVisibility(is_evidence, torch.zeros_like(is_evidence))
        self.kept = []  # (B · size, width + values) before each block
        for block in network.blocks:
            seen = torch.cat([h, v], dim=-1) * is_evidence
            self.kept.append(pad(seen, (0, 0, *(self.reach,) * 4)).flatten(0, 2))
            h = block(h, v, visibility) if has_evidence else h

    def features(self) -> Tensor:
        if not self.is_found:
            self._advance(*(self.step == self.t).nonzero(as_tuple=True))
            self.is_found = True
        return self.out

    def reveal(self, cells: Tensor, step: Tensor) -> None:
        self.features()  # others may see the vectors of this step
        row, place = (step == self.t).nonzero(as_tuple=True)
        put_off = self._at(*((self.step == self.t) & (step != self.t)).nonzero(as_tuple=True))
        if len(put_off):  # the vectors of the others must not know of what was put off
            for kept in self.kept:
                kept[put_off] = 0.0
            self._advance(row, place)
        at, values = self._at(row, place), self.network.value_of(cells[row.to(self.device), place.to(self.device)])
        for kept in self.kept:
            kept[at, self.network.width :] = values
        self.step, self.is_found, self.t = step.clone(), False, self.t + 1

    def _at(self, row: Tensor, place: Tensor) -> Tensor:
        """(M,) where places, given by their rows and numbers, are kept."""
        y, x = place // self.network.shape[1], place % self.network.shape[1]
        return ((row * self.size[0] + y + self.reach) * self.size[1] + x + self.reach).to(self.device)

    def _advance(self, row: Tensor, place: Tensor) -> None:
        """The vectors of M places through all blocks."""
        at, row, place = self._at(row, place), row.to(self.device), place.to(self.device)
        h = self.network.places.flatten(0, 1)[place]
        for kept, block in zip(self.kept, self.network.blocks, strict=True):
            kept[at, : self.network.width] = h
            h = block.think(h, self._mixed(kept, at, block))  # type: ignore[operator,arg-type]
        self.out[row, place] = self.network.norm(h)

    def _mixed(self, kept: Tensor, at: Tensor, block: PathBlock) -> Tensor:
        """(M, width + values): what is visible around each place."""
        if len(at) * FEW > self.step.numel():
            everywhere = kept.unflatten(0, (-1, *self.size))
            return depthwise(everywhere, block.near, block.stride).flatten(0, 2)[at]
        reach = block.near.shape[-1] // 2
        offset = block.stride * torch.arange(-reach, reach + 1, device=self.device)
        around = (offset.unsqueeze(1) * self.size[1] + offset).flatten()  # (K²,)
        taps = block.near.flatten(1).t().contiguous()  # (K², width + values)
        places = (at.unsqueeze(1) + around).split(GATHERED)  # (…, K²)
        found = (kept.index_select(0, some.flatten()).unflatten(0, some.shape) for some in places)
        return torch.cat([neighbours.mul_(taps).sum(1) for neighbours in found])
