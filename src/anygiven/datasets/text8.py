"""text8: the first 10⁸ characters of English Wikipedia in 27 symbols, split 90 : 5 : 5 million as everybody does."""

from __future__ import annotations

import zipfile

from anygiven.datasets.files import find_file
from anygiven.errors import TextError

ORIGIN = "http://mattmahoney.net/dc/text8.zip"
N_CHARACTERS = 100_000_000
PARTS = {"train": (0, 90_000_000), "valid": (90_000_000, 95_000_000), "test": (95_000_000, 100_000_000)}


def text8(part: str = "train", n_characters: int = N_CHARACTERS) -> str:
    """The characters of "train", "valid" or "test" from text8.zip; `n_characters` is how many there must be."""
    if part not in PARTS:
        raise TextError(f"text8 has no part {part!r}; it has {', '.join(PARTS)}.")
    if not isinstance(n_characters, int) or n_characters < 1:
        raise TextError(f"n_characters is {n_characters!r}; it must be a whole number of at least 1.")
    path = find_file("text/text8.zip", ORIGIN)
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read("text8").decode("ascii")
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, OSError, EOFError) as error:
        raise TextError(f"{path} is another file or cut short ({type(error).__name__}); get {ORIGIN} again.") from None
    strange = set(text[:100_000]) - set("abcdefghijklmnopqrstuvwxyz ")
    if len(text) != n_characters or strange:
        found = f"a {min(strange)!r} is in it" if strange else f"it has {len(text):,} characters"
        raise TextError(f"{path} is not text8, {n_characters:,} of a to z and space: {found}; get {ORIGIN} again.")
    start, end = (place * n_characters // N_CHARACTERS for place in PARTS[part])
    return text[start:end]
