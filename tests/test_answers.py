"""Answers for one row, for many, for several columns at once, and for scikit-learn's verbs."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import anygiven as ag
from anygiven.errors import QuestionError
from anygiven.inference import fill
from anygiven.variables import read_table


@pytest.fixture(scope="module")
def rows(table):
    return table.head(40).set_index(pd.Index([f"r{i}" for i in range(40)]))


NUMBERS = ("weight", "visits", "spent", "born")


@pytest.mark.parametrize("name", NUMBERS)
def test_many_rows_are_answered_as_each_would_be(density, rows, name):
    many = density.conditional(name, rows)
    assert len(many) == 40
    others = rows.drop(columns=[name])
    for i in (0, 7):
        one = density.conditional(name, others.iloc[i])
        for summary in ("mean", "std", "median", "mode"):
            together, alone = getattr(many, summary), getattr(one, summary)
            assert together.index.equals(rows.index)
            if name == "born":  # of thirty years
                assert abs(together.iloc[i] - alone) < pd.Timedelta("1h")
            else:
                assert together.iloc[i] == pytest.approx(alone, rel=1e-4, abs=1e-4)
        together, alone = tuple(many.interval(0.9).iloc[i]), one.interval(0.9)
        assert together == (alone if name == "born" else pytest.approx(alone, rel=1e-4, abs=1e-4))
        assert many.entropy().iloc[i] == pytest.approx(one.entropy(), abs=1e-3)
        assert name == "born" or many[i].median == pytest.approx(many.median.iloc[i])


def test_shapes_of_bulk_answers(density, rows):
    weight = density.conditional("weight", rows)
    levels = weight.quantile([0.05, 0.5, 0.95])
    assert list(levels.columns) == [0.05, 0.5, 0.95]
    assert (np.diff(levels.to_numpy(), axis=1) >= 0).all()
    assert weight.cdf(70).shape == weight.log_prob(weight.median).shape == weight.pdf(70).shape == (40,)
    assert np.allclose(weight.cdf(weight.median), 0.5, atol=1e-3)
    assert weight.sample(3).shape == (40, 3)
    as_arrays = density.conditional("weight", pl.from_pandas(rows.reset_index(drop=True)))
    assert isinstance(as_arrays.mean, np.ndarray)
    assert as_arrays.interval().shape == (40, 2)
    grade = density.conditional("grade", rows)
    assert list(grade.probabilities.columns) == ["low", "mid", "high"]
    assert np.allclose(grade.probabilities.sum(axis=1), 1)
    assert (grade.mode == grade.probabilities.idxmax(axis=1)).all()
    with pytest.raises(QuestionError, match="3 values were given for 40 rows"):
        weight.cdf([1, 2, 3])
    with pytest.raises(QuestionError, match="plot is of one row"):
        weight.plot()
    assert "40 rows" in repr(weight)


def test_lists_of_values_of_one_row(density):
    weight = density.conditional("weight", {"grade": "mid"})
    assert weight.cdf([60, 70, 80]).shape == (3,)
    assert weight.cdf([60, 70, 80])[1] == weight.cdf(70)
    assert weight.pdf(70) == pytest.approx(np.exp(weight.log_prob(70)))
    assert weight.median == weight.quantile(0.5)
    html = weight._repr_html_()
    assert html.startswith("<img")
    assert "data:image/png;base64," in html


def test_median_imputation_fills_counts_with_their_medians(density, table):
    """Neighbouring atoms had one score, and the inverse returned the first: nearly all counts became 0."""
    gaps = table.assign(visits=pd.array([pd.NA] * len(table), dtype="Int64"))
    filled = density.impute(gaps, statistic="median")["visits"].to_numpy(dtype=float)
    assert filled.mean() == pytest.approx(np.nanmedian(table["visits"].astype(float)), abs=1.2)
    assert np.array_equal(filled, density.conditional("visits", gaps).median.to_numpy(dtype=float))


def test_filling_reports_how_far_it_is(density, table, monkeypatch):
    monkeypatch.setattr("anygiven.inference.summaries.CHUNK", 100)
    x, is_present = (torch.from_numpy(part) for part in density.schema_.encode(read_table(table)))
    shares = []
    fill(density.model_, density.domains, x, is_present, report=shares.append)
    assert shares == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_predictions(density, table):
    for output in (None, "mean", "median", "mode", "label"):
        assert density.predict(table, "weight", output=output).shape == (300,)
    assert set(density.predict(table, "city", output="label")) <= set(density.classes_["city"])
    p = density.predict_proba(table, "grade")
    assert p.shape == (300, 3)
    assert np.allclose(p.sum(1), 1)
    assert (density.classes_["grade"][p.argmax(1)] == density.predict(table, "grade")).all()
    quantiles = density.predict_quantiles(table, "weight", levels=[0.1, 0.9])
    assert quantiles.shape == (300, 2)
    assert (quantiles[:, 0] < quantiles[:, 1]).all()
    with pytest.raises(QuestionError, match="use predict_quantiles"):
        density.predict_proba(table, "weight")
    with pytest.raises(QuestionError, match="no output 'best'"):
        density.predict(table, "weight", output="best")


# ------------------------------------------------------------------ several columns


def test_a_joint_of_two_columns_is_a_chain_of_conditionals(density):
    joint = density.conditional(["grade", "smoker"], {"weight": 80.0})
    p = [[np.exp(joint.log_prob((grade, smoker))) for smoker in (True, False)] for grade in ("low", "mid", "high")]
    assert np.sum(p) == pytest.approx(1, abs=1e-4)
    drawn = joint.sample(4000, random_state=0)
    assert list(drawn.columns) == ["grade", "smoker"]
    share = ((drawn["grade"] == "high") & drawn["smoker"]).mean()
    assert share == pytest.approx(p[2][0], abs=0.05)
    table_of = joint.log_prob(drawn.head(5))
    assert table_of.shape == (5,)
    assert joint.log_prob({"grade": "high", "smoker": True}) == pytest.approx(np.log(p[2][0]))


def test_mutual_information_of_what_depends_and_what_does_not():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 1500)
    frame = pd.DataFrame(
        {"a": a, "copy": np.where(rng.random(1500) < 0.95, a, 1 - a), "noise": rng.integers(0, 2, 1500)}
    )
    density = ag.TabularDensity(max_steps=250, verbose=False).fit(frame)
    told, error = density.conditional(["a", "copy"]).mutual_information(random_state=0)
    p = 0.95
    assert told == pytest.approx(np.log(2) + p * np.log(p) + (1 - p) * np.log(1 - p), abs=4 * error + 0.05)
    assert abs(density.conditional(["a", "noise"]).mutual_information(random_state=0).value) < 0.03


@pytest.mark.parametrize("names", [("weight", "visits"), ("grade", "weight"), ("grade", "city")])
def test_joints_can_be_drawn(density, names):
    ax = density.conditional(list(names), {"smoker": True}).plot(n=200)
    assert ax.get_title() == f"{names[0]}, {names[1]} | smoker=True"


def test_joints_of_many_rows(density, rows):
    joint = density.conditional(["weight", "grade"], rows)
    assert joint.log_prob(rows[["weight", "grade"]].fillna(70.0)).shape == (40,)
    drawn = joint.sample(3, random_state=0)
    assert list(drawn.index) == [label for label in rows.index for _ in range(3)]
    assert joint.log_prob({"weight": 70.0, "grade": "mid"}).shape == (40,)
    assert joint.mutual_information(n=50).value.shape == (40,)
    for wrong, message in (({"weight": 70.0}, "values of all of them"), ((70.0, None), "gap")):
        with pytest.raises(QuestionError, match=message):
            joint.log_prob(wrong)


# ------------------------------------------------------------------ found by a stranger


def test_values_are_matched_to_rows_by_their_labels(density, rows):
    weight = density.conditional("weight", rows)
    values = weight.median + 1
    shuffled = values.sample(frac=1, random_state=0)
    assert np.allclose(weight.cdf(shuffled), weight.cdf(values))
    with pytest.raises(QuestionError, match="other row labels"):
        weight.cdf(values.reset_index(drop=True))
    with pytest.raises(QuestionError, match="different row labels"):
        density.log_prob(query=rows[["weight"]], given=rows[["visits"]].sample(frac=1, random_state=0))


def test_empty_tables_have_empty_answers(density, table):
    nothing = table.head(0)
    assert len(density.conditional("weight", nothing).mean) == 0
    assert density.predict(nothing, "grade").shape == (0,)
    assert density.predict_proba(nothing, "grade").shape == (0, 3)
    assert len(density.sample(2, given=nothing)) == 0


def test_numbers_in_two_values_answer_as_other_numbers_do():
    frame = pd.DataFrame({"b": np.tile([0, 1, 1], 40), "x": np.arange(120) % 7})
    b = ag.TabularDensity(max_steps=5, verbose=False).fit(frame).conditional("b")
    assert b.cdf([-1, 0, 0.5, 1, 2]) == pytest.approx([0, b.pdf(0), b.pdf(0), 1, 1])
    assert np.isneginf(b.log_prob(2))


def test_a_row_of_a_table_may_hold_the_asked_column(density, table):
    row = table.iloc[0]
    assert density.conditional("weight", row).mean == pytest.approx(
        density.conditional("weight", table.iloc[[0]]).mean, abs=1e-3
    )
    assert density.predict_quantiles(table.head(3), "weight", 0.5).shape == (3, 1)
