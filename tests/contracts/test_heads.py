"""Every head that models use: sums or integrates to one, and its figures agree with its own density.

One battery over the heads as models have them: the head of a table, with every kind of column and every column head,
and the head of a shared domain, of symbols, levels and pixels.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from anygiven.heads import (
    COLUMN_HEADS,
    AtomsPlusContinuous,
    Categorical,
    ColumnHead,
    JointHead,
    LevelMixture,
    PixelHead,
    PixelMixture,
    SharedHead,
    TableHead,
    joint_head_for,
    smooth_log_prob,
)
from anygiven.heads.mixtures import KernelMixture, Logistic, Normal
from anygiven.heads.smooth import Together, normal_levels, solved
from anygiven.variables.domains import (
    HIGH,
    LOW,
    SYMBOL,
    Binary,
    CategoricalDomain,
    Levels,
    Numeric,
    Ordinal,
    SharedDomain,
)
from anygiven.variables.marginals import SCORE_LIMIT
from anygiven.variables.schema import schema_of
from anygiven.variables.tables import read_table

WIDTH, BATCH, N_DRAWS = 6, 5, 6000
RNG = np.random.default_rng(0)
NUMBERS = {
    "points": RNG.normal(size=200),
    "points with an atom": np.where(RNG.random(200) < 0.3, 0.0, RNG.exponential(size=200)),
    "cells": RNG.poisson(40, 200).astype(float),
    "cells with atoms": np.where(RNG.random(200) < 0.4, 0, RNG.poisson(30, 200)).astype(float),
}
TABLE = [
    CategoricalDomain(("a", "b", "c"), (3, 2, 1)), Binary((0, 1), (4, 6)),
    Ordinal(("s", "m", "l", "xl"), (1, 4, 2, 3)),
    *(v.domain for v in schema_of(read_table(NUMBERS), None, 0).variables),
]  # fmt: skip
WORLDS = {
    **{f"table, {name}": (TABLE, name) for name in COLUMN_HEADS},
    "symbols": (SharedDomain(CategoricalDomain(tuple("abcd"), (1, 4, 2, 3)), (3,)), "mixture"),
    "levels as masses": (SharedDomain(Levels((2, 5, 3)), (2, 2)), "mixture"),
    "levels as logistics": (SharedDomain(Levels((1,) * 16), (2, 2)), "mixture"),
    "pixels": (SharedDomain(Levels((1,) * 4, 2), (2, 2)), "mixture"),
}
N_COMPONENTS = {"symbols": 0, "levels as masses": 0}


def test_no_head_is_forgotten():
    every = {c for kind in ColumnHead.__subclasses__() for c in (kind, *kind.__subclasses__())}
    assert set(COLUMN_HEADS.values()) == {c for c in every if c.__module__.startswith("anygiven")}
    assert {TableHead, SharedHead} == set(JointHead.__subclasses__())


def made(world: str, seed: int = 0, columns=None, times: int = 1):
    """The head's conditionals of random features, so many times, with weights that have moved from their start."""
    domains, kind = WORLDS[world]
    torch.manual_seed(seed)
    head = joint_head_for(WIDTH, domains, N_COMPONENTS.get(world, 3), kind)
    moved(head, 0.5).eval()
    shape = (BATCH, WIDTH) if world.startswith("table") else (BATCH, len(domains), WIDTH)
    with torch.no_grad():
        return domains, head(torch.randn(shape).repeat(times, *[1] * (len(shape) - 1)), columns)


def moved(head, far: float):
    """The head with weights that have left their start, as far as keeps what they give in proportion."""
    for parameter in head.parameters():
        fan_in = parameter.shape[1] if parameter.dim() == 2 else 1
        parameter.data.add_(far * torch.randn_like(parameter) / max(1.0, fan_in / WIDTH) ** 0.5)
    return head


@pytest.fixture(params=WORLDS)
def found(request):
    return made(request.param)


def cells_of(domain):
    """(M, 4) every cell that a column can have, fine points of its smooth part, and (M,) their weights in a sum."""
    cells = np.zeros((domain.n_symbols, 4), dtype=np.float64)
    cells[:, SYMBOL] = np.arange(domain.n_symbols)
    if isinstance(domain, Levels):
        levels = np.stack(np.meshgrid(*[np.arange(domain.n_symbols)] * domain.n_channels), -1).reshape(
            -1, domain.n_channels
        )
        cells = np.zeros((len(levels), 4))
        cells[:, : domain.n_channels] = levels
    if not isinstance(domain, Numeric):
        return cells, np.ones(len(cells))
    atoms = cells[:-1]
    if len(domain.edges):
        low, high = domain.edges[:-1], domain.edges[1:]
        low, high = low[high - low > 1e-3], high[high - low > 1e-3]  # nothing is between neighbouring atoms
        weights = np.ones(len(low))
    else:
        t = np.linspace(-6, 6, 200_001)  # close in the middle, and as far as the widest component reaches
        low = high = np.sinh(t)
        weights = np.cosh(t) * (t[1] - t[0])
    smooth = np.zeros((len(low), 4))
    smooth[:, SYMBOL], smooth[:, LOW], smooth[:, HIGH] = domain.n_symbols - 1, low, high
    return np.concatenate([atoms, smooth]), np.concatenate([np.ones(len(atoms)), weights])


def law(domains, conditionals, c: int):
    """(M,) weights, (M, B) log p and the cells (M, 4) of all that the c-th column can be."""
    column = int(conditionals.columns[c])
    cells, weights = cells_of(domains[column])
    cells, n_head = torch.from_numpy(cells).float(), min(len(cells), 1000)
    x = torch.zeros(n_head, BATCH, len(conditionals.columns), 4)
    x[:, :, c] = cells[:n_head, None]
    log_p = [torch.stack([conditionals.log_prob(one)[:, c] for one in x])]
    if n_head < len(cells):  # many points of the smooth part: by the column's own Conditional, which agrees (below)
        one, value = conditionals.of(column), cells[n_head:, LOW, None].expand(-1, BATCH)
        log_p.append(one.symbols.log_probabilities[..., -1] + one.smooth.log_prob(value))
    return torch.from_numpy(weights), torch.cat(log_p).double(), cells


def test_every_column_sums_to_one(found):
    domains, conditionals = found
    for c in range(len(conditionals.columns)):
        weights, log_p, _ = law(domains, conditionals, c)
        assert torch.allclose((weights[:, None] * log_p.exp()).sum(0), torch.ones(BATCH).double(), atol=1e-3)


def test_the_conditional_of_one_column_is_that_of_all(found):
    domains, conditionals = found
    drawn = conditionals.sample(torch.Generator().manual_seed(1))
    log_p = conditionals.log_prob(drawn)
    assert drawn.shape == (BATCH, len(conditionals.columns), 4)
    for c, column in enumerate(conditionals.columns.tolist()):
        domain, one = domains[column], conditionals.of(column)
        symbol = drawn[:, c, SYMBOL]
        if isinstance(domain, Levels) and domain.n_channels > 1:
            continue  # the first channel alone, tested below
        if not isinstance(domain, Numeric):
            assert torch.allclose(one.log_prob(symbol), log_p[:, c], atol=1e-4)
            continue
        is_atom = symbol < domain.n_symbols - 1
        assert torch.allclose(one.symbols.log_prob(symbol)[is_atom], log_p[is_atom, c], atol=1e-4)
        if not len(domain.edges):
            smooth = one.symbols.log_prob(symbol) + one.smooth.log_prob(drawn[:, c, LOW])
            assert torch.allclose(smooth[~is_atom], log_p[~is_atom, c], atol=1e-4)


def test_entropy_is_that_of_the_law(found):
    """Of symbols and levels in nats of masses; of numbers the symbols' and the density of scores' in proportion."""
    domains, conditionals = found
    entropy = conditionals.entropy()
    for c, column in enumerate(conditionals.columns.tolist()):
        domain = domains[column]
        if isinstance(domain, Numeric) and len(domain.edges):
            one = conditionals.of(column)
            expected = one.symbols.entropy() + one.symbols.probabilities[:, -1] * one.smooth.entropy()
        else:
            weights, log_p, _ = law(domains, conditionals, c)
            expected = -(weights[:, None] * log_p.exp() * log_p.clamp(min=-200)).sum(0).float()
        if isinstance(domain, Levels) and domain.n_channels > 1:
            assert (entropy[:, c] >= expected - 1e-4).all()  # an upper bound
        else:
            assert torch.allclose(entropy[:, c], expected, atol=0.02)


@pytest.mark.parametrize("world", WORLDS)
def test_draws_follow_the_law(world):
    domains, conditionals = made(world)
    many, generator = made(world, times=N_DRAWS // 30)[1], torch.Generator().manual_seed(0)
    drawn = torch.cat([many.sample(generator) for _ in range(30)])
    draws = drawn.view(N_DRAWS, BATCH, *drawn.shape[1:])  # (n, B, C, 4)
    for c, column in enumerate(conditionals.columns.tolist()):
        domain = domains[column]
        weights, log_p, cells = law(domains, conditionals, c)
        n_numbers = domain.n_channels if isinstance(domain, Levels) else 1
        for k in range(n_numbers):
            p = torch.stack(
                [(weights[:, None] * log_p.exp())[cells[:, k] == s].sum(0) for s in range(domain.n_symbols)]
            )
            shares = torch.stack([(draws[:, :, c, k] == s).double().mean(0) for s in range(domain.n_symbols)])
            assert (shares - p).abs().max() < 5 * 0.5 / N_DRAWS**0.5
        if isinstance(domain, Numeric):
            is_smooth, one = draws[:, :, c, SYMBOL] == domain.n_symbols - 1, conditionals.of(column).smooth
            edges = torch.as_tensor(domain.edges[1:-1]).float()
            levels = torch.tensor([[0.1], [0.5], [0.9]]).expand(-1, BATCH)
            values = edges[:, None].expand(-1, BATCH) if len(edges) else one.quantile(levels).clamp(-7, 7)
            for value in values:
                below = ((draws[:, :, c, HIGH] <= value) & is_smooth).double().sum(0) / is_smooth.double().sum(0)
                assert ((below - one.cdf(value)).abs() < 0.04)[is_smooth.sum(0) > 2000].all()


def test_temperature_sharpens_every_column_as_its_own_conditional_would_be(found):
    domains, conditionals = found
    cold = conditionals.temperature(0.25)
    for column in conditionals.columns.tolist():
        if isinstance(domains[column], Levels) and domains[column].n_channels > 1:
            continue
        one, mine = conditionals.of(column).temperature(0.25), cold.of(column)
        assert torch.allclose(mine.entropy(), one.entropy(), atol=2e-3)
        if not isinstance(domains[column], Levels):  # logistics that shrink may leave the border they spilt over
            assert (mine.entropy() <= conditionals.of(column).entropy() + 1e-4).all()
    same = conditionals.temperature(1.0)
    drawn = conditionals.sample(torch.Generator().manual_seed(2))
    assert torch.allclose(same.log_prob(drawn), conditionals.log_prob(drawn), atol=1e-4)


@pytest.mark.parametrize("world", WORLDS)
def test_an_average_is_the_equal_mixture(world):
    """log p of the average is the log of the mean of p, for every cell, atoms and smooth parts too."""
    members = [made(world, seed)[1] for seed in range(3)]
    mixed = members[0].average(members[1:])
    for source in (*members, mixed):
        drawn = source.sample(torch.Generator().manual_seed(3))
        each = torch.stack([member.log_prob(drawn) for member in members])
        assert torch.allclose(mixed.log_prob(drawn), each.logsumexp(0) - np.log(3), atol=1e-3)


@pytest.mark.parametrize("world", WORLDS)
def test_some_columns_are_those_of_all(world):
    whole = made(world)[1]
    columns = torch.tensor([2, 0, 1])
    part = made(world, columns=columns)[1]
    drawn = whole.sample(torch.Generator().manual_seed(4))
    assert torch.allclose(part.log_prob(drawn[:, columns]), whole.log_prob(drawn)[:, columns], atol=1e-5)
    assert torch.allclose(part.entropy(), whole.entropy()[:, columns], atol=1e-5)


def test_a_number_with_atoms_has_the_figures_of_its_law():
    """Mean, std and cdf on the axis of scores: the atoms' masses and the density, summed."""
    domains, conditionals = made("table, mixture")
    points = torch.linspace(-30, 30, 120_001, dtype=torch.float64)
    for column, domain in enumerate(domains):
        if not isinstance(domain, Numeric) or domain.step is not None:
            continue
        one = conditionals.of(column)
        atoms, p = one.atoms.double(), one.symbols.probabilities.double()  # (A,), (B, A + 1)
        density = p[:, -1] * one.smooth.log_prob(points[:, None].float().expand(-1, BATCH)).double().exp() * 5e-4
        mean = p[:, :-1] @ atoms + (density * points[:, None]).sum(0)
        spread = (p[:, :-1] * (atoms - mean[:, None]) ** 2).sum(1) + (density * (points[:, None] - mean) ** 2).sum(0)
        assert torch.allclose(one.mean.double(), mean, atol=2e-3)
        assert torch.allclose(one.std.double(), spread.sqrt(), atol=5e-3)
        for k, atom in enumerate(one.atoms):  # a mass there, a density beside it
            assert torch.allclose(one.log_prob(atom.expand(BATCH)).double(), p[:, k].log(), atol=1e-4)
        beside = one.symbols.log_probabilities[:, -1] + one.smooth.log_prob(torch.full((BATCH,), 0.123))
        assert torch.allclose(one.log_prob(torch.full((BATCH,), 0.123)), beside, atol=1e-5)
        for value in (-0.7, 0.0, 1.1):
            below = (p[:, :-1] * (atoms <= value)).sum(1) + density[points <= value].sum(0)
            assert torch.allclose(one.cdf(torch.tensor(value)).double(), below, atol=2e-3)
            level = one.cdf(one.quantile(0.37))
            assert (level >= 0.37 - 1e-4).all()


@pytest.mark.parametrize("name", COLUMN_HEADS)
def test_features_of_each_column_are_read_as_shared_ones_are(name):
    """(B, N, width) with the same features for every variable answers as (B, width)."""
    torch.manual_seed(0)
    head = moved(joint_head_for(WIDTH, TABLE, 3, name), 0.5).eval()
    features, columns = torch.randn(BATCH, WIDTH), torch.tensor([5, 1, 3])
    each = features[:, None].expand(-1, len(TABLE), -1)
    with torch.no_grad():
        drawn = head(features).sample(torch.Generator().manual_seed(0))
        assert torch.allclose(head(each).log_prob(drawn), head(features).log_prob(drawn), atol=1e-4)
        some = head(each, columns).log_prob(drawn[:, columns])
        assert torch.allclose(some, head(features).log_prob(drawn)[:, columns], atol=1e-4)
        changed = each.clone()
        changed[:, 1] += 1.0  # of one column only
        moved_by = (head(changed).log_prob(drawn) - head(each).log_prob(drawn)).abs().amax(0)
    assert moved_by[1] > 1e-3
    assert (moved_by[torch.arange(len(TABLE)) != 1] < 1e-6).all()


def test_categories_have_the_figures_of_their_masses():
    p = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]])
    one, index = Categorical(p.log()), torch.arange(4.0)
    mean = (p * index).sum(1)
    assert torch.allclose(one.mean, mean)
    assert torch.allclose(one.std, ((p * index**2).sum(1) - mean**2).sqrt(), atol=1e-5)
    assert one.mode.tolist() == [3, 0]
    assert torch.allclose(one.cdf(torch.tensor([1.0, 0.5])), torch.tensor([0.3, 0.7]), atol=1e-6)
    assert one.quantile(torch.tensor([0.29, 0.71])).tolist() == [1, 1]
    assert torch.allclose(one.entropy(), -(p * p.log()).sum(1))
    assert torch.allclose(one.temperature(0.5).probabilities, p**2 / (p**2).sum(1, keepdim=True), atol=1e-6)


@pytest.mark.parametrize("n_levels", [4, 16, 33, 100])
def test_the_mean_of_levels_is_that_of_their_masses(n_levels):
    """Few levels are summed border by border, many by an integral; one row or several."""
    torch.manual_seed(1)
    for rows in (1, 6):
        shape = (rows, 3, 1)
        pixel = PixelMixture(torch.randn(rows, 3), 0.5 * torch.randn(shape), 0.1 + 0.3 * torch.rand(shape),
                             torch.zeros(rows, 3, 0), n_levels)  # fmt: skip
        levels = LevelMixture(pixel)
        assert torch.allclose(pixel.mean[..., 0], levels.table.mean, atol=0.02 * n_levels)
        assert torch.allclose(levels.mean, levels.table.mean)
        wide = replace(pixel, loc=0.3 * pixel.loc)  # off the borders the integral is as near as the sum
        assert torch.allclose(wide.mean[..., 0], LevelMixture(wide).table.mean, rtol=0.01, atol=0.01 * n_levels**0.5)
        assert torch.allclose(levels.table.probabilities.sum(-1), torch.ones(rows), atol=1e-4)


# ------------------------------------------------------------------ one column head


def test_a_mode_between_two_centres_is_found():
    """Two components so near that the density is highest between them, where neither centre stands."""
    mixture = KernelMixture(torch.zeros(1, 2), torch.tensor([[2.3, 3.7]]), torch.ones(1, 2), Normal())
    assert float(mixture.mode) == pytest.approx(3.0, abs=0.06)


def test_parts_taken_together_are_sharpened_as_one():
    """Of two that stand apart: weights to the power 1/t, each part sharpened by itself."""
    parts = [
        KernelMixture(torch.zeros(1, 1), torch.tensor([[loc]]), torch.ones(1, 1), Normal()) for loc in (-20.0, 20.0)
    ]
    both = Together(tuple(parts), torch.tensor([[0.8, 0.2]]).log())
    for t in (0.5, 2.0):
        wanted = torch.tensor([0.8, 0.2]) ** (1 / t)
        cold = both.temperature(t)
        assert torch.allclose(cold.log_weights.exp(), wanted / wanted.sum())
        assert float(cold.cdf(torch.tensor(0.0))) == pytest.approx(float(wanted[0] / wanted.sum()), abs=1e-5)
        assert float(cold.parts[0].std) == pytest.approx(t**0.5, rel=1e-3)


def test_quantiles_of_parts_taken_together_invert_their_cdf():
    """Two parts, four rows, three levels: sizes that cannot be taken for each other."""
    torch.manual_seed(0)
    logits, loc, scale = (
        torch.randn(2, 4, 3).double(),
        torch.randn(2, 4, 3).double(),
        torch.rand(2, 4, 3).double() + 0.3,
    )
    parts = tuple(KernelMixture(logits[k], loc[k], scale[k], Normal()) for k in range(2))
    both = Together(parts, torch.randn(4, 2).double())
    levels = torch.tensor([0.05, 0.5, 0.9]).double()[:, None].expand(-1, 4)
    assert torch.allclose(both.cdf(both.quantile(levels)), levels, atol=1e-8)


@pytest.mark.parametrize("kind", ["energy", "ace"])
def test_a_costly_head_answers_what_is_asked_and_nothing_else(kind):
    """In a table of points, a grid and symbols: what is asked as if all were, and no density elsewhere."""
    world = next(name for name, (_, head) in WORLDS.items() if head == kind)
    domains, conditionals = made(world)
    cells = conditionals.sample(torch.Generator().manual_seed(0))
    is_asked = torch.rand(cells.shape[:2], generator=torch.Generator().manual_seed(1)) < 0.5
    whole, some = conditionals.log_prob(cells), conditionals.log_prob(cells, is_asked)
    assert {isinstance(domain, Numeric) and domain.step is not None for domain in domains} == {True, False}
    assert torch.allclose(some[is_asked], whole[is_asked], atol=1e-4)


def test_a_mixtures_quadrature_has_its_moments():
    """Of two rows of three components each: Σ w, Σ w z and Σ w z² in closed form."""
    torch.manual_seed(0)
    mixture = KernelMixture(*(torch.randn(2, 3).double() for _ in range(2)), torch.rand(2, 3).double() + 0.2, Normal())
    z, weights = mixture.quadrature()
    assert torch.allclose(weights.sum(0), torch.ones(2).double())
    assert torch.allclose((weights * z).sum(0), mixture.mean, atol=1e-6)
    assert torch.allclose((weights * z**2).sum(0), mixture.std**2 + mixture.mean**2, atol=1e-5)


def test_draws_of_a_number_with_atoms_are_atoms_as_often_as_they_should():
    p, atoms = torch.tensor([0.3, 0.2, 0.5]), torch.tensor([-1.0, 2.0])
    smooth = KernelMixture(*(torch.full((20_000, 1), v) for v in (0.0, 7.0, 0.1)), Normal())
    law = AtomsPlusContinuous(Categorical(p.log().expand(20_000, -1)), atoms, smooth)
    drawn = law.sample(torch.Generator().manual_seed(0))
    shares = [float(found.float().mean()) for found in (drawn == -1, drawn == 2, drawn > 5)]
    assert shares == pytest.approx(p.tolist(), abs=0.02)


def test_levels_of_a_normal_weigh_as_it_does():
    """Their weights are those of a mean: moments of N(0, 1) at its own quantiles."""
    levels, weights = normal_levels(257, torch.zeros(1).double())
    z = torch.special.ndtri(levels)
    moments = [float((weights * z**k).sum()) for k in range(5)]
    assert moments == pytest.approx([1, 0, 1, 0, 3], abs=1e-5)


@pytest.mark.parametrize("level", [1e-6, 0.2, 0.5, 0.999])
def test_a_level_is_found_between_any_two_ends(level):
    """Of a cdf with a flat stretch in the middle, from ends near and far."""
    mixture = KernelMixture(torch.zeros(1, 2).double(), torch.tensor([[-50.0, 50.0]]).double(),
                            torch.tensor([[1.0, 0.01]]).double(), Normal())  # fmt: skip
    wanted = torch.tensor([level]).double()
    for far in (60.0, 1e4):
        ends = torch.tensor([-far]).double(), torch.tensor([far]).double()
        found = solved(mixture.cdf, lambda z: mixture.log_prob(z).exp(), *ends, wanted)
        assert float(mixture.cdf(found)) == pytest.approx(level, rel=1e-4)
    calls = []

    def counted(z):
        calls.append(1)
        return mixture.cdf(z)

    solved(counted, lambda z: mixture.log_prob(z).exp(), *(torch.tensor([f]).double() for f in (-60, 60)), wanted)
    assert len(calls) < 40  # closed in on: not sixty halves


@pytest.fixture(params=[(name, is_grid) for name in COLUMN_HEADS for is_grid in (False, True)], ids=str)
def smooth(request):
    name, is_grid = request.param
    torch.manual_seed(0)
    head = moved(COLUMN_HEADS[name](WIDTH, 3, 5, is_grid), 0.3).eval()
    with torch.no_grad():
        return head(torch.randn(BATCH, WIDTH), torch.tensor([2, 0])).each(lambda tensor: tensor[:, 1].double())


FINE = torch.linspace(-60, 60, 240_001, dtype=torch.float64)[:, None]


def test_a_smooth_part_agrees_with_quadrature(smooth):
    density = smooth.log_prob(FINE.expand(-1, BATCH)).exp() * (FINE[1] - FINE[0])
    mean = (density * FINE).sum(0)
    assert torch.allclose(density.sum(0), torch.ones(BATCH).double(), atol=1e-4)
    assert torch.allclose(smooth.mean, mean, atol=1e-3)
    assert torch.allclose(smooth.std, (density * (FINE - mean) ** 2).sum(0).sqrt(), rtol=2e-3)
    assert torch.allclose(smooth.entropy(), -(density * smooth.log_prob(FINE.expand(-1, BATCH))).sum(0), atol=0.01)
    assert torch.allclose(smooth.expect(lambda z, _: z, 57), mean, atol=1e-3)
    assert torch.allclose(smooth.expect(lambda z, _: z**2, 57), (density * FINE**2).sum(0), rtol=5e-3)
    for value in (-1.3, 0.2, 2.0):
        assert torch.allclose(smooth.cdf(torch.tensor(value)), density[FINE[:, 0] <= value].sum(0), atol=1e-3)
    low, high = torch.tensor(-0.4).double(), torch.tensor(0.9).double()
    assert torch.allclose(smooth.log_mass(low, high).exp(), smooth.cdf(high) - smooth.cdf(low), atol=1e-6)


def test_a_smooth_part_inverts_its_own_cdf(smooth):
    for level in (0.001, 0.05, 0.5, 0.9, 0.999):
        assert torch.allclose(smooth.cdf(smooth.quantile(level)), torch.tensor(level).double(), atol=1e-6)
    best = smooth.log_prob(FINE[::10].expand(-1, BATCH)).max(0).values
    assert (smooth.log_prob(smooth.mode) >= best - 0.02).all()
    assert (smooth.log_prob(smooth.centres.T).max(0).values >= best - 0.5).all()


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
    head = joint_head_for(8, domains, 8)
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


def test_the_last_channel_is_moved_by_both_before_it():
    """Red moves green; red and green, each by its own number, move blue."""
    loc, scale = torch.tensor([[0.1, -0.2, 0.3]]), torch.tensor([[0.2, 0.3, 0.4]])
    tie = torch.tensor([[0.5, -0.7, 0.9]])
    pixel = PixelMixture(torch.zeros(1), loc, scale, tie, 5)
    levels = torch.tensor([1.0, 4.0, 2.0])
    red, green, _ = (2 * levels / 4 - 1).tolist()
    moved_loc = [0.1, -0.2 + 0.5 * red, 0.3 - 0.7 * red + 0.9 * green]
    alone = [
        PixelMixture(torch.zeros(1), torch.tensor([[m]]), scale[:, c : c + 1], tie[:, :0], 5).log_prob(
            levels[c : c + 1]
        )
        for c, m in enumerate(moved_loc)
    ]
    assert float(pixel.log_prob(levels)) == pytest.approx(float(sum(alone)), abs=1e-5)


@pytest.mark.parametrize("n_levels", [4, 8])
def test_means_of_tied_channels_are_exact_where_levels_are_few(n_levels):
    torch.manual_seed(4)
    few = PixelMixture(
        torch.randn(2), torch.randn(2, 2), 0.1 + torch.rand(2, 2), torch.tensor([[0.9], [-0.8]]), n_levels
    )
    levels = torch.cartesian_prod(*[torch.arange(float(n_levels))] * 2)
    masses = each(few, len(levels)).log_prob(levels).exp()
    assert torch.allclose(few.mean, (masses[:, None] * levels).sum(0), atol=1e-4)


def test_a_pixel_head_starts_near_the_marginal_of_the_levels():
    frequencies = torch.tensor([0.5, 0.1, 0.02, 0.02, 0.02, 0.02, 0.02, 0.3])
    pixel = PixelHead(WIDTH, frequencies, 1, 10)(torch.zeros(1, WIDTH))
    masses = LevelMixture(pixel).table.probabilities[0].detach()
    assert float((masses - frequencies).abs().sum()) / 2 < 0.25


@pytest.mark.parametrize("n_channels", [1, 3])
def test_a_pixel_head_starts_with_narrow_logistics_that_do_not_tie(n_channels):
    frequencies = torch.full((16,), 1 / 16)
    pixel = PixelHead(WIDTH, frequencies, n_channels, 5)(torch.zeros(1, WIDTH))
    assert torch.allclose(pixel.scale, torch.tensor(0.5 / 5 + 0.05))
    assert torch.allclose(pixel.log_weights.exp(), torch.tensor(1 / 5))
    assert torch.allclose(pixel.tie, torch.tensor(0.0))
    levels = torch.tensor([1.0, 4.0, 7.0, 11.0, 14.0])  # whose shares reach 0.1, 0.3, … of all
    places = levels * 2 / 15 - 1 + 0.02 * (torch.arange(5) - 2.5)
    assert torch.allclose(pixel.loc[0], places[:, None].expand(-1, n_channels), atol=1e-6)


def test_the_outermost_cells_take_all_that_lies_beyond():
    """A cell that ends at the limit of scores ends nowhere, on either side."""
    wide = KernelMixture(torch.zeros(1, 1), torch.zeros(1, 1), torch.full((1, 1), 20.0), Normal())
    edges = torch.tensor([-SCORE_LIMIT, -1.0, 1.0, SCORE_LIMIT])
    cells = torch.zeros(3, 1, 4)
    cells[:, 0, LOW], cells[:, 0, HIGH] = edges[:-1], edges[1:]
    masses = smooth_log_prob(wide, cells, True).exp()
    assert float(masses.sum()) == pytest.approx(1, abs=1e-5)
    assert float(masses[0]) == pytest.approx(float(wide.cdf(torch.tensor(-1.0))), abs=1e-5)
    assert float(smooth_log_prob(wide, cells, False)[1]) == pytest.approx(float(wide.log_prob(torch.tensor(0.0))))


def test_densities_of_many_points_are_found_in_parts(monkeypatch):
    mixture = KernelMixture(torch.zeros(2, 3), torch.randn(2, 3), torch.ones(2, 3), Normal())
    z = torch.randn(7, 2)
    whole = mixture.log_prob_at(z)
    monkeypatch.setattr("anygiven.heads.smooth.ENTRIES", 1)
    assert torch.allclose(mixture.log_prob_at(z), whole)
    assert torch.allclose(whole, mixture.log_prob(z))


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
