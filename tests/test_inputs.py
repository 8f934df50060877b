"""Tables as people have them: an answer, or one sentence."""

import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import anygiven as ag
from anygiven.errors import AnyGivenError, AnyGivenWarning, OutputError, QuestionError, SchemaError, TableError
from anygiven.variables import infer_schema, read_table, write_table
from anygiven.variables.files import date_formats, read_file

RNG = np.random.default_rng(0)
N = 120


def quick(table, **options):
    return ag.TabularDensity(max_steps=20, verbose=False, **options).fit(table)


@pytest.fixture(scope="module")
def fitted():
    x = RNG.normal(size=N)
    return quick(pd.DataFrame({"x": x, "n": RNG.poisson(3, N), "c": RNG.choice(["a", "b"], N)}))


# ------------------------------------------------------------------ frames


def test_integer_column_names_come_back():
    frame = pd.DataFrame(RNG.normal(size=(N, 3)))
    frame.iloc[:5, 1] = np.nan
    density = quick(frame)
    assert list(density.sample(2).columns) == [0, 1, 2]
    filled = density.impute(frame)
    assert list(filled.columns) == [0, 1, 2]
    assert not filled.isna().any().any()
    assert density.conditional(1, {0: 0.5}).mean == pytest.approx(density.conditional("1", {"0": 0.5}).mean)


def test_several_levels_and_repeated_names_are_refused():
    with pytest.raises(TableError, match="several levels"):
        read_table(pd.DataFrame(RNG.normal(size=(5, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])))
    with pytest.raises(TableError, match="'a' stands more than once"):
        read_table(pd.DataFrame(RNG.normal(size=(5, 2)), columns=["a", "a"]))
    with pytest.raises(TableError, match="'1' stands more than once"):
        read_table(pd.DataFrame(RNG.normal(size=(5, 2)), columns=[1, "1"]))


def test_rows_of_every_kind_as_what_is_given(fitted):
    row = {"n": 3, "c": "a"}
    expected = fitted.conditional("x", row).mean
    for given in (pd.Series(row), pd.DataFrame([row]), {**row, "x": None} | {"x": pd.NA}, pl.DataFrame([row])):
        assert fitted.conditional("x", given).mean == pytest.approx(expected, abs=1e-6)
    assert isinstance(fitted.conditional("x", pd.DataFrame([row])).mean, float)
    nothing = fitted.conditional("x", {"n": pd.NA, "c": float("nan")})
    assert nothing.mean == pytest.approx(fitted.conditional("x").mean)


def test_lists_of_dicts_decimals_and_durations():
    rows = [{"price": decimal.Decimal(f"{p:.2f}"), "took": pd.Timedelta(seconds=float(s))}
            for p, s in zip(RNG.lognormal(3, 1, N), RNG.exponential(100, N), strict=True)]  # fmt: skip
    density = quick(rows)
    drawn = density.sample(4, random_state=0)
    assert drawn["took"].dtype.kind == "m"
    assert (drawn["price"].astype(float) > 0).all()
    assert isinstance(density.conditional("took").median, pd.Timedelta)
    assert 0 <= density.conditional("took").cdf("100s") <= 1


def test_a_lazy_frame_is_collected():
    density = quick(pl.LazyFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)}))
    assert isinstance(density.sample(2), pl.DataFrame)


def test_a_date_column_of_two_days():
    days = pd.to_datetime(RNG.choice(["2020-01-01", "2020-01-05"], N))
    frame = pd.DataFrame({"day": days, "x": RNG.normal(size=N)})
    density = quick(frame)
    frame.loc[:5, "day"] = pd.NaT
    assert density.impute(frame, statistic="mode")["day"].isin(days).all()
    assert density.impute(frame)["day"].between(days.min(), days.max()).all()
    day = density.conditional("day")
    assert sum(day.probabilities[d] for d in set(days)) > 0.97
    assert sum(day.probabilities.values()) == pytest.approx(1, abs=1e-4)
    assert day.cdf("2020-01-01 23:00") == day.cdf("2020-01-01") < day.cdf("2020-01-02")


def test_huge_values_get_one_sentence():
    with pytest.raises(TableError, match=r"'x' holds values beyond 1e\+100"):
        quick(pd.DataFrame({"x": [1e300, 2e300, 3e300]}))


def test_a_sorted_year_is_no_identifier_and_row_numbers_are():
    years = pd.DataFrame({"year": np.arange(1950, 2020), "x": RNG.normal(size=70)})
    assert "year" in infer_schema(read_table(years)).names
    numbered = pd.DataFrame({"row": np.arange(1, 71), "x": RNG.normal(size=70)})
    assert "row" in infer_schema(read_table(numbered)).left_out


def test_thousands_of_categories_keep_the_frequent_ones():
    frequent = RNG.choice(["red", "green"], 9000)
    rare = [f"shade {i}" for i in range(3000)]
    frame = pd.DataFrame({"colour": [*frequent, *rare], "x": RNG.normal(size=12_000)})
    with pytest.warns(AnyGivenWarning, match=r"'colour' has 3,002 different values"):
        density = quick(frame)
    colour = density.conditional("colour")
    assert colour.mode in ("red", "green")
    assert colour.probabilities["(other)"] > 0.05
    assert np.isfinite(density.log_prob(pd.DataFrame({"colour": ["never seen"], "x": [0.0]}))).all()


# ------------------------------------------------------------------ what is possible


def test_bounds_are_shown_kept_and_overridden():
    frame = pd.DataFrame(
        {
            "count": RNG.poisson(2, 400),
            "share": RNG.beta(0.8, 0.8, 400),
            "money": RNG.lognormal(2, 1, 400),
            "level": RNG.normal(3, 1, 400),
            "rank": RNG.integers(1, 4, 400),
        }
    )
    density = quick(frame)
    bounds = {v.name: v.domain.bounds for v in density.schema_.variables}
    assert bounds == {"count": (0, np.inf), "share": (0, 1), "money": (0, np.inf), "level": (-np.inf, np.inf),
                      "rank": (1, 3)}  # fmt: skip
    assert "possible from 0 up to 1" in density.describe()
    drawn = density.sample(4000, random_state=0)
    for name, (low, high) in bounds.items():
        assert drawn[name].between(low, high).all()
    with pytest.warns(AnyGivenWarning, match=r"'count': 1 cell.s. are not possible"):
        assert np.isneginf(density.log_prob(pd.DataFrame({"count": [-1]})))
    assert density.conditional("share").cdf(1) == 1
    open_ended = infer_schema(read_table(frame), {"share": ("continuous", None, None), "level": ("continuous", -5, 20)})
    assert open_ended.variables[1].domain.bounds == (-np.inf, np.inf)
    assert open_ended.variables[3].domain.bounds == (-5, 20)
    with pytest.raises(SchemaError, match=r"'level' holds .* which its bounds do not allow"):
        infer_schema(read_table(frame), {"level": ("continuous", 3, 4)})


def test_values_between_the_steps_of_a_grid_have_no_probability(fitted):
    n = fitted.conditional("n")
    assert np.isneginf(n.log_prob(2.5))
    assert n.pdf(2.5) == 0
    assert n.cdf(2.5) == n.cdf(2)


def test_strange_evidence_is_answered_with_a_warning(fitted):
    with pytest.warns(AnyGivenWarning, match=r"x = 50 is far from what was seen"):
        fitted.conditional("n", {"x": 50.0})
    with pytest.warns(AnyGivenWarning, match="n = -2 is not possible"):
        fitted.conditional("x", {"n": -2})
    with pytest.warns(AnyGivenWarning, match=r"n = 2.5 is not possible"):
        fitted.sample(1, given={"n": 2.5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.conditional("n", {"x": 0.3})


def test_moments_follow_the_draws_outside_the_training_range():
    rng = np.random.default_rng(4)  # wide components over bends of the marginal: a coarse rule was 0.12 off here
    x = rng.uniform(-3, 3, 600)
    density = ag.TabularDensity(max_steps=300, verbose=False).fit(
        pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=600)})
    )
    with pytest.warns(AnyGivenWarning, match="x = 6"):
        y = density.conditional("y", {"x": 6.0})
    drawn = y.sample(100_000, random_state=0)
    assert y.mean == pytest.approx(drawn.mean(), abs=0.05)
    assert y.std == pytest.approx(drawn.std(), rel=0.05)


# ------------------------------------------------------------------ randomness


def test_draws_are_new_each_time_unless_a_seed_is_given(fitted):
    assert not fitted.sample(20).equals(fitted.sample(20))
    assert fitted.sample(20, random_state=1).equals(fitted.sample(20, random_state=1))
    gaps = pd.DataFrame({"x": [np.nan] * 20, "n": [np.nan] * 20, "c": ["a"] * 20})
    one, two = fitted.impute(gaps, draws=1)[0], fitted.impute(gaps, draws=1)[0]
    assert not one.equals(two)
    x = fitted.conditional("x")
    assert (x.sample(5) != x.sample(5)).any()
    assert (x.sample(5, random_state=2) == x.sample(5, random_state=2)).all()
    with pytest.raises(QuestionError, match=r"2\.5 draws"):
        fitted.sample(2.5)


def test_the_imputers_draws_follow_its_random_state():
    X = RNG.normal(size=(N, 3))
    X[:40, 0] = np.nan
    fresh = ag.AnyOrderImputer(statistic="draw", random_state=None, max_steps=10, verbose=False).fit(X)
    assert not np.array_equal(fresh.transform(X), fresh.transform(X))
    seeded = ag.AnyOrderImputer(statistic="draw", random_state=3, max_steps=10, verbose=False, workload="gaps").fit(X)
    assert np.array_equal(seeded.transform(X), seeded.transform(X))
    assert seeded.density_.workload == "gaps"


def test_what_is_given_comes_back_bit_for_bit(fitted):
    x = 0.1234567890123
    assert (fitted.sample(30, given={"x": x})["x"] == x).all()


# ------------------------------------------------------------------ weights


def test_weights_count_rows():
    heavy, light = RNG.normal(0, 1, 300), RNG.normal(50, 1, 300)
    frame = pd.DataFrame({"x": np.concatenate([heavy, light]), "g": ["a"] * 300 + ["b"] * 300})
    weight = np.where(frame["g"] == "a", 9.0, 1.0)
    density = ag.TabularDensity(max_steps=60, verbose=False).fit(frame, sample_weight=weight)
    assert density.conditional("g").probabilities["a"] == pytest.approx(0.9, abs=0.04)
    assert density.conditional("x").cdf(25) == pytest.approx(0.9, abs=0.05)
    alone = ag.TabularDensity(max_steps=5, verbose=False).fit(frame, sample_weight=(frame["g"] == "a").astype(float))
    assert alone.conditional("x").quantile(0.999) < 20
    for wrong in ([1.0], -weight, weight * np.nan):
        with pytest.raises(TableError, match="sample_weight"):
            quick(frame).fit(frame, sample_weight=wrong)


# ------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("content", "found", "expected"),
    [
        ("a;b\n1,5;x\n2,5;y\n", "delimiter ';', a decimal comma", 1.5),
        ("a\tb\n1.5\tx\n2.5\ty\n", "delimiter '\\\\t'", 1.5),
        ("a|b\n1.5|x\n2.5|y\n", "delimiter '|'", 1.5),
        ("a;b\n1.5;José\n2.5;y\n".encode("latin-1"), "delimiter ';', encoding cp1252", 1.5),
        ("a,b\n1.5,José\n".encode("utf-16"), "encoding utf-16", 1.5),
    ],
)
def test_a_csv_is_read_as_it_is_written(tmp_path, content, found, expected):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.warns(AnyGivenWarning) as said:
        frame = read_file(path)
    assert found.replace("\\\\", "\\") in str(said[0].message)
    assert frame["a"][0] == expected
    assert list(frame.columns) == ["a", "b"]


def test_a_plain_csv_is_read_without_a_word(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffname,note\n"a;b","1;2"\n"c, d","two\nlines"\n', encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = read_file(path)
    assert frame.shape == (2, 2)
    assert list(frame.columns) == ["name", "note"]
    assert read_file(path, delimiter=",", encoding="utf-8-sig").shape == (2, 2)


def test_dates_are_found_over_the_whole_column(tmp_path):
    assert date_formats(["07/10/2020", "31/01/2021"]) == ["%d/%m/%Y"]
    assert date_formats(["07/10/2020", "01/31/2021"]) == ["%m/%d/%Y"]
    assert date_formats(["07/10/2020", "01/02/2021"]) == ["%d/%m/%Y", "%m/%d/%Y"]
    assert date_formats(["7.10.2020 12:30", "31.1.2021 08:00"]) == ["%d.%m.%Y %H:%M"]
    assert date_formats(["1/2", "07/10/2020"]) == []
    path = tmp_path / "t.csv"
    path.write_text("when,x\n" + "".join(f"{d:02d}/10/2020,{d}.5\n" for d in range(1, 13)))
    with pytest.warns(AnyGivenWarning, match="day/month/year or as month/day/year"):
        frame = read_file(path)
    assert frame["when"][6] == pd.Timestamp("2020-10-07")


def test_questions_read_dates_as_the_file_wrote_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("when,x\n" + "".join(f"{d % 28 + 1:02d}/{d % 12 + 1:02d}/2020,{d}.5\n" for d in range(60)))
    when = quick(path).conditional("when")
    assert when.cdf("03/10/2020") == when.cdf(pd.Timestamp("2020-10-03"))


def test_excel_in_and_out_and_names_that_promise_another_format(tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    write_table(frame, tmp_path / "t.xlsx")
    pd.testing.assert_frame_equal(read_file(tmp_path / "t.xlsx"), frame)
    with pytest.raises(OutputError, match=r"ends in \.json"):
        write_table(frame, tmp_path / "t.json")
    (tmp_path / "broken.xlsx").write_text("no")
    with pytest.raises(TableError, match="Excel"):
        read_file(tmp_path / "broken.xlsx")


# ------------------------------------------------------------------ found by a stranger


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Etc/GMT+5", "UTC"])
def test_instants_are_answered_in_their_own_time_zone(zone):
    stamps = pd.date_range("2020-01-01", periods=N, freq="7h37s", tz=zone)
    density = quick(pd.DataFrame({"t": stamps, "x": RNG.normal(size=N)}))
    t = density.conditional("t", {"x": 0.0})
    assert str(t.median.tz) == zone
    assert t.cdf("2020-01-15 12:00") == t.cdf(pd.Timestamp("2020-01-15 12:00", tz=zone))
    many = density.conditional("t", pd.DataFrame({"x": [0.0, 1.0]}))
    assert str(many.median.dt.tz) == zone
    assert str(many.interval(0.9)["low"].dt.tz) == zone
    given = [density.conditional("x", {"t": value}).mean for value in ("2020-01-15 12:00",
             pd.Timestamp("2020-01-15 12:00", tz=zone))]  # fmt: skip
    assert given[0] == pytest.approx(given[1])


def test_bare_numbers_are_no_dates_and_no_durations():
    took = pd.to_timedelta(RNG.exponential(90, N), "s")
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=N), "took": took, "x": RNG.normal(size=N)})
    density = quick(frame)
    for name, what in (("day", "date"), ("took", "duration")):
        with pytest.raises(SchemaError, match=f"2021 is not a {what}"):
            density.conditional("x", {name: 2021})
        with pytest.raises(QuestionError, match=f"2021 is not a {what}"):
            density.conditional(name).cdf(2021)


def test_an_ordered_dictionary_of_arrow_keeps_its_order():
    import pyarrow as pa

    grades = pd.Categorical(RNG.choice(["low", "mid", "top"], N), ["low", "mid", "top"], ordered=True)
    table = pa.Table.from_pandas(pd.DataFrame({"grade": grades, "x": RNG.normal(size=N)}))
    assert infer_schema(read_table(table)).variables[0].domain.values == ("low", "mid", "top")


@pytest.mark.parametrize(
    ("override", "message"),
    [("grid", "no grid"), ("count", "no grid"), (("grid", 0, 1), "no grid"), ("binary", "more than two values"),
     (("continuous", 0), "bounds are given as"), (("continuous", "a", 1), "bounds are given as"),
     (("categorical", 0, 1), "bounds are given as")],
)  # fmt: skip
def test_overrides_that_do_not_fit_get_one_sentence(override, message):
    frame = pd.DataFrame({"share": RNG.uniform(0.3, 0.5, N)})
    with pytest.raises(SchemaError, match=message):
        infer_schema(read_table(frame), {"share": override})


def test_nanoseconds_that_are_given_come_back():
    stamps = pd.Series(pd.to_datetime(RNG.integers(1_500_000_000_000_000_000, 1_600_000_000_000_000_000, N)))
    assert stamps.dtype == "datetime64[ns]"
    density = quick(pd.DataFrame({"t": stamps, "x": RNG.normal(size=N)}))
    assert (density.sample(2, given=stamps.head(5).to_frame("t"))["t"] == stamps.head(5).repeat(2).array).all()


def test_durations_end_at_nought_and_hours_are_a_grid():
    took = pd.to_timedelta(np.round(RNG.exponential(500, 300)) + 1, "s")
    hour = pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 999, 300), "h")
    schema = infer_schema(read_table(pd.DataFrame({"took": took, "hour": hour})))
    assert schema.variables[0].domain.bounds[0] == 0
    assert schema.variables[1].domain.step == 3600


@pytest.mark.parametrize(("centre", "scale"), [(1e12, 1.0), (0.0, 1e-12), (0.0, 1e-30), (5.0, 1e-9), (0.0, 1e50)])
def test_any_magnitude_is_fitted_alike(centre, scale):
    """Scaling a column moves the log density by the log of the scale, and nothing else."""
    unit = np.random.default_rng(5).normal(size=400)
    schema = infer_schema(read_table(pd.DataFrame({"x": centre + scale * unit})))
    plain = infer_schema(read_table(pd.DataFrame({"x": unit})))
    z = np.linspace(-3, 3, 13)
    moved = (schema.domains[0].smooth_value(z) - centre) / scale
    assert np.allclose(moved, plain.domains[0].smooth_value(z), atol=0.02)


def test_a_wrong_encoding_gets_one_sentence(tmp_path):
    (tmp_path / "t.csv").write_bytes("n,x\nJosé,1\n".encode("latin-1"))
    with pytest.raises(TableError, match="is not utf-8 text"):
        read_file(tmp_path / "t.csv", encoding="utf-8")


def test_dates_written_as_text_in_parquet_and_excel(tmp_path):
    frame = pd.DataFrame({"when": [f"{d:02d}/10/2020" for d in range(10, 30)], "x": np.arange(20.0)})
    frame.to_parquet(tmp_path / "t.parquet")
    write_table(frame, tmp_path / "t.xlsx")
    for name in ("t.parquet", "t.xlsx"):
        assert read_file(tmp_path / name)["when"].dtype.kind == "M"


def test_minutes_are_kept_on_wide_tables():
    """Most of the time goes into columns, not steps: the fit is late, but not by much (no timing: what it reports)."""
    frame = pd.DataFrame(RNG.normal(size=(300, 80)), columns=[f"c{i}" for i in range(80)])
    density = ag.TabularDensity(max_minutes=0.02, verbose=False).fit(frame)
    assert density.report_["seconds"] >= density.report_["training_seconds"]
    assert density.report_["stopped"] == "time is up"


# ------------------------------------------------------------------ columns of another type than in training


@pytest.fixture(scope="module")
def people():
    """Sex as text, a day, a truth value, a number."""
    n = 120
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "member": rng.random(n) < 0.5,
            "age": rng.integers(20, 80, n),
        }
    )
    return ag.TabularDensity(max_steps=20, verbose=False).fit(frame), frame


@pytest.mark.parametrize("column", ["sex", "day", "member", "age"])
@pytest.mark.parametrize("gaps", [None, np.nan])
def test_a_column_without_a_value_is_filled_as_in_training(people, column, gaps):
    density, frame = people
    some = frame[:5].copy()
    some[column] = pd.Series([gaps] * 5, dtype=object)
    filled = density.impute(some)[column]
    assert filled.dtype == frame[column].dtype or column == "sex"  # text may be stored as objects too
    assert filled.isin(frame[column]).all() or column in ("day", "age")
    if column == "day":
        assert filled.between("2019-12-01", "2020-12-31").all()


def test_the_same_through_polars_and_arrow(people):
    import polars as pl
    import pyarrow as pa

    density, frame = people
    some = frame[:5].assign(day=None, member=None)
    filled = density.impute(pl.from_pandas(some))
    assert filled["day"].dtype == pl.Datetime("us")
    assert filled["member"].dtype == pl.Boolean
    filled = density.impute(pa.Table.from_pandas(some))
    assert pa.types.is_timestamp(filled.schema.field("day").type)
    assert pa.types.is_boolean(filled.schema.field("member").type)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("sex", [True, None, False], "holds true and false"),
        ("sex", [0.0, np.nan, 1.0], "holds numbers"),
        ("day", [5.0, np.nan, 6.0], "not a date"),
        ("age", pd.to_datetime(["2020-01-01", None, "2020-01-02"]), "holds dates"),
        ("age", ["many", None, "3"], "'many' is not a number"),
        ("age", ["nan", None, "3"], "'nan' is not a number"),
        ("member", [3.0, np.nan, 4.0], "holds numbers"),
    ],
)
def test_a_column_of_another_type_is_refused(people, column, values, message):
    density, frame = people
    with pytest.raises(AnyGivenError, match=message):
        density.impute(frame[:3].assign(**{column: values}))


def test_a_column_of_another_type_is_read_as_its_own_and_that_is_said(people):
    density, frame = people
    with pytest.warns(AnyGivenWarning, match="'age' holds text here and held numbers"):
        filled = density.impute(frame[:3].assign(age=["30", None, "40"]))
    assert filled["age"].dtype == frame["age"].dtype
    assert filled["age"].tolist()[::2] == [30, 40]
    codes = pd.DataFrame({"code": ["1", "2", "X"] * 30, "y": np.arange(90.0) % 7})
    density = ag.TabularDensity(max_steps=5, verbose=False).fit(codes)
    with pytest.warns(AnyGivenWarning) as said:
        filled = density.impute(pd.DataFrame({"code": [1.0, np.nan, 3.0], "y": [1.0, 2.0, 3.0]}))
    assert any("held text in training" in str(w.message) for w in said)
    assert any("never seen" in str(w.message) for w in said)
    assert filled["code"].tolist()[::2] == ["1", "3"]
    assert filled["code"].iloc[1] in ("1", "2", "X")


def test_an_array_of_numbers_cannot_hold_text(people):
    density, _ = people
    with pytest.raises(AnyGivenError, match="give a data frame"):
        density.impute(np.full((2, 4), np.nan))


def test_categories_that_this_table_lacks_are_filled_too(people):
    density, frame = people
    asked = density.conditional("sex").mode
    other = "m" if asked == "f" else "f"
    some = pd.DataFrame({"sex": pd.Categorical([other, None]), "day": frame["day"][:2], "member": [True, False],
                         "age": [30, 40]})  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anygiven.estimators.tabular.fill", lambda *_: {0: np.array([asked], dtype=object)})
        filled = density.impute(some)
    assert filled["sex"].tolist() == [other, asked]


@pytest.mark.parametrize("values", [pd.cut(np.arange(40.0), 4), pd.Categorical(pd.date_range("2020", periods=40))])
def test_categories_that_cannot_be_kept_are_refused_before_the_training(values):
    with pytest.raises(AnyGivenError, match="astype"):
        ag.TabularDensity(max_steps=2, verbose=False).fit(pd.DataFrame({"a": values, "b": np.arange(40.0)}))


# ------------------------------------------------------------------ files as people have them


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_ordinary_files_that_gave_tracebacks(tmp_path):
    with pytest.raises(AnyGivenError, match="'a' stands more than once"):
        read_table(written(tmp_path / "twice.csv", "a,a\n1,2\n3,4\n"))
    with pytest.warns(AnyGivenWarning, match="cp1252"):
        latin = read_table(written(tmp_path / "latin.csv", "größe,b\n1,2\n3,4\n", "latin-1"))
    assert latin.names == ["größe", "b"]
    with pytest.raises(AnyGivenError, match="beyond 1e"):
        read_table(written(tmp_path / "large.csv", "a,b\n1,2\n3,1e200\n"))
    long = read_table(written(tmp_path / "long.csv", f"a,b\n1,{'x' * 3_000_000}\n3,y\n"))
    assert len(long.columns[1].values[0]) == 3_000_000
    rows = "".join(f'{k},"line {k}\nand more"\n' for k in range(60_000))
    lines = read_table(written(tmp_path / "lines.csv", "a,b\n" + "1,x\n" * 300_000 + rows))
    assert lines.n_rows == 360_000
    with pytest.raises(AnyGivenError, match="is a quote not closed"):
        read_table(written(tmp_path / "cell.csv", f"a,b\n1,{'x' * 70_000_000}\n3,y\n"))


def test_a_long_cell_of_a_column_that_is_left_out_is_kept(tmp_path):
    from anygiven.cli.tables import impute_table
    from anygiven.variables.files import read_file

    notes = [f"note {k}" if k != 5 else "x" * 200_000 for k in range(40)]
    text = "a,b,note\n" + "".join(f"{k % 7},{'' if k == 3 else k * 0.5},{notes[k]}\n" for k in range(40))
    path, out = written(tmp_path / "t.csv", text), tmp_path / "out.csv"
    with pytest.warns(AnyGivenWarning, match="left out"):
        density = ag.TabularDensity(max_steps=5, verbose=False).fit(path)
    impute_table(density, path, read_file(path), out, "mean", None, 0, False)
    before, after = text.splitlines(), out.read_text().splitlines()
    assert [k for k, (x, y) in enumerate(zip(before, after, strict=True)) if x != y] == [4]


def test_a_schema_takes_time_in_proportion_to_its_columns(monkeypatch):
    """Every column is fitted once, whatever their number; and the same whatever stands beside it."""
    from anygiven.variables import schema

    fitted = []
    real = schema.fit_marginal
    monkeypatch.setattr(schema, "fit_marginal", lambda *a, **k: (fitted.append(1), real(*a, **k))[1])
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 40)), columns=[f"x{k}" for k in range(40)])
    whole = infer_schema(read_table(frame))
    assert len(fitted) == 40
    again = infer_schema(read_table(frame))
    assert [v.domain.to_json() for v in whole.variables] == [v.domain.to_json() for v in again.variables]


# ------------------------------------------------------------------ what must come back to the last digit


def large_numbers(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "id": pd.array([2**60 + int(v) for v in rng.integers(0, 10**9, n)], dtype="Int64"),
            "kind": pd.array([2**60 + int(v) for v in rng.integers(1, 4, n)], dtype="Int64"),
            "y": rng.normal(size=n),
        }
    )
    frame.loc[::7, ["id", "kind"]] = pd.NA
    return frame


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_whole_numbers_that_floats_cannot_hold(ending, tmp_path):
    frame, path, out = large_numbers(), tmp_path / f"t{ending}", tmp_path / "out.parquet"
    write_table(frame, path)
    with pytest.warns(AnyGivenWarning, match="'id' is left out"):
        density = quick(path)
    write_table(density.impute(path), out)
    filled = read_file(out)
    is_known = frame["id"].notna().to_numpy()
    assert filled["id"][is_known].tolist() == frame["id"][is_known].tolist()
    assert filled["kind"][is_known].tolist() == frame["kind"][is_known].tolist()
    assert set(filled["kind"]) == {2**60 + 1, 2**60 + 2, 2**60 + 3}


@pytest.mark.parametrize("dtype", ["int64", "Int64"])
def test_a_table_without_rows_has_nothing_to_fill(people, dtype):
    density, frame = people
    assert len(density.impute(frame[:0].assign(age=pd.Series([], dtype=dtype)))) == 0


def test_codes_keep_their_noughts(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.choice(["01067", "04109", "80331"], 60)
    lines = [f"{('', 'NA')[k % 2] if k % 9 == 0 else code},{k * 0.37:.2f}" for k, code in enumerate(codes)]
    path = written(tmp_path / "t.csv", "\n".join(["plz,y", *lines]) + "\n")
    density = quick(path)
    assert density.schema_.domains[0].values == ("01067", "04109", "80331")
    assert density.conditional("y", {"plz": "01067"}).title == "y | plz=01067"
    assert set(density.impute(path)["plz"]) <= {"01067", "04109", "80331"}


def test_decimals_stay_decimals(tmp_path):
    values = [decimal.Decimal(f"{v:.2f}") for v in np.random.default_rng(0).normal(10, 2, 40)]
    frame = pd.DataFrame({"price": values, "y": np.arange(40.0) * 0.37})
    frame.loc[::9, "price"] = None
    frame.to_parquet(tmp_path / "t.parquet")
    filled = quick(tmp_path / "t.parquet").impute(tmp_path / "t.parquet")
    assert {type(value) for value in filled["price"]} == {decimal.Decimal}
    assert {value.as_tuple().exponent for value in filled["price"]} == {-2}
    write_table(filled, tmp_path / "out.parquet")


def test_excel_says_what_it_cannot_hold(tmp_path):
    frame = pd.DataFrame({"t": pd.date_range("2020", periods=3, tz="UTC")})
    with pytest.raises(OutputError, match="Excel cannot hold this table"):
        write_table(frame, tmp_path / "t.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_truth_and_line_ends_are_written_as_the_file_has_them(tmp_path):
    from anygiven.cli.tables import impute_table

    density = quick(pd.DataFrame({"ok": [True, False] * 30, "y": np.arange(60.0) * 0.37}))
    for text, wanted in (("ok,y\r\n1,3\r\n,4\r\n0,5\r\n", ("0", "1")), ("ok,y\ntrue,3\n,4\n", ("true", "false"))):
        path, out = written(tmp_path / "in.csv", text), tmp_path / "out.csv"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            impute_table(density, path, read_file(path), out, "mean", None, 0, False)
        end = "\r\n" if "\r" in text else "\n"
        lines = out.read_bytes().decode().split(end)
        assert lines[2].split(",")[0] in wanted
        assert [line for k, line in enumerate(lines) if k != 2] == [
            line for k, line in enumerate(text.split(end)) if k != 2
        ]


def test_a_strange_label_does_not_keep_a_model_from_being_saved(tmp_path):
    frame = pd.DataFrame({np.nan: np.arange(40.0) * 0.37, pd.Timestamp("2020-01-01"): np.arange(40.0) % 7})
    density = quick(frame)
    density.save(tmp_path / "m.model")
    assert len(ag.load(tmp_path / "m.model").sample(2).columns) == 2


def test_parquet_keeps_its_types_where_it_can(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    from anygiven.cli.tables import impute_table

    rng = np.random.default_rng(0)
    code, price = rng.integers(1, 4, 60).tolist(), (rng.normal(size=60) * 10).tolist()
    code[3] = price[5] = None
    table = pa.table({"code": pa.array(code, pa.int32()), "price": pa.array(price, pa.float32())})
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    parquet.write_table(table, path)
    density = quick(path, schema={"code": "categorical"})
    impute_table(density, path, read_file(path), out, "mean", None, 0, False)
    assert [field.type for field in parquet.read_schema(out)] == [pa.int32(), pa.float32()]
    assert parquet.read_table(out).column("code").null_count == 0
