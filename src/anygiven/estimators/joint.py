"""What a user gets for several columns at once: their joint distribution given what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from anygiven.errors import QuestionError, require
from anygiven.estimators.options import COUNT, seed_of
from anygiven.estimators.table_questions import encoded, possible_rows
from anygiven.lattice import Question
from anygiven.variables import Table, read_table
from anygiven.variables.domains import CategoricalDomain, plain_text

if TYPE_CHECKING:
    from anygiven.estimators.table_questions import Given
    from anygiven.estimators.tabular import TabularDensity

N_DRAWS = 2000


class Estimate(NamedTuple):
    """A figure from draws, and its standard error."""

    value: Any
    error: Any


class JointAnswer:
    """p(columns | given), of one row that is given or of many."""

    def __init__(self, density: TabularDensity, names: list[str], given: Given):
        self.density, self.names, self.known = density, names, given

    @property
    def is_single(self) -> bool:
        return self.known.row is not None

    def __len__(self) -> int:
        return len(self.known.x)

    @property
    def _columns(self) -> list[int]:
        return [self.density.schema_.index(name) for name in self.names]

    def log_prob(self, values: Any) -> Any:
        """Log probability of values of all the columns: a dict or a tuple of one each, or a table of them. Where many
        rows are given, the table has a row for each."""
        is_one = isinstance(values, dict) and all(np.ndim(value) == 0 for value in values.values())
        if isinstance(values, tuple):
            values, is_one = [list(values)], True
        table = read_table(values, self.names)
        table = Table(
            tuple(c for c in table.columns if c.name in self.names), table.n_rows, table.backend, table.native
        )
        if len(table.names) < len(self.names):
            raise QuestionError(f"Give values of all of them: {', '.join(self.names)}.")
        x, is_query = encoded(self.density.schema_, table)
        if not bool(is_query[:, self._columns].all()):
            raise QuestionError("A joint probability needs a value in every column; there is a gap.")
        x_known, is_evidence = self.known.x, self.known.is_evidence
        if len(x) == 1:  # one set of values for all rows
            x, is_query = x.expand_as(x_known), is_query.expand_as(is_evidence)
        if len(x_known) not in (1, len(x)):
            raise QuestionError(f"{len(x)} rows of values were given for {len(x_known)} rows; they must match.")
        is_evidence = is_evidence.expand_as(is_query)
        cells = torch.where(is_evidence.unsqueeze(-1), x_known.expand_as(x), x)
        log_p = self.density._log_prob(cells, Question(is_query, is_evidence))
        log_p = np.where(np.broadcast_to(possible_rows(self.density.schema_, table), log_p.shape), log_p, -np.inf)
        return float(log_p[0]) if is_one and self.is_single else log_p

    def sample(self, n: int = 1, *, steps: int | None = None, random_state: Any = None) -> Any:
        """n draws of the columns, for each row that is given, as a table; with the rows' labels, if they have any."""
        drawn = self._draw(n, steps, random_state)
        schema = self.density.schema_
        every = read_table(schema.decode(drawn.numpy()), schema.names).native
        if isinstance(every, np.ndarray):
            return every[:, self._columns]
        import narwhals as nw

        found = nw.from_native(every, eager_only=True)[:, self._columns].to_native()
        if isinstance(found, pd.DataFrame) and not self.is_single and self.known.index is not None:
            found.index = self.known.index.repeat(int(n))
        return found

    def _draw(self, n: int, steps: int | None, random_state: Any) -> torch.Tensor:
        """(rows × n, N, 4) cells with the asked columns drawn and no others."""
        if not COUNT.allows(n):
            raise QuestionError(f"{n!r} draws were asked for; it must be a whole number of at least one.")
        x = self.known.x.repeat_interleave(int(n), dim=0)
        is_evidence = self.known.is_evidence.repeat_interleave(int(n), dim=0)
        is_query = torch.zeros_like(is_evidence).index_fill(1, torch.tensor(self._columns), True)
        return self.density._draw(x, is_evidence, steps, 1.0, random_state, is_query)

    def mutual_information(self, n: int = N_DRAWS, random_state: Any = None) -> Estimate:
        """How many nats the columns tell of each other, given what is given: E[log p(a, b) − log p(a) − log p(b)] over
        n draws (of more than two columns: their total correlation), with its standard error."""
        drawn = self._draw(n, None, seed_of(random_state))
        is_evidence = self.known.is_evidence.repeat_interleave(int(n), dim=0)

        def log_prob(columns: list[int]) -> np.ndarray:
            is_query = torch.zeros_like(is_evidence).index_fill(1, torch.tensor(columns), True)
            return self.density._log_prob(drawn, Question(is_query, is_evidence))

        gain = log_prob(self._columns) - sum(log_prob([column]) for column in self._columns)
        gain = gain.reshape(-1, int(n))
        mean, error = gain.mean(1), gain.std(1) / np.sqrt(int(n))
        return Estimate(float(mean[0]), float(error[0])) if self.is_single else Estimate(mean, error)

    @property
    def title(self) -> str:
        given = ", ".join(f"{key}={plain_text(value)}" for key, value in (self.known.row or {}).items())
        return ", ".join(self.names) + (f" | {given}" if given else "")

    def plot(self, ax=None, n: int = N_DRAWS, random_state: Any = 0):
        """Draws of two columns: points for numbers, a table of shares for categories, spreads for one of each."""
        if len(self.names) != 2 or not self.is_single:
            raise QuestionError("plot is of two columns and one row that is given; ask for those.")
        plt = require("matplotlib.pyplot", "plot")
        ax = ax or plt.subplots(figsize=(5, 4))[1]
        drawn = read_table(self.sample(n, random_state=random_state), self.names)
        first, second = (pd.Series(column.values) for column in drawn.columns)
        is_category = [isinstance(self.density.schema_.domains[column], CategoricalDomain) for column in self._columns]
        if all(is_category):
            shares = pd.crosstab(second, first, normalize=True)
            ax.imshow(shares.to_numpy(), cmap="Blues", aspect="auto")
            ax.set_xticks(range(shares.shape[1]), [plain_text(v) for v in shares.columns])
            ax.set_yticks(range(shares.shape[0]), [plain_text(v) for v in shares.index])
        elif any(is_category):
            numbers, groups = (second, first) if is_category[0] else (first, second)
            parts = {plain_text(value): np.asarray(numbers)[groups == value] for value in sorted(set(groups), key=str)}
            ax.boxplot(list(parts.values()), orientation="vertical" if is_category[0] else "horizontal", whis=(5, 95),
                       sym="", tick_labels=list(parts))  # fmt: skip
        else:
            ax.scatter(first, second, s=6, alpha=0.35, color="#3b6ea5", linewidths=0)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.set_title(self.title, fontsize=10)
        return ax

    def __repr__(self) -> str:
        return f"<{self.title}>" if self.is_single else f"<{', '.join(self.names)}, {len(self):,} rows>"
