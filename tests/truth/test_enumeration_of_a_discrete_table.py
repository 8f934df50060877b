"""A small discrete world: every question × every protocol of a model equals enumeration of its own edges,
and a model trained on it answers every question as the true table does."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from anygiven import TabularDensity
from anygiven.inference import log_prob, log_prob_by_ratio
from anygiven.lattice import Budget, Canonical, Question, RandomOrder, Strided

SIZES = (2, 3, 2, 2)
PROTOCOLS = [Canonical(), Canonical((2, 0, 3, 1)), Strided(2), RandomOrder(), Budget(Canonical(), 2)]


@pytest.fixture(scope="module")
def world() -> np.ndarray:
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.full(int(np.prod(SIZES)), 0.7))
    return p.reshape(SIZES)


@pytest.fixture(scope="module")
def frame(world) -> pd.DataFrame:
    flat = np.random.default_rng(0).choice(world.size, 20_000, p=world.ravel())
    columns = np.unravel_index(flat, SIZES)
    return pd.DataFrame({f"v{i}": [f"s{k}" for k in column] for i, column in enumerate(columns)})


@pytest.fixture(scope="module")
def fitted(frame) -> TabularDensity:
    return TabularDensity(max_steps=1500, max_minutes=None, verbose=False, dropout=0.0, width=64).fit(frame)


@pytest.fixture(scope="module")
def by_paths(frame) -> TabularDensity:
    return TabularDensity(
        network="path",
        max_steps=2000,
        max_minutes=None,
        verbose=False,
        dropout=0.0,
        width=32,
        depth=1,
        learning_rate=1e-2,
        batch_size=128,
    ).fit(frame)  # fmt: skip


def all_states() -> torch.Tensor:
    """(24, 4, 4) cells of every row there can be."""
    cells = torch.zeros(int(np.prod(SIZES)), len(SIZES), 4)
    cells[..., 0] = torch.tensor(list(product(*[range(k) for k in SIZES])), dtype=torch.float32)
    return cells


def questions():
    for parts in product((0, 1, 2), repeat=len(SIZES)):  # rest, evidence, query
        if 2 in parts:
            yield parts


def true_log_prob(world: np.ndarray, state: tuple[int, ...], parts: tuple[int, ...]) -> float:
    both = tuple(s if p else slice(None) for s, p in zip(state, parts, strict=True))
    given = tuple(s if p == 1 else slice(None) for s, p in zip(state, parts, strict=True))
    return float(np.log(world[both].sum() / world[given].sum()))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: type(p).__name__ + str(getattr(p, "order", "") or ""))
def test_every_question_is_the_sum_of_its_edges_and_normalises(fitted, protocol):
    x = all_states()
    for parts in questions():
        mask = torch.tensor(parts)
        question = Question((mask == 2).expand(len(x), -1), (mask == 1).expand(len(x), -1))
        path = protocol.path(question, torch.Generator().manual_seed(3))
        with torch.no_grad():
            along = fitted.model_.log_prob(x, path)
            expected = torch.zeros(len(x))
            for b in range(len(x)):
                for i in range(len(SIZES)):
                    if 0 <= int(path.step[b, i]) < 100:
                        known = (path.step[b] < path.step[b, i])[None]
                        edge = fitted.model_.look(x[b : b + 1], known).log_prob(x[b : b + 1])
                        expected[b] += edge[0, i]
        assert torch.allclose(along.sum(1), expected, atol=1e-5)
        if not protocol.is_random:
            assert_sums_to_one(x, along.sum(1), parts)


def assert_sums_to_one(x, log_p, parts):
    """Over the query's values, for each value of the evidence."""
    groups: dict[tuple, dict[tuple, float]] = {}
    for row, value in zip(x[..., 0].long().tolist(), log_p.tolist(), strict=True):
        given = tuple(v for v, p in zip(row, parts, strict=True) if p == 1)
        asked = tuple(v for v, p in zip(row, parts, strict=True) if p == 2)
        groups.setdefault(given, {})[asked] = value
    for masses in groups.values():
        assert sum(np.exp(list(masses.values()))) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("protocol", PROTOCOLS[:4], ids=lambda p: type(p).__name__ + str(getattr(p, "order", "") or ""))
def test_a_trained_model_answers_every_question_as_the_truth_does(fitted, world, protocol):
    assert max(errors(fitted, world, protocol)) < 0.08


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: type(p).__name__ + str(getattr(p, "order", "") or ""))
def test_whole_paths_answer_every_question_as_the_truth_does(by_paths, world, protocol):
    """One pass over a path, fused or in groups; a group's members are asked apart, so only single edges are exact."""
    found = errors(by_paths, world, protocol)
    assert np.mean(found) < (0.12 if isinstance(protocol, Budget) else 0.06)
    assert max(found) < (0.5 if isinstance(protocol, Budget) else 0.15)


def errors(density: TabularDensity, world: np.ndarray, protocol) -> list[float]:
    """For every question the mean absolute error in nats, by how often each state occurs."""
    x, probability, found = all_states(), torch.from_numpy(world.ravel()), []
    for parts in questions():
        mask = torch.tensor(parts)
        question = Question((mask == 2).expand(len(x), -1), (mask == 1).expand(len(x), -1))
        ours = log_prob(density.model_, x, question, [protocol], torch.Generator().manual_seed(0))
        truth = torch.tensor([true_log_prob(world, tuple(s), parts) for s in x[..., 0].long().tolist()])
        found.append(float((probability * (ours - truth).abs()).sum()))
    return found


def test_both_methods_of_section_5_2_agree(fitted):
    x = all_states()
    parts = torch.tensor([1, 2, 0, 1])
    question = Question((parts == 2).expand(len(x), -1), (parts == 1).expand(len(x), -1))
    direct = log_prob(fitted.model_, x, question)
    ratio = log_prob_by_ratio(fitted.model_, x, question)
    assert float((direct - ratio).abs().mean()) < 0.08


def test_draws_follow_the_table(fitted, world):
    drawn = fitted.sample(20_000, random_state=5)
    counts = np.zeros(SIZES)
    index = tuple(drawn[f"v{i}"].str[1:].astype(int).to_numpy() for i in range(len(SIZES)))
    np.add.at(counts, index, 1)
    assert np.abs(counts / counts.sum() - world).sum() / 2 < 0.05  # total variation
