"""A kind of data in one file: a series of whole levels, so many moments at a time."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta

from anygiven.cli.commands import Commands
from anygiven.estimators.defaults import text_architecture_for
from anygiven.estimators.density import Density, Report
from anygiven.estimators.fitting import hold_out
from anygiven.estimators.workload import text_workload
from anygiven.inference import draw, log_prob
from anygiven.lattice import Canonical, Question
from anygiven.training import Settings
from anygiven.variables.domains import SYMBOL, CategoricalDomain, SharedDomain
from anygiven.variables.modelled import Variables
from anygiven.variables.rows import Data
from anygiven.variables.stored import Stored, StoredCategorical
from anygiven.variables.text import cells_of


class StoredMoments(Stored):
    levels: StoredCategorical
    length: Annotated[int, Meta(ge=1)]


@dataclass(frozen=True)
class Moments(Variables):
    levels: CategoricalDomain
    length: int
    stored_type = StoredMoments

    @property
    def domains(self):
        return SharedDomain(self.levels, (self.length,))

    def to_json(self):
        return {"levels": self.levels.to_json(), "length": self.length}

    @classmethod
    def from_stored(cls, stored):
        return cls(stored.levels.read(), stored.length)

    def name_of(self, variable):
        return f"moment {variable}"

    def encode(self, windows):
        return torch.from_numpy(cells_of(np.array([[self.levels.index[level] for level in w] for w in windows])))

    def decode(self, cells):
        return [[self.levels.values[int(symbol)] for symbol in row] for row in cells[..., SYMBOL]]


class SeriesDensity(Density):
    kind = "series"
    variables_type = Moments
    report_type = Report

    def __init__(self, length=4, workload="any", network="auto", max_minutes=1.0, device="auto", checkpoint=None,
                 verbose=None, random_state=0):  # fmt: skip
        self.length = length
        self.workload = workload
        self.network = network
        self.max_minutes = max_minutes
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X, y=None):
        self._begin()
        windows = [X[k : k + self.length] for k in range(len(X) - self.length + 1)]
        levels = sorted(set(X))
        self.variables_ = Moments(CategoricalDomain(tuple(levels), tuple(X.count(v) for v in levels)), self.length)
        self.architecture_ = self._choose_architecture(len(windows))
        self.workload_ = text_workload(self.workload, self.length, self.architecture_.network)
        x = self.variables_.encode(windows)
        data = Data(x, torch.ones(x.shape[:2], dtype=torch.bool))
        outcomes = self._learn(lambda seed: [data.rows(part) for part in hold_out(len(data), seed)], len(x), (X,))
        self.report_ = {**self._report_of(outcomes), "seconds": self._seconds()}
        return self

    def _default_architecture(self, n):
        return text_architecture_for(n, "path")

    def _settings(self, n):
        return Settings(max_steps=200, max_minutes=self.max_minutes, muon=True, batch_size=32, seed=self.seed_)

    def log_prob(self, windows):
        x = self.variables_.encode(windows)
        return log_prob(self.model_, x, self._everything(len(x))).numpy()

    def sample(self, n, random_state=None):
        path = Canonical().path(self._everything(n))
        nothing = torch.zeros(n, self.variables_.length, 4)
        return self.variables_.decode(draw(self.model_, nothing, path, self._generator(random_state)).numpy())

    def _everything(self, n):
        every = torch.ones(n, self.variables_.length, dtype=torch.bool)
        return Question(every, ~every)

    def describe(self):
        return f"A series of {len(self.variables_.levels.values)} levels; {self._describe_training()}."


class SeriesCommands(Commands):
    noun = "series"
    takes = {"sample": ()}  # noqa: RUF012

    def own(self, options):
        return {}

    def read(self, source: Path, options):
        return [int(line) for line in source.read_text().split()]

    def hint(self, density, out):
        return f"Draw from it: anygiven sample {out}"

    def sample(self, density, n, given, out, options, as_json):
        print("\n".join(str(window) for window in density.sample(n, random_state=options["--seed"])))
