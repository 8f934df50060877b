"""A 3×3 black-and-white world: every question normalises, and trained networks answer as the true table does."""

from itertools import product

import numpy as np
import pytest
import torch

from anygiven import ImageDensity
from anygiven.inference import log_prob
from anygiven.lattice import (
    Budget,
    Canonical,
    Question,
    RandomOrder,
    SomeOf,
    UniformEvidence,
    WholePath,
    seven_modes,
)

STATES = np.array(list(product((0, 1), repeat=9)), dtype=np.uint8)
PROTOCOLS = [Canonical(), Canonical((8, 7, 6, 5, 4, 3, 2, 1, 0)), RandomOrder(), Budget(RandomOrder(), 3),
             seven_modes((3, 3))]  # fmt: skip


@pytest.fixture(scope="module")
def world() -> np.ndarray:
    """(512,) neighbours tend to be alike, the middle tends to be white, two corners tend to differ."""
    s = 2.0 * STATES.reshape(-1, 3, 3) - 1
    energy = 0.5 * ((s[:, 1:] * s[:, :-1]).sum((1, 2)) + (s[:, :, 1:] * s[:, :, :-1]).sum((1, 2)))
    energy += 0.7 * s[:, 1, 1] - 0.8 * s[:, 0, 0] * s[:, 2, 2]
    p = np.exp(energy)
    return p / p.sum()


@pytest.fixture(scope="module")
def images(world) -> np.ndarray:
    return STATES[np.random.default_rng(0).choice(len(world), 60_000, p=world)].reshape(-1, 3, 3)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("network", ["convolutions", "unet", "path", "transformer"])
def test_every_question_normalises(network, protocol, images):
    """Σ over all values of the query of p(query | evidence) = 1, whatever the weights."""
    torch.manual_seed(0)
    density = ImageDensity(network=network, width=16, depth=1, max_steps=1, verbose=False).fit(images[:100])
    for parameter in density.model_.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    rng = np.random.default_rng(2)
    for _ in range(4):
        parts = rng.integers(0, 3, 9)  # rest, evidence, query
        parts[rng.integers(9)] = 2
        asked = np.unique(
            np.where(parts == 2, STATES, STATES[77]), axis=0
        )  # all values of the query, all else the same
        x = torch.zeros(len(asked), 9, 4)
        x[..., 0] = torch.from_numpy(asked).float()
        one = torch.from_numpy(parts).expand(len(asked), -1)
        question = Question(one == 2, one == 1)
        generator = torch.Generator().manual_seed(3)
        if protocol.is_random:  # one order for all values
            step = protocol.path(Question(question.is_query[:1], question.is_evidence[:1]), generator).step[0]
            order = Canonical(tuple(step.argsort(stable=True).tolist()))
            chosen = Budget(order, 3) if isinstance(protocol, Budget) else order
        else:
            chosen = protocol
        total = log_prob(density.model_, x, question, [chosen]).exp().sum()
        assert float(total) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("convolutions", {"width": 32, "depth": 2, "workload": WholePath(SomeOf(UniformEvidence()))}),
        ("unet", {"width": 16, "depth": 1, "workload": "conditionals", "learning_rate": 4e-3}),
    ],
)
def test_random_questions_are_answered_as_the_true_table_does(network, options, world, images):
    """As far as 500 steps go; independent pixels would be wrong by 0.9 nats."""
    options = {"learning_rate": 1e-2, **options}
    density = ImageDensity(network=network, batch_size=96, max_steps=500, max_minutes=None, verbose=False, dropout=0.0,
                           **options).fit(images)  # fmt: skip
    rng = np.random.default_rng(1)
    errors, independent = [], []
    white = world @ STATES
    for _ in range(60):
        parts = rng.integers(0, 3, 9)
        parts[rng.integers(9)] = 2
        state = STATES[rng.choice(len(world), p=world)]
        agrees = {k: (STATES[:, parts >= k] == state[parts >= k]).all(1) for k in (1, 2)}
        given = (STATES[:, parts == 1] == state[parts == 1]).all(1)
        truth = np.log(world[agrees[1]].sum() / world[given].sum())
        masks = {"query": (parts == 2).reshape(3, 3), "given": (parts == 1).reshape(3, 3)}
        errors.append(abs(truth - density.log_prob(state.reshape(1, 3, 3), **masks)[0]))
        independent.append(abs(truth - np.log(np.where(state == 1, white, 1 - white))[parts == 2].sum()))
    assert np.mean(errors) < 0.3 * np.mean(independent)
