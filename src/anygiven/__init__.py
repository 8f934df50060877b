"""anygiven: any question, given anything you know.

From one trained model every conditional p(query | evidence): how likely, a draw, the gaps filled.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "AnyGivenError",
    "AnyGivenWarning",
    "AnyOrderImputer",
    "ImageDensity",
    "TabularDensity",
    "TextDensity",
    "draw_mask",
    "load",
    "methods",
]

if TYPE_CHECKING:
    from anygiven import methods
    from anygiven.errors import AnyGivenError, AnyGivenWarning
    from anygiven.estimators import Answer, AnyOrderImputer, ImageDensity, TabularDensity, TextDensity
    from anygiven.variables.images import draw_mask


def load(path) -> TabularDensity | TextDensity | ImageDensity:
    """Read a model folder."""
    from anygiven.estimators.folder import kind_of, read_steadily
    from anygiven.kinds import KINDS

    folder = Path(path)
    return read_steadily(folder, lambda: KINDS[kind_of(folder, tuple(KINDS))].density_class().load(folder))


def __getattr__(name: str):
    """Heavy imports wait until they are used."""
    if name in ("AnyGivenError", "AnyGivenWarning"):
        from anygiven import errors

        return getattr(errors, name)
    if name == "methods":
        from importlib import import_module

        return import_module("anygiven.methods")
    if name == "draw_mask":
        from anygiven.variables.images import draw_mask

        return draw_mask
    if name in __all__:
        from anygiven import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'anygiven' has no attribute {name!r}")
