"""Commands that are killed on the way: a process that has imported all starts each as a child of its own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import anygiven as ag
from anygiven.cli.main import run
from anygiven.estimators import images, tabular, text
from anygiven.training.settings import Settings

ALWAYS = 0.05  # seconds between checkpoints, so that few kills are before the first


def start(arguments: list[str], printed: Path) -> int:
    """The command in a process of its own; what it prints goes into a file."""
    child = os.fork()
    if child:
        return child
    os.setpgid(0, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests are run by nohup
    descriptor = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    for module in (tabular, text, images):
        module.Settings = partial(Settings, checkpoint_seconds=ALWAYS)  # type: ignore[attr-defined]
    sys.argv = ["anygiven", *arguments]
    code: Any = 1
    try:
        run()
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@dataclass
class Command:
    """What is run again and again, and what must stand after each kill."""

    name: str
    arguments: list[str]
    out: Path
    seconds: float = 1.0  # that it takes
    allowed: list[Any] = field(default_factory=list)  # what may stand at `out`

    def content(self) -> Any:
        """None if it is not there; of a model how many steps it learnt, which needs it to be whole."""
        if not self.out.exists():
            return None
        return ag.load(self.out).report_["steps"] > 0 if self.out.is_dir() else self.out.read_bytes()

    def prepare(self, printed: Path) -> None:
        """Run it once to the end: how long it takes, and what it writes."""
        self.allowed = [self.content()]
        began = time.perf_counter()
        code = ended(start(self.arguments, printed))
        assert code == 0, printed.read_text()
        self.seconds, self.allowed = time.perf_counter() - began, [*self.allowed, self.content()]

    def kill(self, number: int, share: float, printed: Path) -> str:
        """Send the signal after a share of the time it takes; returns what became of it."""
        child = start(self.arguments, printed)
        time.sleep(share * self.seconds)
        with suppress(ProcessLookupError):
            os.killpg(child, number)
        code, text = ended(child), printed.read_text()
        assert "Traceback" not in text, text
        assert code in (0, -number, 128 + number), (code, text)
        if code == 128 + number:
            assert "Stopped." in text
        assert self.content() in self.allowed, self.name
        return "finished" if code == 0 else "killed"


def commands(folder: Path, model: Path, table) -> list[Command]:
    """Each of a kind of output; those with an old one in place are replaced."""
    table.to_csv(folder / "in.csv", index=False)
    table.to_parquet(folder / "in.parquet")
    (folder / "book.txt").write_text("the cat sat on the mat and the dog lay by the door " * 60)
    np.savez(folder / "pictures.npz", images=np.random.default_rng(0).integers(0, 2, (60, 6, 6)).astype(np.uint8))
    (folder / "old.csv").write_text("an old result\n")
    shutil.copytree(model, folder / "old.model")
    fit = ["--minutes", "0.03", "--seed", "1"]
    found = {
        "fit": ["fit", "in.csv", *fit, "--out", "new.model"],
        "fit over a model": ["fit", "in.csv", *fit, "--out", "old.model"],
        "fit text": ["fit", "book.txt", "--length", "8", *fit, "--out", "text.model"],
        "fit images": ["fit", "pictures.npz", *fit, "--out", "images.model"],
        "impute CSV over a file": ["impute", str(model), "in.csv", "--out", "old.csv"],
        "impute Parquet": ["impute", str(model), "in.parquet", "--out", "filled.parquet"],
        "score": ["score", str(model), "in.csv", "--out", "scores.csv"],
        "sample": ["sample", str(model), "--rows", "3000", "--out", "drawn.csv.gz"],
    }
    endings = (".csv", ".parquet", ".txt", ".npz", ".model", ".gz")
    whole = {n: [str(folder / a) if a.endswith(endings) and "/" not in a else a for a in c] for n, c in found.items()}
    return [Command(name, arguments, Path(arguments[-1])) for name, arguments in whole.items()]


def leftovers(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*.part")]


SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
