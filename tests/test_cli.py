"""The command line as a user meets it: commands, files, mistakes."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest


def run(*arguments, cwd=None, code=0) -> subprocess.CompletedProcess:
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-m", "anygiven", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == code, done.stderr + done.stdout
    return done


@pytest.fixture(scope="module")
def csv_file(table, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    table.to_csv(path, index=False)
    return path


COMMANDS = ("demo", "fit", "describe", "ask", "score", "sample", "impute", "reproduce")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    assert f"anygiven {command}" in re.sub(r"\s+", " ", run(command, "--help").stdout).split("Example:")[1]


def test_help_does_not_import_torch():
    code = "import sys; from typer.testing import CliRunner; from anygiven.cli.main import app;"
    code += "CliRunner().invoke(app, ['--help']); assert not {'torch', 'sklearn', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fit_describe_ask_score_sample_impute(csv_file, tmp_path):
    model = tmp_path / "people.model"
    fitted = json.loads(run("fit", csv_file, "--out", model, "--minutes", "0.05", "--json").stdout)
    assert fitted["rows"] == 300
    assert not model.with_name("people.model.checkpoint").exists()
    assert "weight" in run("describe", model).stdout
    assert json.loads(run("describe", model, "--json").stdout)["columns"][0]["name"] == "weight"
    answer = run("ask", model, "weight, city | grade=high", "--plot", tmp_path / "a.png")
    assert "mean" in answer.stdout
    assert "Oslo" in answer.stdout
    assert (tmp_path / "a.png").stat().st_size > 5000
    probability = json.loads(run("ask", model, "city='New York' | visits=0", "--json").stdout)
    assert 0 < probability["prob"] < 1
    scores = json.loads(run("score", model, csv_file, "--json").stdout)
    assert len(scores["log_prob"]) == 300
    run("score", model, csv_file, "--query", "weight", "--given", "grade, visits", "--out", tmp_path / "s.csv")
    assert list(pd.read_csv(tmp_path / "s.csv").columns) == ["log_prob"]
    run("sample", model, "--rows", 20, "--given", "city='New York'", "--out", tmp_path / "d.parquet")
    assert (pd.read_parquet(tmp_path / "d.parquet")["city"] == "New York").all()
    assert run("sample", model, "--rows", 3).stdout.count("\n") == 4


def test_impute_keeps_the_text_of_every_present_cell(model_folder, tmp_path, table):
    source = tmp_path / "gaps.csv"
    text = "weight,visits,smoker,city,grade,spent,born\n"
    text += '070.500,3,True,,mid,0.0,1990-01-01\n,2,False,"New York",low,1.50,\n'
    source.write_text(text)
    out = tmp_path / "filled.csv"
    run("impute", model_folder, source, "--out", out)
    before, after = (list(csv.reader(p.open())) for p in (source, out))
    assert [len(row) for row in before] == [len(row) for row in after]
    for old, new in zip(before, after, strict=True):
        for a, b in zip(old, new, strict=True):
            assert b == a if a else b != ""
    run("impute", model_folder, source, "--out", tmp_path / "many.csv.gz", "--draws", 2)
    assert pd.read_csv(tmp_path / "many.1.csv.gz").notna().all().all()
    assert pd.read_csv(tmp_path / "many.2.csv.gz").notna().all().all()


def test_impute_in_the_dialect_of_the_file(model_folder, tmp_path):
    source, out = tmp_path / "gaps.csv", tmp_path / "filled.csv"
    source.write_bytes(
        "weight;visits;smoker;city;grade;spent;born\n70,5;3;True;Oslo;mid;;1990-01-01\n".encode("latin-1")
    )
    done = run("impute", model_folder, source, "--out", out)
    assert "delimiter ';', a decimal comma" in done.stderr
    assert out.read_text().splitlines()[1].startswith("70,5;3;True;Oslo;mid;")
    assert "." not in out.read_text().splitlines()[1].split(";")[5]
    run("impute", model_folder, source, "--out", tmp_path / "filled.xlsx", "--delimiter", ";", "--encoding", "latin-1")
    assert pd.read_excel(tmp_path / "filled.xlsx").notna().all().all()
    one_sentence(run("impute", model_folder, source, "--out", tmp_path / "filled.doc", code=2), "ends in .doc")
    before = source.read_bytes()
    one_sentence(run("impute", model_folder, source, "--out", source, code=2), "--force")
    assert source.read_bytes() == before
    run("impute", model_folder, source, "--out", source, "--force")
    assert source.read_bytes() != before


def test_a_value_question_is_drawn_and_rows_are_counted_from_nought(model_folder, csv_file, tmp_path):
    for k, question in enumerate(("city='New York' | visits=0", "visits=2", "weight=70, grade=low")):
        run("ask", model_folder, question, "--plot", tmp_path / f"{k}.png")
        assert (tmp_path / f"{k}.png").stat().st_size > 5000
    assert "counted from 0" in run("score", model_folder, csv_file).stdout
    assert "0.0" not in run("ask", model_folder, "visits | weight=70").stdout.split("\n")[0]


def test_bounds_on_the_command_line(csv_file, tmp_path):
    fit = ("fit", csv_file, "--out", tmp_path / "m", "--minutes", "0.02")
    assert "possible from 0 up to 300" in run(*fit, "--column", "weight=continuous:0:300").stdout
    one_sentence(run(*fit, "--column", "weight=continuous:a:b", code=2), "KIND:LOW:HIGH")
    one_sentence(run(*fit, "--column", "weight=continuous:80:90", code=2), "bounds do not allow")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("wait | city=Oslo", "There is no column 'wait'"),
        ("weight | weight=3", "both asked and given"),
        ("weight | city=Rome", "was never 'Rome'"),
        ("weight | visits=many", "not a number"),
        ("weight |", None),
        ("", "asks for nothing"),
        ("weight | city", "no value"),
    ],
)
def test_questions_that_cannot_be_answered(model_folder, question, message):
    if message is None:
        run("ask", model_folder, question)
    else:
        one_sentence(run("ask", model_folder, question, code=2), message)


def one_sentence(done, message):
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Note:")]
    assert len(lines) == 1, done.stderr
    assert message in lines[0]
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,\n2,\n", "'b' has no value"),
        (b"a,b\n1,2\n3\n", "cannot be read as CSV"),
        (b"a,b\n1,inf\n2,3\n", "infinite"),
    ],
)
def test_tables_that_cannot_be_fitted(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    done = run("fit", tmp_path / "t.csv", "--out", tmp_path / "m", code=2)
    one_sentence(done, message)
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]  # nothing half-written


def test_other_mistakes(model_folder, csv_file, tmp_path):
    one_sentence(run("fit", tmp_path / "no.csv", "--out", tmp_path / "m", code=2), "no file")
    one_sentence(run("fit", csv_file, "--out", tmp_path / "a" / "m", code=2), "no folder")
    one_sentence(run("fit", csv_file, "--out", tmp_path, code=2), "not a model")
    one_sentence(run("fit", csv_file, "--out", tmp_path / "m", "--minutes", "-1", code=2), "greater than zero")
    one_sentence(run("fit", csv_file, "--out", tmp_path / "m", "--column", "zz=count", code=2), "'zz'")
    one_sentence(run("describe", tmp_path, code=2), "not a model")
    one_sentence(run("score", model_folder, csv_file, "--given", "city", code=2), "--query")
    one_sentence(run("impute", model_folder, csv_file, "--out", tmp_path / "x" / "y.csv", code=2), "no folder")
    assert run("fit", code=2).stderr  # usage


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_writes_nothing(model_folder, csv_file, tmp_path):
    code = (
        "import builtins, os, sys\nimport pyarrow.csv as c, pyarrow.parquet as p\n"
        "def full(*a, **k): raise OSError(28, 'No space left on device')\n"
        "c.write_csv = full; p.write_table = full\n"
        "from anygiven.cli.main import run; run()"
    )
    out = tmp_path / "s.csv"
    done = subprocess.run(
        [sys.executable, "-c", code, "score", str(model_folder), str(csv_file), "--out", str(out)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_demo_needs_nothing(tmp_path):
    done = run("demo", "--minutes", "0.05", "--json", cwd=tmp_path)
    figures = json.loads(done.stdout)
    assert set(figures["imputation_error"]["bmi"]) == {"anygiven", "mean/mode", "IterativeImputer"}
    assert (tmp_path / "anygiven-demo" / "report.html").exists()
    assert (tmp_path / "anygiven-demo" / "report.png").stat().st_size > 20_000
