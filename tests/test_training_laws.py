"""Laws of the loop and of what it makes: the best weights are kept, the average and the schedule are their formulas."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

import anygiven as ag
from anygiven.estimators.answers import Answer
from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import build_model
from anygiven.inference import likelihood, log_prob, order_ensemble
from anygiven.inference.likelihood import random_orders
from anygiven.lattice import ARDM, Joint, Question
from anygiven.training import Settings, loop, train
from anygiven.training.checkpoint import OtherTrainingError
from anygiven.variables import infer_schema, read_table
from anygiven.variables.rows import Data

SMALL = Architecture("mlp", width=8, depth=1, dropout=0.0, n_components=2)


def small_world(seed: int = 0, n: int = 60):
    """Three columns as cells, and a model of them that knows nothing."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    frame = pd.DataFrame({"a": a, "b": np.where(rng.random(n) < 0.8, a, 1 - a), "c": rng.normal(size=n)})
    table = read_table(frame)
    schema = infer_schema(table, {}, 0)
    cells, is_present = schema.encode(table)
    return build_model(schema.domains, SMALL, 0), Data(torch.as_tensor(cells), torch.as_tensor(is_present))


def weights_of(model) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def assert_same(found: dict, expected: dict, atol: float = 0.0) -> None:
    for name, weight in expected.items():
        assert torch.allclose(found[name], weight, rtol=0, atol=atol), name


def run_of(settings: Settings) -> loop._Run:
    model, data = small_world()
    return loop._Run(model, data, data, ARDM(Joint()), settings, None, "", None, 1.0)


def test_the_best_weights_are_kept_and_not_the_last(monkeypatch):
    """The model ends with the averaged weights of its best validation, though it went on for many steps."""
    figures, seen = iter([3.0, 1.0, 2.0, 2.5, 2.2]), []

    def judged(self):
        seen.append((self.step, {name: p.clone() for name, p in self.average.items()}))
        return next(figures)

    monkeypatch.setattr(loop._Run, "_validation_nats", judged)
    model, data = small_world()
    outcome = train(model, data, data, ARDM(Joint()), Settings(max_steps=8, batch_size=16, evaluations=4, patience=9))
    assert [step for step, _ in seen] == [0, 2, 4, 6, 8]
    assert (outcome.best_step, outcome.best_nats, outcome.steps) == (2, 1.0, 8)
    assert_same(weights_of(model), seen[1][1])
    assert any(not torch.equal(seen[1][1][name], last) for name, last in seen[-1][1].items())


@pytest.mark.parametrize(("patience_steps", "last"), [(0, 4), (3, 4), (4, 5), (9, 10)])
def test_stopping_waits_for_the_patience(monkeypatch, patience_steps, last):
    """So many validations without a better one end the run, and so many steps, and not one fewer."""
    figures = iter([3.0, 1.0, *[2.0] * 30])
    monkeypatch.setattr(loop._Run, "_validation_nats", lambda self: next(figures))
    model, data = small_world()
    settings = Settings(max_steps=20, batch_size=8, evaluations=20, patience=3, patience_steps=patience_steps)
    outcome = train(model, data, data, ARDM(Joint()), settings)
    assert outcome.steps == last
    assert outcome.best_step == 1


@pytest.mark.parametrize(("n", "least", "most", "asked"), [(60, 10, 100, 60), (60, 100, 100, 120), (60, 5, 20, 20)])
def test_validation_asks_every_row_or_some_evenly(n, least, most, asked):
    _, data = small_world(n=n)
    settings = Settings(validation_rows=least, most_validation_rows=most)
    ((x, _, _),) = loop._validation_questions(data, ARDM(Joint()), settings, torch.device("cpu"))
    assert len(x) == asked
    step = max(1, n // most)
    assert torch.equal(x[: min(n, most)], data.x[::step])


@pytest.mark.parametrize("ema", [0.995, 0.3])
def test_the_running_average_is_its_formula(ema):
    """average ← keep · average + (1 − keep) · weights, where keep is (1 + step) / (10 + step), at most ema."""
    run = run_of(Settings(max_steps=6, batch_size=16, ema=ema, learning_rate=0.05))
    expected = weights_of(run.model)
    for step in range(1, 7):
        run._train_step()
        keep = min(ema, (1 + step) / (10 + step))
        expected = {name: keep * expected[name] + (1 - keep) * p for name, p in weights_of(run.model).items()}
    assert_same(run.average, expected, atol=1e-6)
    assert any(not torch.allclose(run.average[name], p, atol=1e-4) for name, p in run.model.named_parameters())


def rates(steps: list[int], **settings) -> list[float]:
    run = run_of(Settings(max_steps=100, **settings))
    found = []
    for run.step in steps:
        found.append(run._rate())
    return found


def test_the_rate_warms_up_and_falls_in_a_half_cosine():
    """(step + 1) / warm-up, then 1 at its end, a half in the middle and nearly nothing at the last step."""
    assert rates([0, 4, 9, 10, 55, 99], warmup=0.1) == pytest.approx(
        [0.1, 0.5, 1.0, 1.0, 0.5, 0.5 * (1 + math.cos(math.pi * 89 / 90))]
    )
    assert rates([100], warmup=0.1) == pytest.approx([0.0])
    assert rates([0, 10, 19, 20, 60], warmup_steps=20) == pytest.approx([0.05, 0.55, 1.0, 1.0, 0.5])


def test_a_constant_rate_stays_after_the_warm_up():
    assert rates([0, 4, 10, 55, 99], warmup=0.1, schedule="constant") == pytest.approx([0.1, 0.5, 1.0, 1.0, 1.0])


def test_the_optimisers_have_the_rate_of_the_schedule():
    run = run_of(Settings(max_steps=10, warmup_steps=4, learning_rate=0.02, batch_size=8))
    for _ in range(2):
        run._train_step()
    assert {group["lr"] for optimizer in run.optimizers for group in optimizer.param_groups} == {0.02 * 2 / 4}


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    """What another training has learnt is neither taken up nor written over."""
    settings = Settings(max_steps=3, batch_size=16)
    model, data = small_world()
    train(model, data, data, ARDM(Joint()), settings, None, tmp_path / "c", "these rows", keep_finished=True)
    before = (tmp_path / "c" / "state.safetensors").read_bytes()
    model, data = small_world(seed=1)
    with pytest.raises(OtherTrainingError, match="3 steps of another training"):
        train(model, data, data, ARDM(Joint()), settings, None, tmp_path / "c", "other rows", keep_finished=True)
    assert (tmp_path / "c" / "state.safetensors").read_bytes() == before


def test_many_rows_are_scored_as_they_are_in_parts():
    """More rows than are scored at a time, several orders, and evidence that differs from row to row."""
    model, data = small_world(n=likelihood.MAX_ROWS + 60)
    is_query = torch.rand(data.is_present.shape, generator=torch.Generator().manual_seed(0)) < 0.6
    orders, shares = order_ensemble(3, 3), []
    whole = log_prob(model.eval(), data.x, Question(is_query, ~is_query), orders, report=shares.append)
    parts = [
        log_prob(model, data.x[rows], Question(is_query[rows], ~is_query[rows]), orders)
        for rows in torch.arange(len(data)).split(1000)
    ]
    assert torch.allclose(whole, torch.cat(parts), atol=1e-5)
    assert shares == [0.5, 1.0]


def test_an_ensemble_of_orders_is_of_different_orders():
    """The canonical order first, then permutations that differ, the same for the same seed."""
    canonical, *others = order_ensemble(6, 5)
    assert canonical.order is None
    assert len({order.order for order in others}) == len(others) == 4
    assert all(sorted(order.order) == list(range(6)) for order in others)
    assert order_ensemble(6, 5) == [canonical, *others]
    assert order_ensemble(6, 5, seed=1) != [canonical, *others]
    assert len({order.order for order in random_orders(6, 20, 0)}) == 20


def test_every_place_of_a_random_order_is_uniform():
    """No variable is asked first more often than another."""
    first = [order.order[0] for order in random_orders(4, 4000, 0)]
    assert np.abs(np.bincount(first, minlength=4) / 4000 - 0.25).max() < 0.03


def test_an_interval_leaves_out_half_of_the_rest_at_each_end():
    """interval(0.9) goes from the 5th percentile to the 95th, of one row and of many."""
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=300)})
    density = ag.TabularDensity(max_steps=3, verbose=False).fit(frame)
    answer = density.conditional("x", {})
    assert isinstance(answer, Answer)
    for level, low, high in ((0.9, 0.05, 0.95), (0.5, 0.25, 0.75), (0.0, 0.5, 0.5)):
        assert answer.interval(level) == pytest.approx((answer.quantile(low), answer.quantile(high)))
    assert answer.interval() == answer.interval(0.9)
    assert [answer.cdf(end) for end in answer.interval(0.9)] == pytest.approx([0.05, 0.95], abs=1e-3)


@pytest.fixture(scope="module")
def pair() -> tuple[ag.TabularDensity, pd.DataFrame]:
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y", "z"], 200)
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=200) + (a == "x"), "c": rng.integers(0, 2, 200)})
    return ag.TabularDensity(members=2, max_steps=30, width=16, depth=1, verbose=False).fit(frame), frame


def test_two_members_answer_with_their_equal_mixture(pair):
    """p(x_i | evidence) is the mean of the members' probabilities, for every cell and any evidence."""
    density, frame = pair
    cells, is_present = density.schema_.encode(read_table(frame))
    x = torch.as_tensor(cells)
    known = torch.rand(is_present.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    with torch.no_grad():
        together = density.model_.look(x, known).log_prob(x).exp()
        first, second = (member.look(x, known).log_prob(x).exp() for member in density.model_.members)
    assert torch.allclose(together, (first + second) / 2, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(first, second, rtol=1e-2)


def test_two_members_are_loaded_as_they_were_saved(pair, tmp_path):
    density, frame = pair
    density.save(tmp_path / "m.model")
    again = ag.load(tmp_path / "m.model")
    assert len(again.model_.members) == 2
    assert again.log_prob(frame).tolist() == density.log_prob(frame).tolist()
    for given in ({}, {"a": "x"}):
        ours, theirs = (one.conditional("b", given).interval() for one in (again, density))
        assert ours == pytest.approx(theirs, rel=1e-9)
        assert again.conditional("c", given).probabilities == density.conditional("c", given).probabilities
