"""Every workload, protocol and objective keeps the contract of the lattice."""

from inspect import isabstract

import pytest
import torch

from anygiven.lattice import (
    ARDM,
    EVIDENCE,
    MODES,
    NEVER,
    Activations,
    Alternating,
    Anywhere,
    Beginning,
    BernoulliEvidence,
    BitReversal,
    Blend,
    Budget,
    Canonical,
    CardMask,
    FromEvidence,
    GapPatterns,
    Glimpse,
    Grouped,
    Growing,
    Joint,
    KnownAsked,
    LeftToRight,
    Mixture,
    Objective,
    Protocol,
    Question,
    RandomBudget,
    RandomOrder,
    RandomScan,
    RandomSlant,
    RegionEvidence,
    RegionMode,
    SharedPaths,
    Slanted,
    SomeOf,
    Strided,
    Told,
    UniformEvidence,
    WholePath,
    Window,
    Workload,
    mixture,
    planned_sizes,
    seven_modes,
)

N = 7
SHAPE = (1, N)  # as a grid
PATTERNS = torch.rand(50, N, generator=torch.Generator().manual_seed(0)) < 0.6
WORKLOADS = [
    Joint(), CardMask(), UniformEvidence(), BernoulliEvidence(0.3), KnownAsked((0, 2)), KnownAsked((0,), (3, 4)),
    GapPatterns.of(PATTERNS), mixture([Joint(), UniformEvidence()]), RegionEvidence(LeftToRight(SHAPE)),
    SomeOf(UniformEvidence()), Beginning(UniformEvidence()),
]  # fmt: skip
PROTOCOLS = [
    Canonical(), Canonical((6, 5, 4, 3, 2, 1, 0)), RandomOrder(), Strided(3), Budget(Canonical(), 3),
    Budget(RandomOrder(), 2), BitReversal(), Grouped(RandomOrder(), (1, 2, 9)), RandomBudget(RandomOrder()),
    *(mode(SHAPE) for mode in MODES.values()), seven_modes(SHAPE), RandomScan(SHAPE),
    Slanted(SHAPE), Slanted((7, 1), 1), RandomSlant(SHAPE), Told(LeftToRight(SHAPE), 2),
    RegionMode(SHAPE, lambda n, shape, generator: torch.arange(N).expand(n, 1, N) % 2 == 0),
]  # fmt: skip
OBJECTIVES = [
    *(ARDM(w, p) for w in WORKLOADS for p in PROTOCOLS[:3]),
    *(WholePath(w, p) for w in WORKLOADS for p in PROTOCOLS),
    *(Glimpse(w, p, e, c) for w in WORKLOADS for p in PROTOCOLS[:4] for e in (False, True) for c in (False, True)),
    *(FromEvidence(w, is_mean) for w in WORKLOADS for is_mean in (False, True)),
    Blend((ARDM(), WholePath(CardMask())), (0.5, 0.5)),
    Alternating((ARDM(), WholePath(CardMask())), (0.5, 0.5)),
    SharedPaths(WholePath(CardMask()), 3),
    Growing(WholePath(CardMask())),
    Window(WholePath(Joint()), 3, 0.5),
    Activations(Anywhere(SHAPE)),
    Activations(seven_modes(SHAPE)),
    Activations(seven_modes(SHAPE), several=3),
]


def present(rows: int = 400) -> torch.Tensor:
    is_present = torch.rand(rows, N, generator=torch.Generator().manual_seed(5)) < 0.8
    is_present[0] = False  # a row with nothing in it must not break anything
    is_present[1] = torch.eye(N, dtype=torch.bool)[3]
    return is_present


HOME = [f"anygiven.lattice.{name}" for name in ("workloads", "protocols", "objectives", "masking_modes")]


def family(base: type) -> set[type]:
    """The concrete classes of the package, however deep."""
    below = {cls for child in base.__subclasses__() for cls in ({child} | family(child))}
    return {cls for cls in below if not isabstract(cls) and cls.__module__ in HOME}


def test_nothing_is_forgotten():
    assert {type(w) for w in WORKLOADS} == family(Workload)
    assert {type(p) for p in PROTOCOLS} == family(Protocol)
    assert {type(o) for o in OBJECTIVES} == family(Objective)
    assert Mixture in {type(w) for w in WORKLOADS}


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_questions_are_about_present_variables(workload):
    is_present = present()
    question = workload.draw(is_present, torch.Generator().manual_seed(0))
    assert not (question.is_query & question.is_evidence).any()
    assert not ((question.is_query | question.is_evidence) & ~is_present).any()
    again = workload.draw(is_present, torch.Generator().manual_seed(0))
    assert torch.equal(question.is_query, again.is_query)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_paths_reveal_each_query_variable_once(protocol):
    question = UniformEvidence().draw(present(), torch.Generator().manual_seed(0))
    path = protocol.path(question, torch.Generator().manual_seed(1))
    assert torch.equal(path.is_query, question.is_query)
    assert torch.equal(path.is_evidence, question.is_evidence)
    rest = ~(question.is_query | question.is_evidence)
    assert (path.step[rest] == NEVER).all()
    assert (path.step[question.is_evidence] == EVIDENCE).all()
    for row, is_query in zip(path.step, path.is_query, strict=True):
        steps = sorted(row[is_query].tolist())
        if steps:
            assert steps[0] == 0
            assert set(steps) == set(range(steps[-1] + 1))  # no empty step
            if isinstance(protocol, Budget):
                assert steps[-1] < protocol.steps
            elif isinstance(protocol, Grouped):
                assert steps[-1] < len(protocol.sizes)
            elif not isinstance(protocol, RandomBudget):
                assert steps == list(range(len(steps)))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_no_rows_are_a_path_too(protocol):
    none = torch.zeros(0, N, dtype=torch.bool)
    assert protocol.path(Question(none, none), torch.Generator().manual_seed(0)).step.shape == (0, N)


def test_lines_can_be_merged():
    whole = Question(torch.ones(2, 36, dtype=torch.bool), torch.zeros(2, 36, dtype=torch.bool))
    for steps in (2, 5, 36):
        path = Budget(Slanted((6, 6), 2), steps).path(whole)
        assert path.n_steps == steps
        assert (path.step.diff(dim=1)[:, ::6] >= 0).all()  # still along the lines
    assert Grouped(Slanted((6, 6), 1), (1, 2, 33)).path(whole).step.eq(1).sum(1).tolist() == [2, 2]
    assert Budget(Told(Slanted((6, 6)), 3), 4).path(whole).masking_mode.tolist() == [3, 3]


def test_strided_order_has_no_ties_and_is_as_defined():
    question = Question(torch.ones(1, 7, dtype=torch.bool), torch.zeros(1, 7, dtype=torch.bool))
    step = Strided(3).path(question).step[0]
    assert step.argsort().tolist() == [0, 3, 6, 1, 4, 2, 5]


def test_slanted_lines_by_hand():
    whole = Question(torch.ones(1, 6, dtype=torch.bool), torch.zeros(1, 6, dtype=torch.bool))
    assert Slanted((2, 3), 2).path(whole).step.tolist() == [[0, 1, 2, 2, 3, 4]]
    assert Slanted((3, 2), 1).path(whole).step.tolist() == [[0, 1, 1, 2, 2, 3]]
    assert Slanted((3, 1, 2), 1).path(whole).step.tolist() == [[0, 1, 2, 3, 4, 5]]  # two channels one after another
    part = Question(torch.tensor([[False, True, False, True, False, True]]), torch.tensor([[True] + 5 * [False]]))
    assert Slanted((2, 3), 2).path(part).step.tolist() == [[EVIDENCE, 0, NEVER, 1, NEVER, 2]]  # no empty steps


def test_budget_groups_are_of_nearly_equal_size():
    question = Question(torch.ones(1, 7, dtype=torch.bool), torch.zeros(1, 7, dtype=torch.bool))
    counts = torch.bincount(Budget(Canonical(), 3).path(question).step[0])
    assert sorted(counts.tolist()) == [2, 2, 3]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_objectives_weigh_only_what_is_asked(objective):
    is_present = present()
    path, weights = objective.draw(is_present, torch.Generator().manual_seed(0))
    assert weights.shape == is_present.shape
    assert (weights >= 0).all()
    assert weights.isfinite().all()
    assert float(weights[~path.is_query].abs().sum()) == 0
    assert not ((path.is_query | path.is_evidence) & ~is_present).any()


def test_query_and_evidence_may_not_overlap():
    everything = torch.ones(1, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match="both query and evidence"):
        Question(everything, everything)


def test_bit_reversal_by_hand():
    question = Question(torch.ones(1, 8, dtype=torch.bool), torch.zeros(1, 8, dtype=torch.bool))
    assert BitReversal().path(question).step.tolist() == [[0, 4, 2, 6, 1, 5, 3, 7]]


@pytest.mark.parametrize("n", [1, 4, 8])
def test_planned_sizes_lose_least(n):
    """Against all ways to cut n steps into k groups."""
    from itertools import combinations

    losses = torch.rand(n, generator=torch.Generator().manual_seed(n)).sort(descending=True).values.tolist()

    def cost(sizes):
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        return sum(size * losses[start] for size, start in zip(sizes, starts, strict=True))

    for k in range(1, n + 1):
        sizes = planned_sizes(losses, k)
        ways = [[b - a for a, b in zip((0, *cut), (*cut, n), strict=True)] for cut in combinations(range(1, n), k - 1)]
        assert len(sizes) == k
        assert sum(sizes) == n
        assert cost(sizes) == pytest.approx(min(map(cost, ways)))


def test_level_losses_plan_equal_groups():
    assert planned_sizes([2.0] * 16, 4) == (4, 4, 4, 4)
    assert sorted(planned_sizes([1.0] * 10, 3)) == [3, 3, 4]


def test_shared_paths_are_few_and_fit_every_row():
    full = torch.ones(40, N, dtype=torch.bool)
    path, _ = SharedPaths(WholePath(CardMask(), RandomOrder()), 3).draw(full, torch.Generator().manual_seed(0))
    assert len(path.step.unique(dim=0)) <= 3
    path, weights = SharedPaths(WholePath(CardMask()), 3).draw(present(), torch.Generator().manual_seed(0))
    assert not (path.is_query & ~present()).any()
    assert float(weights[~present()].sum()) == 0


def test_alternating_batches_ask_one_kind_each_and_validation_all():
    full, generator = torch.ones(40, N, dtype=torch.bool), torch.Generator().manual_seed(0)
    looks_only = Budget(Canonical(), 1)
    objective = Alternating((WholePath(Joint()), WholePath(Joint(), looks_only)), (0.7, 0.3))
    steps = [objective.draw(full, generator)[0].step.amax(1).unique().tolist() for _ in range(300)]
    assert all(kinds in ([0], [N - 1]) for kinds in steps)
    assert 0.2 < sum(kinds == [0] for kinds in steps) / 300 < 0.4
    assert objective.unshared.draw(full, generator)[0].step.amax(1).unique().tolist() == [0, N - 1]


def test_windows_grow_with_training():
    full, objective = torch.ones(5, N, dtype=torch.bool), Growing(WholePath(Joint()), shortest=2, until=0.5)
    sizes = []
    for share in (0.0, 0.2, 0.4, 0.5, 1.0):
        path, _ = objective.at(share).draw(full, torch.Generator().manual_seed(1))
        asked = path.is_query
        assert (asked == asked[:1]).all()
        assert int(asked[0].nonzero().max() - asked[0].nonzero().min()) + 1 == int(asked[0].sum())  # neighbours
        sizes.append(int(asked[0].sum()))
    assert sizes == [2, 4, 6, 7, 7]
    assert isinstance(objective.unshared, WholePath)
