"""Every experiment runs at each of its scales for one step, on small files, and leaves whole results."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from anygiven import TabularDensity
from anygiven.cli.main import app
from anygiven.cli.reproduce import find_experiments, load_experiment, reproduce, seconds_kept, write_json
from anygiven.datasets.binary import N_ROWS, N_VARIABLES
from anygiven.datasets.pictures import N_IMAGENET
from anygiven.datasets.uci import SHAPES
from anygiven.errors import AnyGivenError
from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import build_model
from anygiven.lattice import Joint
from anygiven.variables.domains import Levels, SharedDomain
from anygiven.variables.rows import Data

runner = CliRunner()


@pytest.fixture
def small_data(tmp_path, monkeypatch):
    """The files that experiments look for, small."""
    rng = np.random.default_rng(0)
    (tmp_path / "uci").mkdir()
    np.savez(tmp_path / "uci" / "power-plant.npz", data=rng.normal(size=(120, 5)))
    np.savez(tmp_path / "uci" / "protein-tertiary-structure.npz", data=rng.normal(size=(120, 10)))
    (tmp_path / "density").mkdir()
    np.savez(tmp_path / "density" / "miniboone_first1523rows.npz", data=rng.normal(size=(120, 43)))
    patches = {part: rng.integers(0, 256, (40, 64)).astype(np.uint8) for part in ("train", "val", "test")}
    np.savez(tmp_path / "density" / "bsds300_patches_uint8.npz", **patches)
    meters = {"Date": "16/12/2006", "Time": "17:24:00", **{f"m{k}": rng.random(120) for k in range(7)}}
    pd.DataFrame(meters).to_csv(tmp_path / "density" / "household_power_one_month.csv.gz", index=False)
    (tmp_path / "binary").mkdir()
    for name, n in N_VARIABLES.items():
        bits = {part: np.packbits(rng.integers(0, 2, (30, n)), axis=1) for part in ("train", "valid", "test")}
        np.savez(tmp_path / "binary" / f"{name}.npz", n_vars=n, **bits)
        monkeypatch.setitem(N_ROWS, name, (30, 30, 30))
    for name, (_, n) in [*SHAPES.items()]:
        monkeypatch.setitem(SHAPES, name, (120, n))
    (tmp_path / "text").mkdir()
    for part in ("train", "valid", "test"):
        with gzip.open(tmp_path / "text" / f"novels_{part}.txt.gz", "wt") as file:
            file.write("".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz "), 2000)))
    (tmp_path / "images").mkdir()
    digits = {part: rng.integers(0, 256, (60, 98)).astype(np.uint8) for part in ("train", "valid", "test")}
    np.savez(tmp_path / "images" / "binarized_mnist_larochelle.npz", **digits)
    for name, shape in (("mnist", (28, 28)), ("fashion_mnist", (28, 28)), ("cifar10_subset", (32, 32, 3))):
        arrays = {f"x_{part}": rng.integers(0, 256, (60, *shape)).astype(np.uint8) for part in ("train", "test")}
        labels = {f"y_{part}": rng.integers(0, 10, 60).astype(np.uint8) for part in ("train", "test")}
        np.savez(tmp_path / "images" / f"{name}.npz", **arrays, **labels)
    for part, file in (("train", "train_data_batch_1"), ("val", "val_data")):
        (tmp_path / "images" / f"Imagenet32_{part}_npz").mkdir()
        pixels = rng.integers(0, 256, (60, 3072)).astype(np.uint8)
        np.savez(tmp_path / "images" / f"Imagenet32_{part}_npz" / f"{file}.npz", data=pixels)
        monkeypatch.setitem(N_IMAGENET, part, 60)
    monkeypatch.setenv("ANYGIVEN_DATA", str(tmp_path))


def only_the_first(name: str):
    """An experiment with the first of its methods alone: at paper scale each has a hundred million parameters."""
    experiment = load_experiment(name)
    for choices in (
        "METHODS",
        "LAWS",
        "HIDDEN",
        "STEPS",
        "BOUNDS",
        "LENGTHS",
        "SETS",
        "MISSING",
        "TEMPERATURES",
        "SHARES",
    ):
        found = getattr(experiment, choices, None)
        if isinstance(found, dict):
            setattr(experiment, choices, dict(list(found.items())[:1]))
        elif found:
            setattr(experiment, choices, found[:1])
    return experiment


# At paper scale these take long: they draw, have a U-Net of 256 channels, or train what another has trained; their
# networks are those of mac-table1, novels-hour, sfarm-table2 and sfarm-table3.
TAKES_LONG = {"mac-samples-text", "drawing-steps", "sfarm-fig3", "sfarm-fig6", "mac-table2", "mac-table3", "mac-fig3",
              "path-parts", "path-attention", "mac-samples-image"}  # fmt: skip
RUNS = [(name, scale) for name in find_experiments() for scale in load_experiment(name).SCALES
        if not (scale == "paper" and name in TAKES_LONG)]  # fmt: skip


@pytest.mark.parametrize(("name", "scale"), RUNS)
def test_one_step_of_every_experiment(name, scale, small_data, tmp_path, monkeypatch):
    if scale == "paper" and name != "mac-table7":
        monkeypatch.setattr("anygiven.cli.reproduce.load_experiment", only_the_first)
    results = reproduce(name, scale, minutes=None, max_steps=1, seed=0, out=tmp_path)
    stem = name if scale == "laptop" else f"{name}-{scale}"
    assert json.loads((tmp_path / f"{stem}.json").read_text()) == json.loads(json.dumps(results, default=float))
    assert (tmp_path / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    assert set(results) >= {"command", "seed", "seconds", "version", "data", "settings"}
    assert load_experiment(name).table(results)
    assert not list(tmp_path.glob(".*"))  # no half-written file, no leftover folder


def test_without_a_name_it_lists_them():
    shown = runner.invoke(app, ["reproduce"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in find_experiments())


def test_unknown_names_and_scales(tmp_path):
    with pytest.raises(AnyGivenError, match="no experiment 'mac-table9'"):
        reproduce("mac-table9", "laptop", None, None, 0, tmp_path)
    with pytest.raises(AnyGivenError, match="no scale 'moon'"):
        reproduce("mac-table7", "moon", None, None, 0, tmp_path)


def test_a_stopped_experiment_goes_on(small_data, tmp_path, monkeypatch):
    """Parts that were finished are not measured again."""
    import anygiven.cli.reproduce as module

    calls = []
    part = module.Run.part

    def stops_at_the_second(self, name, measure):
        calls.append(name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return part(self, name, measure)

    monkeypatch.setattr(module.Run, "part", stops_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        reproduce("mac-tradeoff", "laptop", None, 1, 0, tmp_path)
    (kept,) = tmp_path.glob(".*/MAC.json")
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "steps": 77}))
    results = reproduce("mac-tradeoff", "laptop", None, 1, 0, tmp_path)
    assert results["laws"]["MAC"]["steps"] == 77


def test_the_same_steps_give_the_same_figures():
    """Steps are counted beforehand; the training itself looks at no clock."""
    load_experiment("density-binary")  # puts what experiments share on the path
    from _tables import fit_with_valid

    rows = np.random.default_rng(0).normal(size=(400, 3))
    make = lambda: TabularDensity(width=8, max_minutes=0.01, training={"evaluations": 3}, verbose=False)  # noqa: E731
    first = fit_with_valid(make(), rows[:300], rows[300:])
    assert first["max_steps"] > 4
    again = fit_with_valid(make(), rows[:300], rows[300:], first)
    assert [(step, nats) for step, _, nats in again["curve"]] == [(step, nats) for step, _, nats in first["curve"]]


def test_again_needs_results_of_that_seed_and_counted_steps(tmp_path):
    def again(name="density-binary", scale="laptop", seed=7):
        return reproduce(name, scale, None, None, seed, tmp_path, again=True)

    with pytest.raises(AnyGivenError, match="are trained for a time, not for steps"):
        again("mac-fig3")
    with pytest.raises(AnyGivenError, match="no results of density-binary-paper yet"):
        again(scale="paper")
    write_json(tmp_path / "density-binary.json", {"seed": 0, "command": "anygiven reproduce density-binary"})
    with pytest.raises(AnyGivenError, match="is of seed 0; use --seed 0"):
        again()
    write_json(tmp_path / "density-binary.json", {"seed": 7, "command": "anygiven … --max-steps 1"})
    with pytest.raises(AnyGivenError, match="is of a trial with --max-steps"):
        again()
    assert not list(tmp_path.glob(".*"))  # what is refused leaves nothing


def test_again_takes_the_kept_steps_and_parts_of_its_own(small_data, tmp_path, monkeypatch):
    experiment = load_experiment("density-binary")
    found = []
    measure = lambda run: found.append((run.recorded.get("steps"), run.folder.name)) or {"data": ""}  # noqa: E731
    monkeypatch.setattr(experiment, "measure", measure)
    monkeypatch.setattr(experiment, "draw", lambda _: __import__("matplotlib.pyplot").pyplot.figure())
    monkeypatch.setattr("anygiven.cli.reproduce.load_experiment", lambda _: experiment)
    reproduce("density-binary", "laptop", None, None, 0, tmp_path)
    kept = tmp_path / "density-binary.json"
    write_json(kept, {**json.loads(kept.read_text()), "steps": 5})
    reproduce("density-binary", "laptop", None, None, 0, tmp_path, again=True)
    (before, folder), (after, folder_again) = found
    assert (before, after) == (None, 5)
    assert folder != folder_again  # or parts of one would be taken for the other's


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--minutes", "0"], "--minutes is 0; it must be a number greater than 0"),
        (["--minutes", "-1"], "--minutes is -1"),
        (["--minutes", "nan"], "--minutes is nan"),
        (["--minutes", "inf"], "--minutes is inf"),
        (["--max-steps", "0"], "--max-steps is 0; it must be a whole number"),
        (["--again", "--max-steps", "3"], "leave --minutes and --max-steps out"),
        (["--again", "--minutes", "1"], "leave --minutes and --max-steps out"),
    ],
)
def test_numbers_that_cannot_be_are_refused(options, said, tmp_path):
    result = runner.invoke(app, ["reproduce", "density-binary", "--out", str(tmp_path / "x"), *options])
    assert said in str(result.exception)
    assert not (tmp_path / "x").exists()


def test_the_time_of_finished_parts_counts(tmp_path):
    """An experiment in several sittings reports the seconds of all of them."""
    write_json(tmp_path / "first.json", {"bits": 2.0, "seconds": 100.5})
    (tmp_path / "curve.json").write_text("[[0, 1.0]]")
    assert seconds_kept(tmp_path) == 100.5


def test_sampled_edges_add_up_to_the_whole_path():
    """With as many edges as the path has, each is taken once; with fewer, the figure is near."""
    load_experiment("sfarm-table2")  # puts what experiments share on the path
    from _images import nats, nats_by_edges

    domains = SharedDomain(Levels((3, 1)), (4, 4))
    model = build_model(domains, Architecture("transformer", 16, 1, 0.0, 0), 0).eval()
    cells = torch.zeros(200, 16, 4)
    cells[..., 0] = torch.randint(2, (200, 16), generator=torch.Generator().manual_seed(0)).float()
    data = Data(cells, torch.ones(200, 16, dtype=torch.bool))
    whole = nats(model, data, Joint())["mean"]
    assert nats_by_edges(model, data, Joint(), 16)["mean"] == pytest.approx(whole, abs=1e-4)
    some = nats_by_edges(model, data, Joint(), 4)
    assert abs(some["mean"] - whole) < 4 * some["standard_error"]
