"""Killed at random moments, politely and not: what stands is whole, and the same command then finishes."""

import os
import signal
import time

import numpy as np
import pytest
from kills import SIGNALS, commands, ended, leftovers, start

from anygiven import disk
from conftest import mixed_table


def test_the_kill_loop(model_folder, tmp_path):
    rng, printed = np.random.default_rng(0), tmp_path / "printed"
    for command in commands(tmp_path, model_folder, mixed_table(60)):
        command.prepare(printed)
        for number in SIGNALS[1:]:
            command.kill(number, float(rng.uniform(0.05, 1.0)), printed)
        command.prepare(printed)
        assert not command.out.with_name(f"{command.out.name}.checkpoint").exists()
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_who_stops_a_training_is_told_what_is_kept(number, code, tmp_path):
    mixed_table(200).to_csv(tmp_path / "t.csv", index=False)
    out, printed = tmp_path / "m.model", tmp_path / "printed"
    child = start(["fit", str(tmp_path / "t.csv"), "--out", str(out), "--minutes", "10"], printed)
    state = tmp_path / "m.model.checkpoint" / "member-0" / "state.safetensors"
    deadline = time.monotonic() + 60
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(child, number)
    assert ended(child) == code
    said = printed.read_text().splitlines()[-1]
    assert said.startswith("Stopped. ")
    assert said.endswith(f"steps are kept in {out}.checkpoint: the same command goes on from there.")
    assert not out.exists()


def test_a_full_disk_keeps_the_training(tmp_path, monkeypatch):
    """The model cannot be saved: the checkpoint stands, it is said where, and the same command finishes from it."""
    mixed_table(200).to_csv(tmp_path / "t.csv", index=False)
    out, printed = tmp_path / "m.model", tmp_path / "printed"
    arguments = ["fit", str(tmp_path / "t.csv"), "--out", str(out), "--minutes", "0.05"]

    class Full(disk.System):
        def rename(self, old, new):
            if new == out:
                raise OSError(28, "No space left on device")
            super().rename(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "system", Full())
        assert ended(start(arguments, printed)) == 2
    said = printed.read_text().splitlines()[-1]
    assert "could not be written: No space left on device." in said
    assert f"steps are kept in {out}.checkpoint" in said
    assert not out.exists()
    assert ended(start(arguments, printed)) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.model", "printed", "t.csv"]
