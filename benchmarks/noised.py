"""Real tables made comparable: gridded and atomic columns get noise, so that a density means something.

Every method sees the same table: numbers standardised after uniform noise as wide as the column's own grid
and at least 0.01 training standard deviations; categories as they are. Nats per row over the present cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from anygiven.datasets import find_file
from anygiven.datasets.uci import uci_table
from anygiven.variables import infer_schema, read_table
from anygiven.variables.domains import Numeric
from anygiven.variables.tables import read_file

MIXED = ["adult", "bank_marketing_full", "default_credit_card", "beijing_pm25", "diabetes130",
         "heart_disease_4sites", "titanic_seaborn", "penguins", "physionet2012_mean48h"]  # fmt: skip
UCI = ["concrete", "energy", "yacht", "power-plant", "wine-quality-red", "protein-tertiary-structure"]
TABLES = [*MIXED[5:8], *UCI, *MIXED[:4], MIXED[8], MIXED[4]]  # small ones first


@dataclass(frozen=True)
class Split:
    """One table cut in two: numbers as floats with NaN, categories as text with None."""

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    numeric: list[str]

    @property
    def categorical(self) -> list[str]:
        return [name for name in self.train.columns if name not in self.numeric]


def load(name: str) -> pd.DataFrame:
    if name in UCI:
        data = uci_table(name)
        return pd.DataFrame(data, columns=pd.Index([f"x{i}" for i in range(data.shape[1])]))
    return read_file(find_file(f"tables/{name}.csv.gz", "UCI, seaborn-data or PhysioNet"))


def split(name: str, noise: bool = True, seed: int = 0, test_share: float = 0.2) -> Split:
    """A seeded split of one table; with noise also standardised, without it in its own units."""
    frame = load(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(frame))
    n_test = round(test_share * len(frame))
    test, train = order[:n_test], order[n_test:]
    schema = infer_schema(read_table(frame))
    numeric = [v.name for v in schema.variables if isinstance(v.domain, Numeric)]
    out = {}
    for variable in schema.variables:
        column = frame[variable.name]
        if variable.name in numeric:
            values = column.to_numpy(dtype=float)
            out[variable.name] = _noised(values, variable.domain, train, rng) if noise else values
        else:
            out[variable.name] = column.map(lambda v: None if pd.isna(v) else str(v)).astype(object)
    table = pd.DataFrame(out)
    present = table.iloc[train].notna().any()
    table = table[[c for c in table.columns if present[c]]]
    return Split(name, _known_only(table, train, train), _known_only(table, test, train), numeric)


def _noised(values: np.ndarray, domain: Numeric, train: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    scale = np.nanstd(values[train])
    width = max(domain.step or 0.0, 0.01 * scale)
    noisy = values + width * (rng.random(len(values)) - 0.5)
    return (noisy - np.nanmean(noisy[train])) / np.nanstd(noisy[train])


def _known_only(table: pd.DataFrame, rows: np.ndarray, train: np.ndarray) -> pd.DataFrame:
    """Categories that training never shows become gaps, for every method alike."""
    part = table.iloc[rows].reset_index(drop=True)
    for name in part.columns:
        if part[name].dtype == object:
            seen = set(table[name].iloc[train].dropna())
            part[name] = part[name].map(lambda v, seen=seen: v if v in seen else None).astype(object)
    return part
