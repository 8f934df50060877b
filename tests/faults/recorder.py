"""A disk that lists the calls of anygiven.disk, and stops or fails at one of them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

from anygiven import disk


class _Raw(io.FileIO):
    """A file each of whose writes is listed."""

    def __init__(self, path: Path, recorder: Recorder):
        super().__init__(path, "xb")
        self.path, self.recorder = path, recorder

    def write(self, data) -> int:
        self.recorder.calls.append(("half of", self.path))
        if self.recorder.is_due():
            super().write(bytes(data)[: len(data) // 2])
            self.recorder.act()
        self.recorder.note("write", self.path)
        return super().write(data)


class Recorder(disk.System):
    """Calls `act` before call number `at` (or in the middle of a write); without it, it only lists them."""

    def __init__(self, at: int | None = None, act: Callable[[], None] = lambda: None, can_exchange: bool = True):
        self.calls: list[tuple[str, Path]] = []
        self.at, self.act, self.can_exchange = at, act, can_exchange

    def is_due(self) -> bool:
        return len(self.calls) == self.at

    def note(self, name: str, path: Path) -> None:
        self.calls.append((name, path))
        if self.is_due():
            self.act()

    def create(self, path):
        self.note("create", path)
        return io.BufferedWriter(_Raw(path, self))

    def sync(self, file):
        file.flush()
        self.note("sync", file.raw.path)
        super().sync(file)

    def sync_folder(self, path):
        self.note("sync folder", path)
        super().sync_folder(path)

    def set_mode(self, path, mode):
        self.note("set mode", path)
        super().set_mode(path, mode)

    def make_folder(self, path):
        self.note("make folder", path)
        super().make_folder(path)

    def rename(self, old, new):
        self.note("rename", old)
        super().rename(old, new)
        self.calls.append(("renamed to", new))

    def exchange(self, one, other):
        if not self.can_exchange:
            raise OSError(38, "Function not implemented")
        self.note("exchange", one)
        super().exchange(one, other)
        self.calls.append(("renamed to", other))

    def unlink(self, path):
        self.note("unlink", path)
        super().unlink(path)

    def remove_folder(self, path):
        self.note("remove folder", path)
        super().remove_folder(path)


def in_another_process(action: Callable[[], None], recorder: Recorder) -> int:
    """The exit code of a process that does it with that disk and may die on the way."""
    child = os.fork()
    if child == 0:
        disk.system = recorder
        try:
            action()
        except BaseException:
            os._exit(3)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def unsynced_renames(calls: list[tuple[str, Path]]) -> list[str]:
    """What power loss could tear: a file renamed before it was synced, a name that no later sync of its folder made
    durable. The rule is that of journaling file systems: without a sync, data and names reach the disk in any order.
    """
    dirty: set[Path] = set()  # files written, and folders with new names, since their last sync
    owed: dict[Path, Path] = {}  # folder that must be synced → the name that depends on it
    wrong = []
    for name, path in calls:
        if name in ("create", "make folder"):
            dirty |= {path, path.parent} if name == "create" else {path}
        elif name == "write":
            dirty.add(path)
        elif name in ("sync", "sync folder"):
            dirty.discard(path)
            owed.pop(path, None)
        elif name in ("rename", "exchange"):
            wrong += [
                f"{path} is renamed before {one} is synced" for one in dirty if one == path or path in one.parents
            ]
        elif name == "renamed to":
            owed[path.parent] = path
        elif name == "unlink" and owed:
            wrong.append(f"{path} is removed before {next(iter(owed.values()))} is safe")
    return wrong + [f"the name {path} is not made durable" for path in owed.values()]
