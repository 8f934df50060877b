"""The loop: learns, stops, averages, and goes on after a kill."""

import math
import os
import signal
import subprocess
import sys
import time
from functools import partial

import msgspec
import numpy as np
import pytest
import torch

import anygiven as ag
from anygiven import disk
from anygiven.errors import OutputError
from anygiven.training.checkpoint import DamagedCheckpoint, load_checkpoint, save_checkpoint
from anygiven.training.optimizers import orthogonal
from conftest import mixed_table


def test_early_stopping_keeps_the_best_weights():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(60, 6))  # nothing to learn
    density = ag.TabularDensity(max_steps=2000, verbose=False, learning_rate=5e-3, dropout=0.0).fit(noise)
    report = density.report_
    assert report["steps"] < 2000
    assert report["held_out_log_prob"] >= report["held_out_log_prob_of_marginals"]


def test_max_minutes_is_kept(table):
    started = time.monotonic()
    density = ag.TabularDensity(max_steps=1_000_000, max_minutes=0.05, verbose=False).fit(table)
    assert density.report_["steps"] < 1_000_000
    assert time.monotonic() - started < 30  # three seconds asked; the bound only catches a schedule that is ignored


BOOK = "the cat sat on the mat. a dog sat on a log. " * 40
STRIPES = np.random.default_rng(0).integers(0, 2, (60, 8, 1)).repeat(8, axis=2)
KINDS = {
    "table": (lambda **more: ag.TabularDensity(max_steps=40, verbose=False, **more), mixed_table()),
    "text": (lambda **more: ag.TextDensity(length=8, width=16, depth=1, max_steps=40, verbose=False, **more), BOOK),
    "image": (lambda **more: ag.ImageDensity(width=8, depth=2, max_steps=40, verbose=False, **more), STRIPES),
    "image, U-Net": (
        lambda **more: ag.ImageDensity(network="unet", width=8, depth=1, max_steps=40, verbose=False, **more),
        STRIPES,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_ends_as_an_unbroken_one(kind, tmp_path, monkeypatch):
    make, data = KINDS[kind]
    whole = make().fit(data)

    class Killed(Exception):
        pass

    from anygiven.training import loop

    original, count = loop._Run._train_step, {"steps": 0}

    def dies_at_25(self):
        original(self)
        count["steps"] += 1
        if count["steps"] == 25:
            self._save()
            raise Killed

    monkeypatch.setattr(loop._Run, "_train_step", dies_at_25)
    with pytest.raises(Killed):
        make(checkpoint=tmp_path / "c").fit(data)
    resumed = make(checkpoint=tmp_path / "c").fit(data)
    assert count["steps"] == whole.report_["steps"]  # none of them twice
    assert whole.report_["best_step"] > 25  # the weights that are compared were learnt after it
    for name, weight in whole.model_.state_dict().items():
        assert torch.allclose(weight, resumed.model_.state_dict()[name], atol=1e-6)
    assert load_checkpoint(tmp_path / "c" / "member-0")[1].step == count["steps"]  # kept until the model is saved
    resumed.save(tmp_path / "m.model")
    assert [path.name for path in tmp_path.iterdir()] == ["m.model"]


def test_muons_directions_are_orthogonal():
    """All singular values of an update are brought near one, whatever the matrix."""
    for shape in ((20, 50), (50, 20)):
        matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * torch.logspace(-1, 1, shape[1])
        values = torch.linalg.svdvals(orthogonal(matrix))
        assert values.min() > 0.5
        assert values.max() < 1.3


def begun(folder, table, **more) -> ag.TabularDensity:
    """A fit that leaves a checkpoint of its end behind, as it is not saved."""
    from anygiven.training import settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anygiven.estimators.tabular.Settings", partial(settings.Settings, checkpoint_seconds=0.0))
        return ag.TabularDensity(**{"max_steps": 3, "verbose": False, "checkpoint": str(folder), **more}).fit(table)


def test_another_table_does_not_resume(table, tmp_path):
    begun(tmp_path / "c", table)
    before = (tmp_path / "c" / "member-0" / "state.safetensors").read_bytes()
    for other in ({"random_state": 1}, {"width": 16}):
        with pytest.raises(OutputError, match="keeps 3 steps of another training"):
            begun(tmp_path / "c", table, **other)
    with pytest.raises(OutputError, match="another training"):
        begun(tmp_path / "c", table[:50])
    assert (tmp_path / "c" / "member-0" / "state.safetensors").read_bytes() == before


def test_more_minutes_go_on_with_what_is_kept(table, tmp_path, monkeypatch):
    """The clock is no part of what is trained: a run that was out of time goes on when it is given more."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    from anygiven.training import loop

    real = loop._Run._train_step
    monkeypatch.setattr(loop._Run, "_train_step", lambda self: (now.__setitem__(0, now[0] + 1.0), real(self))[1])
    first = begun(tmp_path / "c", table, max_steps=None, max_minutes=0.5)
    now[0] = 0.0
    again = begun(tmp_path / "c", table, max_steps=None, max_minutes=1.0)
    assert first.report_["stopped"] == "time is up"
    assert 20 <= first.report_["steps"] <= 30
    assert 45 <= again.report_["steps"] <= 60
    assert again.report_["curve"][: len(first.report_["curve"])] == first.report_["curve"]


def rewritten(path, change):
    """A checkpoint with some of its tensors or facts changed, signed again as its writer would."""
    tensors, facts = load_checkpoint(path.parent)
    facts = change(tensors, facts) or facts
    save_checkpoint(path.parent, tensors, facts)


HOSTILE = {
    "NaN weights": lambda tensors, _: tensors.update({k: v * math.nan for k, v in tensors.items() if "best." in k}),
    "another shape": lambda tensors, _: tensors.update({k: v[None] for k, v in tensors.items() if "average." in k}),
    "a missing tensor": lambda tensors, _: tensors.__delitem__(next(k for k in tensors if k.startswith("current."))),
    "half an optimiser": lambda tensors, _: tensors.__delitem__(next(k for k in tensors if k.endswith("exp_avg"))),
    "a strange optimiser": lambda tensors, _: tensors.update({"optimizer.7.0.exp_avg": torch.zeros(2)}),
    "a generator of nothing": lambda tensors, _: tensors.update({"generator": torch.zeros(3, dtype=torch.uint8)}),
    "more steps than the run": lambda _, facts: msgspec.structs.replace(facts, max_steps=10**9),
}


@pytest.mark.parametrize("change", HOSTILE)
def test_a_hostile_checkpoint_is_never_trained_into_a_model(change, table, tmp_path):
    begun(tmp_path / "c", table)
    rewritten(tmp_path / "c" / "member-0" / "state.safetensors", HOSTILE[change])
    with pytest.warns(ag.AnyGivenWarning, match="damaged; training starts anew"):
        again = begun(tmp_path / "c", table)
    unbroken = ag.TabularDensity(max_steps=3, verbose=False).fit(table)
    assert again.log_prob(table[:5]).tolist() == unbroken.log_prob(table[:5]).tolist()


def test_every_flipped_byte_of_a_checkpoint_is_found(table, tmp_path):
    """Restarted with a note, or refused where it no longer says that it is ours."""
    begun(tmp_path / "c", table)
    path = tmp_path / "c" / "member-0" / "state.safetensors"
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(whole), 40).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises((DamagedCheckpoint, OutputError)):
            load_checkpoint(path.parent)


def test_what_is_not_our_checkpoint_is_never_replaced(table, tmp_path):
    path = tmp_path / "c" / "member-0" / "state.safetensors"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"years of work")
    with pytest.raises(OutputError, match="not a checkpoint"):
        ag.TabularDensity(max_steps=3, verbose=False, checkpoint=str(tmp_path / "c")).fit(table)
    assert path.read_bytes() == b"years of work"


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(table, tmp_path, monkeypatch):
    def full(self, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.System, "create", full)
    with pytest.warns(ag.AnyGivenWarning, match=r"No space left on device\. Training goes on") as said:
        density = begun(tmp_path / "c", table)
    assert len(said) == 1
    assert density.report_["steps"] == 3


def test_the_checkpoint_stands_until_the_model_is_saved(table, tmp_path, monkeypatch):
    density = begun(tmp_path / "c", table)
    with monkeypatch.context() as patch:
        patch.setattr(disk.System, "sync", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OutputError, match="No space left"):
            density.save(tmp_path / "m.model")
    assert load_checkpoint(tmp_path / "c" / "member-0")[1].step == 3
    begun(tmp_path / "c", table).save(tmp_path / "m.model")
    assert [path.name for path in tmp_path.iterdir()] == ["m.model"]


def test_a_run_too_short_for_a_checkpoint_writes_none(table, tmp_path):
    ag.TabularDensity(max_steps=3, verbose=False, checkpoint=str(tmp_path / "c")).fit(table)
    assert not (tmp_path / "c").exists()


def test_kill_minus_nine_loses_little_and_never_the_model(tmp_path):
    """A real process, killed hard in the middle of training; the same command then finishes."""
    mixed_table(200).to_csv(tmp_path / "t.csv", index=False)
    code = (
        "import anygiven.training.settings as s, dataclasses\n"
        "s.Settings.__dataclass_fields__['checkpoint_seconds'].default = 0.2\n"
        "import anygiven.estimators.tabular as t\n"
        "from functools import partial\n"
        "t.Settings = partial(t.Settings, checkpoint_seconds=0.2)\n"
        "import sys; from anygiven.cli.main import run; run()"
    )
    command = [sys.executable, "-c", code, "fit", str(tmp_path / "t.csv"), "--out", str(tmp_path / "m.model")]
    state = tmp_path / "m.model.checkpoint" / "member-0" / "state.safetensors"
    process = subprocess.Popen([*command, "--minutes", "10"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "m.model").exists()  # nothing half-written
    found = load_checkpoint(state.parent)
    assert found is not None
    assert found[1].step > 0


def test_time_is_kept_when_every_step_is_slow(table, monkeypatch):
    """The clock is looked at after every step, not only when the schedule is fitted."""

    slow = torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *a: (time.sleep(0.5), slow(*a))[1])
    started = time.monotonic()
    density = ag.TabularDensity(max_minutes=0.03, verbose=False).fit(table)
    assert time.monotonic() - started < 20
    assert density.report_["steps"] < 8
    assert density.report_["curve"][-1][0] == density.report_["steps"]  # the last weights are judged too


def test_the_schedule_grows_again_when_steps_become_faster(table, monkeypatch):
    """A slow moment must not shorten the training for good."""

    from anygiven.training import loop

    now, steps = [0.0], [0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    real = loop._Run._train_step

    def timed(self):
        real(self)
        steps[0] += 1
        now[0] += 1.0 if steps[0] < 40 else 0.1

    monkeypatch.setattr(loop._Run, "_train_step", timed)
    density = ag.TabularDensity(max_minutes=2.0, verbose=False).fit(table)
    assert density.report_["steps"] > 300  # at the first pace there would be 120


def test_the_users_own_files_survive_beside_a_checkpoint(tmp_path):
    """A checkpoint may be put into a folder that holds other things; only the checkpoint is removed."""
    (tmp_path / "thesis.txt").write_text("years of work")
    table = np.random.default_rng(0).normal(size=(30, 2))
    begun(tmp_path, table).save(tmp_path.with_name("m.model"))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
