"""The one table of kinds of data: what models each, which commands speak for it, and how its files are called.

A new kind is one more line, and what the line names: variables (anygiven.variables.modelled), a density, commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Kind:
    """Names of classes, which are imported when they are needed."""

    density: str  # module:class
    commands: str
    endings: tuple[str, ...]  # of files that are taken for this kind
    has_folders: bool = False

    def density_class(self) -> Any:
        return _named(self.density)

    def make_commands(self) -> Any:
        return _named(self.commands)()

    def recognises(self, source: Path) -> bool:
        name = source.name.lower().removesuffix(".gz").partition(".npz:")  # file.npz:array
        return (self.has_folders and source.is_dir()) or "".join(name[:2]).rstrip(":").endswith(self.endings)


def _named(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)


KINDS = {
    "table": Kind(
        "anygiven.estimators.tabular:TabularDensity", "anygiven.cli.tables:TableCommands",
        (".csv", ".tsv", ".parquet", ".pq", ".xlsx", ".xls"),
    ),
    "text": Kind(
        "anygiven.estimators.text:TextDensity", "anygiven.cli.text:TextCommands", (".txt", ".text", ".md"),
    ),
    "image": Kind(
        "anygiven.estimators.images:ImageDensity", "anygiven.cli.images:ImageCommands",
        (".npz", ".png", ".jpg", ".jpeg"), has_folders=True,
    ),
}  # fmt: skip


def kind_of_file(source: Path) -> str:
    """By its name; a table if nobody knows it."""
    return next((name for name, kind in KINDS.items() if kind.recognises(source)), "table")
