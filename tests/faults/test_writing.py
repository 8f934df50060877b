"""The one room that writes, stopped and failed at every one of its calls: what stands is the old or the new, whole."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
import recorder as recorders
from recorder import Recorder, in_another_process, unsynced_renames

import anygiven as ag
from anygiven import disk
from anygiven.errors import OutputError, Stopped
from anygiven.training.checkpoint import Facts, load_checkpoint, save_checkpoint

OLD, NEW = b"old" * 50_000, b"new" * 70_000


@pytest.fixture
def models(table, tmp_path_factory):
    """Two small models that answer differently."""
    fits = [ag.TabularDensity(max_steps=k, width=8, depth=1, verbose=False, random_state=k).fit(table) for k in (1, 2)]
    return fits


class File:
    """A file that is replaced."""

    def __init__(self, folder: Path, _):
        self.path = folder / "out.csv"
        disk.write_whole(self.path, lambda file: file.write(OLD))
        self.act = lambda: disk.write_whole(self.path, lambda file: file.write(NEW))

    def state(self) -> str:
        return {OLD: "old", NEW: "new"}[self.path.read_bytes()]


class NewFile(File):
    """A file that was not there."""

    def __init__(self, folder: Path, _):
        super().__init__(folder, _)
        self.path.unlink()

    def state(self) -> str:
        return super().state() if self.path.exists() else "old"


class Model:
    """A model folder that is replaced."""

    def __init__(self, folder: Path, models):
        self.path = folder / "m.model"
        models[0].save(self.path)
        self.act = lambda: models[1].save(self.path)

    def state(self) -> str:
        return {1: "old", 2: "new"}[ag.load(self.path).report_["steps"]]


class NewModel(Model):
    """A model folder that was not there."""

    def __init__(self, folder: Path, models):
        self.path = folder / "m.model"
        self.act = lambda: models[1].save(self.path)

    def state(self) -> str:
        return super().state() if self.path.exists() else "old"


class Checkpoint:
    """A checkpoint that is replaced."""

    def __init__(self, folder: Path, models):
        self.path, tensors = folder / "c" / "member-0", models[0].model_.state_dict()

        def save(step: int) -> None:
            facts = Facts("f", step, 9, None, 1.0, 0, 0.0, 0.0, None, None, 0, "", [(0, 0.0, None)])
            save_checkpoint(self.path, tensors, facts)

        save(1)
        self.act = lambda: save(2)

    def state(self) -> str:
        return {1: "old", 2: "new"}[load_checkpoint(self.path)[1].step]


OUTPUTS = (File, NewFile, Model, NewModel, Checkpoint)


def leftovers(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*.part")]


def calls_of(action, **more) -> Recorder:
    recorder = Recorder(**more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "system", recorder)
        action()
    return recorder


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("output", OUTPUTS)
def test_killed_before_every_call_and_in_every_write(output, can_exchange, models, tmp_path):
    """Between any two calls, and with half of the bytes written: old or new, and the next run clears what is left."""
    n_calls = len(calls_of(output(tmp_path, models).act, can_exchange=can_exchange).calls)
    assert n_calls > 5
    seen = set()
    for at in range(1, n_calls + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        made = output(folder, models)
        code = in_another_process(made.act, Recorder(at, lambda: os._exit(9), can_exchange))
        assert code in (0, 9)
        if not can_exchange and not made.path.exists() and output is Model:  # between the two steps of old systems
            made.act()  # the next run brings it back, or replaces it
        seen.add(made.state())
        made.act()
        assert made.state() == "new"
        assert leftovers(folder) == []
    assert seen == {"old", "new"}


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_disk_that_fails_at_every_call(output, models, tmp_path):
    """One sentence; the old stands unless the new does; nothing else is left."""
    n_calls = len(calls_of(output(tmp_path, models).act).calls)

    def fail():
        raise OSError(28, "No space left on device")

    for at in range(1, n_calls + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        made = output(folder, models)
        before = made.state()
        sentence = ""
        try:
            calls_of(made.act, at=at, act=fail)
        except OutputError as error:
            sentence = str(error)
        assert sentence == "" or (sentence.endswith("No space left on device.") and "\n" not in sentence)
        assert made.state() in (before, "new")
        assert leftovers(folder) == []


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_order_of_writes_syncs_and_renames(output, can_exchange, models, tmp_path):
    made = output(tmp_path, models)
    calls = calls_of(made.act, can_exchange=can_exchange).calls
    assert unsynced_renames(calls) == []
    assert [name for name, _ in calls].count("sync") == (5 if "Model" in output.__name__ else 1)


def test_the_checkpoint_is_removed_after_the_model_is_on_disk(table, tmp_path):
    density = ag.TabularDensity(max_steps=2, width=8, depth=1, verbose=False, checkpoint=str(tmp_path / "c")).fit(table)
    Checkpoint(tmp_path, [density])
    calls = calls_of(lambda: density.save(tmp_path / "m.model")).calls
    assert unsynced_renames(calls) == []
    assert calls[-3:] == [
        ("unlink", tmp_path / "c" / "member-0" / "state.safetensors"),
        ("remove folder", tmp_path / "c" / "member-0"),
        ("remove folder", tmp_path / "c"),
    ]


def test_the_rule_finds_what_is_wrong():
    """The judge itself: each missing sync is found."""
    new, out = Path("/a/.w/new"), Path("/a/out")
    right = [("create", new), ("write", new), ("sync", new), ("sync folder", new.parent), ("rename", new),
             ("renamed to", out), ("sync folder", out.parent)]  # fmt: skip
    assert unsynced_renames(right) == []
    assert "before" in unsynced_renames([call for call in right if call[0] != "sync"])[0]
    assert "durable" in unsynced_renames(right[:-1])[0]
    assert "removed" in unsynced_renames([*right[:-1], ("unlink", Path("/a/c")), right[-1]])[0]
    assert recorders.Recorder().calls == []


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("output", OUTPUTS)
def test_stopped_politely_before_every_call(output, can_exchange, models, tmp_path):
    """Ctrl-C and SIGTERM raise in the middle of it: the old or the new stands, and nothing is left."""
    n_calls = len(calls_of(output(tmp_path, models).act, can_exchange=can_exchange).calls)

    def stop():
        raise Stopped(15)

    for at in range(1, n_calls + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        made = output(folder, models)
        with suppress(Stopped):
            calls_of(made.act, at=at, act=stop, can_exchange=can_exchange)
        assert made.state() in ("old", "new")
        assert leftovers(folder) == []


def test_an_old_folder_that_was_moved_aside_is_brought_back(models, tmp_path):
    """Killed between the two renames of a system that cannot exchange: the next writer of that name finds it."""
    model = Model(tmp_path, models)

    class Died(Exception):
        pass

    def die():
        raise Died

    steps = [name for name, _ in calls_of(model.act, can_exchange=False).calls]
    second = [k for k, name in enumerate(steps, 1) if name == "rename"][1]
    models[0].save(model.path)
    assert in_another_process(model.act, Recorder(second, lambda: os._exit(9), can_exchange=False)) == 9
    assert not model.path.exists()
    with pytest.raises(Died):
        calls_of(model.act, at=3, act=die)
    assert model.state() == "old"
