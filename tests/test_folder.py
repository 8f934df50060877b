"""Model folders: whole or refused in one sentence."""

import json
import shutil

import pytest

import anygiven as ag
from anygiven.errors import ModelFolderError, OutputError


@pytest.fixture
def copy(model_folder, tmp_path):
    return shutil.copytree(model_folder, tmp_path / "copy.model")


def refused(path, message):
    with pytest.raises(ModelFolderError, match=message) as caught:
        ag.load(path)
    assert "\n" not in str(caught.value)


def test_what_is_in_the_folder(model_folder):
    names = sorted(p.name for p in model_folder.iterdir())
    assert names == ["config.json", "report.json", "schema.json", "weights.safetensors", "workload.json"]


def test_draws_and_fills_are_the_same_to_the_last_bit(model_folder, density, table):
    loaded = ag.load(model_folder)
    assert loaded.sample(50, random_state=3).equals(density.sample(50, random_state=3))
    for mine, theirs in zip(*(d.impute(table, draws=2, random_state=1) for d in (density, loaded)), strict=True):
        assert mine.equals(theirs)
    assert loaded.impute(table).equals(density.impute(table))
    quantiles = [d.predict_quantiles(table, target="weight") for d in (density, loaded)]
    assert (quantiles[0] == quantiles[1]).all()


@pytest.mark.parametrize("name", ["schema.json", "workload.json", "weights.safetensors", "report.json"])
def test_truncated(copy, name):
    path = copy / name
    path.write_bytes(path.read_bytes()[:-20])
    refused(copy, "cut short or edited")


def test_edited(copy):
    text = (copy / "schema.json").read_text()
    (copy / "schema.json").write_text(text.replace("Oslo", "Rome"))
    refused(copy, "cut short or edited")


def test_missing_file(copy):
    (copy / "weights.safetensors").unlink()
    refused(copy, "weights.safetensors is missing")


def test_newer_version(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "format": 99, "version": "9.9"}))
    refused(copy, "newer anygiven")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format": "x"}'])
def test_not_a_model(tmp_path, content):
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "config.json").write_text(content)
    refused(folder, "not a model|damaged")


def test_nothing_there(tmp_path):
    refused(tmp_path / "nowhere", "There is no model")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "is not a model")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "is not a model")


def test_a_full_disk_leaves_the_old_model(density, copy, monkeypatch):
    before = (copy / "config.json").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("anygiven.disk.System.create", full)
    with pytest.raises(OutputError, match="No space left"):
        density.save(copy)
    assert (copy / "config.json").read_bytes() == before
    assert [p.name for p in copy.parent.iterdir()] == ["copy.model"]
    ag.load(copy)


def test_saving_over_a_model_replaces_it_and_over_anything_else_is_refused(density, copy, tmp_path):
    density.save(copy)
    ag.load(copy)
    (tmp_path / "data").mkdir()
    with pytest.raises(OutputError, match="not a model"):
        density.save(tmp_path / "data")
    with pytest.raises(OutputError, match="no folder"):
        density.save(tmp_path / "a" / "b")
