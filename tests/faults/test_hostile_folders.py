"""Damaged and hostile model folders: one sentence, quickly, whatever they hold."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile import copy_of, damage, mutate, sign, try_out
from safetensors.torch import load_file, save_file

import anygiven as ag
from anygiven.errors import ModelFolderError

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def models(model_folder, tmp_path_factory) -> dict[str, Path]:
    """One of each kind."""
    place = tmp_path_factory.mktemp("kinds")
    text = ag.TextDensity(length=6, max_steps=2, width=8, depth=1, verbose=False)
    text.fit("the cat sat on the mat and the dog lay by the door " * 4).save(place / "text.model")
    pictures = RNG.integers(0, 4, (30, 4, 4)).astype(np.uint8)
    ag.ImageDensity(max_steps=2, width=8, depth=1, verbose=False).fit(pictures).save(place / "image.model")
    return {"table": model_folder, "text": place / "text.model", "image": place / "image.model"}


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_every_damage_is_refused(kind, models, tmp_path):
    rng = np.random.default_rng(1)
    for _ in range(40):
        folder = copy_of(models[kind], tmp_path / "m")
        what = damage(folder, rng)
        assert what == "nothing" or try_out(folder) == "refused", what


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_strange_fields_are_refused_or_answered(kind, models, tmp_path):
    rng = np.random.default_rng(2)
    for _ in range(60):
        folder = copy_of(models[kind], tmp_path / "m")
        what = mutate(folder, rng)
        try:
            try_out(folder)
        except Exception as error:
            raise AssertionError(what) from error


def changed(folder: Path, name: str, change) -> Path:
    data = json.loads((folder / name).read_text())
    change(data)
    (folder / name).write_text(json.dumps(data))
    sign(folder)
    return folder


def many_columns(data):
    data["variables"] = [{**data["variables"][3], "name": str(k)} for k in range(200_000)]


NOBODY = {"law": "KnownAsked", "known": [99]}
HUGE = {
    "depth": ("config.json", lambda c: c["architecture"].update(depth=10**9)),
    "width": ("config.json", lambda c: c["architecture"].update(width=2**40)),
    "components": ("config.json", lambda c: c["architecture"].update(n_components=10**12)),
    "heads": ("config.json", lambda c: c["architecture"].update(network="transformer", n_heads=10**9)),
    "members": ("report.json", lambda r: r.update(members=10**12)),
    "a few members": ("report.json", lambda r: r.update(members=3)),
    "orders": ("config.json", lambda c: c["parameters"].update(orders=10**12)),
    "columns": ("schema.json", many_columns),
    "checksums of nothing": ("config.json", lambda c: c.update(checksums=None)),
    "a format of the past": ("config.json", lambda c: c.update(format=-1)),
    "the format as text": ("config.json", lambda c: c.update(format="2")),
    "a strange network": ("config.json", lambda c: c["architecture"].update(network="os.system")),
    "a strange parameter": ("config.json", lambda c: c["parameters"].update(evil=1)),
    "a known column of nobody": ("workload.json", lambda w: w["objective"].update(workload=NOBODY)),
    "a law of nobody": ("workload.json", lambda w: w.update(objective={"law": "Evil"})),
    "a law that is none": ("workload.json", lambda w: w.update(objective={"law": "Joint"})),
    "a device": ("config.json", lambda c: c["parameters"].update(device="cuda:99")),
    "an order of nothing": ("report.json", lambda r: r.update(orders=[[0, 0]])),
    "a falling marginal": ("schema.json", lambda s: s["variables"][0]["domain"]["marginal"]["knots"].reverse()),
    "a strange zone": ("schema.json", lambda s: s["variables"][6]["storage"].update(native="datetime64[ns, No/Where]")),
    "the same column twice": ("schema.json", lambda s: s["variables"][1].update(name=s["variables"][0]["name"])),
}

CHECK = """
import re, sys, time
import anygiven, anygiven.estimators
from anygiven.errors import ModelFolderError

def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

open("/proc/self/clear_refs", "w").write("5")  # the peak is counted from now on
began, before = time.perf_counter(), kilobytes("VmRSS")
try:
    anygiven.load(sys.argv[1])
except ModelFolderError as error:
    print(error)
    print(time.perf_counter() - began, (kilobytes("VmHWM") - before) / 1024)
"""


def refused_cheaply(folder: Path) -> str:
    """In one sentence, in little time and memory: measured in a process of its own."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("memory is measured by Linux's own count")
    done = subprocess.run([sys.executable, "-c", CHECK, str(folder)], capture_output=True, text=True, timeout=100)
    sentence, figures = done.stdout.splitlines()
    seconds, megabytes = map(float, figures.split())
    assert seconds < 5, sentence  # under one on a quiet machine; benchmarks/faults.py says how long
    assert megabytes < 200, sentence
    return sentence


@pytest.mark.parametrize("what", HUGE)
def test_what_would_run_for_ever_is_refused_at_once(what, models, tmp_path):
    folder = changed(copy_of(models["table"], tmp_path / "m"), *HUGE[what])
    with pytest.raises(ModelFolderError):
        ag.load(folder)
    if what in ("depth", "members", "columns"):
        refused_cheaply(folder)


def test_deep_and_huge_json(models, tmp_path):
    folder = copy_of(models["table"], tmp_path / "m")
    for name, text in {
        "report.json": "[" * 200_000,
        "schema.json": '{"a":' * 100_000,
        "config.json": "[" * 900_000,
    }.items():
        (folder / name).write_text(text)
        if name != "config.json":
            sign(folder)
        with pytest.raises(ModelFolderError):
            ag.load(folder)
    copy_of(models["table"], folder)
    with open(folder / "report.json", "wb") as file:
        file.truncate(10**11)  # a hole, that takes no room on the disk and would take 100 GB of memory
    assert "more than one can have" in refused_cheaply(folder)


def test_weights_that_are_none(models, tmp_path):
    path = tmp_path / "m" / "weights.safetensors"
    whole = (models["table"] / "weights.safetensors").read_bytes()
    size = int.from_bytes(whole[:8], "little")
    for data in (
        b"",
        b"\0" * 8,
        (2**62).to_bytes(8, "little") + whole[8:],
        whole[:8] + b"{" * size + whole[8 + size :],
    ):
        folder = copy_of(models["table"], tmp_path / "m")
        path.write_bytes(data)
        sign(folder)
        with pytest.raises(ModelFolderError, match="damaged"):
            ag.load(folder)
    for change in (lambda t: t * float("nan"), lambda t: t[..., None], lambda t: t.double().long()):
        folder = copy_of(models["table"], tmp_path / "m")
        save_file({name: change(tensor).contiguous() for name, tensor in load_file(path).items()}, path)
        sign(folder)
        with pytest.raises(ModelFolderError):
            ag.load(folder)


@pytest.mark.parametrize("name", ["config.json", "schema.json", "workload.json", "weights.safetensors", "report.json"])
def test_a_pipe_in_a_folder_is_not_waited_for(name, models, tmp_path):
    folder = copy_of(models["table"], tmp_path / "m")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ModelFolderError):
        ag.load(folder)
