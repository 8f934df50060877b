"""The seam for kinds of data: one object for each kind says what is modelled.

A Schema for tables, Characters for texts, Pixels for images; a new kind is one more of these, with a density that asks
it and commands that speak for it (anygiven/kinds.py names all three).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self

from anygiven.variables.domains import CELL, Domain


class Variables(ABC):
    """What is modelled: it reads, encodes and decodes, knows its domains, and goes to and from JSON."""

    stored_type: ClassVar[Any]  # of schema.json

    @property
    @abstractmethod
    def domains(self) -> Sequence[Domain]: ...

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """As schema.json keeps it."""

    @classmethod
    @abstractmethod
    def from_stored(cls, stored: Any) -> Self:
        """From what schema.json keeps, read as `stored_type`."""

    @abstractmethod
    def name_of(self, variable: int) -> str:
        """As a person calls it."""

    @abstractmethod
    def decode(self, cells: np.ndarray) -> Any:
        """(n, N, 4) cells → what the user gave."""

    def try_out(self) -> None:
        """Touch what answers rely on: what does not fit is refused when it is read, not when asked."""
        self.decode(np.zeros((1, len(self.domains), len(CELL))))
