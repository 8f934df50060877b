"""Killed at random moments, politely and not: what stands is whole, and the same command then finishes."""

import numpy as np
from kills import SIGNALS, commands, leftovers

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
