"""Small laws of the lattice: prefixes, lines, groups, what is refused; by hand or by enumeration."""

from itertools import combinations

import numpy as np
import pytest
import torch

from anygiven.errors import QuestionError
from anygiven.lattice import (
    ARDM,
    Activations,
    Anywhere,
    BernoulliEvidence,
    Blend,
    BottomToTop,
    Canonical,
    CardMask,
    ExteriorPatch,
    Glimpse,
    InteriorPatch,
    Joint,
    KnownAsked,
    ModeMixture,
    Path,
    Question,
    RandomSlant,
    RegionEvidence,
    RegionMode,
    RightToLeft,
    Slanted,
    Strided,
    Support,
    Told,
    TopToBottom,
    UniformEvidence,
    WholePath,
    Window,
    mixture,
)
from anygiven.lattice.masking_modes import LeftToRight, activation_probability
from anygiven.lattice.objectives import prefix_table
from anygiven.lattice.protocols import planned_sizes
from anygiven.lattice.question import draw_index, lowest, random_integers
from anygiven.lattice.stored import from_json, to_json


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def everything(n, rows=1):
    return Question(torch.ones(rows, n, dtype=torch.bool), torch.zeros(rows, n, dtype=torch.bool))


# ------------------------------------------------------------------ counting


def test_random_integers_are_uniform_and_include_both_ends():
    low, high = torch.full((30_000,), 2), torch.full((30_000,), 5)
    counts = torch.bincount(random_integers(low, high, generator()), minlength=8)
    assert counts[:2].sum() == 0
    assert counts[6:].sum() == 0
    assert (counts[2:6] / 30_000 - 0.25).abs().max() < 0.015
    assert (random_integers(low, low - 3, generator()) == 2).all()  # where high is below low, low


def test_indices_are_drawn_in_proportion_and_never_one_of_weight_zero():
    drawn = draw_index([0.0, 1.0, 3.0, 0.0], 20_000, generator())
    assert torch.bincount(drawn, minlength=4).tolist()[0] == 0
    assert torch.bincount(drawn, minlength=4).tolist()[3] == 0
    assert float((drawn == 2).float().mean()) == pytest.approx(0.75, abs=0.02)
    assert len(draw_index([1.0], 0, generator())) == 0


def test_the_lowest_are_as_many_as_asked():
    priority = torch.tensor([[0.3, 0.1, 0.2, 0.0]])
    member = torch.tensor([[True, True, True, False]])
    for size, expected in ((0, []), (1, [1]), (2, [1, 2]), (3, [0, 1, 2])):
        assert lowest(priority, member, torch.tensor([size]))[0].nonzero().squeeze(1).tolist() == expected


def test_a_path_without_questions_has_no_steps():
    assert Path(torch.full((2, 3), -1)).n_steps == 0
    assert Path(torch.zeros(0, 3, dtype=torch.int64)).n_steps == 0
    assert Path(torch.tensor([[-1, 0, 2]])).n_steps == 3


# ------------------------------------------------------------------ prefixes


@pytest.mark.parametrize("evidence", [0, 1, 4])
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("cardinality", [True, False])
def test_prefix_lengths_follow_their_law(evidence, size, cardinality):
    """In proportion to 1 + |evidence| + length, or uniform."""
    n = 40_000
    glimpse = Glimpse(BernoulliEvidence(0.5), cardinality=cardinality)
    drawn = glimpse._prefix_lengths(torch.full((n,), size), torch.full((n,), evidence), generator())
    law = 1 + evidence + np.arange(size) if cardinality else np.ones(size)
    counts = torch.bincount(drawn, minlength=size).numpy()
    assert len(counts) == size
    expected = n * law / law.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 5 * size + 10


def test_a_weighted_prefix_counts_as_the_exact_one_does():
    """Eq. 6 by importance weights and by the exact table: the same expectation of every prefix."""
    n, rows = 3, 60_000
    present = torch.ones(rows, n, dtype=torch.bool)
    for edges in (False, True):
        for cardinality in (False, True):
            glimpse = Glimpse(CardMask(), edges=edges, cardinality=cardinality)
            exact, _ = glimpse._exact_prefix(present, generator(1))
            drawn, weight = glimpse._weighted_prefix(present, generator(2))
            code = 2 ** torch.arange(n)
            one = torch.bincount((exact * code).sum(1), minlength=8) / rows
            other = torch.bincount((drawn * code).sum(1), weights=weight.double(), minlength=8)
            assert (one - other / other.sum()).abs().max() < 0.015


def test_a_table_of_prefixes_is_a_law_also_of_nothing():
    assert prefix_table(CardMask(), 0, True, True).tolist() == [1.0]
    assert prefix_table(Joint(), 0, False, False).tolist() == [1.0]
    assert float(prefix_table(Joint(), 4, False, True)[-1]) == pytest.approx(1)
    present = torch.tensor([[False, False], [True, False]])
    path, weights = Glimpse(CardMask()).draw(present, generator())
    assert not path.is_query[0].any()
    assert weights[0].sum() == 0
    assert path.is_query[1].tolist() == [True, False]


@pytest.mark.parametrize("objective", [ARDM(Joint()), ARDM(UniformEvidence()), WholePath(CardMask())])
def test_a_row_without_variables_asks_nothing(objective):
    path, weights = objective.draw(torch.tensor([[False] * 3, [True] * 3]), generator())
    assert not path.is_query[0].any()
    assert weights[0].sum() == 0
    assert path.is_query[1].any()


# ------------------------------------------------------------------ lines and groups


@pytest.mark.parametrize(("slant", "n_channels"), [(1, 1), (2, 1), (3, 2)])
def test_slanted_lines_are_those_of_the_formula(slant, n_channels):
    height, width = 3, 4
    shape = (height, width) if n_channels == 1 else (height, width, n_channels)
    order = Slanted(shape, slant)
    at = torch.arange(height * width * n_channels).view(height, width * n_channels)
    lines = order.lines().view(height, width * n_channels)
    for y in range(height):
        for x in range(width * n_channels):
            assert int(lines[y, x]) == x + slant * n_channels * y
    step = order.path(everything(at.numel())).step.view(height, -1)
    assert torch.equal(step, lines)
    priority = order.priority(torch.Size((1, at.numel())), None)[0]
    assert len(set(priority.tolist())) == at.numel()  # no ties
    assert (priority[order.lines().argsort(stable=True)].diff() > 0).sum() >= 1
    for i, j in combinations(range(at.numel()), 2):
        first, second = (int(order.lines()[k]) for k in (i, j))
        if first != second:
            assert (priority[i] < priority[j]) == (first < second)
        else:
            assert priority[i] < priority[j]  # on one line the upper one first


def test_lines_that_ask_nothing_take_no_step():
    is_query = torch.zeros(1, 9, dtype=torch.bool)
    is_query[0, [0, 8]] = True
    path = Slanted((3, 3), 1).path(Question(is_query, ~is_query))
    assert path.step[0, [0, 8]].tolist() == [0, 1]
    assert path.n_steps == 2


@pytest.mark.parametrize("slant", [0, -1])
def test_a_slant_is_at_least_one(slant):
    with pytest.raises(QuestionError, match="at least 1"):
        Slanted((3, 3), slant)


def test_random_slants_are_random_and_one_for_a_batch():
    order = RandomSlant((4, 4))
    assert order.is_random
    steps = {tuple(order.path(everything(16), generator(seed)).step[0].tolist()) for seed in range(20)}
    assert len(steps) == 2
    both = order.path(everything(16, 2), generator(0)).step
    assert torch.equal(both[0], both[1])


def test_strided_orders_go_by_strides():
    order = Strided(3).path(everything(7)).step[0]
    assert order.argsort().tolist() == [0, 3, 6, 1, 4, 2, 5]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_groups", [1, 2, 3, 6])
def test_planned_groups_lose_least_of_all_partitions(seed, n_groups):
    """ARDM's dynamic programme against all partitions."""
    losses = np.sort(np.random.default_rng(seed).exponential(size=6))[::-1]

    def cost(sizes):
        starts = np.cumsum([0, *sizes[:-1]])
        return sum(size * losses[start] for size, start in zip(sizes, starts, strict=True))

    every = [tuple(np.diff([0, *ends, 6])) for ends in combinations(range(1, 6), n_groups - 1)]
    planned = planned_sizes(losses.tolist(), n_groups)
    assert len(planned) == n_groups
    assert sum(planned) == 6
    assert cost(planned) == pytest.approx(min(cost(sizes) for sizes in every), abs=1e-6)


def test_level_losses_are_planned_in_equal_groups():
    assert sorted(planned_sizes([1.0] * 12, 4)) == [3, 3, 3, 3]
    assert planned_sizes([0.0] * 6, 3) == (2, 2, 2)
    assert planned_sizes([3.0, 2.0], 9) == (1, 1)
    # losses that rise are noise: more evidence never costs more
    assert planned_sizes([1.0, 2.0, 2.0, 0.1], 2) == (3, 1)


# ------------------------------------------------------------------ modes


def test_an_exterior_box_is_a_quarter_to_three_quarters_of_each_side():
    inside = ExteriorPatch((8, 12)).region(3000, generator())
    heights, widths = inside.any(2).sum(1), inside.any(1).sum(1)
    assert set(heights.tolist()) == set(range(2, 7))
    assert set(widths.tolist()) == set(range(3, 10))
    assert torch.equal(heights * widths, inside.sum((1, 2)))  # a box
    assert inside.any(0).all()  # anywhere
    tiny = ExteriorPatch((1, 2)).region(50, generator())
    assert (tiny.sum((1, 2)) == 1).all()


def test_mixtures_of_modes_may_have_weights_of_zero_but_not_only_those():
    modes = (LeftToRight((2, 2)), ExteriorPatch((2, 2)))
    assert ModeMixture(modes, (0.0, 1.0)).weights == (0.0, 1.0)
    for weights in ((0.0, 0.0), (-1.0, 2.0), (1.0,), (float("inf"), 1.0)):
        with pytest.raises(QuestionError):
            ModeMixture(modes, weights)
    with pytest.raises(QuestionError, match="at least one"):
        ModeMixture(())


def test_one_stage_leaves_nothing_to_be_given():
    present = torch.ones(6, 9, dtype=torch.bool)
    question = RegionEvidence(Anywhere((3, 3))).draw(present, generator())
    assert question.is_query.all()
    halves = RegionEvidence(LeftToRight((3, 3))).draw(present, generator())
    assert halves.is_evidence.any(1).all()
    assert halves.is_query.any(1).all()


@pytest.mark.parametrize("mode", [LeftToRight, RightToLeft, TopToBottom, BottomToTop, ExteriorPatch, InteriorPatch])
def test_regions_are_of_pixels_also_where_each_channel_is_a_variable(mode):
    region = mode((4, 5, 3)).region(7, generator())
    assert region.shape == (7, 4, 5)
    seen = []
    RegionMode((4, 5, 3), lambda n, shape, _: seen.append(shape) or torch.ones(n, *shape, dtype=torch.bool)).region(
        2, generator()
    )
    assert seen == [(4, 5)]


def test_a_mode_that_is_told_counts_as_random_and_tells_its_number():
    told = Told(LeftToRight((2, 2)), 3)
    assert told.is_random
    assert told.path(everything(4, 2), generator()).masking_mode.tolist() == [3, 3]


@pytest.mark.parametrize(("share", "size"), [(0.0, 3), (0.5, 6), (1.0, 8)])
def test_a_window_is_anywhere_and_as_long_as_it_should_be(share, size):
    starts = set()
    for seed in range(60):
        path, _ = Window(WholePath(Joint()), 3, share).draw(torch.ones(2, 8, dtype=torch.bool), generator(seed))
        asked = path.is_query[0].nonzero().squeeze(1).tolist()
        assert asked == list(range(asked[0], asked[0] + size))
        starts.add(asked[0])
    assert starts == set(range(8 - size + 1))


def test_of_many_variables_pairs_are_not_kept(monkeypatch):
    monkeypatch.setattr("anygiven.lattice.support.MOST_PAIRED", 3)
    few, many = Support.of(ARDM(Joint()), 3), Support.of(ARDM(Joint()), 4)
    assert few.is_known.shape == (3, 3)
    assert many.is_known.shape == many.is_unknown.shape == (0, 0)
    assert many.is_asked.all()
    assert many.strange(Canonical().path(everything(4))) is None
    assert Support.of_everything(4).is_known.shape == (0, 0)
    assert Support.of_everything(3).is_known.all()


# ------------------------------------------------------------------ storing


def test_probabilities_and_weights_may_be_zero_where_that_means_something():
    question = BernoulliEvidence(0.0).draw(torch.ones(4, 3, dtype=torch.bool), generator())
    assert question.is_query.all()
    both = mixture([Joint(), CardMask()], [0.0, 1.0])
    assert both.weights == (0.0, 1.0)


def test_laws_are_stored_part_by_part():
    for law in ("any", 3, None, {"known": ["a", "b"], "asked": []}, mixture([Joint(), KnownAsked((1, 2))], [1, 3])):
        assert from_json(to_json(law)) == law
    with pytest.raises(ValueError, match=r"."):
        from_json({"law": "NoSuchLaw"})


def test_rows_of_a_law_without_masking_modes_are_told_none():
    """In a blend with one that has them, theirs are told and the others have the number 0."""
    modes = ModeMixture((LeftToRight((2, 3)), RightToLeft((2, 3))))
    blend = Blend((ARDM(Joint()), Activations(modes, told=1.0)), (0.5, 0.5))
    path, weights = blend.draw(torch.ones(400, 6, dtype=torch.bool), generator())
    told = path.masking_mode
    assert set(told.tolist()) == {0, 1, 2}
    assert 120 < int((told == 0).sum()) < 280
    # ARDM asks for all that is left; a stage of a mode at most for its own half
    assert bool((weights > 0).sum(1)[told == 0].max() == 6)


@pytest.mark.parametrize("shape", [(7, 2), (2, 7), (4, 4), (5, 2, 3)])
def test_a_slanted_order_has_no_ties_on_grids_of_any_shape(shape):
    n = int(np.prod(shape))
    priority = Slanted(shape, 1).priority(torch.Size((1, n)), None)[0]
    assert len(priority.unique()) == n


def test_activation_probabilities_are_those_of_the_stages():
    """Of five elements in stages of two and three, after i = 0 … 5 steps, each row with its own i."""
    stage = torch.tensor([0, 1, 0, 1, 1]).expand(6, -1)
    found = activation_probability(stage, torch.arange(6))
    first = torch.tensor([0, 0.5, 1, 1, 1, 1])
    second = torch.tensor([0, 0, 0, 1 / 3, 2 / 3, 1])
    assert torch.allclose(found[:, [0, 2]], first[:, None].expand(-1, 2))
    assert torch.allclose(found[:, [1, 3, 4]], second[:, None].expand(-1, 3))
