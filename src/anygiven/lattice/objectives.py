"""Objectives: which edges of a drawn path are trained, with which weights.

draw(...) returns a path and weights (B, N): the loss is −mean over rows of Σ_i weights · log p(x_i | …).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from anygiven.lattice.masking_modes import Staged
from anygiven.lattice.protocols import Canonical, Protocol, RandomOrder
from anygiven.lattice.question import EVIDENCE, Path, draw_index, lowest, random_integers, random_subset
from anygiven.lattice.workloads import Joint, UniformEvidence, Workload


class Objective(ABC):
    """Draws what a batch trains on."""

    @abstractmethod
    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        """A path and the weights (B, N) of its edges."""

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The orders that it trains."""
        return ()

    @property
    def masking_modes(self) -> tuple[Staged, ...]:
        """Those that a network is told, in the order of their numbers."""
        return ()

    @property
    def unshared(self) -> Objective:
        """The same with a path of its own for every row: what validation asks."""
        return self

    def at(self, share: float) -> Objective:
        """What to draw from when so much of the training is done, 0 to 1."""
        return self


@dataclass(frozen=True)
class WholePath(Objective):
    """Algorithm 1 of MAC (Eq. 5): every edge of the path of a drawn question, each with weight one."""

    workload: Workload
    protocol: Protocol = field(default_factory=Canonical)

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        path = self.protocol.path(self.workload.draw(is_present, generator), generator)
        return path, path.is_query.float()

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        return (self.protocol,)


@dataclass(frozen=True)
class Glimpse(Objective):
    """One look from a prefix of the path of a drawn question: MAC's Eq. 7.

    All present variables outside the prefix are asked at once, and the loss is their mean (1/(N−|e|)).
    Each question counts as often as M draws it ("appendix": M(e)/|e| an edge), or each edge once
    (edges=True: Eq. 5–6, M(e) an edge). With cardinality=True a prefix e is reweighted by 1+|e|.
    """

    workload: Workload
    protocol: Protocol = field(default_factory=Canonical)
    edges: bool = False
    cardinality: bool = True

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        drawn = self._exact_prefix(is_present, generator)
        prefix, weight = drawn if drawn is not None else self._weighted_prefix(is_present, generator)
        return _mean_of_the_unknown(prefix, is_present, weight)

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        return (self.protocol,)

    def _exact_prefix(self, is_present: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor] | None:
        """Draw (|query|, prefix length) from its exact table, then the subset: no importance weights."""
        n = is_present.sum(dim=1)
        if self.workload.query_sizes(1) is None:
            return None
        size, length = torch.zeros_like(n), torch.zeros_like(n)
        for count in n.unique().tolist():
            rows = n == count
            table = prefix_table(self.workload, count, self.edges, self.cardinality)
            cell = torch.searchsorted(table, torch.rand(int(rows.sum()), generator=generator, dtype=torch.float64))
            cell = cell.clamp(max=len(table) - 1)
            size[rows], length[rows] = cell // (count + 1), cell % (count + 1)
        query = random_subset(is_present, size, generator)
        return self.protocol.prefix(query, length, generator), torch.ones(len(n))

    def _weighted_prefix(self, is_present: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Any workload: the question is drawn from M, the prefix from its law, and what the law asks of the
        question itself becomes a weight of the loss, so that every expectation is exact."""
        path = self.protocol.path(self.workload.draw(is_present, generator), generator)
        size = path.is_query.sum(dim=1)
        evidence = path.is_evidence.sum(dim=1)
        length = self._prefix_lengths(size, evidence, generator)
        prefix = path.is_evidence | (path.is_query & (path.step < length[:, None]))
        weight = size.double() if self.edges else torch.ones(len(size), dtype=torch.float64)
        if self.cardinality:
            weight = weight * (1 + evidence + (size - 1).clamp(min=0) / 2)  # the mean of 1+|e| over prefixes
        return prefix, weight.float()

    def _prefix_lengths(self, size: Tensor, evidence: Tensor, generator: torch.Generator) -> Tensor:
        """Prefix length in [0, |query|): uniform, or in proportion to 1 + |evidence| + length."""
        if not self.cardinality:
            return random_integers(torch.zeros_like(size), size - 1, generator)
        # Inverse of the running sum of (1+evidence+l): solve the quadratic, then step to the exact integer.
        u = torch.rand(size.shape, generator=generator, dtype=torch.float64)
        a, k = (1 + evidence).double(), size.double()
        total = a * k + k * (k - 1) / 2
        length = ((-(2 * a - 1) + ((2 * a - 1) ** 2 + 8 * u * total).sqrt()) / 2).floor()
        return length.clamp(min=0).minimum((size - 1).clamp(min=0)).long()


@lru_cache(maxsize=512)
def prefix_table(workload: Workload, n: int, edges: bool, cardinality: bool) -> Tensor:
    """((n+1)²,) running sum of the law of (|query|, prefix length) over n present variables."""
    sizes = workload.query_sizes(n)
    assert sizes is not None
    k = torch.arange(n + 1, dtype=torch.float64)[:, None]
    length = torch.arange(n + 1, dtype=torch.float64)[None, :]
    law = sizes[:, None] * (length < k)
    law = law if edges else law / k.clamp(min=1)
    law = law * (1 + length) if cardinality else law
    if n == 0 or law.sum() == 0:
        law = law.clone()
        law[0, 0] = 1.0
    return (law / law.sum()).flatten().cumsum(0)


@dataclass(frozen=True)
class Blend(Objective):
    """A share of the rows from each objective."""

    parts: tuple[Objective, ...]
    weights: tuple[float, ...]

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        return tuple(protocol for part in self.parts for protocol in part.protocols)

    @property
    def masking_modes(self) -> tuple[Staged, ...]:
        return next((part.masking_modes for part in self.parts if part.masking_modes), ())

    @property
    def unshared(self) -> Objective:
        return Blend(tuple(part.unshared for part in self.parts), self.weights)

    def at(self, share: float) -> Objective:
        return Blend(tuple(part.at(share) for part in self.parts), self.weights)

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        which = draw_index(self.weights, len(is_present), generator)
        step, mode = torch.empty(is_present.shape, dtype=torch.int64), torch.zeros(len(is_present), dtype=torch.int64)
        weights = torch.empty(is_present.shape)
        for k, part in enumerate(self.parts):
            path, weight = part.draw(is_present[which == k], generator)
            step[which == k], weights[which == k] = path.step, weight
            mode[which == k] = 0 if path.masking_mode is None else path.masking_mode
        return Path(step, mode), weights


@dataclass(frozen=True)
class Alternating(Blend):
    """Each objective for a share of the batches, so that all rows of a batch can be run together."""

    @property
    def unshared(self) -> Objective:
        return Blend(self.parts, self.weights).unshared

    def at(self, share: float) -> Objective:
        return Alternating(tuple(part.at(share) for part in self.parts), self.weights)

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        return self.parts[int(draw_index(self.weights, 1, generator))].draw(is_present, generator)


@dataclass(frozen=True)
class Refined(Objective):
    """Another objective, drawn in its own way: it trains the same questions along the same orders."""

    objective: Objective

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        return self.objective.protocols

    @property
    def masking_modes(self) -> tuple[Staged, ...]:
        return self.objective.masking_modes


@dataclass(frozen=True)
class SharedPaths(Refined):
    """A few paths for a whole batch, so that rows of one path need no padding; where nothing is missing."""

    n_paths: int = 8

    @property
    def unshared(self) -> Objective:
        return self.objective.unshared

    def at(self, share: float) -> Objective:
        return SharedPaths(self.objective.at(share), self.n_paths)

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        if not bool((is_present == is_present[:1]).all()):
            return self.objective.draw(is_present, generator)
        n = min(self.n_paths, len(is_present))
        path, weights = self.objective.draw(is_present[:n], generator)
        which = torch.arange(len(is_present)) % max(n, 1)
        return path.rows(which), weights[which]


@dataclass(frozen=True)
class Growing(Refined):
    """Short pieces first: windows that grow from `shortest` to all variables until so much of the training is done.

    What is outside the window is not asked and costs nothing. All rows of a batch have the same window.
    """

    shortest: int = 16
    until: float = 0.2

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        return self.objective.draw(is_present, generator)

    @property
    def unshared(self) -> Objective:
        return self.objective.unshared

    def at(self, share: float) -> Objective:
        inner = self.objective.at(share)
        return inner if share >= self.until else Window(inner, self.shortest, share / self.until)


@dataclass(frozen=True)
class Window(Refined):
    """Another objective on neighbouring variables alone: `shortest` of them, all, or something between the two."""

    shortest: int
    share: float

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        n = is_present.shape[1]
        size = min(n, round(self.shortest + self.share * (n - self.shortest)))
        shortest = int(is_present.sum(1).min()) if len(is_present) else n  # no row is to be left without a question
        start = int(torch.randint(max(0, min(shortest, n) - size) + 1, (1,), generator=generator))
        inside = torch.zeros(n, dtype=torch.bool)
        inside[start : start + size] = True
        return self.objective.draw(is_present & inside, generator)


def _mean_of_the_unknown(prefix: Tensor, is_present: Tensor, weight: Tensor) -> tuple[Path, Tensor]:
    """A look from the prefix at every other present variable; weights sum to `weight` (B,) in each row."""
    asked = is_present & ~prefix
    path = Path.look(prefix, asked)
    share = weight / asked.sum(dim=1).clamp(min=1)
    return path, asked * share[:, None]


@dataclass(frozen=True)
class ARDM(Objective):
    """A random prefix of a question's path is revealed and all that is still asked is trained at once,
    weighted |query| / |still asked|, so that on average every edge of the path counts once.

    With the joint question and random orders this is ARDM's bound (Eq. 4 of MAC, Eq. 10 of SFARM).
    """

    workload: Workload = field(default_factory=Joint)
    protocol: Protocol = field(default_factory=RandomOrder)

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        path = self.protocol.path(self.workload.draw(is_present, generator), generator)
        size = path.is_query.sum(dim=1)
        length = random_integers(torch.zeros_like(size), size - 1, generator)
        revealed = path.is_query & (path.step < length[:, None])
        asked = path.is_query & ~revealed
        step = torch.where(revealed, EVIDENCE, path.step)
        share = size / asked.sum(dim=1).clamp(min=1)
        return Path(torch.where(asked, 0, step)), asked * share[:, None]

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        return (self.protocol,)


@dataclass(frozen=True)
class FromEvidence(Objective):
    """One look from the evidence of a drawn question at all that it asks, and the sum of its edges: ACE's loss. With
    `is_mean` their mean, as MAC's Eq. 7 has it."""

    workload: Workload = field(default_factory=UniformEvidence)
    is_mean: bool = False

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        question = self.workload.draw(is_present, generator)
        weights = question.is_query.float()
        if self.is_mean:
            weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1)
        return Path.look(question.is_evidence, question.is_query), weights


@dataclass(frozen=True)
class Activations(Objective):
    """One step of a mode's Markov chain: SFARM's Eqs. 8–10.

    i is uniform over the steps, z_{i−1} is drawn from its marginal without simulating the chain, and all elements
    that may be activated next are trained at once, each weighted by how likely that is. With the uniform mode this is
    ARDM's objective (Eq. 11). `several` elements may be activated at a time. A network that is told the mode is told
    it in a share of the rows only, so that it can also do without.
    """

    modes: Staged
    several: int = 1
    told: float = 0.5

    def draw(self, is_present: Tensor, generator: torch.Generator) -> tuple[Path, Tensor]:
        stage, mode = self.modes.stages(is_present.shape, generator)
        noise = torch.rand(is_present.shape, generator=generator, dtype=torch.float64)
        n_stages = int(stage.max()) + 1 if stage.numel() else 1
        sizes = torch.stack([(is_present & (stage == k)).sum(1) for k in range(n_stages)], dim=1)  # (B, stages)
        steps = -(-sizes // self.several)
        i = random_integers(torch.zeros_like(mode), steps.sum(1) - 1, generator)  # steps done before
        now = (steps.cumsum(1) <= i.unsqueeze(1)).sum(1).clamp(max=n_stages - 1)  # (B,) the current stage
        before = (sizes.cumsum(1) - sizes).gather(1, now[:, None]).squeeze(1)
        here = i - (steps.cumsum(1) - steps).gather(1, now[:, None]).squeeze(1)
        active = lowest(stage + noise, is_present, before + self.several * here)
        asked = is_present & ~active & (stage == now.unsqueeze(1))
        left = asked.sum(1)
        weight = steps.sum(1) * left.clamp(max=self.several) / left.clamp(min=1)
        is_told = torch.rand(mode.shape, generator=generator, dtype=torch.float64) < self.told
        path = Path.look(active, asked)
        return Path(path.step, torch.where(is_told, mode, 0)), asked * weight.unsqueeze(1)

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        return (self.modes,)

    @property
    def masking_modes(self) -> tuple[Staged, ...]:
        return self.modes.masking_modes
