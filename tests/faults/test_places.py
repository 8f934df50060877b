"""Where outputs go: through links, into pipes and devices, never over what is not ours; and two at a time."""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

import anygiven as ag
from anygiven import disk
from anygiven.cli.main import app
from anygiven.errors import OutputError, QuestionError
from anygiven.estimators.folder import check_model_place
from anygiven.training.checkpoint import check_checkpoint_place
from anygiven.variables import write_table

FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
CSV = b'"a","b"\n1,"x"\n2,"y"\n'


def run(*arguments, **more):
    """The command, with its exit code and what it printed."""
    code = "from anygiven.cli.start import run; run()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=120, **more)


@pytest.fixture
def csv_file(table, tmp_path):
    path = tmp_path / "in.csv"
    table[:20].to_csv(path, index=False)
    return path


# ------------------------------------------------------------------ files


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "real" / "out.csv")  # dangling, as with a shell's >
    for _ in range(2):
        write_table(FRAME, link)
        assert link.is_symlink()
        assert (tmp_path / "real" / "out.csv").read_bytes() == CSV


@pytest.mark.parametrize(("target", "message"), [("nowhere/out.csv", "no folder"), ("link.csv", "link")])
def test_a_link_that_leads_nowhere(target, message, tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / target)
    with pytest.raises(OutputError, match=message):
        disk.check_file_place(tmp_path / "link.csv")
    with pytest.raises(OutputError, match=message):
        write_table(FRAME, tmp_path / "link.csv")


def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    device = tmp_path / "null.csv"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.read_bytes()
    except OSError:
        pytest.skip("device nodes cannot be made or used here")
    write_table(FRAME, device)
    assert stat.S_ISCHR(device.stat().st_mode)
    write_table(FRAME, Path("/dev/null"))
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_pipe_gets_all_of_it(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_table(FRAME, pipe)
    reader.join(20)
    assert got == [CSV]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_other_nodes_are_refused(tmp_path):
    import socket

    path = tmp_path / "s.csv"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with pytest.raises(OutputError, match="is a socket"):
            write_table(FRAME, path)
    with pytest.raises(OutputError, match="is a folder"):
        disk.check_file_place(tmp_path)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
@pytest.mark.parametrize("is_file", [False, True])
def test_standard_output(name, is_file, model_folder, csv_file, tmp_path):
    """Into a pipe, and appended to what the shell's file already has; what is said goes to standard error."""
    if not is_file:
        done = run("impute", model_folder, csv_file, "--out", name)
        written = done.stdout
    else:
        with open(tmp_path / "all.csv", "wb") as file:
            file.write(b"before\n")
            file.flush()
            command = [sys.executable, "-c", "from anygiven.cli.start import run; run()", "impute", str(model_folder)]
            done = subprocess.run([*command, str(csv_file), "--out", name], stdout=file, stderr=subprocess.PIPE)
            file.write(b"after\n")
        before, *_, after = (tmp_path / "all.csv").read_bytes().splitlines(keepends=True)
        assert (before, after) == (b"before\n", b"after\n")
        written = (tmp_path / "all.csv").read_bytes().removeprefix(before).removesuffix(after)
    assert done.returncode == 0
    assert b"gaps filled" in done.stderr
    assert len(written.splitlines()) == 21
    assert b",," not in written


def test_a_reader_that_goes_away_is_no_traceback(model_folder):
    code = f"{sys.executable} -c 'from anygiven.cli.start import run; run()' sample {model_folder} --rows 20000 --out -"
    done = subprocess.run(["bash", "-c", f"{code} | head -1"], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_permissions_are_the_users(tmp_path, density):
    out = tmp_path / "out.csv"
    write_table(FRAME, out)
    density.save(tmp_path / "m.model")
    usual = tmp_path / "usual"
    usual.write_text("x")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "m.model").iterdir()}
    assert modes == {stat.S_IMODE(usual.stat().st_mode)} == {stat.S_IMODE(out.stat().st_mode)}
    out.chmod(0o640)
    write_table(FRAME, out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o640


def test_places_that_cannot_be_written_are_found_first(tmp_path, table, monkeypatch):
    """Before the training, in one sentence: a read-only folder, a long name, a missing folder, a file in the way."""
    (tmp_path / "file").write_text("x")

    def read_only(self, path):
        raise OSError(30, "Read-only file system")

    places = {tmp_path / ("x" * 300): "too long", tmp_path / "a" / "b": "no folder", tmp_path / "file" / "m": "a file",
              tmp_path / "file": "not a model", Path("-"): "cannot be a folder"}  # fmt: skip
    for place, message in places.items():
        with pytest.raises(OutputError, match=message) as caught:
            check_model_place(place)
        assert "\n" not in str(caught.value)
    monkeypatch.setattr(disk.System, "make_folder", read_only)
    for check in (check_model_place, disk.check_file_place, check_checkpoint_place):
        with pytest.raises(OutputError, match="Read-only file system"):
            check(tmp_path / "x")


def test_the_longest_name_works(tmp_path, density):
    write_table(FRAME, tmp_path / ("x" * 251 + ".csv"))
    density.save(tmp_path / ("x" * 255))
    ag.load(tmp_path / ("x" * 255))


# ------------------------------------------------------------------ what is not ours


def contents(folder: Path) -> dict:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("kind", ["look-alike", "with a thesis", "edited", "a file", "empty"])
def test_fit_never_deletes_what_it_did_not_write(kind, model_folder, density, tmp_path):
    out = tmp_path / "out.model"
    if kind == "a file":
        out.write_text("years of work")
    else:
        out.mkdir()
    if kind == "look-alike":
        (out / "config.json").write_text("{}")
        (out / "schema.json").write_text("{}")
        (out / "thesis.tex").write_text("years of work")
    if kind in ("with a thesis", "edited"):
        for path in model_folder.iterdir():
            (out / path.name).write_bytes(path.read_bytes())
    if kind == "with a thesis":
        (out / "thesis.tex").write_text("years of work")
    if kind == "edited":
        report = json.loads((out / "report.json").read_text())
        (out / "report.json").write_text(json.dumps({**report, "my notes": "years of work"}))
    before = contents(tmp_path)
    for attempt in (check_model_place, density.save):
        with pytest.raises(OutputError, match="choose another name"):
            attempt(out)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_file_that_comes_in_the_last_moment_is_kept(can_exchange, model_folder, density, tmp_path, monkeypatch):
    """Somebody saves into the old folder after it was looked at, and before it is replaced."""
    out = tmp_path / "out.model"
    density.save(out)
    real = disk.System.exchange

    def late(self, one, other):
        (out / "thesis.tex").write_text("years of work")
        if not can_exchange:
            raise OSError(38, "Function not implemented")
        real(self, one, other)

    monkeypatch.setattr(disk.System, "exchange", late)
    with pytest.raises(OutputError, match=r"thesis\.tex"):
        density.save(out)
    assert (out / "thesis.tex").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["out.model"]


def test_leftovers_of_the_dead_are_cleared_and_of_the_living_kept(tmp_path):
    out = tmp_path / "out.csv"
    dead = tmp_path / ".out.csv.anygiven-0123abcd.part"
    dead.mkdir()
    (dead / "new").write_text("half")
    foreign = [tmp_path / ".out.csv.part", tmp_path / ".out.csv.anygiven-mine.part", tmp_path / ".out.csv.tmp"]
    for path in foreign:
        path.mkdir()
    with disk._workshop(out) as living:
        write_table(FRAME, out)
        assert living.exists()
    assert not dead.exists()
    assert all(path.exists() for path in foreign)
    assert not living.exists()


def test_no_command_writes_over_what_it_reads(model_folder, csv_file, tmp_path):
    """By its own name, through a link, by another name of the same file, among the draws; nor into its model."""
    (tmp_path / "in.1.csv").write_bytes(csv_file.read_bytes())
    (tmp_path / "link.csv").symlink_to(csv_file)
    (tmp_path / "same.csv").hardlink_to(csv_file)
    model = tmp_path / "m.model"
    shutil.copytree(model_folder, model)
    before = contents(tmp_path)
    for arguments in (
        ("score", model, csv_file, "--out", csv_file),
        ("score", model, csv_file, "--out", tmp_path / "link.csv"),
        ("impute", model, csv_file, "--out", tmp_path / "same.csv"),
        ("impute", model, tmp_path / "in.1.csv", "--draws", "2", "--out", csv_file),
        ("sample", model, "--out", model / "config.json"),
    ):
        with pytest.raises(QuestionError, match="is what is read"):
            app([str(argument) for argument in arguments], standalone_mode=False)
    assert contents(tmp_path) == before


# ------------------------------------------------------------------ two at a time


def test_writers_and_readers_of_one_model(density, table, tmp_path):
    """Two that replace a model again and again, and one that reads it: always the one or the other, whole."""
    out = tmp_path / "m.model"
    small = [ag.TabularDensity(max_steps=k, width=8, depth=1, verbose=False).fit(table[["visits"]]) for k in (1, 2)]
    small[0].save(out)
    children = []
    for model in small:
        child = os.fork()
        if child == 0:
            try:
                for _ in range(60):
                    model.save(out)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(3)
            os._exit(0)
        children.append(child)
    seen = [ag.load(out).report_["steps"] for _ in range(40)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert set(seen) <= {1, 2}
    assert [path.name for path in tmp_path.iterdir()] == ["m.model"]
