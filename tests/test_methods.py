"""ACE, MAC, ARDM and SFARM by name: the papers' figures, and that each fits, answers, saves and loads."""

import json

import numpy as np
import pandas as pd
import pytest

import anygiven as ag
from anygiven.cli import main
from anygiven.errors import QuestionError
from anygiven.lattice import ARDM, FromEvidence, Glimpse
from anygiven.methods import METHODS

RNG = np.random.default_rng(0)
SIZE = RNG.normal(size=240)
FRAME = pd.DataFrame({"a": SIZE, "b": SIZE**2 + 0.3 * RNG.normal(size=240), "c": RNG.poisson(30, 240)})
SMALL = {"width": 16, "depth": 1, "max_steps": 30, "batch_size": 64, "verbose": False,
         "training": {"evaluations": 2, "validation_rows": 20}}  # fmt: skip
PICTURES = RNG.integers(0, 2, (40, 4, 4)).astype(np.uint8)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_a_table_and_answers(name, tmp_path):
    density, some = METHODS[name]("table", orders=2, **SMALL).fit(FRAME), FRAME.head(20)
    assert np.isfinite(density.log_prob(some)).all()
    answer = density.conditional("b", {"a": 1.0})
    assert answer.cdf(answer.median) == pytest.approx(0.5, abs=1e-3)
    density.save(tmp_path / "m")
    loaded = ag.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.log_prob(some), density.log_prob(some), rtol=1e-6)
    assert loaded.workload == density.workload
    assert loaded.training == density.training


@pytest.mark.parametrize("name", ["mac", "ardm"])
def test_texts_have_their_figures(name):
    density = METHODS[name]("text")
    assert (density.width, density.depth, density.length, density.batch_size) == (768, 12, 250, 512)
    assert density.training["clip"] == 0.25
    small = METHODS[name]("text", length=6, alphabet=None, max_steps=2, width=16, depth=1, batch_size=8, verbose=False)
    assert np.isfinite(small.fit("abcabd" * 40).bits_per_character("abcabd"))


@pytest.mark.parametrize("name", ["mac", "ardm", "sfarm"])
def test_images_have_their_figures(name):
    density = METHODS[name]("image")
    assert (density.network, density.width, density.depth, density.batch_size) == ("unet", 256, 32, 128)
    small = METHODS[name]("image", width=8, depth=1, max_steps=2, batch_size=8, verbose=False).fit(PICTURES)
    assert np.isfinite(small.log_prob(PICTURES[:2])).all()


def test_ace_has_its_figures_for_each_data_set():
    gas, miniboone = ag.methods.ace(data="gas"), ag.methods.ace(data="miniboone")
    assert (gas.batch_size, gas.learning_rate, gas.max_steps, gas.dropout) == (2048, 1e-3, 1_000_000, 0.0)
    assert (miniboone.max_steps, miniboone.dropout, miniboone.training["energy_warmup"]) == (15_000, 0.5, 100)
    assert ag.methods.ace(data="bsds300").width == 1024
    assert ag.methods.ace(data="power").training["energy_regulariser"] == 1.0
    assert gas.workload == FromEvidence()
    assert gas.head == "ace"
    assert isinstance(ag.methods.mac(data="gas").workload.parts[0], Glimpse)
    assert isinstance(ag.methods.ardm().workload, ARDM)


def test_what_is_changed_comes_first():
    density = ag.methods.ace(data="gas", width=64, training={"noise": 0.0})
    assert density.width == 64
    assert density.training["noise"] == 0.0
    assert density.training["schedule"] == "linear"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ag.methods.ace("text"), "no settings for 'text'"),
        (lambda: ag.methods.ace(data="iris"), "no figures for 'iris'"),
        (lambda: ag.methods.sfarm("table", widht=3), "no option 'widht'"),
        (lambda: ag.TabularDensity(head="oracle").fit(FRAME), "There is no head"),
        (lambda: ag.TabularDensity(head="energy").fit(pd.DataFrame({"x": ["a", "b"] * 30})), "is for numbers"),
        (lambda: ag.TabularDensity(training={"noise": -1}).fit(FRAME), "noise is -1"),
        (lambda: ag.TabularDensity(training={"nose": 1}).fit(FRAME), "must be a dict of some of"),
        (lambda: ag.TabularDensity(training={"schedule": "up"}).fit(FRAME), "There is no schedule 'up'"),
        (lambda: ag.TabularDensity(training={"betas": 3}).fit(FRAME), "two numbers"),
        (lambda: ag.TabularDensity(training={"muon": 3}).fit(FRAME), "True or False"),
        (lambda: ag.TabularDensity(training=[1]).fit(FRAME), "must be a dict"),
        (lambda: ag.TabularDensity(training={"schedule": ["up"]}).fit(FRAME), "There is no schedule"),
        (lambda: ag.TabularDensity(head=["ace"]).fit(FRAME), r"There is no head \['ace'\]; use one of mixture"),
        (lambda: ag.methods.ace(data=["gas"]), "ACE has no figures for"),
        (lambda: ag.methods.ardm(training=5).fit(FRAME), "training is 5; it must be a dict"),
    ],
)
def test_mistakes_are_one_sentence(make, says):
    with pytest.raises(QuestionError, match=says):
        make()


def test_a_method_and_a_head_on_the_command_line(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    run = lambda *words: main.app([str(word) for word in words], standalone_mode=False)  # noqa: E731
    common = ("--minutes", 0.2, "--max-steps", 5, "--json")
    run("fit", tmp_path / "t.csv", "--out", tmp_path / "spline.model", "--head", "spline", *common)
    assert json.loads(capsys.readouterr().out)["steps"] == 5
    assert ag.load(tmp_path / "spline.model").head == "spline"
    run("fit", tmp_path / "t.csv", "--out", tmp_path / "sfarm.model", "--method", "sfarm", *common)
    assert ag.load(tmp_path / "sfarm.model").network == "sfarm"
    with pytest.raises(QuestionError, match="There is no method 'vae'"):
        run("fit", tmp_path / "t.csv", "--out", tmp_path / "x.model", "--method", "vae")
    (tmp_path / "t.txt").write_text("abc" * 50)
    with pytest.raises(QuestionError, match="--head is for tables alone"):
        run("fit", tmp_path / "t.txt", "--out", tmp_path / "x.model", "--head", "spline")
    with pytest.raises(QuestionError, match="--asked needs --known"):
        run("fit", tmp_path / "t.csv", "--out", tmp_path / "x.model", "--asked", "a")
    with pytest.raises(QuestionError, match="leave one of them out"):
        run("fit", tmp_path / "t.csv", "--out", tmp_path / "x.model", "--known", "a", "--workload", "any")
