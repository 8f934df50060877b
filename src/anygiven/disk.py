"""The one room that writes: an output is whole or absent, and nothing that is not ours is ever replaced or removed.

A file is written beside its place under another name, synced, and renamed into it; a folder likewise, and two folders
change places in one step where the system can do that. What a killed run left behind is cleared away by the next that
writes to the same place: a maker holds a lock on its workshop for as long as it lives.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import io
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from anygiven.errors import OutputError

try:
    import fcntl
except ImportError:  # Windows has other locks; leftovers then stay where they are
    fcntl = None

LONGEST_STEM = 200  # bytes; names have 255 at most
Write = Callable[[BinaryIO], object]
CheckOurs = Callable[[Path], None]
NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)


class System:
    """Every call that changes the disk, so that a test can list them, stop after each, or let each fail."""

    def create(self, path: Path) -> BinaryIO:
        return open(path, "xb")

    def sync(self, file: IO[bytes]) -> None:
        file.flush()
        os.fsync(file.fileno())

    def sync_folder(self, path: Path) -> None:
        """The names in a folder are on disk only after this."""
        if os.name != "posix":
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def set_mode(self, path: Path, mode: int) -> None:
        os.chmod(path, mode)

    def make_folder(self, path: Path) -> None:
        os.mkdir(path)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def exchange(self, one: Path, other: Path) -> None:
        """Two names change places, so that neither is ever without its folder."""
        library, names = ctypes.CDLL(None, use_errno=True), (os.fsencode(one), os.fsencode(other))
        if hasattr(library, "renameat2"):  # Linux
            at_here, exchange = -100, 2
            failed = library.renameat2(at_here, names[0], at_here, names[1], exchange)
        elif hasattr(library, "renamex_np"):  # macOS
            failed = library.renamex_np(*names, 2)
        else:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def remove_folder(self, path: Path) -> None:
        os.rmdir(path)


system = System()


# ------------------------------------------------------------------ files


def write_whole(path: Path, write: Write) -> None:
    """Call write(file): the file at that path is complete or absent.

    Links are written through. A pipe or a character device is written to when all is there; "-" is standard output.
    """
    with _one_sentence(path):
        if is_stream(path):
            _write_stream(path, write)
            return
        target = _place(path)
        _check_replaceable(target)
        with _workshop(target) as workshop:
            new = workshop / "new"
            with system.create(new) as file:
                write(file)
                system.sync(file)
            if target.exists():
                system.set_mode(new, stat.S_IMODE(target.stat().st_mode))
            system.rename(new, target)
            system.sync_folder(target.parent)


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode("utf-8")))


def check_file_place(path: Path) -> None:
    """Say before long work what would keep a file from being written."""
    with _one_sentence(path):
        if not is_stream(path):
            target = _place(path)
            _check_replaceable(target)
            _check_place(target)


def _check_replaceable(target: Path) -> None:
    if target.is_dir():
        raise OutputError(f"{target} is a folder; choose the name of a file.")
    if target.exists() and not os.access(target, os.W_OK):
        raise OutputError(f"{target} is write-protected; choose another name.")


def is_standard_output(path: Path | None) -> bool:
    return path is not None and _descriptor(path) == 1


def _write_stream(path: Path, write: Write) -> None:
    """What cannot be renamed: it gets all, once all is there."""
    with tempfile.TemporaryFile() as whole:
        write(whole)  # type: ignore[arg-type]
        whole.seek(0)
        descriptor = _descriptor(path)
        if sys.stdout is not None:
            sys.stdout.flush()
        with open(path, "wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb") as stream:
            shutil.copyfileobj(whole, stream, io.DEFAULT_BUFFER_SIZE * 16)


def _descriptor(path: Path) -> int | None:
    """Of a name for an open file: opened again, a file that standard output goes to would be emptied."""
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", str(path))
    if found:
        return int(found[1])
    return {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}.get(str(path))


def is_stream(path: Path) -> bool:
    """Whether it is standard output, a pipe or a device: written to, and never replaced."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OutputError(f"{path} is a {'disk' if stat.S_ISBLK(mode) else 'socket'}; choose the name of a file.")
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


# ------------------------------------------------------------------ folders


def write_folder(path: Path, files: dict[str, Write], check_ours: CheckOurs) -> None:
    """A new folder of these files, whole or absent; one that is there already is replaced if it is found to be ours.

    `check_ours` raises an OutputError for a folder with anything in it that we did not write.
    """
    with _one_sentence(path):
        target = _place(path)
        with _workshop(target) as workshop:
            new = workshop / "new"
            system.make_folder(new)
            for name, write in files.items():
                with system.create(new / name) as file:
                    write(file)
                    system.sync(file)
            system.sync_folder(new)
            _put(new, target, check_ours)
            system.sync_folder(target.parent)


def check_folder_place(path: Path, check_ours: CheckOurs) -> None:
    """Say before long work what would keep a folder from being written."""
    with _one_sentence(path):
        if is_stream(path):
            raise OutputError(f"{path} cannot be a folder; choose another name.")
        target = _place(path)
        if target.exists():
            check_ours(target)
        _check_place(target)


def _put(new: Path, target: Path, check_ours: CheckOurs) -> None:
    if not target.exists():
        try:
            system.rename(new, target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # else somebody was quicker
                raise
    check_ours(target)
    try:
        system.exchange(new, target)
    except OSError as error:
        if error.errno not in NOT_OFFERED:
            raise
        _put_in_two_steps(new, target, check_ours)
        return
    try:
        check_ours(new)  # now the old one: somebody may have put a file there since the first look
    except OutputError:
        system.exchange(new, target)
        raise


def _put_in_two_steps(new: Path, target: Path, check_ours: CheckOurs) -> None:
    """Where two folders cannot change places at once. Killed between the steps, `_clear` brings the old one back."""
    old = new.with_name("old")
    system.rename(target, old)
    try:
        system.sync_folder(old.parent)
        check_ours(old)
        system.rename(new, target)
    except BaseException:  # Ctrl-C too
        if not target.exists():
            system.rename(old, target)
        raise


def make_folders(path: Path) -> None:
    """A folder and what is missing above it, on disk."""
    with _one_sentence(path):
        missing = []
        while not path.exists():
            missing.append(path)
            path = path.parent
        for folder in reversed(missing):
            with suppress(FileExistsError):
                system.make_folder(folder)
            system.sync_folder(folder.parent)


def remove_files(folder: Path, paths: Iterable[Path]) -> None:
    """Remove files and leftovers of their making, and the folder if it is empty then; quietly, as all is done."""
    with suppress(OSError):
        for path in paths:
            _clear_leftovers(path)
            with suppress(FileNotFoundError):
                system.unlink(path)
        system.remove_folder(folder)


# ------------------------------------------------------------------ places


def _place(path: Path) -> Path:
    """Where a name leads, through links."""
    try:
        target = Path(os.path.realpath(path))
        target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise OutputError(f"The name {path.name} is too long; choose a shorter one.") from None
        raise
    if target.is_symlink():
        raise OutputError(f"{path} is a link to itself; choose another name.")
    if target.parent.exists() and not target.parent.is_dir():
        raise OutputError(f"{target.parent} is a file, not a folder; choose another name.")
    if not target.parent.is_dir():
        raise OutputError(f"There is no folder {target.parent if path.is_symlink() else path.parent}; create it first.")
    return target


def _check_place(target: Path) -> None:
    with _workshop(target):
        pass


@contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """A folder beside the target, locked as long as its maker lives, gone when it is through."""
    _clear_leftovers(target)
    with ExitStack() as lock:
        folder = _open_workshop(target, lock)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _open_workshop(target: Path, lock: ExitStack) -> Path:
    while True:
        folder = target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}.part")
        system.make_folder(folder)
        with suppress(FileNotFoundError):
            if lock.enter_context(_lock(folder)) is not False and folder.exists():
                return folder  # else one that clears away was quicker


def _prefix(target: Path) -> str:
    stem = target.name
    if len(os.fsencode(stem)) > LONGEST_STEM:
        stem = hashlib.sha256(os.fsencode(stem)).hexdigest()
    return f".{stem}.anygiven-"


@contextmanager
def _lock(folder: Path) -> Iterator[bool | None]:
    """Whether we hold the folder's lock; None where there are no locks. A dead holder's is free."""
    if fcntl is None:
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_mine = True
        except OSError as error:
            is_mine = False if error.errno == errno.EWOULDBLOCK else None
        yield is_mine
    finally:
        os.close(descriptor)


def _clear_leftovers(target: Path) -> None:
    """Workshops for the same target whose makers are dead."""
    prefix = _prefix(target)
    try:
        found = [name for name in os.listdir(target.parent) if name.startswith(prefix)]
    except OSError:
        return
    for name in found:
        folder = target.parent / name
        if re.fullmatch(r"[0-9a-f]{8}\.part", name[len(prefix) :]) and folder.is_dir() and not folder.is_symlink():
            with suppress(OSError), _lock(folder) as is_mine:
                if is_mine:
                    _clear(folder, target)


def _clear(folder: Path, target: Path) -> None:
    if (folder / "old").exists() and not target.exists():
        system.rename(folder / "old", target)
    shutil.rmtree(folder)


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except (OutputError, BrokenPipeError):
        raise
    except OSError as error:
        raise OutputError(f"{path} could not be written: {error.strerror or error}.") from None
