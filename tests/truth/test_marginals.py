"""A column's own marginal: exact inverse, mass one, and close to the truth."""

import json

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import lognorm, norm

from anygiven.variables.marginals import LOG_SQRT_2PI, Marginal, Tail, fit_marginal
from anygiven.variables.stored import StoredMarginal, read_stored

RNG = np.random.default_rng(0)
SAMPLES = {
    "normal": (lambda n: RNG.normal(3, 2, n), lambda x: norm(3, 2).logpdf(x)),
    "lognormal": (lambda n: RNG.lognormal(0, 1, n), lambda x: lognorm(1).logpdf(x)),
    "uniform": (lambda n: RNG.uniform(0, 5, n), lambda x: np.full(len(x), -np.log(5))),
}


def log_density(marginal, x):
    z = marginal.score(x)
    return -0.5 * z**2 - LOG_SQRT_2PI + marginal.log_slope(x)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(("n", "loss"), [(300, 0.12), (5000, 0.04)])
def test_held_out_density_is_near_the_truth(name, n, loss):
    draw, truth = SAMPLES[name]
    marginal = fit_marginal(draw(n), False, np.random.default_rng(1))
    x = draw(4000)
    assert log_density(marginal, x).mean() > truth(x).mean() - loss


@pytest.mark.parametrize("name", SAMPLES)
def test_score_and_value_are_inverse_far_into_the_tails(name):
    marginal = fit_marginal(SAMPLES[name][0](500), False, np.random.default_rng(1))
    z = np.linspace(-6, 6, 401)
    assert np.allclose(marginal.score(marginal.value(z)), z, atol=1e-6)


def test_the_density_integrates_to_one():
    marginal = fit_marginal(RNG.normal(size=400), False, np.random.default_rng(1))
    edges = np.concatenate([-np.geomspace(1e4, 8, 4000), np.linspace(-8, 8, 400_001)[1:-1], np.geomspace(8, 1e4, 4000)])
    middle = 0.5 * (edges[1:] + edges[:-1])
    assert (np.exp(log_density(marginal, middle)) * np.diff(edges)).sum() == pytest.approx(1, abs=1e-3)


def test_a_spike_stays_a_spike():
    """Nine tenths of the mass in a hundredth of the range."""
    draw = lambda n: np.where(RNG.random(n) < 0.9, RNG.uniform(0, 0.01, n), RNG.uniform(0, 1, n))  # noqa: E731
    marginal = fit_marginal(draw(3000), False, np.random.default_rng(0))
    inside = np.array([0.005])
    assert np.exp(log_density(marginal, inside))[0] == pytest.approx(90.9, rel=0.15)


def test_without_removes_exactly_the_intervals_mass():
    marginal = Marginal.from_masses(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1.0]), Tail(1e-6), Tail(1e-6))
    cut = marginal.without([(1.0, 2.0)])
    low, high = cut.score(np.array([1.0])), cut.score(np.array([2.0]))
    assert ndtr(high) - ndtr(low) == pytest.approx(0, abs=1e-9)
    assert ndtr(cut.score(np.array([0.5]))) == pytest.approx(0.25, abs=1e-5)


def test_json_round_trip_is_exact():
    marginal = fit_marginal(RNG.normal(size=300), False, np.random.default_rng(1))
    again = read_stored(json.dumps(marginal.to_json()).encode(), StoredMarginal).read()
    x = np.linspace(-5, 5, 1001)
    assert np.allclose(again.score(x), marginal.score(x), atol=1e-12)


def test_nothing_lies_outside_the_bounds():
    marginal = fit_marginal(RNG.exponential(size=500), False, np.random.default_rng(1), (0.0, np.inf))
    assert marginal.value(np.array([-8.0]))[0] >= 0
    assert marginal.score(np.array([0.0]))[0] == -8
    edges = np.linspace(0, 40, 400_001)
    middle = 0.5 * (edges[1:] + edges[:-1])
    assert (np.exp(log_density(marginal, middle)) * np.diff(edges)).sum() == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize(
    ("draw", "low", "high"),
    [
        (lambda n: RNG.uniform(size=n), 0.01, 0.03),  # it ends there
        (lambda n: RNG.normal(size=n), 0.2, 0.5),  # 0.34 beyond the hundredth
        (lambda n: RNG.exponential(size=n), 0.6, 1.1),  # 1, wherever one starts
        (lambda n: RNG.standard_t(2, n), 1.0, 30.0),
    ],
)
def test_tails_reach_about_as_far_as_the_outermost_values_show(draw, low, high):
    assert low < fit_marginal(draw(5000), False, np.random.default_rng(1)).high.scale < high


def test_atoms_that_take_everything_leave_the_tails():
    """Neighbouring atoms have nothing between them: what is left of the marginal lies on either side."""
    marginal = fit_marginal(np.array([1.0, 2.0, 3.0] * 20), True, np.random.default_rng(0))
    cut = marginal.without([(0.5, 1.5), (1.5, 2.5), (2.5, 3.5)])
    z = np.array([-2.0, -0.5, 0.5, 2.0])
    values = cut.value(z)
    assert (values[:2] < 0.5).all()
    assert (values[2:] > 3.5).all()
    assert np.allclose(cut.score(values), z, atol=1e-6)
