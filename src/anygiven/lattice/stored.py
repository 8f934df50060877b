"""Laws of the lattice as JSON and back: workloads, protocols and objectives, whatever they are made of.

A law is {"law": its class, and its fields}. A function of the user's is kept as a number by which it is known again; a
class of the user's own is kept by its name, as a Forgotten law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from anygiven.errors import QuestionError
from anygiven.lattice.masking_modes import ForgottenFunction, number_of
from anygiven.lattice.objectives import Objective
from anygiven.lattice.protocols import Protocol
from anygiven.lattice.question import Path, Question
from anygiven.lattice.workloads import Workload

LAW, FUNCTION, FORGOTTEN = "law", "function", "forgotten"
HOME = "anygiven.lattice"


@dataclass(frozen=True)
class Forgotten(Workload, Protocol, Objective):
    """Stands for a law of a class that is not the library's, in a model that was loaded."""

    name: str

    def _refuse(self) -> QuestionError:
        return QuestionError(f"{self.name} is a class of your own, which is not saved with a model; give it again.")

    def draw(self, is_present: Tensor, generator: torch.Generator) -> Any:
        raise self._refuse()

    def priority(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        raise self._refuse()

    def path(self, question: Question, generator: torch.Generator | None = None) -> Path:
        raise self._refuse()


def laws() -> dict[str, type]:
    """The library's own classes by name."""
    found, left = {}, [Workload, Protocol, Objective]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if kind.__module__.startswith(HOME) and not getattr(kind, "__abstractmethods__", None):
            found[kind.__name__] = kind
    return found


def to_json(value: Any) -> Any:
    """Plain JSON of a law, of what laws are made of, or of what is plain already."""
    if isinstance(value, (Workload, Protocol, Objective)):
        if type(value) not in laws().values():
            return {FORGOTTEN: type(value).__name__}
        parts = {field.name: to_json(getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]
        return {LAW: type(value).__name__, **parts}
    if isinstance(value, (tuple, list)):
        return [to_json(part) for part in value]
    if isinstance(value, dict):
        return {str(key): to_json(part) for key, part in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if callable(value):
        return {FUNCTION: number_of(value)}
    raise TypeError(f"{type(value).__name__} is not part of a law")


def from_json(data: Any) -> Any:
    """The law again; a ValueError or TypeError if it is none."""
    if isinstance(data, list):
        return tuple(from_json(part) for part in data)
    if not isinstance(data, dict):
        return data
    if set(data) == {FUNCTION}:
        return ForgottenFunction(str(data[FUNCTION]))
    if set(data) == {FORGOTTEN}:
        return Forgotten(str(data[FORGOTTEN]))
    parts = {key: from_json(part) for key, part in data.items() if key != LAW}
    if LAW not in data:
        return {key: list(part) if isinstance(part, tuple) else part for key, part in parts.items()}
    kind = laws().get(str(data[LAW]))
    if kind is None:
        raise ValueError("there is no such law")
    hints = get_type_hints(kind)
    if not all(key in hints and _fits(part, hints[key]) for key, part in parts.items()):
        raise ValueError(f"a law {kind.__name__} is not made of this")
    return kind(**parts)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what a field of a law must be: a number, a text, another law, or several."""
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(item, parts[0]) for item in value)
    if get_origin(hint) is Callable:
        return isinstance(value, ForgottenFunction)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)
