"""The energy head: a proposal mixture and an energy network that corrects it (ACE, Strauss & Oliva 2021).

Both kinds say p(x) ∝ exp(−E(x)) · base(x). ACE's energy stands alone (base 1) and has to learn the whole shape; ours
is relative to the proposal (base q), so that an untrained energy leaves q as it is and what is left to learn is small.

In training log Z comes from a few draws of the proposal. A trained head is put into a table: the energy at nodes that
the proposal's own components place, as a weight on the proposal (heads/reweighted.py); at a quarter of them where the
proposal is so good that the others follow. That law is normalised exactly, and cdf, quantile, mean and draws are all of
it; importance sampling is there to check it and for whoever wants ACE's own estimate, with its standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from anygiven.heads.mixtures import KernelMixture, MixtureHead
from anygiven.heads.reweighted import Reweighted, tempered
from anygiven.heads.smooth import ColumnHead, Phase, Smooth, outputs
from anygiven.variables.marginals import SCORE_LIMIT

MAX_ENERGY = 30.0  # as ACE clips it
N_IMPORTANCE = 20  # draws of the proposal in training, as ACE's
N_NODES, LEAST_NODES = 208, 13  # of the table, over all components, and of each component
FARTHEST_NODE = 4.2  # of a component, in its scales
FAR_NODE, N_FAR_NODES = 1.1 * SCORE_LIMIT, 97  # all over the scores that values have
WIDE = 3.0  # the spread of a component that reaches all of them
LOWEST = 5.0  # where an energy that stands alone starts: ½x² above this is what softplus leaves as it is
ENTRIES = 2**21  # points of the energy network at a time, times its width


class EnergyNetwork(nn.Module):
    """E(x; variable, context) ≥ 0. The context's share of the first layer is found once for all points of a row.

    An energy that stands alone starts at ½x² and a constant: at N(0, 1), the columns' marginal.
    """

    def __init__(self, n_columns: int, n_context: int, width: int, depth: int, is_alone: bool):
        super().__init__()
        self.width, self.is_alone = width, is_alone
        self.variable = nn.Embedding(n_columns, width)
        self.context = nn.Linear(n_context, width)
        self.score = nn.Linear(3, width, bias=False)
        self.blocks = nn.ModuleList(EnergyBlock(width) for _ in range(depth))
        self.last = nn.Linear(width, 1)
        nn.init.normal_(self.last.weight, std=1e-3)
        nn.init.zeros_(self.last.bias)

    def start(self, context: Tensor, places: Tensor) -> Tensor:
        """(B, C, width): all that does not depend on the score."""
        return self.context(context) + self.variable(places)

    def forward(self, x: Tensor, frame: Tensor, start: Tensor) -> Tensor:
        """Scores (S, …), where and how wide the proposal is (…, 2), what `start` gave (…, width) → energies (S, …)."""
        standard = (x - frame[..., 0]) / frame[..., 1]
        h = start + self.score(torch.stack([0.5 * x, 0.5 * standard, standard.tanh()], dim=-1))
        for block in self.blocks:
            h = block(h)
        energy = self.last(h.relu()).squeeze(-1)
        energy = energy + LOWEST + 0.5 * x.square() if self.is_alone else energy
        return nn.functional.softplus(energy).clamp(max=MAX_ENERGY)


class EnergyBlock(nn.Module):
    """h + W relu(V relu(h)), as ACE's."""

    def __init__(self, width: int):
        super().__init__()
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, h: Tensor) -> Tensor:
        return h + self.outer(self.inner(h.relu()).relu())


@dataclass(frozen=True)
class EnergyDensity(Smooth):
    """p(x) ∝ exp(−E(x)) · q(x), or with `is_alone` exp(−E(x)). In training log_prob and log_mass are what training
    makes large, ACE's loss; else they are of the law."""

    proposal: KernelMixture
    start: Tensor  # (…, width) of the energy network
    energy: EnergyNetwork
    is_alone: bool
    phase: Phase
    is_costly = True

    @property
    def _frame(self) -> Tensor:
        """(…, 2) mean and spread of the proposal, given to the energy as they are."""
        return torch.stack([self.proposal.mean, self.proposal.std.clamp(min=1e-4)], dim=-1).detach()

    def _log_weight(self, x: Tensor, base: KernelMixture | None = None) -> Tensor:
        """(S, …) log of p(x) / base(x), but for log Z; the base is the proposal unless an energy alone is given one."""
        log_w = -self._energies(x)
        return log_w - (base or self.proposal).log_prob(x).detach() if self.is_alone else log_w

    def _energies(self, x: Tensor) -> Tensor:
        frame = self._frame
        if torch.is_grad_enabled():
            return self.energy(x, frame, self.start)
        size = max(1, ENTRIES // max(1, x[0].numel() * self.energy.width))
        return torch.cat([self.energy(part, frame, self.start) for part in x.split(size)])

    # ------------------------------------------------------------------ training, and ACE's own estimate

    def log_z(self, n: int = N_IMPORTANCE, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """(…) log Z by n draws of the proposal, and the standard error of that."""
        with torch.no_grad():
            drawn = torch.stack([self.proposal.sample(generator) for _ in range(n)])  # (n, …)
        log_w = self._log_weight(drawn)
        log_z = log_w.logsumexp(0) - math.log(n)
        share = (log_w - log_z).exp()  # 1 on average
        return log_z, ((share - 1).square().sum(0) / max(n - 1, 1) / n).sqrt().detach()

    def log_prob_by_importance(
        self, value: Tensor, n: int, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """log p(value) with log Z by n draws of the proposal, as ACE has it, and its standard error."""
        log_z, error = self.log_z(n, generator)
        log_p = self.proposal.log_prob(value) + self._log_weight(value.unsqueeze(0))[0] - log_z
        return log_p, error

    def _scored(self, log_q: Tensor, at: Tensor) -> Tensor:
        """What is made large: log q + α log p − r (log p − log q)², of a value whose log q is known."""
        if self.phase.step < self.phase.energy_warmup:
            return log_q
        fixed = log_q.detach()
        log_p = fixed + self._log_weight(at.unsqueeze(0))[0] - self.log_z()[0]
        return log_q + log_p - self.phase.energy_regulariser * (log_p - fixed).square()

    # ------------------------------------------------------------------ the law

    @cached_property
    def law(self) -> Reweighted:
        """What is answered with."""
        with torch.no_grad():
            return self._tabulated()

    def _tabulated(self) -> Reweighted:
        """The energy at nodes, as a weight on the proposal; where it stands alone it may reach beyond the proposal, so
        a wide component is added and nodes all over."""
        shape = self.proposal.loc.shape[:-1]
        flat = replace(self, proposal=self.proposal.each(_flat), start=_flat(self.start))  # a batch of one side
        base, nodes = flat._base_and_nodes()

        def log_weight(x: Tensor, rows: Tensor) -> Tensor:
            some = (rows,)
            return flat.those(some)._log_weight(x.T, base.those(some)).T

        return Reweighted.where_needed(base, nodes, log_weight).each(lambda tensor: tensor.unflatten(0, shape))

    def _base_and_nodes(self) -> tuple[KernelMixture, Tensor]:
        """What is reweighted, and (…, M) ascending scores at which the weight may be asked for."""
        base = self.proposal
        n = max(LEAST_NODES, N_NODES // base.loc.shape[-1])
        t = torch.linspace(-1.5, 1.5, n).sinh() * (FARTHEST_NODE * base.kernel.std / math.sinh(1.5))  # close within
        nodes = (base.loc.unsqueeze(-1) + base.scale.unsqueeze(-1) * t.to(base.loc)).flatten(-2)  # (…, K · T)
        if self.is_alone:
            everywhere = torch.linspace(-FAR_NODE, FAR_NODE, N_FAR_NODES).to(nodes)
            nodes = torch.cat([nodes, everywhere.expand(*nodes.shape[:-1], -1)], dim=-1)
            base = base.mixed([self._wide()], [torch.full_like(base.loc[..., 0], share) for share in (2.0, 0.0)])
        return base, nodes.clamp(-FAR_NODE, FAR_NODE).sort(-1).values

    def _wide(self) -> KernelMixture:
        one = torch.zeros_like(self.proposal.loc[..., :1])
        return KernelMixture(one, one, one + WIDE, self.proposal.kernel)

    def each(self, change) -> Reweighted:  # type: ignore[override]
        return self.law.each(change)

    def those(self, chosen: tuple[Tensor, ...]) -> EnergyDensity:
        return replace(self, proposal=self.proposal.those(chosen), start=self.start[chosen])

    def log_prob(self, value: Tensor) -> Tensor:
        if self.energy.training:
            return self._scored(self.proposal.log_prob(value), value)
        return self.law.log_prob(value)

    def log_mass(self, low: Tensor, high: Tensor) -> Tensor:
        if self.energy.training:
            middle = 0.5 * (low.clamp(-SCORE_LIMIT, SCORE_LIMIT) + high.clamp(-SCORE_LIMIT, SCORE_LIMIT))
            return self._scored(self.proposal.log_mass(low, high), middle)
        return self.law.log_mass(low, high)

    def cdf(self, value: Tensor) -> Tensor:
        return self.law.cdf(value)

    def quantile(self, level: Tensor | float) -> Tensor:
        return self.law.quantile(level)

    def quadrature(self) -> tuple[Tensor, Tensor]:
        return self.law.quadrature()

    def temperature(self, t: float) -> Smooth:
        return tempered(self.law, t)

    def mixed(self, others, log_shares) -> Smooth:
        return self.law.mixed([other.law for other in others], log_shares)

    @property
    def centres(self) -> Tensor:
        return self.law.centres


def _flat(tensor: Tensor) -> Tensor:
    """(…, K) → (rows, K), apart from what it was computed from."""
    return tensor.detach().flatten(0, -2)


class EnergyHead(ColumnHead):
    """A mixture head and an energy network over all columns, relative to the mixture."""

    is_costly = True
    WIDTH, DEPTH, N_CONTEXT, IS_ALONE = 64, 2, 32, False

    def __init__(self, width: int, n_columns: int, n_components: int, is_grid: bool):
        super().__init__(width, n_columns, n_components, is_grid)
        self.proposal = MixtureHead(width, n_columns, n_components, is_grid)
        self.context = nn.Linear(width, n_columns * self.N_CONTEXT)
        self.stands_alone = self.IS_ALONE and not is_grid  # cells of a grid are intervals: masses of the proposal
        self.energy = EnergyNetwork(n_columns, self.N_CONTEXT, self.WIDTH, self.DEPTH, self.stands_alone)
        self.phase = Phase()

    def begin(self, phase: Phase) -> None:
        self.phase = phase

    def forward(self, features: Tensor, places: Tensor) -> EnergyDensity:
        start = self.energy.start(outputs(self.context, features, places, self.N_CONTEXT), places)
        proposal = self.proposal(features, places)
        return EnergyDensity(proposal, start, self.energy, self.stands_alone, self.phase)


class ACEHead(EnergyHead):
    """ACE's: an energy that stands alone, with the sizes of its published code."""

    WIDTH, DEPTH, N_CONTEXT, IS_ALONE = 128, 4, 64, True
