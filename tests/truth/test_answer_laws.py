"""What an Answer adds to the law of a column: the user's units, one row or many, the right summary for each name."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from anygiven.errors import QuestionError
from anygiven.estimators.answers import LEAST_SHOWN, Answer
from anygiven.heads import Categorical, joint_head_for
from anygiven.inference.distributions import distribution_of
from anygiven.variables import infer_schema, read_table

from .test_laws_of_answers import COLUMNS, answer_of

START = pd.Timestamp("2020-01-01")


def answers_about(values, rows: int | None = None, overrides=None, index=None, seed: int = 0, wildness=0.4) -> Answer:
    """The conditional of a column of these values under a random head: of one row, or of so many."""
    variable = infer_schema(read_table(pd.DataFrame({"x": values})), overrides or {}, seed).variables[0]
    torch.manual_seed(seed)
    head = joint_head_for(6, [variable.domain], 5)
    for parameter in head.parameters():
        parameter.data.add_(wildness * torch.randn_like(parameter))
    with torch.no_grad():
        conditional = head(torch.randn(rows or 1, 6)).of(0)
    distribution = distribution_of(variable.domain, conditional)
    return Answer(variable, distribution, {} if rows is None else None, index)


def made(kind: str, rows: int | None = None, index=None) -> Answer:
    return answers_about(COLUMNS[kind](np.random.default_rng(0), 300), rows, index=index)


ORDERED = [kind for kind in COLUMNS if answer_of(kind, 3, 300, 0.3)._has_order()]


@pytest.mark.parametrize("kind", ORDERED)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_an_interval_leaves_out_half_of_the_rest_on_each_side(kind, level):
    answer = made(kind)
    low, high = answer.interval(level)
    ends = answer.quantile([(1 - level) / 2, (1 + level) / 2])
    assert [low, high] == [answer._one(end) for end in ends]
    assert answer.cdf(low) >= (1 - level) / 2 - 1e-6
    assert answer.cdf(high) >= (1 + level) / 2 - 1e-6
    if kind in ("points", "positive", "heavy tails"):  # nothing but a density: exactly
        assert answer.cdf(high) - answer.cdf(low) == pytest.approx(level, abs=1e-4)
        assert answer.cdf(low) == pytest.approx((1 - level) / 2, abs=1e-4)
    assert answer.median == answer.quantile(0.5)


def test_an_interval_of_all_is_from_end_to_end_and_levels_are_probabilities():
    answer = made("ages")
    assert answer.interval(1.0) == (answer.quantile(0.0), answer.quantile(1.0))
    assert answer.interval(0.0) == (answer.median, answer.median)
    for wrong in (-0.1, 1.1):
        with pytest.raises(QuestionError, match="not a probability"):
            answer.interval(wrong)
        with pytest.raises(QuestionError, match="not a probability"):
            answer.quantile([0.5, wrong])


@pytest.mark.parametrize("kind", COLUMNS)
def test_pdf_is_the_exponential_of_log_prob(kind):
    answer = made(kind)
    values = answer.sample(5, random_state=0)
    assert np.asarray(answer.pdf(list(values))) == pytest.approx(np.exp(answer.log_prob(list(values))))
    assert answer.pdf(values[0]) == pytest.approx(np.exp(answer.log_prob(values[0])))


@pytest.mark.parametrize("kind", ["binary", "codes", "letters", "ordinal", "few counts", "ages"])
def test_probabilities_are_those_of_the_values(kind):
    answer = made(kind)
    shown = answer.probabilities
    for value, p in list(shown.items())[:20]:
        assert np.exp(answer.log_prob(value)) == pytest.approx(p, abs=1e-6)
    assert sum(shown.values()) == pytest.approx(1, abs=1e-3)
    assert answer.top(2) == sorted(shown.items(), key=lambda pair: -pair[1])[:2]
    assert answer.top(0) == []
    assert answer.top(1)[0][0] == answer._keys(np.array([answer.distribution.mode[0]]))[0]


def test_categories_are_listed_likeliest_first_and_ordered_ones_in_their_order():
    letters = list(made("letters").probabilities.values())
    assert letters == sorted(letters, reverse=True)
    assert list(made("ordinal").probabilities) == ["s", "m", "l", "xl"]


def test_a_grid_lists_what_has_a_mass_and_every_atom():
    answer = answers_about(np.where(np.random.default_rng(0).random(400) < 0.5, 0, np.arange(400)), wildness=1.0)
    values, masses = answer.distribution.masses()
    shown = answer.probabilities
    is_shown = (masses[0] > LEAST_SHOWN) | np.isin(values, answer.variable.domain.atoms)
    assert list(shown) == values[is_shown].astype(int).tolist()
    assert is_shown.sum() < len(values)


def test_whole_numbers_are_listed_as_such_though_gaps_made_them_floats():
    answer = answers_about(pd.Series([1.0, 2.0, np.nan, 3.0] * 50))
    assert all(type(value) is int for value in answer.probabilities)
    tenths = answers_about(pd.Series([0.1, 0.2, 0.3, 0.5] * 50))
    assert all(type(value) is float for value in tenths.probabilities)


# ------------------------------------------------------------------ units


def test_times_answer_in_times():
    days = made("days")
    assert pd.Timestamp(days.mean).timestamp() == pytest.approx(days.distribution.mean[0], abs=1e-3)
    assert isinstance(days.std, pd.Timedelta)
    assert days.std.total_seconds() == pytest.approx(days.distribution.std[0], abs=1e-3)
    instants, durations = made("instants"), made("durations")
    assert instants.std.total_seconds() == pytest.approx(instants.distribution.std[0], abs=1e-3)
    assert isinstance(durations.mean, pd.Timedelta)
    assert durations.mean.total_seconds() == pytest.approx(durations.distribution.mean[0], abs=1e-3)
    assert isinstance(instants.mode, pd.Timestamp)
    assert instants.mode.tzinfo is None


@pytest.mark.parametrize("index", [None, pd.Index([7, 8, 9])])
def test_time_zones_come_back_in_one_row_and_in_many(index):
    stamps = START.tz_localize("Europe/Paris") + pd.to_timedelta(np.random.default_rng(0).normal(size=300) * 1e6, "s")
    one, many = answers_about(stamps), answers_about(stamps, 3, index=index)
    assert str(one.mean.tz) == "Europe/Paris"
    assert all(str(stamp.tz) == "Europe/Paris" for stamp in many.mean)
    assert all(str(stamp.tz) == "Europe/Paris" for stamp in np.asarray(many.interval(0.5)).ravel())
    naive = answers_about(stamps.tz_localize(None), 3, index=index)
    assert np.asarray(naive.mean).dtype.kind == "M"
    assert [str(stamp) for stamp in np.asarray(naive.quantile(0.5))] == [
        str(stamp) for stamp in np.asarray(naive.median)
    ]
    # A spread of time has no zone.
    assert np.asarray(many.std).dtype.kind == "m"
    noon = pd.Timestamp("2020-01-05 12:00", tz="Europe/Paris")
    assert one.cdf(noon) == pytest.approx(one.cdf(noon.tz_convert("UTC")))


# ------------------------------------------------------------------ one row or many

SUMMARIES = ["mean", "std", "median", "mode"]


@pytest.mark.parametrize("kind", ["points", "ages", "zero-inflated", "days", "letters", "binary"])
def test_rows_of_many_answer_as_each_alone(kind):
    many = made(kind, rows=4)
    assert len(many) == 4
    for row in (0, 3, -1):
        alone = many[row]
        assert alone.is_single
        assert not many.is_single
        for name in SUMMARIES if many._has_numbers() else ["mode"]:
            together = np.asarray(getattr(many, name), dtype=object)[row]
            assert many._one(together) == alone._one(np.asarray(getattr(alone, name), dtype=object)[()]) or (
                pytest.approx(getattr(alone, name)) == together
            )
        assert many.entropy()[row] == pytest.approx(alone.entropy())
    for wrong in (4, -5):
        with pytest.raises(IndexError, match="counted from 0"):
            many[wrong]


def test_answers_of_rows_carry_the_rows_labels():
    index = pd.Index(["u", "v", "w"])
    many = made("points", rows=3, index=index)
    assert many.mean.index.equals(index)
    assert many.mean.name == "x"
    frame = many.interval(0.8)
    assert list(frame.columns) == ["low", "high"]
    assert frame.index.equals(index)
    assert list(many.quantile([0.1, 0.9]).columns) == [0.1, 0.9]
    assert frame["low"].to_numpy() == pytest.approx(many.quantile(0.1).to_numpy())
    assert frame["high"].to_numpy() == pytest.approx(many.quantile(0.9).to_numpy())
    draws = many.sample(4, random_state=0)
    assert list(draws.columns) == [0, 1, 2, 3]
    masses = made("letters", rows=3, index=index).probabilities
    assert masses.sum(axis=1).to_numpy() == pytest.approx(np.ones(3))
    assert list(masses.columns) == ["a", "b", "c"]


def test_a_value_for_all_rows_or_one_for_each():
    many = made("points", rows=3)
    assert many.cdf(5.0) == pytest.approx([many[k].cdf(5.0) for k in range(3)])
    assert many.cdf([4.0, 5.0, 6.0]) == pytest.approx([many[k].cdf(value) for k, value in enumerate((4.0, 5.0, 6.0))])
    with pytest.raises(QuestionError, match="2 values were given for 3 rows"):
        many.cdf([1.0, 2.0])
    with pytest.raises(QuestionError, match="2 dimensions"):
        many.cdf([[1.0]])
    with pytest.raises(QuestionError, match="was given a gap"):
        many.log_prob(np.nan)
    one = made("points")
    assert one.cdf([4.0, 5.0]) == pytest.approx([one.cdf(4.0), one.cdf(5.0)])


def test_values_with_labels_are_matched_and_others_refused():
    index = pd.Index(["u", "v", "w"])
    many = made("points", rows=3, index=index)
    values = pd.Series([4.0, 5.0, 6.0], index=index)
    assert many.cdf(values[::-1]).to_numpy() == pytest.approx(many.cdf(values).to_numpy())
    assert many.cdf(values.reset_index(drop=True).to_numpy()).to_numpy() == pytest.approx(many.cdf(values).to_numpy())
    for other in (pd.Series([4.0, 5.0, 6.0]), pd.Series([4.0, 5.0, 6.0], index=["u", "u", "w"]), values[:2]):
        with pytest.raises(QuestionError):
            many.cdf(other)


def test_what_has_no_numbers_or_order_says_so():
    letters, sizes = made("letters"), made("ordinal")
    for name in ("mean", "std"):
        for answer in (letters, sizes):
            with pytest.raises(QuestionError, match="not numbers"):
                getattr(answer, name)
    with pytest.raises(QuestionError, match="quantile"):
        letters.quantile(0.5)
    with pytest.raises(QuestionError, match="cdf"):
        letters.cdf("a")
    assert sizes.cdf("xl") == pytest.approx(1)
    assert 0 < sizes.cdf("s") < sizes.cdf("m") < 1
    with pytest.raises(QuestionError, match="of one row"):
        made("letters", rows=2).top()


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_draws_are_counted_in_whole_numbers(n):
    with pytest.raises(QuestionError, match="whole number of at least one"):
        made("points").sample(n)


def test_draws_are_new_without_a_seed_and_the_same_with_one():
    answer = made("points")
    assert (answer.sample(5, random_state=1) == answer.sample(5, random_state=1)).all()
    assert (answer.sample(5) != answer.sample(5)).any()
    assert answer.sample().shape == (1,)
    assert made("points", rows=3).sample(2, random_state=0).shape == (3, 2)


@pytest.mark.parametrize(
    ("p", "winner"),
    [([0.2, 0.1, 0.7], None), ([0.45, 0.05, 0.5], None), ([0.6, 0.2, 0.2], 0.0), ([0.1, 0.5, 0.4], 1.0)],
)
def test_an_atom_is_the_mode_where_it_outweighs_all_that_is_smooth(p, winner):
    """Of atoms at 0 and 1 and a density between them."""
    answer = answers_about(np.clip(np.random.default_rng(0).normal(0.5, 0.6, 400), 0, 1), wildness=0.0)
    symbols = Categorical(torch.tensor([p]).double().log())
    conditional = replace(answer.distribution.conditional, symbols=symbols)
    mode = float(distribution_of(answer.variable.domain, conditional).mode[0])
    assert mode == winner if winner is not None else 0 < mode < 1
