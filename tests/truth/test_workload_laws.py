"""The law of every workload against its closed form: sizes, subsets and shares, by chi-square on seeded draws."""

from collections import Counter
from itertools import combinations
from math import comb

import pytest
import torch
from scipy.stats import binom, chisquare

from anygiven.lattice import (
    Beginning,
    BernoulliEvidence,
    CardMask,
    GapPatterns,
    Joint,
    KnownAsked,
    SomeOf,
    UniformEvidence,
    mixture,
)

DRAWS, N = 40_000, 4
ROW = (True, True, False, True, True)  # of five variables the third is a gap
PRESENT = (0, 1, 3, 4)
SUBSETS = [subset for k in range(N + 1) for subset in combinations(PRESENT, k)]


def gap_patterns(is_present: torch.Tensor) -> GapPatterns:
    """The workload of these gaps, however it is made."""
    return GapPatterns.of(is_present)


def drawn(workload, row=ROW, draws=DRAWS, seed=0):
    question = workload.draw(torch.tensor([row]).repeat(draws, 1), torch.Generator().manual_seed(seed))
    assert not question.is_query[:, ~torch.tensor(row)].any()
    assert not question.is_evidence[:, ~torch.tensor(row)].any()
    return question


def sets(mask: torch.Tensor) -> Counter:
    """How often each set of variables was drawn."""
    return Counter(tuple(i for i, is_in in enumerate(row) if is_in) for row in mask.tolist())


def assert_follows(seen: Counter, law: dict) -> None:
    """What has no probability is never drawn; the rest by chi-square."""
    law = {value: p for value, p in law.items() if p > 0}
    assert sum(law.values()) == pytest.approx(1)
    assert set(seen) <= set(law)
    total = sum(seen.values())
    assert chisquare([seen[value] for value in law], [p * total for p in law.values()]).pvalue > 1e-4


def uniform_in_size(least: int, most: int) -> dict:
    """The law of a subset whose size is uniform from `least` to `most`, and that is uniform given its size."""
    share = most - least + 1
    return {s: 1 / share / comb(N, len(s)) if least <= len(s) <= most else 0.0 for s in SUBSETS}


def test_joint_asks_all_given_nothing():
    question = drawn(Joint(), draws=10)
    assert sets(question.is_query) == {PRESENT: 10}
    assert not question.is_evidence.any()
    assert Joint().query_sizes(3).tolist() == [0, 0, 0, 1]


def test_uniform_evidence_has_uniform_sizes_below_all():
    """|evidence| is uniform in 0 … n−1, the evidence is uniform given its size, and all the rest is asked."""
    question = drawn(UniformEvidence())
    assert_follows(sets(question.is_evidence), uniform_in_size(0, N - 1))
    assert torch.equal(question.is_query, torch.tensor(ROW) & ~question.is_evidence)


def test_card_mask_has_uniform_sizes_from_one():
    """|query| is uniform in 1 … n, the query is uniform given its size, and nothing is known."""
    question = drawn(CardMask())
    assert_follows(sets(question.is_query), uniform_in_size(1, N))
    assert not question.is_evidence.any()


@pytest.mark.parametrize("n", [0, 1, 4])
def test_card_masks_law_of_sizes(n):
    """What glimpses sample from: 1/n for each size from one, and of no variables the empty query alone."""
    assert CardMask().query_sizes(n).tolist() == pytest.approx([0.0] + [1 / n] * n if n else [1.0])


@pytest.mark.parametrize("p", [0.2, 0.7])
def test_bernoulli_evidence_knows_with_probability_p(p):
    """Each present variable is evidence with probability p, apart from the others; all the rest is asked."""
    question = drawn(BernoulliEvidence(p))
    assert_follows(sets(question.is_evidence), {s: p ** len(s) * (1 - p) ** (N - len(s)) for s in SUBSETS})
    assert_follows(Counter(question.is_evidence.sum(1).tolist()), {k: binom.pmf(k, N, p) for k in range(N + 1)})
    assert torch.equal(question.is_query, torch.tensor(ROW) & ~question.is_evidence)


def test_bernoulli_evidence_is_a_fair_coin_unless_told():
    seen = sets(drawn(BernoulliEvidence()).is_evidence)
    assert_follows(seen, {s: 1 / len(SUBSETS) for s in SUBSETS})


def test_known_asked_asks_what_it_is_told():
    """Exactly `asked` given `known`; a gap is neither."""
    question = drawn(KnownAsked((0, 2), (3,)), draws=5)
    assert sets(question.is_query) == {(3,): 5}
    assert sets(question.is_evidence) == {(0,): 5}


def test_known_asked_without_asked_asks_all_others():
    question = drawn(KnownAsked((0, 2)), draws=5)
    assert sets(question.is_query) == {(1, 3, 4): 5}
    assert sets(question.is_evidence) == {(0,): 5}


def test_gap_patterns_ask_the_gaps_given_the_present():
    """Patterns come as often as in the data; what a pattern has is evidence, and what it lacks is asked."""
    patterns = torch.tensor([(1, 1, 1, 0, 0), (1, 1, 1, 0, 0), (0, 1, 0, 1, 1)]).bool()
    question = drawn(gap_patterns(patterns))
    assert_follows(sets(question.is_evidence), {(0, 1): 2 / 3, (1, 3, 4): 1 / 3})
    assert torch.equal(question.is_query, torch.tensor(ROW) & ~question.is_evidence)


def test_a_pattern_that_asks_nothing_asks_one_variable():
    """Of a whole row one present variable is asked, each as often, and the others are evidence."""
    patterns = torch.tensor([(1, 1, 1, 1, 1), (1, 0, 0, 0, 0)]).bool()
    question = drawn(gap_patterns(patterns))
    law = {(1, 3, 4): 1 / 2, **{(i,): 1 / 2 / N for i in PRESENT}}
    assert_follows(sets(question.is_query), law)
    assert torch.equal(question.is_evidence, torch.tensor(ROW) & ~question.is_query)


def test_a_mixture_keeps_its_shares():
    """Each workload has its share of the rows, whatever its weights sum to; equal shares unless told."""
    parts = (KnownAsked((0,), (1,)), KnownAsked((1,), (3,)), KnownAsked((), (4,)))
    uneven = sets(drawn(mixture(parts, (1.0, 2.0, 5.0))).is_query)
    assert_follows(uneven, {(1,): 1 / 8, (3,): 2 / 8, (4,): 5 / 8})
    assert_follows(sets(drawn(mixture(parts)).is_query), {(1,): 1 / 3, (3,): 1 / 3, (4,): 1 / 3})


def test_rows_of_a_mixture_keep_both_masks():
    """A row's query and its evidence are of the same part."""
    question = drawn(mixture((KnownAsked((0,), (1,)), KnownAsked((1,), (3,)))), draws=1000)
    pairs = set(zip(map(tuple, question.is_query.tolist()), map(tuple, question.is_evidence.tolist()), strict=True))
    places = {tuple(tuple(torch.tensor(mask).nonzero().flatten().tolist()) for mask in pair) for pair in pairs}
    assert places == {((1,), (0,)), ((3,), (1,))}


def test_some_of_takes_a_uniform_number_of_variables():
    """With the joint question what is asked is the subset itself: of uniform size from one, and uniform given it."""
    question = drawn(SomeOf(Joint()))
    assert_follows(sets(question.is_query), uniform_in_size(1, N))
    assert not question.is_evidence.any()


def test_some_of_asks_its_workload_within_the_subset():
    """Half of a subset's variables are evidence and the others of it asked; the rest is neither."""
    question = drawn(SomeOf(BernoulliEvidence(0.3)))
    both = uniform_in_size(1, N)
    law = dict.fromkeys(SUBSETS, 0.0)
    for whole, p in both.items():
        for known in (s for s in SUBSETS if set(s) <= set(whole)):
            law[known] += p * 0.3 ** len(known) * 0.7 ** (len(whole) - len(known))
    assert_follows(sets(question.is_evidence | question.is_query), both)
    assert_follows(sets(question.is_evidence), law)


def test_beginning_takes_the_first_variables():
    """The first k present variables, k uniform from one to all of them."""
    question = drawn(Beginning(Joint()))
    assert_follows(sets(question.is_query), {PRESENT[:k]: 1 / N for k in range(1, N + 1)})
    question = drawn(Beginning(KnownAsked((0,))))
    assert_follows(sets(question.is_query), {PRESENT[1:k]: 1 / N for k in range(1, N + 1)})
    assert question.is_evidence[:, 0].all()
