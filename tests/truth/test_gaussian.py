"""Five variables of a known Gaussian: fitted conditionals match the closed form."""

import numpy as np
import pandas as pd
import pytest

from anygiven import TabularDensity

NAMES = list("abcde")


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(5, 5)) + 1.2 * np.eye(5)
    return rng.normal(size=5) * 3, factor @ factor.T


@pytest.fixture(scope="module")
def fitted(truth) -> TabularDensity:
    mean, cov = truth
    data = np.random.default_rng(2).multivariate_normal(mean, cov, size=12_000)
    return TabularDensity(max_steps=2500, max_minutes=None, verbose=False, width=96).fit(
        pd.DataFrame(data, columns=NAMES)
    )


def closed_form(truth, asked: int, given: dict[int, float]) -> tuple[float, float]:
    mean, cov = truth
    if not given:
        return float(mean[asked]), float(np.sqrt(cov[asked, asked]))
    known = list(given)
    gain = cov[asked, known] @ np.linalg.inv(cov[np.ix_(known, known)])
    centre = mean[asked] + gain @ (np.array(list(given.values())) - mean[known])
    return float(centre), float(np.sqrt(cov[asked, asked] - gain @ cov[known, asked]))


@pytest.mark.parametrize("known", [(), (1,), (0, 2), (4, 3, 1), (0, 1, 2, 3)])
@pytest.mark.parametrize("asked", [0, 2, 4])
def test_conditionals_match_the_closed_form(truth, fitted, asked, known):
    if asked in known:
        known = tuple(k for k in known if k != asked)
    mean, cov = truth
    rng = np.random.default_rng(asked + 10 * len(known))
    own = np.sqrt(cov[asked, asked])
    errors = []
    for row in rng.multivariate_normal(mean, cov, size=40):
        given = {k: float(row[k]) for k in known}
        centre, spread = closed_form(truth, asked, given)
        answer = fitted.conditional(NAMES[asked], {NAMES[k]: v for k, v in given.items()})
        true_entropy = 0.5 * np.log(2 * np.pi * np.e * spread**2)
        errors.append([(answer.mean - centre) / own, np.log(answer.std / spread), answer.cdf(centre) - 0.5,
                       answer.entropy() - true_entropy])  # fmt: skip
    mean_error, std_error, cdf_error, entropy_error = np.sqrt(np.mean(np.square(errors), axis=0))
    assert mean_error < 0.1
    assert std_error < 0.15
    assert cdf_error < 0.08
    assert entropy_error < 0.15


def test_joint_density_is_in_the_users_units(truth, fitted):
    mean, cov = truth
    rows = np.random.default_rng(9).multivariate_normal(mean, cov, size=2000)
    entropy = 0.5 * np.log(np.linalg.det(2 * np.pi * np.e * cov))
    ours = fitted.log_prob(pd.DataFrame(rows, columns=NAMES)).mean()
    assert ours == pytest.approx(-entropy, abs=0.12)


def test_a_change_of_units_moves_the_density_by_its_jacobian(truth):
    mean, cov = truth
    data = np.random.default_rng(3).multivariate_normal(mean, cov, size=400)
    frame = pd.DataFrame(data, columns=NAMES)
    here = TabularDensity(max_steps=30, verbose=False).fit(frame).score(frame)
    there = TabularDensity(max_steps=30, verbose=False).fit(frame * 1000).score(frame * 1000)
    assert there == pytest.approx(here - 5 * np.log(1000), abs=1e-2)
