"""TabularDensity as a user meets it."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import anygiven as ag
from anygiven.errors import AnyGivenWarning, QuestionError, SchemaError, TableError
from anygiven.estimators.fitting import hold_out
from conftest import mixed_table


def test_log_prob_is_one_number_a_row(density, table):
    log_p = density.log_prob(table)
    assert log_p.shape == (len(table),)
    assert np.isfinite(log_p).all()
    assert density.score(table) == pytest.approx(log_p.mean())


def test_fitting_beats_the_independent_marginals(density):
    assert density.report_["held_out_log_prob"] > density.report_["held_out_log_prob_of_marginals"] + 0.3


def test_an_answer_does_not_depend_on_its_batch(density, table):
    whole = density.log_prob(table)
    alone = np.concatenate([density.log_prob(table.iloc[[i]]) for i in range(5)])
    assert np.allclose(whole[:5], alone, atol=1e-4)


def test_conditional_log_prob_by_both_methods(density, table):
    full = table.dropna()
    direct = density.log_prob(query=full[["weight"]], given=full[["grade", "visits"]])
    ratio = density.log_prob(query=full[["weight"]], given=full[["grade", "visits"]], method="ratio")
    assert abs(direct.mean() - ratio.mean()) < 0.5
    assert direct.mean() > density.log_prob(query=full[["weight"]]).mean()  # the grade tells about the weight


def test_one_row_of_evidence_serves_all_queries(density):
    query = pd.DataFrame({"weight": [60.0, 90.0]})
    high = density.log_prob(query=query, given={"grade": "high"})
    low = density.log_prob(query=query, given={"grade": "low"})
    assert high[1] - high[0] > low[1] - low[0]


def test_the_order_ensemble_is_the_log_mean_exp(density, table):
    from anygiven.estimators.table_questions import encoded
    from anygiven.inference import order_ensemble
    from anygiven.lattice import Joint
    from anygiven.variables import read_table

    x, is_present = encoded(density.schema_, read_table(table))
    question = Joint().draw(is_present, torch.Generator())
    protocols = order_ensemble(x.shape[1], 3, 0)
    with torch.no_grad():
        each = torch.stack([density.model_.log_prob(x, p.path(question)).sum(1).double() for p in protocols])
    expected = each.logsumexp(0) - np.log(3)
    assert np.allclose(density.log_prob(table, orders=3), expected.numpy(), atol=1e-5)


def test_numeric_conditional(density):
    heavy = density.conditional("weight", {"grade": "high"})
    light = density.conditional("weight", {"grade": "low"})
    assert heavy.mean > light.mean + 5
    low, high = heavy.interval(0.9)
    assert low < heavy.quantile(0.5) < high
    assert heavy.cdf(heavy.quantile(0.3)) == pytest.approx(0.3, abs=0.01)
    draws = heavy.sample(50_000, random_state=0)
    assert np.mean(draws) == pytest.approx(heavy.mean, abs=4 * heavy.std / 50_000**0.5 + 0.05)
    for level in (0.1, 0.25, 0.75, 0.9):
        assert np.mean(np.array(draws) <= heavy.quantile(level)) == pytest.approx(level, abs=0.04)
    assert np.std(draws) == pytest.approx(heavy.std, rel=0.1)
    assert heavy.entropy() == pytest.approx(-np.mean([heavy.log_prob(v) for v in draws[:500]]), abs=0.2)


def test_conditional_with_an_atom(density):
    spent = density.conditional("spent", {"grade": "mid"})
    assert spent.probabilities[0.0] == pytest.approx(0.6, abs=0.15)
    assert spent.cdf(0) == pytest.approx(spent.probabilities[0.0], abs=0.02)
    assert spent.mode == 0
    assert np.exp(spent.log_prob(0.0)) == pytest.approx(spent.probabilities[0.0])
    assert np.mean(np.array(spent.sample(3000, random_state=1)) == 0) == pytest.approx(
        spent.probabilities[0.0], abs=0.04
    )


def test_count_conditional_has_masses_that_sum_to_one(density):
    visits = density.conditional("visits", {"grade": "high"})
    assert sum(visits.probabilities.values()) == pytest.approx(1, abs=2e-3)
    assert all(isinstance(value, int) for value in visits.probabilities)
    assert visits.mean == pytest.approx(sum(v * p for v, p in visits.probabilities.items()), rel=0.1, abs=0.1)
    for value in list(visits.probabilities)[:6]:
        assert np.exp(visits.log_prob(value)) == pytest.approx(visits.probabilities[value], rel=0.02, abs=1e-4)


def test_the_mode_of_a_count_is_its_likeliest_value(density):
    for grade in ("low", "mid", "high"):
        visits = density.conditional("visits", {"grade": grade})
        assert visits.mode == max(visits.probabilities, key=lambda v: visits.probabilities[v])


def test_categorical_conditional(density):
    grade = density.conditional("grade", {"weight": 90.0})
    assert list(grade.probabilities) == ["low", "mid", "high"]
    assert sum(grade.probabilities.values()) == pytest.approx(1)
    assert grade.mode == "high"
    assert grade.quantile(0.5) == "high"
    city = density.conditional("city")
    with pytest.raises(QuestionError, match="no mean"):
        _ = city.mean
    assert set(city.sample(50, random_state=0)) <= {"Oslo", "New York", "Lima"}
    smoker = density.conditional("smoker")
    assert smoker.mean == pytest.approx(smoker.probabilities[True])


def test_date_conditional(density):
    born = density.conditional("born", {"weight": 70.0})
    assert pd.Timestamp("1980-01-01") <= born.mean <= pd.Timestamp("2005-01-01")
    assert isinstance(born.quantile(0.1), pd.Timestamp)
    assert born.cdf("1990-01-01") < born.cdf("2000-01-01")
    assert isinstance(born.std, pd.Timedelta)


def test_plots_can_be_drawn(density):
    for name in density.schema_.names:
        ax = density.conditional(name, {}).plot()
        assert ax.get_title() == name


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda d: d.conditional("wieght"), SchemaError, "did you mean 'weight'"),
        (lambda d: d.conditional("city", {"city": "Oslo"}), QuestionError, "both asked and given"),
        (lambda d: d.conditional("weight", {"city": "Rome"}), SchemaError, "'city' was never 'Rome'"),
        (lambda d: d.conditional("city", {"weight": "heavy"}), SchemaError, "not a number"),
        (lambda d: d.conditional("city", {"weight": float("inf")}), TableError, "infinite"),
        (lambda d: d.conditional(["city", "city"]), QuestionError, "different columns"),
        (lambda d: d.log_prob(query={"city": ["Oslo"]}, given={"city": ["Oslo"]}), QuestionError, "both asked"),
        (lambda d: d.log_prob(), QuestionError, "Nothing is asked"),
        (lambda d: d.log_prob(pd.DataFrame({"colour": [1]})), SchemaError, "no column 'colour'"),
        (lambda d: d.log_prob(pd.DataFrame({"city": ["Rome"]})), SchemaError, "never 'Rome'"),
        (lambda d: d.log_prob(pd.DataFrame({"city": ["Oslo"]}), method="magic"), QuestionError, "no method"),
        (lambda d: d.sample(0), QuestionError, "at least one"),
        (lambda d: d.sample(1, temperature=0), QuestionError, "temperature"),
        (lambda d: d.impute(pd.DataFrame({"city": [None]})), TableError, "no column 'weight'"),
        (lambda d: d.impute(mixed_table(5), statistic="best"), QuestionError, "no statistic"),
        (lambda d: d.predict(mixed_table(5), target="size"), SchemaError, "no column 'size'"),
        (lambda d: d.conditional("weight").quantile(2), QuestionError, "not a probability"),
    ],
)
def test_mistakes_get_one_sentence(density, call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(density)
    assert "\n" not in str(caught.value)


def test_samples_look_like_the_table(density, table):
    drawn = density.sample(500, random_state=0)
    assert list(drawn.columns) == list(table.columns)
    assert (drawn.dtypes == table.dtypes).all()
    assert not drawn.isna().any().any()
    assert set(drawn["city"]) <= {"Oslo", "New York", "Lima"}
    assert (drawn["visits"] >= 0).mean() > 0.99
    assert (drawn["spent"] == 0).mean() == pytest.approx(0.6, abs=0.15)
    correlation = drawn[["weight", "visits"]].corr().iloc[0, 1]
    assert correlation > 0.15


def test_samples_keep_the_evidence(density):
    drawn = density.sample(50, given={"city": "New York", "weight": 81.5}, steps=2, random_state=1)
    assert (drawn["city"] == "New York").all()
    assert np.allclose(drawn["weight"], 81.5, atol=1e-3)


def test_sampling_is_reproducible_and_cold_draws_are_likelier(density):
    pd.testing.assert_frame_equal(density.sample(20, random_state=3), density.sample(20, random_state=3))
    cold, hot = (density.sample(300, temperature=t, random_state=0) for t in (0.3, 1.0))
    assert cold["weight"].std() < hot["weight"].std()


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("how", [{}, {"statistic": "median"}, {"statistic": "mode"}, {"draws": 2}])
def test_imputing_fills_gaps_and_touches_nothing_else(density, table, backend, how):
    convert = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": lambda f: pa.Table.from_pandas(f)}[backend]
    before = convert(table)
    filled = density.impute(before, **how)
    for after in filled if "draws" in how else [filled]:
        assert type(after) is type(before)
        a, b = (t if backend == "pandas" else t.to_pandas() for t in (after, before))
        assert not a.isna().any().any()
        for name in b.columns:
            present = b[name].notna()
            left, right = a[name][present], b[name][present]
            assert a[name].dtype == b[name].dtype
            if b[name].dtype.kind == "f":
                assert left.to_numpy().tobytes() == right.to_numpy().tobytes()  # bit for bit
            else:
                assert (left == right).all()


def test_imputing_an_array(table):
    array = table[["weight", "visits", "spent"]].to_numpy(dtype=float)
    density = ag.TabularDensity(max_steps=20, verbose=False).fit(array)
    filled = density.impute(array)
    present = ~np.isnan(array)
    assert not np.isnan(filled).any()
    assert filled[present].tobytes() == array[present].tobytes()
    assert density.sample(4).shape == (4, 3)


def test_unseen_categories_are_gaps_when_imputing_and_stay_in_the_table(density, table):
    strange = table.head(10).copy()
    strange["city"] = ["Rome"] * 5 + [None] * 5
    with pytest.warns(AnyGivenWarning, match="'city'.*Rome"):
        filled = density.impute(strange)
    assert (filled["city"][:5] == "Rome").all()
    assert filled["city"][5:].notna().all()


def test_predict(density, table):
    grade = density.predict(table, target="grade")
    assert (grade == table["grade"].to_numpy()).mean() > 0.6
    weight = density.predict(table, target="weight")
    known = table["weight"].notna()
    assert np.corrcoef(weight[known], table["weight"][known])[0, 1] > 0.6
    assert density.predict(table, target="smoker").dtype == bool


def test_save_and_load_answer_alike(density, table, model_folder):
    again = ag.load(model_folder)
    assert np.array_equal(again.log_prob(table), density.log_prob(table))
    pd.testing.assert_frame_equal(again.sample(10, random_state=2), density.sample(10, random_state=2))
    assert str(again.schema_) == str(density.schema_)


def test_the_same_seed_gives_the_same_model(table):
    one, two = (ag.TabularDensity(max_steps=15, verbose=False, random_state=7).fit(table) for _ in range(2))
    assert np.array_equal(one.log_prob(table), two.log_prob(table))


def test_workloads_are_followed_and_others_warned_about(table):
    law = {"known": ["grade", "visits"], "asked": ["weight"]}
    density = ag.TabularDensity(max_steps=60, verbose=False, workload=law).fit(table)
    high, low = (density.conditional("weight", {"grade": grade, "visits": 1}) for grade in ("high", "low"))
    assert high.mean > low.mean
    with pytest.warns(AnyGivenWarning, match="city was never asked"):
        density.conditional("city")


@pytest.mark.parametrize("workload", ["joint", "marginals", "conditionals", "bernoulli", "gaps"])
@pytest.mark.parametrize("network", ["mlp", "transformer"])
@pytest.mark.filterwarnings("ignore:The model was fitted for other questions")  # of gaps a whole row is another
def test_every_workload_trains_every_network(table, workload, network):
    density = ag.TabularDensity(max_steps=8, verbose=False, workload=workload, network=network).fit(table.head(80))
    assert np.isfinite(density.score(table.head(80)))


def test_bad_parameters(table):
    with pytest.raises(QuestionError, match="not a workload"):
        ag.TabularDensity(workload="everything").fit(table)
    with pytest.raises(QuestionError, match="no network"):
        ag.TabularDensity(network="oracle").fit(table)
    with pytest.raises(NotFittedError):
        ag.TabularDensity().sample(1)


def test_scikit_learn_conventions(table):
    density = ag.TabularDensity(max_steps=5, width=16)
    assert clone(density).get_params() == density.get_params()
    assert density.set_params(width=32).width == 32
    search = GridSearchCV(ag.TabularDensity(max_steps=5, verbose=False), {"width": [16, 32]}, cv=2)
    search.fit(table.drop(columns=["grade"]))
    assert search.best_params_["width"] in (16, 32)


@pytest.mark.parametrize("n", [1, 2, 5, 19])
def test_tiny_tables(n):
    frame = mixed_table(n, seed=3)[["weight", "visits", "smoker"]].fillna(70.0)
    density = ag.TabularDensity(max_steps=5, verbose=False).fit(frame)
    assert np.isfinite(density.log_prob(frame)).all()
    assert len(density.sample(3)) == 3


def test_a_wide_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 200)), columns=[f"c{i}" for i in range(200)])
    density = ag.TabularDensity(max_steps=5, verbose=False, orders=1).fit(frame)
    assert np.isfinite(density.log_prob(frame)).all()


def test_orders_chosen_on_held_out_rows_are_kept(tmp_path):
    """They are those along which the held-out rows are likeliest, and they survive saving."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    table = pd.DataFrame({"a": a, "b": a + 0.3 * rng.normal(size=400), "c": rng.integers(3, size=400)})
    density = ag.TabularDensity(max_steps=60, tried_orders=4, orders=2, verbose=False).fit(table)
    chosen = [tuple(order) for order in density.report_["orders"]]
    assert len(chosen) == 2
    assert all(sorted(order) == [0, 1, 2] for order in chosen)
    held = hold_out(400, 0)[1].numpy()
    scores = {order: float(density.log_prob(table.iloc[held], orders=1).mean()) for order in chosen[:1]}
    for order in chosen[1:]:
        density.report_["orders"] = [order]
        scores[order] = float(density.log_prob(table.iloc[held], orders=1).mean())
    assert scores[chosen[0]] >= scores[chosen[-1]]
    density.report_["orders"] = chosen
    density.save(tmp_path / "m.model")
    loaded = ag.load(tmp_path / "m.model")
    assert np.array_equal(loaded.log_prob(table), density.log_prob(table))
    with pytest.raises(QuestionError, match="tried_orders is -1"):
        ag.TabularDensity(tried_orders=-1).fit(table)


def test_rows_to_be_judged_by_may_be_given(table):
    """Instead of a tenth of the others: the report's figure is of these."""
    quick = {"max_steps": 5, "verbose": False, "width": 8, "depth": 1}
    density = ag.TabularDensity(**quick).fit(table.head(200), valid=table.tail(100))
    alike = ag.TabularDensity(**quick).fit(table.head(200), valid=table.tail(100).sample(frac=1, random_state=0))
    other = ag.TabularDensity(**quick).fit(table.head(200), valid=table.head(100))
    held = [one.report_["held_out_log_prob"] for one in (density, alike, other)]
    assert held[0] == pytest.approx(held[1], abs=0.5)
    assert held[0] != held[2]
    assert density.report_["rows"] == 200
    with pytest.raises(ag.AnyGivenError):
        ag.TabularDensity(**quick).fit(table, valid=table[["weight"]])
