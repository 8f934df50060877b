"""The functions of inference on a model that is exactly right: whatever they say must be what enumeration says."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from anygiven.inference import (
    draw,
    elbo,
    expected,
    log_prob,
    log_prob_by_ratio,
    losses_by_evidence,
    nearly_independent,
    order_ensemble,
    random_orders,
    refine,
    scan_orders,
    surest_first,
)
from anygiven.inference import likelihood as likelihood_module
from anygiven.inference.orders import entropy_order, ranked_orders
from anygiven.inference.refining import RUN, _run_given_all_else
from anygiven.lattice import N_SCANS, Budget, Canonical, Path, Question, RandomOrder
from anygiven.model import Walk
from anygiven.variables.rows import Data

from .an_exact_model import ExactModel

N, K = 4, 3
RNG = np.random.default_rng(1)


def a_table(n=N, k=K, seed=1, sharpness=0.4):
    return np.random.default_rng(seed).dirichlet(np.full(k**n, sharpness)).reshape((k,) * n)


@pytest.fixture
def model():
    return ExactModel(a_table())


def all_states(n=N, k=K):
    cells = torch.zeros(k**n, n, 4)
    cells[..., 0] = torch.tensor(list(product(range(k), repeat=n)), dtype=torch.float32)
    return cells


def asked(parts: str, rows: int) -> Question:
    """'q' is asked, 'e' is evidence, '.' is rest."""
    is_query = torch.tensor([part == "q" for part in parts]).expand(rows, -1)
    return Question(is_query, torch.tensor([part == "e" for part in parts]).expand(rows, -1))


def truth(model, x, question):
    masks = zip(x[..., 0].long().tolist(), question.is_query.tolist(), question.is_evidence.tolist(), strict=True)
    return torch.tensor([model.log_prob_of(*row) for row in masks], dtype=torch.float64)


@pytest.mark.parametrize("parts", ["qqqq", "q.qe", "eq.q", "eeeq", "..q.", "eee."])
@pytest.mark.parametrize(
    "protocols",
    [[Canonical()], [Canonical((3, 1, 0, 2))], order_ensemble(N, 5), [RandomOrder()], [RandomOrder(), Canonical()]],
    ids=["canonical", "another", "ensemble", "random", "mixed"],
)
def test_all_routes_come_to_the_same_log_prob(model, parts, protocols):
    x, generator = all_states(), torch.Generator().manual_seed(0)
    question = asked(parts, len(x))
    assert torch.allclose(log_prob(model, x, question, protocols, generator), truth(model, x, question), atol=1e-4)
    by_ratio = log_prob_by_ratio(model, x, question, protocols, generator)
    assert torch.allclose(by_ratio, truth(model, x, question), atol=1e-4)


def test_an_ensemble_is_the_log_of_the_mean_probability(model):
    """Groups make orders differ even for an exact model: what is asked together is asked apart."""
    x, whole = all_states(), asked("qqqq", K**N)
    protocols = [Canonical(), Budget(Canonical(), 2), Budget(Canonical((3, 2, 1, 0)), 2)]
    each = torch.stack([log_prob(model, x, whole, [protocol]) for protocol in protocols])
    assert float((each[0] - each[1]).abs().max()) > 0.1
    assert torch.allclose(log_prob(model, x, whole, protocols), each.logsumexp(0) - math.log(3), atol=1e-6)


def test_rows_may_ask_different_things_in_one_call_in_many_parts(model, monkeypatch):
    x = all_states()
    parts = torch.from_numpy(RNG.integers(0, 3, (len(x), N)))
    question = Question(parts == 0, parts == 1)
    shares = []
    monkeypatch.setattr(likelihood_module, "MAX_ROWS", 7)
    found = log_prob(model, x, question, order_ensemble(N, 3), report=shares.append)
    assert torch.allclose(found, truth(model, x, question), atol=1e-4)
    assert shares == pytest.approx([(k + 1) / 12 for k in range(12)])
    assert log_prob(model, x[:0], asked("qqqq", 0)).shape == (0,)


def test_orders_that_reveal_the_same_look_once(model):
    x = all_states()
    log_prob(model, x, asked("qqqq", len(x)), [Canonical(), Canonical((1, 0, 2, 3)), Canonical((0, 1, 3, 2))])
    # {}, {0}, {0,1}, {0,1,2}; {1}; {0,1,3}
    assert model.looks == 6


def test_an_ensemble_has_as_many_orders_as_wanted_the_first_canonical():
    orders = order_ensemble(6, 5, seed=3)
    assert len(orders) == 5
    assert orders[0] == Canonical()
    assert len({order.order for order in orders}) == 5
    assert all(sorted(order.order) == list(range(6)) for order in orders[1:])
    assert order_ensemble(6, 5, seed=3) == orders
    assert order_ensemble(6, 5, seed=4)[1:] != orders[1:]
    assert random_orders(6, 0, 1) == []
    many = scan_orders((3, 4), N_SCANS + 3)
    assert len(many) == N_SCANS + 3
    assert many[0] == Canonical()
    assert len({order.order for order in many}) == N_SCANS + 3


@pytest.mark.parametrize("n", [1, 3])
def test_the_bound_is_on_average_the_truth_of_an_exact_model(model, n):
    """Each draw is one step weighted by the number of steps: the mean over draws is Σ over steps, which is log p."""
    x, shares = all_states(), []
    repeated = x.repeat(40, 1, 1)
    bound = elbo(model, repeated, n, torch.Generator().manual_seed(0), shares.append).view(40, -1)
    error = bound.std(0) / 40**0.5
    target = truth(model, x, asked("qqqq", len(x)))
    weight = torch.from_numpy(model.table.ravel())
    assert float(((bound.mean(0) - target).abs() * weight).sum()) < 3 * float((error * weight).sum()) + 1e-6
    assert bound.std() > 0
    assert shares[-1] == 1


def test_losses_by_evidence_are_conditional_entropies():
    """With so many random others known, a variable costs its mean conditional entropy."""
    model = ExactModel(a_table(3, 2, 5))
    flat = np.random.default_rng(0).choice(8, 4000, p=model.table.ravel())
    data = Data(all_states(3, 2)[flat], torch.ones(4000, 3, dtype=torch.bool))
    sizes, losses = losses_by_evidence(model, data)
    assert sizes == [0, 1, 2]
    log_p = np.log(np.maximum(model.table, 1e-300))

    def entropy(axes):
        return -sum(p * np.log(p) for p in model.table.sum(axis=tuple(set(range(3)) - set(axes))).ravel() if p > 0)

    two = [entropy({i, j}) - entropy({j}) for i in range(3) for j in range(3) if i != j]
    all_of_it = -(model.table * log_p).sum()
    three = [all_of_it - entropy(set(range(3)) - {i}) for i in range(3)]
    exact = [np.mean([entropy({i}) for i in range(3)]), np.mean(two), np.mean(three)]
    assert losses == pytest.approx(exact, abs=0.03)
    some = losses_by_evidence(model, data, n_sizes=2)[0]
    assert some == [0, 2]
    with_gaps = Data(data.x, torch.tensor([[True, True, False]]).expand(4000, -1))
    assert losses_by_evidence(model, with_gaps)[0] == [0, 1]


def test_losses_are_of_the_rows_with_most_variables():
    model = ExactModel(a_table(3, 2, 5))
    present = torch.ones(6, 3, dtype=torch.bool)
    present[3:, 0] = False
    mixed = Data(all_states(3, 2)[:6], present)
    full = Data(all_states(3, 2)[:3], present[:3])
    assert losses_by_evidence(model, mixed) == losses_by_evidence(model, full)


def test_a_greedy_order_takes_what_costs_least_or_most():
    model = ExactModel(a_table(3, 3, 8, 0.3))
    x = all_states(3, 3)
    often = np.random.default_rng(2).choice(27, 600, p=model.table.ravel())
    data = Data(x[often], torch.ones(600, 3, dtype=torch.bool))

    def cost(variable, known):
        parts = "".join("q" if i == variable else "e" if i in known else "." for i in range(3))
        return float(-truth(model, data.x, asked(parts, 600)).mean())

    for hardest, choose in ((False, min), (True, max)):
        order: list[int] = []
        while len(order) < 3:
            order.append(choose((i for i in range(3) if i not in order), key=lambda i: cost(i, order)))
        assert entropy_order(model, data, hardest).order == tuple(order)


def test_a_greedy_order_counts_only_what_is_present():
    """A variable that is mostly missing is judged by its own cost, not by how seldom it is there."""
    table = np.einsum("i,j->ij", [0.5, 0.5], [0.9, 0.1])
    model = ExactModel(table)
    present = torch.ones(400, 2, dtype=torch.bool)
    present[4:, 0] = False  # the hard one is seldom there
    x = all_states(2, 2)[np.random.default_rng(0).choice(4, 400, p=table.ravel())]
    assert entropy_order(model, Data(x, present)).order == (1, 0)


class Favours(ExactModel):
    """Wrong along all orders that do not begin with the last variable."""

    def look(self, x, is_evidence, columns=None, masking_mode=None):
        found = super().look(x, is_evidence, columns, masking_mode)
        is_wrong = is_evidence.any(1) & ~is_evidence[:, -1]
        logits = torch.where(is_wrong[:, None, None], torch.zeros(()), found.conditional.logits)
        return type(found)(found.columns, type(found.conditional)(logits))


def test_the_likeliest_orders_come_first(monkeypatch):
    model = Favours(a_table(3, 2, 5, 0.2))
    x = all_states(3, 2)[np.random.default_rng(0).choice(8, 200, p=model.table.ravel())]
    data = Data(x, torch.ones(200, 3, dtype=torch.bool))
    ranked = ranked_orders(model, data, 8, seed=0)
    assert len(ranked) == 10
    assert ranked[0].order[0] == 2
    scores = [float(log_prob(model, x, asked("qqq", 200), [order]).mean()) for order in ranked]
    assert scores == sorted(scores, reverse=True)
    easiest, hardest = (entropy_order(model, data, is_hardest).order for is_hardest in (False, True))
    assert easiest != hardest
    assert {easiest, hardest} <= {
        order.order for order in ranked_orders(model, data, 1, seed=0)
    }  # beside the column order
    assert len(ranked_orders(model, data, 8, seed=0, until=0.0)) == 1  # the time is up: one is always tried


# ------------------------------------------------------------------ draws


def test_draws_follow_the_truth_and_leave_the_evidence(model):
    x = all_states()[[50]].repeat(20_000, 1, 1)
    path = Canonical((2, 0, 3, 1)).path(asked("qeqq", len(x)))
    drawn = draw(model, x, path, torch.Generator().manual_seed(0))
    assert torch.equal(drawn[:, 1], x[:, 1])
    given = model.table[:, int(x[0, 1, 0])]
    counts = np.zeros((K,) * 3)
    np.add.at(counts, tuple(drawn[:, [0, 2, 3], 0].long().numpy().T), 1)
    noise = float(np.sqrt(given / given.sum() / len(x)).sum()) / 2
    assert np.abs(counts / len(x) - given / given.sum()).sum() / 2 < 2 * noise


def test_a_temperature_is_that_of_every_step():
    model = ExactModel(np.array([0.8, 0.2]))
    x = all_states(1, 2)[[0]].repeat(20_000, 1, 1)
    cold = draw(model, x, Canonical().path(asked("q", len(x))), torch.Generator().manual_seed(0), 0.5)
    assert float(cold[..., 0].mean()) == pytest.approx(0.04 / 0.68, abs=0.01)


def test_drawing_reports_how_far_it_is(model, monkeypatch):
    monkeypatch.setattr("anygiven.inference.drawing.MAX_ROWS", 5)
    shares = []
    x = all_states()[:10]
    draw(model, x, Canonical().path(asked("eqqe", 10)), torch.Generator().manual_seed(0), report=shares.append)
    assert shares == pytest.approx([0.25, 0.5, 0.75, 1.0])


def walk_of(model, question):
    return Walk(model, all_states(N, K)[: len(question.is_query)], Budget(Canonical(), 1).path(question))


def test_surest_first_reveals_equal_numbers_the_surest_ones(model):
    walk = walk_of(model, asked("qqqq", 2))
    entropy = torch.tensor([[0.4, 0.1, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4]])
    assert surest_first(2)(walk, entropy).tolist() == [[False, True, False, True], [True, True, False, False]]
    assert surest_first(3)(walk, entropy).sum(1).tolist() == [2, 2]
    assert surest_first(4)(walk, entropy).sum(1).tolist() == [1, 1]
    walk.t = 1
    walk.step += 1
    assert surest_first(2)(walk, entropy).all()  # the last step takes what is left
    walk.t, walk.step = 5, walk.step + 4
    assert surest_first(2)(walk, entropy).all()  # and so does one after the last
    some = walk_of(model, asked("qe.q", 1))
    only = surest_first(2)(some, torch.tensor([[0.5, 0.1]]))
    assert some.columns.tolist() == [0, 3]
    assert only.tolist() == [[False, True]]


def test_nearly_independent_variables_are_revealed_together(model):
    """As many of the surest as keep the entropies of all but the greatest within the bound."""
    walk = walk_of(model, asked("qqqq", 2))
    entropy = torch.tensor([[0.4, 0.1, 0.3, 0.2], [2.0, -1.0, 3.0, 4.0]])
    bound = nearly_independent(0.3)(walk, entropy)
    assert bound.tolist() == [[False, True, True, True], [True, True, False, False]]
    least = nearly_independent(0.0)(walk, entropy)
    assert least.tolist() == [[False, True, False, False], [True, True, False, False]]
    rows = asked("qqqq", 2)
    rows = Question(torch.stack([rows.is_query[0], torch.tensor([True, False, False, True])]), rows.is_evidence)
    assert nearly_independent(9.0)(walk_of(model, rows), entropy).tolist()[1] == [True, False, False, True]


@pytest.mark.parametrize("choose", [surest_first(2), nearly_independent(0.1)])
def test_chosen_steps_reveal_everything_once(model, choose):
    x = all_states()
    drawn = draw(model, x, Budget(Canonical(), 1).path(asked("qqeq", len(x))), torch.Generator().manual_seed(0),
                 choose=choose)  # fmt: skip
    assert torch.equal(drawn[:, 2], x[:, 2])
    assert torch.isfinite(log_prob(model, drawn, asked("qqqq", len(x)))).all()


def test_the_expected_is_the_mean_of_what_is_unknown(model):
    x = all_states()[:20]
    is_known = torch.tensor([True, False, True, False]).expand(20, -1)
    found = expected(model, x, is_known)
    assert torch.equal(found[:, [0, 2]], x[:, [0, 2]])
    for row, mean in zip(x[..., 0].long().tolist(), found[..., 0].tolist(), strict=True):
        p = model.conditional(row, [True, False, True, False], 3)
        assert mean[3] == pytest.approx(p @ np.arange(K), abs=1e-5)


def test_a_run_that_is_drawn_again_follows_on_and_can_be_any():
    """RUN asked variables in a row among the asked ones, each start alike; what is not asked stays evidence or rest."""
    parts = "qeqqq.qqe"
    question = asked(parts, 4000)
    again = _run_given_all_else(question, torch.Generator().manual_seed(0))
    places = [i for i, part in enumerate(parts) if part == "q"]
    windows = [frozenset(places[k : k + RUN]) for k in range(len(places) - RUN + 1)]
    drawn = [frozenset(row.nonzero().squeeze(1).tolist()) for row in again.is_query]
    for window in windows:
        assert drawn.count(window) == pytest.approx(4000 / len(windows), rel=0.1)
    assert not (again.is_query & again.is_evidence).any()
    assert torch.equal(again.is_query | again.is_evidence, question.is_query | question.is_evidence)
    few = _run_given_all_else(asked("q.qe", 3), torch.Generator().manual_seed(0))
    assert few.is_query.tolist() == [[True, False, True, False]] * 3


def test_a_path_of_groups_asks_its_members_apart(model):
    """Two at a time: log p(a | e) + log p(b | e), not the joint of both."""
    x = all_states()
    path = Path(torch.tensor([[-1, 0, 0, 1]]).expand(len(x), -1))
    edges = model.log_prob(x, path)
    apart = truth(model, x, asked("eq..", len(x))) + truth(model, x, asked("e.q.", len(x)))
    assert torch.allclose(edges[:, 1:3].sum(1).double(), apart, atol=1e-4)
    assert torch.allclose(edges[:, 3].double(), truth(model, x, asked("eeeq", len(x))), atol=1e-4)
    assert (edges[:, 0] == 0).all()


def test_refining_reports_how_far_it_is_and_keeps_what_is_known(model):
    x, shares = all_states()[:6], []
    question = asked("qqeq", 6)
    refined = refine(model, x, question, 3, torch.Generator().manual_seed(0), report=shares.append)
    assert shares == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert torch.equal(refined[:, 2], x[:, 2])
    assert refine(model, x, question, 0, torch.Generator()) is x
    assert refine(model, x, asked("e.e.", 6), 3, torch.Generator()) is x


def test_the_bound_is_found_in_parts_of_any_size(model, monkeypatch):
    """Each draw is independent of how many rows are scored at a time, and wide rows are taken few at a time."""
    x = all_states()[:9]
    monkeypatch.setattr(likelihood_module, "MAX_VARIABLES", 2)  # narrower than a row: one at a time
    model.looks = 0
    assert elbo(model, x, 1, torch.Generator().manual_seed(0)).shape == (9,)
    assert model.looks == 9
    model.looks = 0
    log_prob(model, x, asked("qqqq", 9))
    assert model.looks == 9 * N
