"""What a column represents, and values that come back as they were."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anygiven.errors import AnyGivenWarning, SchemaError, TableError
from anygiven.variables import infer_schema, read_table, schema_of
from conftest import mixed_table

RNG = np.random.default_rng(0)
N = 400


def kind_of(values, name="x", **overrides):
    schema = infer_schema(read_table(pd.DataFrame({name: values})), overrides.get("overrides"))
    return schema.variables[0].domain.kind if schema.variables else "left out"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (RNG.normal(size=N), "continuous"),
        (RNG.integers(0, 9, N), "count"),
        (RNG.poisson(2, N).astype(float), "count"),
        (RNG.integers(18, 90, N), "grid"),
        (np.round(RNG.normal(20, 5, N), 1), "grid"),
        (RNG.random(N) < 0.5, "binary"),
        (RNG.choice([1, 2], N), "binary"),
        (RNG.choice(["a", "b", "c"], N), "categorical"),
        (pd.Categorical(RNG.choice(["lo", "mid", "hi"], N), ["lo", "mid", "hi"], ordered=True), "ordinal"),
        (np.full(N, 3.0), "categorical"),
        (pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 99, N), "D"), "grid"),
        (pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.normal(size=N) * 1e6, "s"), "continuous"),
    ],
)
def test_kinds_are_told_apart(values, kind):
    assert kind_of(values) == kind


def test_an_integer_code_is_not_a_count():
    codes = RNG.choice([1, 2, 3, 5, 6, 7, 8], N, p=[0.5, 0.02, 0.2, 0.01, 0.2, 0.01, 0.06])
    assert kind_of(codes, name="admission_type_id") == "categorical"
    assert kind_of(codes, name="visits") == "categorical"  # its frequencies jump as no quantity's do


def test_zero_inflated_money_has_an_atom_and_a_density():
    money = np.where(RNG.random(N) < 0.7, 0.0, RNG.lognormal(3, 1, N))
    domain = infer_schema(read_table(pd.DataFrame({"money": money}))).variables[0].domain
    assert domain.kind == "continuous"
    assert domain.atoms == (0.0,)


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("patient_id", np.arange(1000, 1000 + N), "identifier"),
        ("encounter_id", RNG.permutation(10 * N)[:N], "identifier"),
        ("ticket", [f"T{i:05d}" for i in RNG.permutation(N)], "identifier"),
        ("notes", [f"words {i % 300} and more" for i in range(N)], "free text"),
    ],
)
def test_identifiers_and_free_text_are_left_out_by_name(name, values, why):
    frame = pd.DataFrame({name: values, "y": RNG.normal(size=N)})
    with pytest.warns(AnyGivenWarning, match=name):
        schema = schema_of(frame)
    assert schema.names == ["y"]
    assert why in schema.left_out[name]


def test_overrides():
    values = RNG.integers(0, 5, N)
    assert kind_of(values, overrides={"x": "categorical"}) == "categorical"
    assert kind_of(values, overrides={"x": "continuous"}) == "continuous"
    assert kind_of(RNG.choice(["s", "m", "l"], N), overrides={"x": ["s", "m", "l"]}) == "ordinal"
    with pytest.raises(SchemaError, match="cannot be 'strange'"):
        kind_of(values, overrides={"x": "strange"})
    with pytest.raises(SchemaError, match="does not have"):
        kind_of(values, overrides={"z": "count"})
    with pytest.raises(SchemaError, match="the given order does not name"):
        kind_of(RNG.choice(["s", "m"], N), overrides={"x": ["s", "l"]})


@pytest.mark.parametrize(
    "convert", [lambda f: f, pl.from_pandas, lambda f: pa.Table.from_pandas(f, preserve_index=False)]
)
def test_cells_decode_to_what_they_were(convert):
    frame = mixed_table()
    table = read_table(convert(frame))
    schema = infer_schema(table)
    cells, is_present = schema.encode(table)
    for i, variable in enumerate(schema.variables):
        back = variable.domain.decode(cells[is_present[:, i], i].astype(float))
        original = table.columns[i].present
        if original.dtype == object:
            assert (back == original).all()
        else:
            assert np.allclose(back.astype(float), original, rtol=1e-5, atol=1e-4)


def test_gaps_in_every_disguise():
    frame = pd.DataFrame({"s": ["a", "", None, "b"] * 5, "f": [1.5, np.nan, None, 2.5] * 5,
                          "b": [True, None, False, None] * 5})  # fmt: skip
    frame["d"] = pd.to_datetime(pd.Series([pd.NaT, "2020-01-02", None, "2020-01-05"] * 5))
    table = read_table(frame)
    assert [int((~column.is_present).sum()) for column in table.columns] == [10, 10, 10, 10]


def test_sum_of_masses_on_a_grid_is_one():
    values = RNG.poisson(3, 500)
    domain = infer_schema(read_table(pd.DataFrame({"n": values}))).variables[0].domain
    from scipy.special import ndtr

    values = np.arange(-40, 400)
    cells = domain.encode(values[domain.is_possible(values)])
    symbol = cells[:, 0].astype(int)
    smooth = np.maximum(ndtr(cells[:, 2]) - ndtr(cells[:, 1]), 0)
    mass = np.where(symbol < len(domain.atoms), domain.frequencies[symbol], domain.frequencies[-1] * smooth)
    assert mass.sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": []}), "no rows"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]}), "'b' has no value"),
        (pd.DataFrame({"a": [1.0, np.inf]}), "'a' holds infinite"),
        (pd.DataFrame({"a": [1, "x"]}), "'a' mixes"),
        (pd.DataFrame({"a": [[1], [2]]}), "'a'"),
        (pd.DataFrame(), "no columns"),
        (np.zeros((3,)), "1 dimension"),
        (42, "not a table"),
    ],
)
def test_tables_that_cannot_be_modelled(frame, message):
    with pytest.raises(TableError, match=message):
        infer_schema(read_table(frame))


def test_files(tmp_path):
    frame = mixed_table(60)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        assert read_table(tmp_path / name).names == list(frame.columns)
    (tmp_path / "latin.csv").write_bytes("name,x\nJosé,1\n".encode("latin-1"))
    with pytest.warns(AnyGivenWarning, match="cp1252"):
        assert read_table(tmp_path / "latin.csv").columns[0].values[0] == "José"
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:500])
    with pytest.raises(TableError, match="not a whole Parquet"):
        read_table(tmp_path / "cut.parquet")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(TableError, match="is empty"):
        read_table(tmp_path / "empty.csv")
    with pytest.raises(TableError, match="no file"):
        read_table(tmp_path / "nowhere.csv")
