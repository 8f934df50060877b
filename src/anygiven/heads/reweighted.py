"""A density times a weight: what a temperature and an energy make of a distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from anygiven.heads.smooth import Smooth, inside

LEAST_WEIGHT = 1e-12  # beside the greatest
SAME = 1e-6  # levels closer than this are one
STRIDE = 4  # of the nodes at which a weight is asked for first
NEAR = 4e-3  # the mass by which every second of those may be missed; between them it is about a quarter of that


@dataclass(frozen=True)
class Reweighted(Smooth):
    """p(x) = q(x) · w(Q(x)): a base density q with cdf Q, and a weight that is linear between nodes on the axis of Q.

    Everything is in closed form: the cdf is W(Q(x)), W the integral of w, and its inverse is that of a parabola, so
    the law is normalised exactly, however few the nodes.
    """

    base: Smooth
    nodes: Tensor  # (…, M − 2) scores, ascending
    levels: Tensor  # (…, M) Q at the nodes, from 0 before the first to 1 after the last
    weights: Tensor  # (…, M) w at the nodes, but for a factor

    @classmethod
    def by(cls, base: Smooth, nodes: Tensor, log_weights: Tensor) -> Reweighted:
        """From log weights (…, M) at ascending scores (…, M); beyond the outermost they stay level."""
        levels = pad(pad(levels_at(base, nodes), (1, 0), value=0.0), (0, 1), value=1.0)
        log_weights = torch.cat([log_weights[..., :1], log_weights, log_weights[..., -1:]], dim=-1)
        weights = (log_weights - log_weights.amax(-1, keepdim=True)).exp().clamp(min=LEAST_WEIGHT)
        return cls(base, nodes, levels, weights)

    @classmethod
    def where_needed(cls, base: Smooth, nodes: Tensor, log_weight: Callable[[Tensor, Tensor], Tensor]) -> Reweighted:
        """The same for a batch of one side, where a weight is costly: log_weight(scores (P, m), rows (P,)) → (P, m).

        It is asked for at some of the nodes (B, M); in rows where every second of those follows from its neighbours
        the other nodes are left out, that is, they get what stands between their neighbours. An accelerator does not
        wait to be told which rows those are.
        """
        rows, last = torch.arange(len(nodes), device=nodes.device), nodes.shape[-1] - 1
        if nodes.device.type != "cpu":
            return cls.by(base, nodes, log_weight(nodes, rows))
        some = torch.arange(0, last + STRIDE, STRIDE).clamp(max=last)
        levels, found = levels_at(base, nodes), log_weight(nodes[:, some], rows)
        log_weights = between(levels, levels[:, some], found)
        coarse = between(levels[:, some], levels[:, some[::2]], found[:, ::2])
        missed = mass_missed(levels[:, some], found, coarse)
        rows = (missed > NEAR).nonzero().squeeze(1)
        if len(rows):
            log_weights[rows] = log_weight(nodes[rows], rows)
        return cls.by(base, nodes, log_weights)

    def _running(self) -> tuple[Tensor, Tensor, Tensor]:
        """(…, M) the integral W up to each node, the normalised weights there, (…, M − 1) their slopes between."""
        width = self.levels.diff(dim=-1)
        pieces = 0.5 * (self.weights[..., 1:] + self.weights[..., :-1]) * width
        total = pieces.sum(-1, keepdim=True)
        weights = self.weights / total
        slope = torch.where(width > 0, weights.diff(dim=-1) / width.clamp(min=1e-30), 0.0)
        return pad((pieces / total).cumsum(-1), (1, 0)), weights, slope

    @staticmethod
    def _piece(value: Tensor, ends: Tensor, *tables: Tensor) -> list[Tensor]:
        """Of the piece that each value (…, batch) falls into: its start among the ends (batch, M), and what else stands
        there in tables (batch, M) or (batch, M − 1)."""
        batch, starts = ends.shape[:-1], ends[..., :-1].contiguous()
        shape = torch.broadcast_shapes(value.shape, batch)
        rows = value.expand(shape).reshape(-1, *batch).movedim(0, -1).contiguous()  # (batch, V)
        k = (torch.searchsorted(starts, rows, right=True) - 1).clamp(min=0)
        return [table.gather(-1, k).movedim(-1, 0).reshape(shape) for table in (starts, *tables)]

    def _reached(self, level: Tensor) -> Tensor:
        """W at levels of Q."""
        running, weights, slope = self._running()
        start, before, weight, rise = self._piece(level, self.levels, running, weights, slope)
        further = level - start
        return before + further * (weight + 0.5 * rise * further)

    def _weight(self, level: Tensor) -> Tensor:
        """w at levels of Q."""
        _, weights, slope = self._running()
        start, weight, rise = self._piece(level, self.levels, weights, slope)
        return (weight + rise * (level - start)).clamp(min=torch.finfo(level.dtype).tiny)

    def cdf(self, value: Tensor) -> Tensor:
        return self._reached(self.base.cdf(value)).clamp(0, 1)

    def log_prob(self, value: Tensor) -> Tensor:
        return self.base.log_prob(value) + self._weight(self.base.cdf(value)).log()

    def log_mass(self, low: Tensor, high: Tensor) -> Tensor:
        """The base's mass, times the mean weight between the two."""
        below, above = torch.broadcast_tensors(self.base.cdf(low), self.base.cdf(high))
        width = above - below
        mean = (self._reached(above) - self._reached(below)) / width.clamp(min=SAME)
        mean = torch.where(width > SAME, mean, self._weight(0.5 * (below + above)))
        return self.base.log_mass(low, high) + mean.clamp(min=torch.finfo(mean.dtype).tiny).log()

    def quantile(self, level: Tensor | float) -> Tensor:
        level = inside(level, self.levels)
        running, weights, slope = self._running()
        before, start, weight, rise = self._piece(level, running, self.levels, weights, slope)
        missing = (level - before).clamp(min=0)
        root = (weight**2 + 2 * rise * missing).clamp(min=0).sqrt()
        return self.base.quantile((start + 2 * missing / (weight + root).clamp(min=1e-30)).clamp(0, 1))

    def quadrature(self) -> tuple[Tensor, Tensor]:
        """At the base's nodes, its own and between them, with the masses between exactly; nothing is inverted."""
        z = torch.cat([self.base.quadrature()[0], self.nodes.movedim(-1, 0)]).sort(0).values
        z = torch.cat([z, 0.5 * (z[1:] + z[:-1])]).sort(0).values
        below = self.cdf(z)
        between = below.diff(dim=0, prepend=torch.zeros_like(z[:1]), append=torch.ones_like(z[:1]))
        ends = torch.cat([between[:1], torch.zeros_like(z[2:]), between[-1:]])  # beyond the outermost nodes
        return z, 0.5 * (between[1:] + between[:-1] + ends)

    def temperature(self, t: float) -> Smooth:
        return tempered(self, t)

    @property
    def centres(self) -> Tensor:
        return torch.cat([self.base.centres, self.nodes], dim=-1)

    @property
    def n_parts(self) -> int:
        return self.base.n_parts + self.levels.shape[-1]


def levels_at(base: Smooth, nodes: Tensor) -> Tensor:
    """(…, M) the base's cdf at ascending scores (…, M), never falling."""
    return base.cdf(nodes.movedim(-1, 0)).movedim(0, -1).clamp(0, 1).cummax(-1).values


def between(at: Tensor, levels: Tensor, log_weights: Tensor) -> Tensor:
    """(B, M) log weights at other levels, linear between those known at levels (B, m) as weights."""
    k = torch.searchsorted(levels[:, 1:-1].contiguous(), at.contiguous(), right=True)
    left, right, low, high = (part.gather(1, k + step) for part in (levels, log_weights) for step in (0, 1))
    share = ((at - left) / (right - left).clamp(min=torch.finfo(at.dtype).tiny)).clamp(0, 1)
    return torch.logaddexp(low + torch.log1p(-share), high + share.log())


def mass_missed(levels: Tensor, log_weights: Tensor, log_guessed: Tensor) -> Tensor:
    """(B,) ∫ |guessed − true weight| as a share of ∫ weight, from both at levels (B, m)."""
    highest = log_weights.amax(1, keepdim=True)
    true, guessed = (log_weights - highest).exp(), (log_guessed - highest).exp()
    width = levels.diff(dim=1)
    areas = [(0.5 * (w[:, 1:] + w[:, :-1]) * width).sum(1) for w in ((guessed - true).abs(), true)]
    return areas[0] / areas[1].clamp(min=torch.finfo(levels.dtype).tiny)


def tempered(smooth: Smooth, t: float) -> Smooth:
    """p^(1/t), normalised: p times the weight p^(1/t − 1)."""
    if t == 1:
        return smooth
    nodes = smooth.quadrature()[0].movedim(0, -1).sort(-1).values  # (…, M)
    log_p = smooth.log_prob_at(nodes.movedim(-1, 0)).movedim(0, -1)
    return Reweighted.by(smooth, nodes, (1 / t - 1) * log_p)
