"""What it takes to add a head, a protocol and a kind of data: each is in one file here, and nothing else is touched."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

import anygiven as ag
from anygiven.cli import main
from anygiven.heads import COLUMN_HEADS, joint_head_for
from anygiven.kinds import KINDS, Kind
from anygiven.lattice import Question

from . import a_head, a_kind, a_protocol

FRAME = pd.DataFrame({"x": np.random.default_rng(0).normal(size=200), "n": np.random.default_rng(1).poisson(30, 200)})
QUICK = {"max_steps": 40, "max_minutes": None, "verbose": False, "width": 16, "depth": 1}


@pytest.fixture
def laplace(monkeypatch):
    monkeypatch.setitem(COLUMN_HEADS, "laplace", a_head.LaplaceHead)


def test_a_new_head_serves_tables(laplace, tmp_path):
    density = ag.TabularDensity(head="laplace", **QUICK).fit(FRAME)
    answer = density.conditional("x", {"n": 31})
    draws = answer.sample(20_000, random_state=0)
    assert answer.mean == pytest.approx(np.mean(draws), abs=0.05)
    assert answer.quantile(0.9) == pytest.approx(np.quantile(draws, 0.9), abs=0.08)
    assert answer.cdf(answer.median) == pytest.approx(0.5, abs=1e-3)
    assert density.impute(FRAME.mask(np.eye(200, 2, dtype=bool))).notna().all().all()
    density.save(tmp_path / "m")
    np.testing.assert_array_equal(ag.load(tmp_path / "m").log_prob(FRAME), density.log_prob(FRAME))


def test_a_new_head_starts_near_the_marginal(laplace):
    density = ag.TabularDensity(**QUICK).fit(FRAME)
    head = joint_head_for(8, density.schema_.domains, 1, "laplace")
    assert head(torch.zeros(3, 8)).of(0).smooth.std.detach() == pytest.approx(1.0, abs=0.2)


def test_a_new_protocol_answers_questions():
    order = a_protocol.InsideOut()
    whole = Question(torch.ones(1, 5, dtype=torch.bool), torch.zeros(1, 5, dtype=torch.bool))
    assert order.path(whole).step.tolist() == [[3, 1, 0, 2, 4]]
    text = ag.TextDensity(length=8, **QUICK).fit("the cat sat on the mat " * 30)
    assert np.isfinite(text.log_prob("the cat", order=order)).all()


def test_a_new_kind_of_data_is_fitted_asked_saved_and_commanded(monkeypatch, tmp_path, capsys):
    home = a_kind.__name__
    monkeypatch.setitem(KINDS, "series", Kind(f"{home}:SeriesDensity", f"{home}:SeriesCommands", (".series",)))
    source, model = tmp_path / "tide.series", tmp_path / "tide.model"
    source.write_text("\n".join(str(level) for level in [0, 1, 2, 1] * 60))
    run = lambda *words: main.app([str(word) for word in words], standalone_mode=False)  # noqa: E731
    run("fit", source, "--out", model, "--minutes", 0.05, "--json")
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["steps"] > 0
    run("sample", model, "--rows", 3)
    assert len(capsys.readouterr().out.splitlines()) == 3
    run("describe", model)
    assert "levels" in capsys.readouterr().out
    density = ag.load(model)
    assert density.log_prob([[0, 1, 2, 1]])[0] > density.log_prob([[2, 2, 2, 2]])[0]
