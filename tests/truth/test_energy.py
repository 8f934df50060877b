"""The energy head against numerical integration: known densities as energies, draws, standard errors, its loss."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from anygiven.heads.energy import ACEHead, EnergyDensity, EnergyHead, EnergyNetwork
from anygiven.heads.mixtures import KernelMixture, Logistic, Normal
from anygiven.heads.reweighted import Reweighted, between, mass_missed
from anygiven.heads.smooth import Phase

FINE = torch.linspace(-15, 15, 600_001, dtype=torch.float64)
WORLDS = {  # the truth, and a proposal that is near it: logits, locations, scales
    "bimodal": (lambda x: np.logaddexp(stats.norm.logpdf(x, -2, 0.3), stats.norm.logpdf(x, 1.5, 0.6)) - math.log(2),
                ([0.5, 0.0, -1.0], [-1.8, 1.2, 0.0], [0.5, 0.9, 1.5])),
    "skewed": (lambda x: stats.skewnorm.logpdf(x, 6, -1, 1.4), ([0.0, 0.0, -1.0], [-0.6, 0.6, 0.0], [0.5, 1.0, 2.0])),
    "heavy-tailed": (lambda x: stats.t.logpdf(x, 2.5, 0, 0.5), ([0.0, -0.5, -1.5], [0.0, 0.0, 0.0], [0.5, 1.2, 3.0])),
    "a sharp spike": (lambda x: np.logaddexp(math.log(0.4) + stats.norm.logpdf(x, 0.7, 0.01),
                                             math.log(0.6) + stats.norm.logpdf(x, 0, 1)),
                      ([0.0, 0.0, -3.0], [0.7, 0.1, 0.0], [0.02, 1.0, 2.0])),
}  # fmt: skip


class KnownEnergy(torch.nn.Module):
    """An energy whose density is known: that of the truth, or of the truth beside the proposal."""

    width = 1

    def __init__(self, log_truth, proposal, is_alone):
        super().__init__()
        self.log_truth, self.proposal, self.is_alone = log_truth, proposal, is_alone

    def forward(self, x, frame, start):
        log_p = torch.from_numpy(np.asarray(self.log_truth(x.double().numpy()))).to(x)
        return 12.0 - log_p + (0.0 if self.is_alone else self.proposal.log_prob(x))


def density_of(world: str, is_alone: bool, rows: int = 1) -> EnergyDensity:
    log_truth, (logits, loc, scale) = WORLDS[world]
    mixture = KernelMixture(*(torch.tensor([row] * rows).double() for row in (logits, loc, scale)), Normal())
    energy = KnownEnergy(log_truth, mixture, is_alone).eval()
    return EnergyDensity(mixture, torch.zeros(rows, 1).double(), energy, is_alone, Phase())


def log_truth_of(density: EnergyDensity, world: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(F,) log p and p · dx on the fine points, by numerical integration of exp(−E) · base."""
    log_p = torch.from_numpy(WORLDS[world][0](FINE.numpy()))
    mass = log_p.exp() * (FINE[1] - FINE[0])
    return log_p - mass.sum().log(), mass / mass.sum()


@pytest.fixture(params=[(world, alone) for world in WORLDS for alone in (False, True)], ids=str)
def found(request):
    world, is_alone = request.param
    density = density_of(world, is_alone)
    return density, *log_truth_of(density, world)


def test_log_prob_is_that_of_numerical_integration(found):
    """On average over the truth within 0.01 nats, and nowhere that counts far from it."""
    density, log_p, mass = found
    ours = density.log_prob(FINE[:, None])[:, 0]
    assert float((mass * (ours - log_p).abs()).sum()) < 0.01
    inner = (mass.cumsum(0) > 0.005) & (mass.cumsum(0) < 0.995)
    assert float((ours - log_p)[inner].abs().max()) < 0.12
    assert float((ours.exp() * (FINE[1] - FINE[0])).sum()) == pytest.approx(1, abs=2e-3)


def test_cdf_quantile_and_mean_are_those_of_numerical_integration(found):
    density, _, mass = found
    below = mass.cumsum(0)
    for level in (0.02, 0.25, 0.5, 0.75, 0.98):
        value = float(density.quantile(level))
        place = int((value >= FINE).sum()) - 1
        assert float(below[place]) == pytest.approx(level, abs=4e-3)
        assert float(density.cdf(torch.tensor(value).double())) == pytest.approx(level, abs=1e-6)
    assert float(density.mean) == pytest.approx(float((mass * FINE).sum()), abs=0.02)


def test_draws_pass_a_test_against_the_cdf(found):
    """100,000 of them, by Kolmogorov and Smirnov; and they are not the proposal's."""
    density, _, mass = found
    law = density.law.each(lambda tensor: tensor.expand(100_000, *tensor.shape[1:]))
    drawn = law.sample(torch.Generator().manual_seed(0)).numpy()
    assert stats.kstest(drawn, lambda x: density.cdf(torch.from_numpy(x)[:, None])[:, 0].numpy()).pvalue > 1e-3
    exact = stats.kstest(drawn, lambda x: np.interp(x, FINE.numpy(), mass.cumsum(0).numpy()))
    assert exact.statistic < 0.012
    proposed = stats.kstest(drawn, lambda x: density.proposal.cdf(torch.from_numpy(x)[:, None])[:, 0].numpy())
    assert proposed.statistic > 0.02


def test_the_standard_error_covers(found):
    """Of 400 estimates with 200 draws each, about 95 in 100 are within two of their own errors."""
    density, log_p, mass = found
    many = EnergyDensity(
        density.proposal.each(lambda t: t.expand(400, *t.shape[1:])), torch.zeros(400, 1), density.energy,
        density.is_alone, Phase(),
    )  # fmt: skip
    place = int(mass.argmax())
    estimate, error = many.log_prob_by_importance(FINE[place].expand(400), 200, torch.Generator().manual_seed(0))
    assert float(((estimate - log_p[place]).abs() < 2 * error).double().mean()) > 0.88
    assert float((estimate - log_p[place]).std() / error.mean()) == pytest.approx(1, abs=0.35)
    finer = many.log_prob_by_importance(FINE[place].expand(400), 800, torch.Generator().manual_seed(1))[1]
    assert float(finer.mean() / error.mean()) == pytest.approx(0.5, abs=0.12)


# ------------------------------------------------------------------ the weight where it is needed


def test_weights_between_levels_are_linear():
    levels = torch.tensor([[0.0, 0.1, 0.4, 1.0], [0.2, 0.2, 0.5, 0.9]]).double()
    weights = torch.tensor([[1.0, 3.0, 0.5, 2.0], [2.0, 4.0, 1.0, 0.1]]).double()
    at = torch.tensor([[0.0, 0.05, 0.1, 0.25, 0.4, 0.99, 1.0], [0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.95]]).double()
    found = between(at, levels, weights.log()).exp()
    for row in range(2):
        assert found[row].numpy() == pytest.approx(np.interp(at[row], levels[row], weights[row]))


def asked_of(log_weight, n_nodes=41):
    """A law of that weight on N(0, 1), and how many weights of each of three rows were asked for."""
    one = torch.ones(3, 1).double()
    base, asked = KernelMixture(one, 0 * one, one, Normal()), torch.zeros(3)
    nodes = torch.linspace(-4, 4, n_nodes).double().expand(3, -1)

    def counted(x, rows):
        asked[rows] += x.shape[1]
        return log_weight(x, rows)

    return (
        Reweighted.where_needed(base, nodes, counted),
        Reweighted.by(base, nodes, log_weight(nodes, torch.arange(3))),
        asked,
    )


def test_a_weight_is_asked_for_where_it_does_not_follow_from_its_neighbours():
    """Row 0 is level, row 1 straight on the axis of levels, row 2 goes up and down."""

    def log_weight(x, rows):
        kinds = torch.stack([0 * x, (1 + 2 * torch.special.ndtr(x)).log(), torch.sin(7 * x)])
        return kinds[rows, torch.arange(len(rows))]

    sparing, whole, asked = asked_of(log_weight)
    assert asked.tolist() == [11, 11, 11 + 41]
    value = torch.linspace(-3, 3, 50).double()[:, None]
    assert torch.allclose(sparing.log_prob(value), whole.log_prob(value), atol=1e-9)


@pytest.mark.parametrize("n_nodes", [40, 42, 43, 44])
def test_the_outermost_nodes_are_always_asked(n_nodes):
    """However many nodes there are: a weight that rises steeply at the very end is not missed."""
    sparing, whole, _ = asked_of(lambda x, _: 30 * (x - 3).clamp(min=0), n_nodes)
    assert torch.allclose(sparing.mean, whole.mean, atol=1e-6)


@pytest.mark.parametrize("kernel", [Normal(), Logistic()])
def test_nodes_reach_as_far_as_the_proposal_does(kernel):
    """In scales of its own spread, whichever kernel it has, and closer within."""
    one = torch.ones(1, 1).double()
    proposal = KernelMixture(one, 0.5 * one, 0.1 * one, kernel)
    density = EnergyDensity(proposal, one, KnownEnergy(lambda x: 0 * x, proposal, False), False, Phase())
    base, nodes = density._base_and_nodes()
    reach = (nodes - 0.5) / float(base.std)
    assert [float(reach.min()), float(reach.max())] == pytest.approx([-4.2, 4.2], abs=1e-6)
    assert float(reach.abs().median()) < 2.1


def test_a_weighted_mean_is_that_of_numerical_integration():
    density = density_of("skewed", False)
    x = FINE
    p = density.law.log_prob(x[:, None])[:, 0].exp() * (x[1] - x[0])
    assert float(density.mean) == pytest.approx(float((p * x).sum()), abs=2e-5)
    assert float(density.std) == pytest.approx(float((p * (x - density.mean) ** 2).sum().sqrt()), abs=2e-4)


@pytest.mark.parametrize("t", [0.5, 1.0, 2.0])
def test_a_temperature_is_the_power_of_the_density(t):
    """p^(1/t), normalised, of an energy's law: against numerical integration."""
    density = density_of("skewed", False)
    tempered = density.temperature(t).log_prob(FINE[:, None])[:, 0].exp()
    power = (density.log_prob(FINE[:, None])[:, 0] / t).exp()
    dx = FINE[1] - FINE[0]
    assert float((tempered - power / (power.sum() * dx)).abs().sum() * dx) < 0.01


def test_what_is_missed_is_a_share_of_the_mass():
    """Weights 1, 2, 1 guessed as 1, 1, 1 between levels 0, ½, 1: a quarter of ∫w = 1.5 on each side."""
    levels, log_w = torch.tensor([[0.0, 0.5, 1.0]]), torch.tensor([[1.0, 2.0, 1.0]]).log()
    assert float(mass_missed(levels, log_w, torch.zeros(1, 3))) == pytest.approx(0.5 / 1.5)
    assert float(mass_missed(levels, log_w + 5, torch.full((1, 3), 5.0))) == pytest.approx(0.5 / 1.5)


# ------------------------------------------------------------------ the head and its loss

WIDTH = 6


def a_head(is_grid=False):
    torch.manual_seed(0)
    head = EnergyHead(WIDTH, 3, 4, is_grid)
    for parameter in head.parameters():
        fan_in = parameter.shape[1] if parameter.dim() == 2 else 1
        parameter.data.add_(0.3 * torch.randn_like(parameter) / fan_in**0.5)
    return head


def test_the_law_is_what_importance_sampling_tends_to():
    """The table of a real network against its own energy by many draws of the proposal."""
    head = a_head().eval()
    with torch.no_grad():
        density = head(torch.randn(3, WIDTH), torch.tensor([2, 0]))
        value = density.proposal.sample(torch.Generator().manual_seed(1))
        exact, error = density.log_prob_by_importance(value, 4000, torch.Generator().manual_seed(0))
        assert ((density.log_prob(value) - exact).abs() < 5 * error + 0.05).all()


def test_an_energy_sees_scores_as_the_proposal_does():
    """Where only the place within the proposal counts, energies move and widen with it."""
    torch.manual_seed(0)
    network = EnergyNetwork(1, 2, 8, 1, is_alone=False)
    torch.nn.init.normal_(network.last.weight)
    network.score.weight.data[:, 0] = 0.0  # the score itself
    u, start = torch.linspace(-2, 2, 9), torch.randn(8)
    found = [network(loc + scale * u, torch.tensor([loc, scale]), start) for loc, scale in ((0.0, 1.0), (3.0, 0.1))]
    assert torch.allclose(*found, atol=1e-4)
    assert float(found[0].detach().std()) > 0.01


def test_in_training_the_loss_is_aces():
    """log q + α log p − r (log p − log q)²; in the warm-up log q alone."""
    head, features, places = a_head(), torch.randn(4, WIDTH), torch.tensor([0, 1])
    value = torch.randn(4, 2)
    log_q = head.proposal(features, places).log_prob(value)
    head.train()
    head.begin(Phase(step=3, energy_warmup=10))
    assert torch.allclose(head(features, places).log_prob(value), log_q)
    scores = []
    for regulariser in (0.0, 1.0):
        head.begin(Phase(step=10, energy_warmup=10, energy_regulariser=regulariser))
        torch.manual_seed(5)
        scores.append(head(features, places).log_prob(value))
    log_p = scores[0] - log_q
    torch.manual_seed(5)
    density = head(features, places)
    by_importance = density.log_prob_by_importance(value, 20)[0]
    assert torch.allclose(log_p, by_importance, atol=1e-5)
    assert torch.allclose(scores[1], scores[0] - (log_p - log_q) ** 2, atol=1e-5)


def test_the_energys_loss_does_not_move_the_proposal():
    """The proposal learns by log q alone (ACE stops its gradient in log p)."""
    head, features, places = a_head(), torch.randn(4, WIDTH), torch.tensor([0, 1])
    value = torch.randn(4, 2)
    head.train()
    grads = []
    for phase in (Phase(0, energy_warmup=1), Phase(1, energy_warmup=1, energy_regulariser=0.5)):
        head.begin(phase)
        head.zero_grad()
        head(features, places).log_prob(value).sum().backward()
        grads.append(head.proposal.linear.weight.grad.clone())
    assert torch.allclose(grads[0], grads[1], atol=1e-6)
    assert head.energy.last.weight.grad.abs().sum() > 0
    assert head.context.weight.grad.abs().sum() > 0


def test_cells_of_a_grid_are_masses_in_training_too():
    head, features = a_head(is_grid=True), torch.randn(2, WIDTH)
    head.train()
    head.begin(Phase(1))
    edges = torch.linspace(-9, 9, 61)
    torch.manual_seed(0)
    density = head(features, torch.tensor([1]))
    total = torch.zeros(2, 1)
    for low, high in pairwise(edges):
        low, high = low.expand(2, 1), high.expand(2, 1)
        log_q = density.proposal.log_mass(low, high)
        total += (density.log_mass(low, high) - log_q).exp().detach()  # log q + log p, without log q
    # Each with its own draws of log Z: the masses sum to one but for the noise of twenty draws.
    assert float(total.mean()) == pytest.approx(1, abs=0.15)


def test_an_untrained_energy_that_stands_alone_starts_at_the_marginal():
    torch.manual_seed(0)
    head = ACEHead(WIDTH, 2, 4, False).eval()
    with torch.no_grad():
        density, value = head(torch.zeros(3, WIDTH), torch.tensor([0, 1])), torch.linspace(-3, 3, 6).view(3, 2)
        assert torch.allclose(density.log_prob(value), Normal().log_density(value), atol=0.03)
        assert torch.allclose(density.mean, torch.zeros(3, 2), atol=0.01)


def test_an_untrained_energy_leaves_the_proposal_as_it_is():
    torch.manual_seed(0)
    head = EnergyHead(WIDTH, 2, 4, False).eval()
    with torch.no_grad():
        density = head(torch.zeros(3, WIDTH), torch.tensor([0, 1]))
        value = torch.randn(3, 2)
        assert torch.allclose(density.log_prob(value), density.proposal.log_prob(value), atol=5e-3)
        assert torch.allclose(density.log_prob(value), Normal().log_density(value), atol=0.02)
