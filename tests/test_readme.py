"""README's example runs, and its commands exist."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", README, re.S)[1]
    monkeypatch.chdir(tmp_path)
    exec(code.replace("max_minutes=1", "max_minutes=0.05"), {})
    assert "1010 gaps, then 0" in capsys.readouterr().out
    assert (tmp_path / "patients.model" / "config.json").exists()


def test_the_commands_it_names_exist():
    from anygiven.cli.main import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert set(re.findall(r"`anygiven (\w+)", README)) <= set(commands)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(src/anygiven/\w+/|benchmarks/\S*?|tests/)`", README))))
def test_the_map_is_true(path):
    assert (ROOT / path).exists()


def test_make_targets_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"(?m)(?:^ {4}|`)make (\w+)", README)) <= set(targets)
