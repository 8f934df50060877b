"""English novels in 27 symbols (a–z and space) as in text8, split by book: 20M / 1M / 1M characters."""

from __future__ import annotations

from pathlib import Path

from anygiven.datasets.files import find_file


def novels(part: str) -> Path:
    """The file of "train", "valid" or "test"."""
    return find_file(f"text/novels_{part}.txt.gz", "Project Gutenberg, lower-cased, digits spelled out")
