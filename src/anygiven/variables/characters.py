"""Pieces of text as variables: characters of one alphabet, so many at a time; and the rows that are learnt from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from anygiven.errors import QuestionError
from anygiven.variables.domains import SYMBOL, SharedDomain
from anygiven.variables.modelled import Variables
from anygiven.variables.rows import Data
from anygiven.variables.stored import Stored, StoredCategorical
from anygiven.variables.text import Alphabet, Corpus, cells_of

BLANK = "_"


class StoredText(Stored):
    """What is modelled, as schema.json keeps it."""

    alphabet: StoredCategorical
    length: Annotated[int, Meta(ge=1)]

    def __post_init__(self):
        if any(not isinstance(value, str) or len(value) != 1 for value in self.alphabet.values):
            raise ValueError("an alphabet is of single characters")


@dataclass(frozen=True)
class Characters(Variables):
    """`length` places of one alphabet."""

    alphabet: Alphabet
    length: int
    stored_type = StoredText

    @property
    def domains(self) -> SharedDomain:
        return SharedDomain(self.alphabet.domain, (self.length,))

    def to_json(self) -> dict[str, Any]:
        return {"alphabet": self.alphabet.domain.to_json(), "length": self.length}

    @classmethod
    def from_stored(cls, stored: StoredText) -> Characters:
        return cls(Alphabet(stored.alphabet.read()), stored.length)

    def name_of(self, variable: int) -> str:
        return f"character {variable}"

    @property
    def units(self) -> str:
        return "bytes" if self.alphabet.is_bytes else "characters"

    def decode(self, cells: np.ndarray) -> list[str]:
        return [self.alphabet.text(row) for row in cells[..., SYMBOL]]

    def read(self, text: str, blank: str = BLANK) -> tuple[np.ndarray, np.ndarray]:
        """(n,) symbols of a question and (n,) where they are given; a blank is one symbol."""
        if not isinstance(blank, str) or len(blank) != 1:
            raise QuestionError(f"The blank sign is {blank!r}; it must be one character.")
        nothing, pieces, before = np.zeros(1, dtype=np.int64), [], 0
        for piece in text.split(blank):
            pieces.append(self.alphabet.symbols(piece, before))
            before += len(piece) + 1
        symbols = np.concatenate([part for piece in pieces for part in (piece, nothing)][:-1])
        ends = np.cumsum([len(piece) + 1 for piece in pieces])[:-1]
        is_given = np.ones(len(symbols), dtype=bool)
        is_given[ends - 1] = False
        return symbols, is_given

    def encode(self, texts: Sequence[str], blank: str = BLANK) -> tuple[Tensor, Tensor]:
        """Cells (n, length, 4) and where a character is given: blanks and the open end are not."""
        symbols = np.zeros((len(texts), self.length), dtype=np.int64)
        is_given = np.zeros(symbols.shape, dtype=bool)
        for row, text in enumerate(texts):
            read, given = self.read(text, blank)
            if len(read) > self.length:
                raise QuestionError(
                    f"The string {text[:20]!r}… has {len(read)} {self.units} and the model's length is {self.length}; "
                    "cut it, or use bits_per_character or fill, which take longer texts."
                )
            symbols[row, : len(read)], is_given[row, : len(read)] = read, given
        return torch.from_numpy(cells_of(symbols)), torch.from_numpy(is_given)

    def windows(self, n: int) -> list[tuple[slice, int]]:
        """Pieces of at most `length`, each half a window beyond the last, the last at the very end; and up to where
        each is kept: what lies in its last quarter is drawn again by the next, which sees more of what follows."""
        half = max(1, self.length // 2)
        begins = [*range(0, max(0, n - self.length), half), max(0, n - self.length)]
        windows = [slice(begin, min(n, begin + self.length)) for begin in begins]
        return [(w, n if k + 1 == len(windows) else w.stop - self.length // 4) for k, w in enumerate(windows)]


def as_strings(X) -> list[str]:
    """One string or several, as a list."""
    if not isinstance(X, Iterable):
        raise QuestionError(f"Strings are asked for; {type(X).__name__} is not one.")
    texts = [X] if isinstance(X, str) else list(X)
    wrong = [text for text in texts if not isinstance(text, str)]
    if wrong:
        raise QuestionError(f"Strings are asked for; {type(wrong[0]).__name__} is not one.")
    return texts


class Chunks:
    """Pieces of `length` characters at every place of a corpus, made when they are asked for."""

    stride = 1

    def __init__(self, corpus: Corpus, length: int):
        self.corpus, self.length = corpus, length
        self.places = self._count(corpus.ends - corpus.starts).cumsum()  # running number of places to start at

    def _count(self, sizes: np.ndarray) -> np.ndarray:
        """How many chunks documents of these sizes have."""
        return np.maximum(sizes - self.length + 1, 1)

    def __len__(self) -> int:
        return int(self.places[-1])

    def rows(self, index: Tensor) -> Data:
        """A document shorter than `length` has gaps at its end."""
        wanted = index.numpy()
        document = np.searchsorted(self.places, wanted, side="right")
        number = wanted - np.concatenate([[0], self.places])[document]
        start = self.corpus.starts[document] + self.stride * number
        at = start[:, None] + np.arange(self.length)  # (B, length)
        is_present = at < self.corpus.ends[document][:, None]
        symbols = self.corpus.symbols[np.where(is_present, at, 0)]
        return Data(torch.from_numpy(cells_of(symbols)), torch.from_numpy(is_present))


class Tiles(Chunks):
    """Pieces that follow each other, the last of a document perhaps shorter."""

    def __init__(self, corpus: Corpus, length: int):
        self.stride = length
        super().__init__(corpus, length)

    def _count(self, sizes: np.ndarray) -> np.ndarray:
        return -(-sizes // self.length)
