"""Text as variables: one character a variable, all of one alphabet. Long files stay on disk."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from anygiven.errors import TextError
from anygiven.variables.domains import CELL, SYMBOL, CategoricalDomain

TEXT8 = "abcdefghijklmnopqrstuvwxyz "
BYTES = "".join(map(chr, range(256)))  # one character a byte
BLOCK = 1 << 24  # characters read at a time
MAX_IN_MEMORY = 1 << 28  # symbols; beyond, they are mapped from a file
MAX_ALPHABET = 4096
ENDINGS = (".txt", ".text", ".gz", ".md", ".csv", ".json", ".html", ".xml")


@dataclass(frozen=True)
class Alphabet:
    """The characters of a text and how often each occurs; for bytes, a character of a text may have several."""

    domain: CategoricalDomain

    @classmethod
    def of(cls, characters: str, counts: Counter | None = None) -> Alphabet:
        return cls(CategoricalDomain(tuple(characters), tuple((counts or Counter(characters))[c] for c in characters)))

    @property
    def characters(self) -> str:
        return "".join(self.domain.values)

    @cached_property
    def _places(self) -> np.ndarray:
        """Place in the alphabet by code point; the alphabet's size for all that is not in it."""
        points = code_points(self.characters)
        places = np.full(int(points.max()) + 2, len(points), dtype=np.uint8 if len(points) < 256 else np.uint16)
        places[points] = np.arange(len(points))
        return places

    @property
    def is_bytes(self) -> bool:
        return self.characters == BYTES

    def symbols(self, text: str, before: int = 0) -> np.ndarray:
        """(n,) places of a text's characters in the alphabet; one outside is an error that names it.

        `before` is how many characters came before.
        """
        return self.places(as_bytes(text) if self.is_bytes else text, before)

    def places(self, text: str, before: int = 0) -> np.ndarray:
        """(n,) places of characters in the alphabet, as they are."""
        symbols = self._places[np.minimum(code_points(text), len(self._places) - 1)]
        unknown = symbols == len(self.characters)
        if unknown.any():
            at = int(unknown.argmax())
            raise TextError(
                f"The text has {text[at]!r} at place {before + at}, which is not in the model's alphabet "
                f"({show_characters(self.characters)}); replace it, or fit with another alphabet."
            )
        return symbols

    def text(self, symbols: np.ndarray) -> str:
        """The text of symbols; bytes that are not UTF-8 are shown as �."""
        characters = "".join(np.array(self.domain.values, dtype=object)[np.asarray(symbols, dtype=int)])
        return characters.encode("latin-1").decode("utf-8", "replace") if self.is_bytes else characters


def as_bytes(text: str) -> str:
    """One character a byte of the UTF-8 text."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def show_characters(characters: str, most: int = 40) -> str:
    shown = "".join(sorted(characters))
    return repr(shown if len(shown) <= most else f"{shown[:most]}…")


def cells_of(symbols: np.ndarray) -> np.ndarray:
    """(…,) symbols → (…, 4) cells."""
    cells = np.zeros((*symbols.shape, len(CELL)), dtype=np.float32)
    cells[..., SYMBOL] = symbols
    return cells


class Corpus:
    """Documents as symbols, one after the other; `ends` says where each one ends."""

    def __init__(self, alphabet: Alphabet, symbols: np.ndarray, ends: np.ndarray):
        self.alphabet, self.symbols, self.ends = alphabet, symbols, ends

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], self.ends[:-1]])

    def part(self, begin: int, end: int) -> Corpus:
        """The characters begin … end; a document that reaches beyond is cut."""
        ends = np.unique(np.clip(self.ends, begin, end) - begin)
        return Corpus(self.alphabet, self.symbols[begin:end], ends[ends > 0])


def read_corpus(source, alphabet: str | None = None, report: Callable[[float], None] | None = None) -> Corpus:
    """A string, a file (path; .gz too), or a list of strings → symbols. A file is read twice, block by block.

    `alphabet`: None (found in the text), "text8", "bytes", or the characters themselves.
    """
    text = _Source(source, alphabet in ("bytes", BYTES))
    counts, ends = text.survey()
    if report:
        report(0.5)
    if not counts:
        raise TextError("The text is empty; give at least one character.")
    found = _alphabet(alphabet, counts)
    n = int(ends[-1])
    kind = np.uint8 if len(found.characters) <= 256 else np.uint16  # 256 is bytes, where no place is unknown
    symbols = np.empty(n, dtype=kind) if n <= MAX_IN_MEMORY else _on_disk(n, kind)
    at = 0
    for block in text.blocks():
        symbols[at : at + len(block)] = found.places(block, at)
        at += len(block)
        if report:
            report(0.5 + 0.5 * at / n)
    return Corpus(found, symbols, ends)


def _alphabet(wanted: str | None, counts: Counter) -> Alphabet:
    if not (wanted is None or (isinstance(wanted, str) and wanted)):
        raise TextError(f"The alphabet is {wanted!r}; it must be 'text8', 'bytes' or the characters themselves.")
    if any("\ud800" <= character <= "\udfff" for character in counts):
        raise TextError("The text has half a character (a lone surrogate); clean it, or fit with alphabet='bytes'.")
    if wanted in (None, "bytes"):
        if len(counts) > MAX_ALPHABET:
            raise TextError(f"The text has {len(counts)} different characters, more than {MAX_ALPHABET}; use 'bytes'.")
        characters = "".join(sorted(counts)) if wanted is None else BYTES
    else:
        characters = "".join(dict.fromkeys(TEXT8 if wanted == "text8" else wanted))
    return Alphabet.of(characters, counts)


def _on_disk(n: int, kind: type) -> np.ndarray:
    """A mapped file that vanishes with the process."""
    with tempfile.NamedTemporaryFile(prefix="anygiven-text-") as file:
        return np.memmap(file.name, dtype=kind, mode="w+", shape=(n,))


class _Source:
    """Blocks of text, whatever they come from."""

    def __init__(self, source, as_bytes: bool):
        self.source, self.as_bytes = source, as_bytes
        if not isinstance(source, (str, os.PathLike)):
            self.source = _strings(source)  # a generator can be read only once
        if isinstance(source, str) and len(source) < 4096 and "\n" not in source and os.path.isfile(source):
            self.source = Path(source)
        if isinstance(self.source, str) and looks_like_a_path(self.source):
            raise TextError(f"There is no file {self.source}; check the path.")
        if isinstance(self.source, os.PathLike) and not os.path.isfile(self.source):
            raise TextError(f"There is no file {self.source}; check the path.")

    def survey(self) -> tuple[Counter, np.ndarray]:
        """How often each character occurs, and where the documents end."""
        totals, n = np.zeros(0, dtype=np.int64), 0
        for block in self.blocks():
            found = np.bincount(code_points(block), minlength=len(totals))
            found[: len(totals)] += totals
            totals, n = found, n + len(block)
        counts = Counter({chr(point): int(totals[point]) for point in totals.nonzero()[0]})
        if isinstance(self.source, (str, os.PathLike)):
            return counts, np.array([n])
        lengths = np.array([len(self._decoded(text)) for text in self.source], dtype=int)
        return counts, lengths[lengths > 0].cumsum()

    def blocks(self) -> Iterator[str]:
        if isinstance(self.source, os.PathLike):
            yield from self._file_blocks(Path(self.source))
        elif isinstance(self.source, str):
            text = self._decoded(self.source)
            yield from (text[k : k + BLOCK] for k in range(0, len(text), BLOCK))
        else:
            yield from (self._decoded(text) for text in _strings(self.source))

    def _decoded(self, text: str) -> str:
        """For bytes, one character a byte."""
        return as_bytes(text) if self.as_bytes else text

    def _file_blocks(self, path: Path) -> Iterator[str]:
        opened = gzip.open if path.suffix == ".gz" else open
        encoding = "latin-1" if self.as_bytes else "utf-8"
        try:
            with opened(path, "rb") as raw, io.TextIOWrapper(raw, encoding=encoding, newline="") as file:
                while block := file.read(BLOCK):
                    yield block
        except UnicodeDecodeError:
            raise TextError(f"{path} is not UTF-8; convert it, or fit with alphabet='bytes'.") from None
        except (OSError, EOFError, zlib.error) as error:
            raise TextError(f"{path} could not be read: {error}.") from None


def looks_like_a_path(text: str) -> bool:
    """A word with a file's ending, which nobody would learn as a text."""
    return len(text) < 4096 and not any(c.isspace() for c in text) and Path(text).suffix.lower() in ENDINGS


def _strings(source) -> Sequence[str]:
    if not isinstance(source, Iterable):
        raise TextError(f"A text is a string, a file or strings; {type(source).__name__} is none of them.")
    texts = list(source)
    wrong = [text for text in texts if not isinstance(text, str)]
    if wrong:
        raise TextError(f"A text must be strings; {type(wrong[0]).__name__} is not one.")
    return texts
