"""The mask laws of MAC's Table 7, exactly by enumeration and in distribution by sampling (facts of the papers)."""

from collections import Counter

import pytest
import torch
from scipy.stats import chisquare

from anygiven.lattice import ARDM, CardMask, Glimpse, Joint, RandomOrder, WholePath
from anygiven.lattice.enumeration import (
    canonical_edges,
    card_mask_law,
    edge_law,
    entropy,
    prefix_law,
    random_order_edges,
)

N = 12
MASKS = ("011111111110", "100000000000", "100000000101", "100000001000", "111111111110")
# name: (edges of a path, per question?, cardinality?, entropy, counts per million)
GOLDEN = {
    "D(M, w-RND), appendix": (random_order_edges, True, False, 5.7455, (220, 14606, 481, 2024, 579)),
    "D(M, w-MAC), appendix": (canonical_edges, True, False, 4.4388, (631, 76389, 0, 526, 6944)),
    "D^CR(M, w-MAC), appendix": (canonical_edges, True, True, 5.5211, (1852, 40741, 0, 421, 22222)),
    "D(M, w-MAC), Eq. 6": (canonical_edges, False, False, 4.7383, (1068, 82265, 0, 269, 12821)),
    "D^CR(M, w-MAC), Eq. 6": (canonical_edges, False, True, 5.3428, (2518, 35256, 0, 173, 32967)),
}


def as_mask(text: str) -> tuple[int, ...]:
    return tuple(int(c) for c in text)


def test_card_mask_is_golden():
    law = card_mask_law(N)
    assert round(entropy(law), 4) == 7.2119
    assert [round(1e6 * law[as_mask(m)]) for m in MASKS] == [1263, 6944, 379, 1263, 6944]


@pytest.mark.parametrize("name", GOLDEN)
def test_enumerated_laws_are_golden(name):
    edges, per_question, cardinality, golden_entropy, counts = GOLDEN[name]
    law = prefix_law(edge_law(card_mask_law(N), edges, per_question), cardinality)
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    assert round(entropy(law), 4) == golden_entropy
    assert tuple(round(1e6 * law.get(as_mask(m), 0.0)) for m in MASKS) == counts


def test_closed_form_of_the_empty_prefix():
    """Under the appendix's law the empty prefix has probability mean(1/k) over k = 1 … N, to 1e-9."""
    law = prefix_law(edge_law(card_mask_law(N), canonical_edges, True), False)
    assert law[(0,) * N] == pytest.approx(sum(1 / k for k in range(1, N + 1)) / N, abs=1e-9)


@pytest.mark.parametrize(("per_question", "cardinality"), [(True, False), (True, True), (False, False), (False, True)])
@pytest.mark.parametrize("n", [4, 6])
def test_sampled_glimpses_follow_the_enumerated_law(n, per_question, cardinality):
    law = prefix_law(edge_law(card_mask_law(n), canonical_edges, per_question), cardinality)
    objective = Glimpse(CardMask(), edges=not per_question, cardinality=cardinality)
    assert_follows(objective, law, n)


@pytest.mark.parametrize("per_question", [True, False])
def test_sampled_glimpses_along_random_orders(per_question):
    law = prefix_law(edge_law(card_mask_law(5), random_order_edges, per_question), False)
    assert_follows(Glimpse(CardMask(), RandomOrder(), edges=not per_question, cardinality=False), law, 5)


def test_the_looser_route_has_the_same_expectation():
    """A workload without a size law draws from M and weights the loss: its weighted masks follow D^CR too."""
    n = 5

    class Opaque(CardMask):
        def query_sizes(self, n):
            return None

    law = prefix_law(edge_law(card_mask_law(n), canonical_edges, True), True)
    present = torch.ones(400_000, n, dtype=torch.bool)
    path, weights = Glimpse(Opaque(), cardinality=True).draw(present, torch.Generator().manual_seed(0))
    weight = weights.sum(dim=1).double()
    for mask, probability in law.items():
        hit = (path.is_evidence == torch.tensor(mask, dtype=torch.bool)).all(dim=1)
        assert float((weight * hit).sum() / weight.sum()) == pytest.approx(probability, abs=0.003)


def test_ardm_draws_a_uniform_cardinality():
    present = torch.ones(60_000, 6, dtype=torch.bool)
    path, weights = ARDM(Joint()).draw(present, torch.Generator().manual_seed(0))
    counts = torch.bincount(path.is_evidence.sum(1), minlength=6)
    assert chisquare(counts.numpy()).pvalue > 1e-3
    assert torch.allclose(weights.sum(1), torch.full((60_000,), 6.0))  # N/(N−|e|) over N−|e| variables


def test_whole_path_walks_every_edge_once():
    present = torch.ones(1000, 5, dtype=torch.bool)
    path, weights = WholePath(CardMask()).draw(present, torch.Generator().manual_seed(0))
    assert torch.equal(weights.bool(), path.is_query)
    for row in range(50):
        steps = path.step[row][path.is_query[row]].tolist()
        assert steps == list(range(len(steps)))  # canonical: in the order of the variables


def assert_follows(objective, law, n, draws=100_000):
    present = torch.ones(draws, n, dtype=torch.bool)
    path, _ = objective.draw(present, torch.Generator().manual_seed(1))
    seen = Counter(map(tuple, path.is_evidence.int().tolist()))
    assert set(seen) <= set(law)
    masks = list(law)
    assert chisquare([seen[m] for m in masks], [law[m] * draws for m in masks]).pvalue > 1e-3
