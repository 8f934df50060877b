"""Every head: sums or integrates to one, and its figures agree with its own density."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from anygiven.heads import (
    AtomsPlusContinuousHead,
    BernoulliHead,
    CategoricalHead,
    DiscretisedLogisticHead,
    GaussianHead,
    Head,
    LevelHead,
    LevelMixture,
    MixtureHead,
    OrdinalHead,
    PixelHead,
    PixelMixture,
    TableHead,
)
from anygiven.heads.mixtures import KernelMixture, Logistic, Normal

WIDTH, BATCH = 6, 5
FREQUENCIES = torch.tensor([0.1, 0.4, 0.2, 0.3])
HEADS = {
    "Gaussian": lambda: GaussianHead(WIDTH),
    "mixture of Gaussians": lambda: MixtureHead(WIDTH, 5),
    "mixture of logistics": lambda: MixtureHead(WIDTH, 5, Logistic()),
    "categorical": lambda: CategoricalHead(WIDTH, FREQUENCIES),
    "Bernoulli": lambda: BernoulliHead(WIDTH, 0.3),
    "ordinal": lambda: OrdinalHead(WIDTH, FREQUENCIES, torch.tensor([-1.5, -0.3, 0.4, 1.2])),
    "discretised logistics": lambda: DiscretisedLogisticHead(WIDTH, 4, centre=10.0, spread=4.0),
    "levels": lambda: LevelHead(WIDTH, torch.ones(16) / 16, 3),
    "atoms plus continuous": lambda: AtomsPlusContinuousHead(WIDTH, torch.tensor([-0.5, 0.8]), FREQUENCIES[:3] / 0.7),
}
DISCRETE = {
    "categorical": range(4),
    "Bernoulli": range(2),
    "ordinal": range(4),
    "discretised logistics": range(-3000, 3000),
    "levels": range(16),
}


def test_no_head_is_forgotten():
    made = {type(make()) for make in HEADS.values()}
    assert made == set(Head.__subclasses__())


@pytest.fixture(params=HEADS)
def named(request):
    torch.manual_seed(0)
    head = HEADS[request.param]()
    for parameter in head.parameters():
        parameter.data.add_(0.5 * torch.randn_like(parameter))
    with torch.no_grad():
        return request.param, head(torch.randn(BATCH, WIDTH))


def support(name, conditional):
    """Points and their weights: a sum for masses, a fine quadrature for densities, both where there are atoms."""
    if name in DISCRETE:
        points = torch.tensor(list(DISCRETE[name]), dtype=torch.float32)
        return points, torch.ones(len(points))
    points = torch.linspace(-60, 60, 240_001, dtype=torch.float64)[:-1].float() + 1.234e-5
    weights = torch.full((len(points),), 120 / 240_000)
    if name == "atoms plus continuous":
        return torch.cat([points, conditional.atoms]), torch.cat([weights, torch.ones(2)])
    return points, weights


def masses(name, conditional):
    points, weights = support(name, conditional)
    log_p = conditional.log_prob(points[:, None].expand(-1, BATCH))
    return points.double(), weights.double()[:, None] * log_p.double().exp()


def test_sums_to_one(named):
    _, mass = masses(*named)
    assert torch.allclose(mass.sum(0), torch.ones(BATCH, dtype=torch.float64), atol=2e-4)


def test_mean_and_std_are_those_of_the_density(named):
    points, mass = masses(*named)
    mean = (mass * points[:, None]).sum(0)
    std = ((mass * (points[:, None] - mean) ** 2).sum(0)).sqrt()
    assert torch.allclose(named[1].mean.double(), mean, atol=5e-3)
    assert torch.allclose(named[1].std.double(), std, rtol=5e-3, atol=5e-3)


def test_entropy_is_that_of_the_density(named):
    name, conditional = named
    points, weights = support(name, conditional)
    log_p = conditional.log_prob(points[:, None].expand(-1, BATCH)).double()
    entropy = -(weights.double()[:, None] * log_p.exp() * log_p.clamp(min=-200)).sum(0)
    assert torch.allclose(conditional.entropy().double(), entropy, atol=0.02)


def test_cdf_is_the_running_sum(named):
    name, conditional = named
    points, mass = masses(name, conditional)
    for value in (-0.37, 0.0, 0.61, 1.0, 9.0):
        below = mass[points <= value].sum(0)
        assert torch.allclose(conditional.cdf(torch.full((BATCH,), value)).double(), below, atol=2e-3)


def test_quantile_is_the_smallest_value_that_reaches_the_level(named):
    name, conditional = named
    step = 1.0 if name in DISCRETE else 1e-3
    for level in (0.05, 0.3, 0.5, 0.9):
        value = conditional.quantile(level)
        assert (conditional.cdf(value) >= level - 1e-4).all()
        assert (conditional.cdf(value - step) <= level + 1e-4).all()


def test_mode_is_nowhere_beaten_by_much(named):
    name, conditional = named
    points, _ = support(name, conditional)
    if name == "atoms plus continuous":
        points = points[:-2]  # a mass and a density cannot be compared
        best = conditional.smooth.log_prob(points[:, None].expand(-1, BATCH)).max(0).values
        assert (conditional.smooth.log_prob(conditional.smooth.mode) >= best - 0.02).all()
    else:
        best = conditional.log_prob(points[:, None].expand(-1, BATCH)).max(0).values
        assert (conditional.log_prob(conditional.mode) >= best - 0.02).all()


def test_draws_follow_the_density(named):
    _, conditional = named
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([conditional.sample(generator) for _ in range(6000)])
    error = conditional.std / 6000**0.5
    assert ((draws.mean(0) - conditional.mean).abs() < 5 * error + 1e-6).all()
    for level in (0.1, 0.5, 0.9):
        value = conditional.quantile(level)
        assert ((draws <= value + 1e-6).double().mean(0) - conditional.cdf(value)).abs().max() < 0.03


def test_temperature_sharpens_and_flattens(named):
    name, conditional = named
    cold, hot = conditional.temperature(0.25), conditional.temperature(4.0)
    assert (cold.entropy() <= conditional.entropy() + 1e-4).all()
    if name == "levels":  # scales as wide as the range: all goes to the borders, the farther apart
        assert (hot.std >= conditional.std - 1e-4).all()
    else:
        assert (hot.entropy() >= conditional.entropy() - 1e-4).all()
    assert torch.allclose(conditional.temperature(1.0).entropy(), conditional.entropy(), atol=1e-3)


@pytest.mark.parametrize("kernel", [Normal(), Logistic()])
def test_interval_masses_keep_their_digits_in_the_tails(kernel):
    mixture = KernelMixture(torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1), kernel)
    low = torch.tensor([-12.0, -0.5, 5.0, 9.0, 2.0])
    high = torch.tensor([-11.0, 0.5, 6.0, 9.5, 2.0005])
    ours = mixture.log_mass(low, high).double()
    reference = KernelMixture(*(t.double() for t in (mixture.logits, mixture.loc, mixture.scale)), kernel)
    fine = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    points = low.double() + (high - low).double() * (0.5 * (fine[1:] + fine[:-1]))[:, None]
    exact = reference.log_prob(points).logsumexp(0) + ((high - low).double() / 20_000).log()
    assert torch.allclose(ours, exact, atol=2e-3)


def test_an_untrained_table_head_equals_the_independent_marginals(density, table):
    """Marginal first: log p = log P(symbol) + log N(z) + log dz/dx for every column."""
    domains = density.schema_.domains
    head = TableHead(8, domains, n_components=8)
    cells, present = density.schema_.encode(read(table))
    x = torch.from_numpy(cells)
    log_p = head(torch.zeros(len(x), 8)).log_prob(x).detach()
    for i, domain in enumerate(domains):
        rows = present[:, i]
        symbol = cells[rows, i, 0].astype(int)
        expected = np.log(domain.frequencies[symbol])
        smooth = np.zeros(len(symbol), dtype=bool) if not domain.has_smooth_part else symbol == domain.n_symbols - 1
        low, high = cells[rows, i, 1], cells[rows, i, 2]
        from scipy.special import log_ndtr, ndtr

        mass = np.log(np.maximum(ndtr(high) - ndtr(low), 1e-30))
        point = -0.5 * ((low + high) / 2) ** 2 - 0.5 * np.log(2 * np.pi) + cells[rows, i, 3]
        smooth_part = np.where(high - low > 1e-4, mass, point)
        expected = expected + np.where(smooth, smooth_part, 0.0)
        assert np.isfinite(log_ndtr(low)).all()
        # Logistic kernels on grids come close to N(0, 1) but are not it.
        assert np.abs(log_p[rows, i].numpy() - expected).mean() < (
            0.01 if getattr(domain, "step", None) is None else 0.1
        )
    assert log_p.isfinite().all()


def test_columns_can_be_asked_one_by_one(density, table):
    """A look at some columns equals the same columns of a look at all."""
    x, is_present = (torch.from_numpy(a) for a in density.schema_.encode(read(table)))
    with torch.no_grad():
        whole = density.model_.look(x, is_present).log_prob(x)
        for i in range(x.shape[1]):
            part = density.model_.look(x, is_present, torch.tensor([i])).log_prob(x[:, [i]])
            assert torch.allclose(whole[:, [i]], part, atol=1e-4)


def read(table):
    from anygiven.variables import read_table

    return read_table(table)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("loc", [-3.0, -0.9, 0.0, 1 / 15, 2.0])
def test_levels_keep_their_promises_at_the_borders(loc, scale):
    """Masses sum to one, the mean is theirs, the entropy of a pixel is bounded from above."""
    one = torch.ones(1, 1, 1)
    pixel = PixelMixture(torch.zeros(1, 1), loc * one, scale * one, one[..., :0], 16)
    table = LevelMixture(pixel).table
    assert float(table.logits.exp().sum()) == pytest.approx(1, abs=1e-4)
    assert float(pixel.mean) == pytest.approx(float(table.mean), abs=2e-3)
    assert float(table.entropy()) <= float(pixel.entropy()) + 1e-5


def test_entropy_of_levels_is_that_of_their_masses():
    torch.manual_seed(0)
    shape = (2000, 10, 1)
    pixel = PixelMixture(torch.randn(2000, 10), 0.7 * torch.randn(shape), (torch.randn(shape) - 3).exp(),
                         torch.zeros(2000, 10, 0), 256)  # fmt: skip
    levels = LevelMixture(pixel)
    assert torch.allclose(levels.entropy(), levels.table.entropy(), atol=1e-4)


def test_tied_channels_sum_to_one():
    torch.manual_seed(3)
    head = PixelHead(WIDTH, torch.ones(4) / 4, 3, 2)
    for parameter in head.parameters():
        parameter.data.add_(0.5 * torch.randn_like(parameter))
    levels = torch.cartesian_prod(*[torch.arange(4.0)] * 3)  # (64, 3)
    with torch.no_grad():
        pixel = head(torch.randn(1, WIDTH).expand(len(levels), -1))
        assert float(pixel.log_prob(levels).exp().sum()) == pytest.approx(1, abs=1e-4)
        drawn = head(torch.randn(1, WIDTH).expand(20_000, -1)).sample(torch.Generator().manual_seed(0))
    assert drawn.min() >= 0
    assert drawn.max() <= 3


def test_tied_channels_have_their_own_means_and_temperatures():
    """The mean is that of all levels, also where a channel is cut off at the border and moves the next; a temperature
    leaves each colour as likely as it was, and the darkest of two does not swallow the other."""
    torch.manual_seed(3)
    few = PixelMixture(torch.randn(2), torch.randn(2, 2), 0.1 + torch.rand(2, 2), torch.tensor([[0.9], [-0.8]]), 4)
    levels = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
    masses = each(few, 16).log_prob(levels).exp()
    assert torch.allclose(few.mean, (masses[:, None] * levels).sum(0), atol=1e-4)
    tempered = each(few, 16).temperature(0.6).log_prob(levels).exp()
    assert float(tempered.sum()) == pytest.approx(1, abs=1e-4)
    assert float((tempered**2).sum()) > float((masses**2).sum())  # sharper
    assert torch.allclose(each(few, 16).temperature(1.0).log_prob(levels).exp(), masses, atol=1e-5)
    drawn = each(few, 50_000).temperature(0.6).sample(torch.Generator().manual_seed(0))
    shares = torch.stack([(drawn == level).all(-1).float().mean() for level in levels])
    assert torch.allclose(shares, tempered, atol=0.01)
    many = replace(few, loc=torch.tensor([[0.0, 0.8], [0.0, 0.8]]), scale=torch.ones(2, 2), n_levels=256)
    sampled = each(many, 100_000).sample(torch.Generator().manual_seed(0)).mean(0)
    assert torch.allclose(many.mean, sampled, atol=2.0)
    white = PixelMixture(torch.tensor([0.6, 0.4]).log(), torch.tensor([[3.0, 3.0], [0.0, 0.0]]),
                         torch.tensor([[0.3, 0.3], [0.02, 0.02]]), torch.zeros(2, 1), 256)  # fmt: skip
    cold = each(white, 4000).temperature(0.25).sample(torch.Generator().manual_seed(0))
    assert float((cold == 255).all(-1).float().mean()) == pytest.approx(0.6, abs=0.03)
    spread = [each(white, 4000).temperature(t).sample(torch.Generator().manual_seed(0)) for t in (1.0, 0.25)]
    grey_spread = [drawn[drawn[:, 0] < 200, 0].std() for drawn in spread]
    assert float(grey_spread[1] / grey_spread[0]) == pytest.approx(0.25, abs=0.03)


def each(pixel: PixelMixture, n: int) -> PixelMixture:
    """The same n times."""
    expanded = {
        name: getattr(pixel, name).expand(n, *getattr(pixel, name).shape) for name in ("logits", "loc", "scale", "tie")
    }
    return replace(pixel, **expanded)
