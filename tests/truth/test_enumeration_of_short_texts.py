"""A world of short texts with known probabilities: the path Transformer, with its places, n-grams and one head for all
characters, answers every question about it as enumeration does."""

from itertools import product

import numpy as np
import pytest

from anygiven import TextDensity

LENGTH, LETTERS = 4, "ab"
TEXTS = ["".join(letters) for letters in product(LETTERS, repeat=LENGTH)]


@pytest.fixture(scope="module")
def world() -> dict[str, float]:
    p = np.random.default_rng(2).dirichlet(np.full(len(TEXTS), 0.8))
    return dict(zip(TEXTS, p, strict=True))


@pytest.fixture(scope="module")
def density(world) -> TextDensity:
    drawn = np.random.default_rng(0).choice(TEXTS, 20_000, p=list(world.values()))
    options = {"max_steps": 1200, "max_minutes": None, "batch_size": 256, "learning_rate": 3e-3}
    network = {"width": 32, "depth": 2, "dropout": 0.0}
    return TextDensity(LENGTH, LETTERS, verbose=False, **options, **network).fit(list(drawn))


def matches(text: str, pattern: str) -> bool:
    return all(p in ("_", c) for p, c in zip(pattern, text, strict=True))


def mass(world: dict[str, float], pattern: str) -> float:
    return sum(p for text, p in world.items() if matches(text, pattern))


def test_every_question_agrees_with_enumeration(world, density):
    """Rest, evidence or query at each place; on average over what is asked, as often as it occurs."""
    off = []
    for parts in product((0, 1, 2), repeat=LENGTH):
        if 2 not in parts:
            continue
        known = ["".join(c if p == 1 else "_" for c, p in zip(text, parts, strict=True)) for text in TEXTS]
        asked = ["".join(c if p == 2 else "_" for c, p in zip(text, parts, strict=True)) for text in TEXTS]
        both = ["".join(c if p else "_" for c, p in zip(text, parts, strict=True)) for text in TEXTS]
        truth = np.array([np.log(mass(world, b) / mass(world, k)) for b, k in zip(both, known, strict=True)])
        found = density.log_prob(asked, given=known)
        off.append(float(np.dot(list(world.values()), np.abs(truth - found))))
    assert len(off) == 3**LENGTH - 2**LENGTH
    assert np.mean(off) < 0.07
    assert max(off) < 0.2


def test_draws_follow_the_world(world, density):
    """Filled one by one, given the evidence."""
    drawn = density.fill("_a__", n=4000, random_state=0)
    truth = {text: p / mass(world, "_a__") for text, p in world.items() if matches(text, "_a__")}
    shares = {text: drawn.count(text) / len(drawn) for text in truth}
    assert sum(abs(shares[text] - truth[text]) for text in truth) / 2 < 0.06
