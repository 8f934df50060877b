"""Every summary of an answer is a summary of one law: whatever the column, whatever the network says."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anygiven.estimators.answers import Answer
from anygiven.heads import joint_head_for
from anygiven.inference.distributions import Categories, distribution_of
from anygiven.variables import infer_schema, read_table
from anygiven.variables.domains import Numeric

N_DRAWS = 100_000
WIDTH = 6


def gaps(values, rng):
    return pd.Series(values).mask(rng.random(len(values)) < 0.1)


COLUMNS = {
    "points": lambda rng, n: rng.normal(5, 3, n),
    "heavy tails": lambda rng, n: rng.standard_t(2, n),
    "positive": lambda rng, n: rng.lognormal(1, 0.8, n),
    "share": lambda rng, n: rng.beta(0.7, 1.5, n),
    "zero-inflated": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(3, 1, n)),
    "atoms at both ends": lambda rng, n: np.clip(rng.normal(0.5, 0.6, n), 0, 1),
    "neighbouring atoms": lambda rng, n: rng.poisson(3, n),
    "few counts": lambda rng, n: rng.integers(1, 4, n),
    "apart": lambda rng, n: rng.choice([10, 20, 50, 51, 52, 300], n),
    "ages": lambda rng, n: rng.integers(18, 90, n),
    "tenths": lambda rng, n: np.round(rng.normal(37, 0.6, n), 1),
    "money": lambda rng, n: np.round(rng.lognormal(5, 1.5, n)),
    "days": lambda rng, n: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
    "two days": lambda rng, n: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 2, n), "D"),
    "instants": lambda rng, n: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.normal(size=n) * 1e6, "s"),
    "durations": lambda rng, n: pd.to_timedelta(rng.exponential(3600, n), "s"),
    "ordinal": lambda rng, n: pd.Categorical.from_codes(rng.integers(0, 4, n), ["s", "m", "l", "xl"], ordered=True),
    "binary": lambda rng, n: rng.integers(0, 2, n),
    "codes": lambda rng, n: rng.choice([1.0, 4.0, 9.0], n),
    "letters": lambda rng, n: rng.choice(["a", "b", "c"], n),
}


def answer_of(kind: str, seed: int, n: int, wildness: float) -> Answer:
    """The conditional of a random column under a random head: no training, any shape of answer."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({kind: gaps(COLUMNS[kind](rng, n), rng)})
    overrides = {"codes": "categorical"} if kind == "codes" else {}
    variable = infer_schema(read_table(frame), overrides, seed).variables[0]
    torch.manual_seed(seed)
    head = joint_head_for(WIDTH, [variable.domain], 5)
    for parameter in head.parameters():
        parameter.data.add_(wildness * torch.randn_like(parameter))
    with torch.no_grad():
        conditional = head(torch.randn(1, WIDTH)).of(0)
    return Answer(variable, distribution_of(variable.domain, conditional), {})


def answers_of(*wildness: float):
    sizes = st.sampled_from([40, 300])
    return st.builds(
        answer_of, st.sampled_from(list(COLUMNS)), st.integers(0, 10_000), sizes, st.sampled_from(wildness)
    )


wild = answers_of(0.0, 0.3, 1.0)  # also mass beyond the scores that values have: it stands at the ends
tame = answers_of(0.0, 0.15, 0.3)
lawful = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def numbers(distribution, values) -> np.ndarray:
    """Values as numbers in their order."""
    if isinstance(distribution, Categories):
        place = {value: i for i, value in enumerate(distribution.domain.values)}
        return np.vectorize(place.get)(values).astype(float)
    return values.astype(float)


@lawful
@given(wild)
def test_quantile_is_the_generalised_inverse_of_the_cdf(answer):
    d = answer.distribution
    if not answer._has_order():
        return
    levels = np.array([1e-4, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1 - 1e-4])
    values = d.quantile(levels)
    reached = d.cdf(values)[0]
    assert (reached >= levels - 1e-5).all()
    assert (np.diff(numbers(d, values[0])) >= 0).all()
    if isinstance(d, Categories):
        return
    x = values[0]
    spread = max(float(d.quantile(np.array([0.99]))[0, 0] - d.quantile(np.array([0.01]))[0, 0]), 1e-9)
    just_below = x - (0.5 * d.domain.step if d.domain.step else 1e-6 * spread)
    below = d.cdf(just_below[None, :])[0]
    assert (below <= levels + 1e-4).all()
    # and the other way round: the value comes back at its own level, and just above the level below it
    again = d.quantile(np.clip(reached - 1e-7, 0, 1))[0]
    assert (numbers(d, again) <= numbers(d, x) + 1e-5 * spread).all()


@lawful
@given(wild)
def test_the_cdf_rises_from_nought_to_one_in_steps_on_grids(answer):
    d = answer.distribution
    if isinstance(d, Categories):
        return
    low, high = d.quantile(np.array([1e-9, 1 - 1e-9]))[0]
    span = max(high - low, 1.0)
    x = np.sort(np.concatenate([np.linspace(low - 0.1 * span, high + 0.1 * span, 400), d.domain.atom_values]))
    cdf = d.cdf(x[None, :])[0]
    assert (np.diff(cdf) >= -1e-12).all()
    far = d.cdf(np.array([[-1e90, 1e90]]))[0]
    assert far[0] == 0
    assert far[1] == pytest.approx(1, abs=1e-12)
    if d.domain.step is not None:
        on = d.domain.snap(x)
        inside = d.domain.is_possible(on)
        between = on + 0.6 * d.domain.step
        assert np.array_equal(d.cdf(between[None, inside]), d.cdf(on[None, inside]))  # right-continuous
        assert np.isneginf(d.log_prob(between[None, :])).all()  # nothing stands between


@lawful
@given(tame)
def test_masses_and_densities_sum_to_one(answer):
    d = answer.distribution
    values, masses = d.masses()
    if isinstance(d, Categories) or len(d.domain.edges):
        assert masses.sum() == pytest.approx(1, abs=1e-9)
        with np.errstate(divide="ignore"):
            assert np.allclose(np.exp(d.log_prob(values[None, :]))[0], masses[0], atol=1e-6)
        return
    if d.domain.step is not None:
        return  # a long grid: see the cdf
    edges = d.quantile(np.linspace(1e-6, 1 - 1e-6, 20_001))[0]
    edges = np.unique(np.concatenate([edges, np.linspace(edges[0], edges[-1], 20_001)]))
    middle = 0.5 * (edges[1:] + edges[:-1])
    is_point = ~np.isin(middle, d.domain.atom_values)
    smooth = (np.exp(d.log_prob(middle[None, :])[0]) * np.diff(edges))[is_point].sum()
    at_the_ends = d._p[0, -1] * (1 - np.diff(d._smooth_cdf(np.array([[-8.0, 8.0]])))[0, 0])
    assert smooth + masses.sum() + at_the_ends == pytest.approx(1, abs=0.01)


@lawful
@given(tame, st.integers(0, 1000))
def test_summaries_agree_with_a_hundred_thousand_draws(answer, seed):
    d = answer.distribution
    drawn = d.sample(N_DRAWS, np.random.default_rng(seed))[0]
    log_p = d.log_prob(drawn[None, :])[0]
    assert np.isfinite(log_p).all()
    assert d.entropy()[0] == pytest.approx(-log_p.mean(), abs=6 * log_p.std() / N_DRAWS**0.5 + 0.01)
    if isinstance(d, Categories):
        shares = np.array([(drawn == value).mean() for value in d.domain.values])
        assert np.allclose(shares, d.p[0], atol=0.01)
        assert d.p[0][list(d.domain.values).index(d.mode[0])] == d.p[0].max()
        return
    drawn = drawn.astype(float)
    assert d.domain.is_possible(drawn).all()
    for level in (0.05, 0.5, 0.95):
        value = d.quantile(np.array([level]))[0, 0]
        assert (drawn <= value).mean() == pytest.approx(d.cdf(np.array([[value]]))[0, 0], abs=0.01)
    if d.is_listed or not d.domain.atoms:  # a mass and a density cannot be compared
        low, high = d.quantile(np.array([0.02, 0.98]))[0]  # at a bound a density may have a pole
        best = log_p[(drawn >= low) & (drawn <= high)].max()
        assert d.log_prob(np.array([[d.mode[0]]]))[0, 0] >= best - 0.05
    fourth = ((drawn - drawn.mean()) ** 4).mean()
    if drawn.var() == 0 or fourth > 100 * drawn.var() ** 2:
        return  # moments hang on a few of the draws
    error = drawn.std() / N_DRAWS**0.5
    assert d.mean[0] == pytest.approx(drawn.mean(), abs=6 * error + 0.01 * drawn.std() + 1e-9)
    error = np.sqrt(max(fourth - drawn.var() ** 2, 0) / N_DRAWS)
    assert d.std[0] ** 2 == pytest.approx(drawn.var(), rel=0.03, abs=8 * error + 1e-9)


@pytest.mark.parametrize("kind", COLUMNS)
def test_many_rows_are_answered_as_one_is(kind):
    rows = [answer_of(kind, 3, 300, 0.5).distribution for _ in range(3)]
    many = rows[0].followed_by(rows[1:])
    assert many.n_rows == 3
    for name in ("mode", "mean", "std"):
        if name == "mode" or isinstance(many.domain, Numeric):
            together = getattr(many, name)
            assert [together[k] for k in range(3)] == [pytest.approx(getattr(row, name)[0]) if name != "mode"
                                                       else row.mode[0] for row in rows]  # fmt: skip
    assert np.allclose(many.entropy(), np.concatenate([row.entropy() for row in rows]))
