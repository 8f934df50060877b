"""Where results go, and what is said beside them."""

from __future__ import annotations

import sys
from pathlib import Path

from anygiven.disk import is_standard_output
from anygiven.errors import QuestionError


def checkpoint_of(out: Path) -> Path:
    """The folder that keeps the training of a model until it is saved."""
    return out.with_name(f"{out.name}.checkpoint")


def check_not_read(out: Path | None, *read: Path, remedy: str = "choose another name") -> None:
    """What a command reads is not what it writes over, by whatever name; nor is any file of a model."""
    for source in read:
        files = [source, *source.iterdir()] if source.is_dir() else [source]
        if out is not None and out.exists() and any(file.exists() and out.samefile(file) for file in files):
            raise QuestionError(f"{out} is what is read; {remedy}.")


def tell(out: Path | None, sentence: str) -> None:
    """On standard output, unless the result itself goes there."""
    print(sentence, file=sys.stderr if is_standard_output(out) else sys.stdout)
