"""Where results go, and what is said beside them."""

from __future__ import annotations

import sys
from pathlib import Path

from anygiven.disk import is_standard_output


def checkpoint_of(out: Path) -> Path:
    """The folder that keeps the training of a model until it is saved."""
    return out.with_name(f"{out.name}.checkpoint")


def tell(out: Path | None, sentence: str) -> None:
    """On standard output, unless the result itself goes there."""
    print(sentence, file=sys.stderr if is_standard_output(out) else sys.stdout)
