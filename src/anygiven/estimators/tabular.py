"""TabularDensity: fit a table once, then ask any conditional of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor
from typing_extensions import NotRequired

from anygiven.errors import QuestionError, TableError
from anygiven.estimators.answers import Answer
from anygiven.estimators.defaults import Architecture, architecture_for, steps_for
from anygiven.estimators.density import Density, HowMany, Report
from anygiven.estimators.drawing import check_drawing
from anygiven.estimators.fitting import hold_out
from anygiven.estimators.joint import JointAnswer
from anygiven.estimators.options import seed_of
from anygiven.estimators.progress import share_bar
from anygiven.estimators.table_questions import (
    Given,
    cells_of_known,
    encoded,
    filled_table,
    read_given,
    read_question,
    require_all_columns,
    row_or_table,
    with_given,
)
from anygiven.estimators.workload import table_workload
from anygiven.heads import COLUMN_HEADS
from anygiven.inference import distribution_at, draw, fill, log_prob, log_prob_by_ratio, order_ensemble
from anygiven.inference.orders import ranked_orders
from anygiven.lattice import Budget, Canonical, Path, Question
from anygiven.training import Settings
from anygiven.variables import Schema, read_table, schema_of
from anygiven.variables.domains import Numeric
from anygiven.variables.rows import Data
from anygiven.variables.tables import native_values

N_DRAWING_ORDERS = 8
MAX_CLASSES = 64  # possible values of a number that predict_proba tells apart
SCHEMA_SHARE = 0.25  # of the time allowed: what the columns' own marginals may take
N_COSTLY = 300  # validation questions where answers are costly
N_HELD = 1000  # rows that orders are chosen by
STATISTICS = ("mean", "median", "mode")


class TabularReport(Report):
    rows: HowMany
    columns: HowMany
    gaps: HowMany
    members: Annotated[int, Meta(ge=1)]
    held_out_log_prob: float | None
    held_out_log_prob_of_marginals: float | None
    orders: NotRequired[list[list[HowMany]]]


class TabularDensity(Density):
    """The joint distribution of a table, and every conditional of it.

    Parameters
    ----------
    schema : dict, optional
        Column → "continuous", "grid", "count", "categorical", "binary", "ordinal", "leave out", a list of its values
        in order, or a kind of number with its bounds: ("continuous", 0, 1), None for a side without one. All other
        columns are inferred, bounds too.
    workload : str, dict or Workload
        Which questions will be asked: "any" (default), "joint", "marginals", "conditionals", "bernoulli",
        "gaps", or {"known": [...], "asked": [...]}.
    network : "auto", "mlp", "transformer", "path", "ace" or "sfarm"
        "auto" is the MLP; the last two are the papers' own (anygiven.methods).
    orders : int
        How many orders a likelihood is averaged over (log-mean-exp); the first is the column order.
    tried_orders : int
        Of so many orders, and two by conditional entropy, those are averaged over along which the held-out rows are
        likeliest. Zero, the default, takes random ones and no time.
    members : int
        How many networks are trained and answer together; they share the time allowed. On the tables measured one
        network trained longer was as good, so one is the default.
    max_minutes : float
        fit returns by then at the latest, and often much earlier.
    max_steps, width, depth, dropout, n_components, learning_rate, weight_decay, batch_size : optional
        Chosen by the table's size unless given.
    head : "mixture", "spline", "energy" or "ace"
        What the smooth part of a numeric column is made of: Gaussians (the default), a monotone spline (extra
        "splines"), a mixture corrected by an energy network, or ACE's energy that stands alone.
    training : dict, optional
        Other settings of the training loop (anygiven.training.Settings): {"schedule": "linear", "noise": 0.01, …}.
    device : "auto", "cpu", "cuda" or "mps"
        Where it is trained and answers.
    checkpoint : path, optional
        A folder where training saves its state every 20 seconds; fitting the same table again resumes there. It is
        kept until the model is saved.
    verbose : bool, optional
        Progress on standard error; by default only in a terminal.
    random_state : int
        The same seed, the same model; None: another each time.
    """

    kind = "table"
    variables_type = Schema
    report_type = TabularReport
    variables_: Schema

    def __init__(
        self,
        schema=None,
        workload="any",
        network="auto",
        orders=8,
        tried_orders=0,
        members=1,
        max_minutes=4.0,
        max_steps=None,
        width=None,
        depth=None,
        dropout=None,
        n_components=None,
        learning_rate=2e-3,
        weight_decay=0.02,
        batch_size=256,
        training=None,
        head="mixture",
        device="auto",
        checkpoint=None,
        verbose=None,
        random_state=0,
    ):
        self.schema = schema
        self.workload = workload
        self.network = network
        self.orders = orders
        self.tried_orders = tried_orders
        self.members = members
        self.max_minutes = max_minutes
        self.max_steps = max_steps
        self.width = width
        self.depth = depth
        self.dropout = dropout
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.training = training
        self.head = head
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def fit(self, X, y=None, sample_weight=None, valid=None) -> TabularDensity:
        """Learn from a table: pandas, polars, pyarrow, numpy, or a path to CSV or Parquet. Gaps may be anywhere.

        `sample_weight` is how much each row counts: a row of weight two counts as if it stood there twice. `valid` is a
        table by whose rows the training is judged and stopped; by default a tenth of the others.
        """
        self._begin()
        if not (self.schema is None or isinstance(self.schema, dict)):
            raise QuestionError(f"schema is {self.schema!r}; it must be a dict of columns and their kinds.")
        table = read_table(X)
        weight = _checked_weight(sample_weight, table.n_rows)
        if weight is not None:
            table = table.rows(weight > 0)
            weight = weight[weight > 0]
        soon = None if self.max_minutes is None else self._began + 60 * SCHEMA_SHARE * self.max_minutes
        self.variables_ = schema_of(table, self.schema, self.seed_, weight, soon)
        cells, present = self.schema_.encode(table)
        counts = None if weight is None else torch.from_numpy(weight)
        data = Data(torch.from_numpy(cells), torch.from_numpy(present), counts)
        self.architecture_ = self._choose_architecture(len(data))
        self.workload_ = table_workload(self.workload, self.schema_, data.is_present, self.architecture_.network)
        n_tried = self.tried_orders + 2 * bool(self.tried_orders)
        closing = 1.0 + 0.5 * n_tried * len(self.domains)
        told_by = (cells, present) if self.checkpoint else ()
        split = partial(_split, data, None if valid is None else self._data_of(valid))
        outcomes = self._learn(split, len(data), told_by, closing, self.members)
        self.report_ = {
            "rows": len(data),
            "columns": len(self.schema_.variables),
            "gaps": int((~data.is_present).sum()),
            "members": len(outcomes),
            "held_out_log_prob": -float(np.mean([o.best_nats for o in outcomes])),
            "held_out_log_prob_of_marginals": -float(np.mean([o.curve[0][2] for o in outcomes])),
            **self._report_of(outcomes),
        }
        if self.tried_orders:
            self.report_["orders"] = self._likeliest_orders(split(self.seed_)[1].rows(slice(0, N_HELD)))
        self.report_["seconds"] = self._seconds()
        return self

    def _data_of(self, X) -> Data:
        """Other rows of the table that was learnt from."""
        table = self.schema_.as_trained(read_table(X, self.schema_.names))
        require_all_columns(self.schema_, table)
        return Data(*encoded(self.schema_, table, unseen="gap"))

    def _likeliest_orders(self, held: Data) -> list[tuple[int, ...]]:
        until = None if self.max_minutes is None else self._began + 60 * self.max_minutes
        ranked = ranked_orders(self.model_, held, self.tried_orders, self.seed_, until)
        column_order = tuple(range(len(self.domains)))
        return [order.order or column_order for order in ranked[: self.orders]]

    @property
    def schema_(self) -> Schema:
        """What the columns are: the variables of a table."""
        return self.variables_

    def _default_architecture(self, n: int) -> Architecture:
        if self.n_components == 0:
            raise QuestionError("n_components is 0; a table's numbers need at least 1.")
        if self.head not in list(COLUMN_HEADS):  # it may be anything, also what cannot be looked up in a dict
            raise QuestionError(f"There is no head {self.head!r}; use one of {', '.join(COLUMN_HEADS)}.")
        if self.head != "mixture" and not any(isinstance(domain, Numeric) for domain in self.domains):
            raise QuestionError(
                f"The head {self.head!r} is for numbers, and no column of this table has any; leave the head out."
            )
        return architecture_for(n, len(self.schema_.variables), self.network)

    def _settings(self, n: int) -> Settings:
        settings = Settings(
            max_steps=self.max_steps or steps_for(n),
            max_minutes=self.max_minutes,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            muon=self.architecture_.network != "mlp",
            batch_size=self.batch_size,
            seed=self.seed_,
        )
        if not COLUMN_HEADS[self.head].is_costly:
            return settings
        return replace(settings, validation_rows=N_COSTLY, most_validation_rows=N_COSTLY)

    # ------------------------------------------------------------------ how likely

    def log_prob(self, X=None, *, query=None, given=None, orders: int | None = None, method: str = "path"):
        """Log probability of each row in nats: densities in your units, masses for discrete columns.

        log_prob(table)                     over the cells present
        log_prob(query=..., given=...)   log p(query | given), row by row; given may be one row (a dict)
        method="ratio" takes log p(query, given) − log p(given) instead of the direct path.
        """
        self._check_fitted()
        x, question, is_possible = read_question(self.schema_, X, query, given)
        return np.where(is_possible, self._log_prob(x, question, orders, method), -np.inf)

    def _log_prob(self, x: Tensor, question: Question, orders: int | None = None, method: str = "path") -> np.ndarray:
        protocols = self._protocols(orders)
        if method == "ratio":
            return log_prob_by_ratio(self.model_, x, question, protocols).numpy()
        if method != "path":
            raise QuestionError(f"There is no method {method!r}; use 'path' or 'ratio'.")
        self._warn_untrained(question, protocols)
        with share_bar("scoring", self.verbose if len(x) > 2000 else False) as report:
            return log_prob(self.model_, x, question, protocols, report=report).numpy()

    def _protocols(self, orders: int | None):
        """Orders to average over; a workload of one canonical order is asked along that order."""
        wanted = orders if orders is not None else self.orders
        if self.workload_.trains_canonical_order_alone and orders is None:
            wanted = 1
        chosen = self.report_.get("orders", [])
        if wanted <= len(chosen):
            return [Canonical(tuple(order)) for order in chosen[:wanted]]
        return order_ensemble(len(self.schema_.variables), max(int(wanted), 1), self.seed_)

    def score(self, X, y=None) -> float:
        """Mean log probability per row."""
        return float(np.mean(self.log_prob(X)))

    def score_samples(self, X):
        """The same as log_prob(X), by scikit-learn's name."""
        return self.log_prob(X)

    # ------------------------------------------------------------------ conditionals

    def conditional(self, query, given=None) -> Answer | JointAnswer:
        """The distribution of a column given what is known; of a list of columns their joint distribution.

        `given` is one row (a dict, a Series, a frame of one row), and the answer's summaries are single values; or a
        table of many rows, and they are arrays. Gaps are left open; the asked columns of a table are not looked at.
        """
        self._check_fitted()
        if not isinstance(query, (list, tuple)):
            known, answer = self._answer(query, given)
            return Answer(answer.variable, answer.distribution, known.row, known.index)
        columns = [self.schema_.index(name) for name in query]
        if not columns or len(set(columns)) < len(columns):
            raise QuestionError("A joint conditional needs a list of different columns.")
        names = [self.schema_.names[column] for column in columns]
        return JointAnswer(self, names, read_given(self.schema_, given, names))

    def _answer(self, query, given) -> tuple[Given, Answer]:
        """What is known, and a column's conditional of every row of it, as arrays."""
        column = self.schema_.index(query)
        known = read_given(self.schema_, given, [self.schema_.names[column]])
        is_query = torch.zeros_like(known.is_evidence).index_fill(1, torch.tensor([column]), True)
        self._warn_untrained(Question(is_query, known.is_evidence & ~is_query))
        distribution = distribution_at(self.model_, self.schema_.domains, known.x, known.is_evidence, column)
        return known, Answer(self.schema_.variables[column], distribution)

    # ------------------------------------------------------------------ predictions

    def predict(self, X, target, output: str | None = None):
        """The target given the other cells of each row: "mean", "median" or "mode" (or "label", the same); by default
        the mean of numbers and the likeliest of categories."""
        answer = self._answers(X, target)
        numeric = isinstance(answer.variable.domain, Numeric)
        output = {None: "mean" if numeric else "mode", "label": "mode"}.get(output, output)
        if output not in STATISTICS:
            raise QuestionError(f"There is no output {output!r}; use {', '.join(STATISTICS)} or label.")
        found = getattr(answer, output)
        kinds = {type(label) for label in found}
        return found.astype(float) if kinds == {float} else found

    def predict_proba(self, X, target) -> np.ndarray:
        """(rows, classes) the probability of each value of `classes_[target]`, given the other cells of each row."""
        answer = self._answers(X, target)
        if answer.name not in self.classes_:
            raise QuestionError(f"{answer.name} is a number without a fixed set of values; use predict_quantiles.")
        return answer.distribution.masses()[1]

    def predict_quantiles(self, X, target, levels=(0.05, 0.5, 0.95)) -> np.ndarray:
        """(rows, levels) given the other cells of each row."""
        return self._answers(X, target).quantile(np.atleast_1d(levels).tolist())

    @property
    def classes_(self) -> dict[str, np.ndarray]:
        """The values of every column that has a fixed set of them, in the order of predict_proba's columns."""
        self._check_fitted()
        found = {}
        for variable in self.schema_.variables:
            domain = variable.domain
            if isinstance(domain, Numeric):
                if 0 < len(domain.cell_values) <= MAX_CLASSES and np.isfinite(domain.bounds).all():
                    found[variable.name] = native_values(domain.cell_values, variable.storage)
            else:
                values = np.array(domain.values, dtype=object)  # type: ignore[attr-defined]
                found[variable.name] = native_values(values, variable.storage)
        return found

    def _answers(self, X, target) -> Answer:
        """The target's conditional of every row, as arrays."""
        self._check_fitted()
        return self._answer(target, read_table(X, self.schema_.names))[1]

    # ------------------------------------------------------------------ draws and gaps

    def sample(self, n: int = 1, given=None, *, steps: int | None = None, temperature: float = 1.0, random_state=None):
        """Rows like the training table. With something given: n rows for each row of it.

        `steps` draws in that many network calls instead of one per column: faster, less exact.
        """
        self._check_fitted()
        check_drawing(n, steps, temperature)
        known = row_or_table(given)
        x, is_evidence = cells_of_known(self.schema_, known)
        x, is_evidence = x.repeat_interleave(n, dim=0), is_evidence.repeat_interleave(n, dim=0)
        drawn = self._draw(x, is_evidence, steps, temperature, random_state)
        return with_given(self.schema_.decode(drawn.numpy(), known), known, n)

    def _draw(
        self, x: Tensor, is_evidence: Tensor, steps, temperature: float, random_state, is_query: Tensor | None = None
    ) -> Tensor:
        """x with the asked columns drawn: by default all that is not evidence."""
        generator = self._generator(random_state)
        question = Question(~is_evidence if is_query is None else is_query, is_evidence)
        step = torch.empty(is_evidence.shape, dtype=torch.int64)
        # A few orders shared by many rows: nearly as varied as one order a row, and far fewer columns a look.
        chunks = torch.arange(len(x)).chunk(N_DRAWING_ORDERS if len(x) >= 256 else 1)
        orders = [self._order_of_drawing(generator) for _ in chunks]
        self._warn_untrained(question, orders)
        for rows, order in zip(chunks, orders, strict=True):
            protocol = Budget(order, int(steps)) if steps else order
            part = Question(question.is_query[rows], question.is_evidence[rows])
            step[rows] = protocol.path(part).step
        # One look serves all orders; where answers are costly, those of columns that a row does not ask are not.
        groups = chunks if COLUMN_HEADS[self.architecture_.head].is_costly else [slice(None)]
        with share_bar("drawing", self.verbose if len(x) > 5000 else False) as report:
            drawn = [draw(self.model_, x[rows], Path(step[rows]), generator, temperature,
                          report and (lambda share, k=k: report((k + share) / len(groups))))
                     for k, rows in enumerate(groups)]  # fmt: skip
        return torch.cat(drawn)

    def _order_of_drawing(self, generator: torch.Generator) -> Canonical:
        """A random order of the columns; of a workload that trained one order alone, that one."""
        if self.workload_.trains_canonical_order_alone:
            return Canonical()
        return Canonical(tuple(torch.randperm(len(self.domains), generator=generator).tolist()))

    def impute(self, X, *, statistic: str = "mean", draws: int | None = None, steps: int | None = None,
               temperature: float = 1.0, random_state=None):  # fmt: skip
        """The table with every gap filled and nothing else touched.

        statistic: "mean" (the likeliest value for categories), "median" or "mode" of each gap given all that is
        present in its row. draws=m gives a list of m tables, each a joint draw of all gaps.
        """
        self._check_fitted()
        if statistic not in STATISTICS:
            raise QuestionError(f"There is no statistic {statistic!r}; use one of {', '.join(STATISTICS)}.")
        check_drawing(1 if draws is None else draws, steps, temperature)
        table = self.schema_.as_trained(read_table(X, self.schema_.names))
        require_all_columns(self.schema_, table)
        x, is_present = encoded(self.schema_, table, unseen="gap")
        if draws is None:
            self._warn_untrained(Question(~is_present, is_present))
            with share_bar("filling", self.verbose if len(x) > 5000 else False) as report:
                found = fill(self.model_, self.schema_.domains, x, is_present, statistic, report)
            return filled_table(self.schema_, table, is_present.numpy(), found)
        seed = seed_of(random_state)
        tables = []
        for m in range(draws):
            drawn = self._draw(x, is_present, steps, temperature, seed + m).double().numpy()
            found = {
                i: variable.domain.decode(drawn[~is_present[:, i].numpy(), i])
                for i, variable in enumerate(self.schema_.variables)
                if not bool(is_present[:, i].all())
            }
            tables.append(filled_table(self.schema_, table, is_present.numpy(), found))
        return tables

    # ------------------------------------------------------------------ what was learnt

    def _try_out(self) -> None:
        super()._try_out()
        n = len(self.schema_.variables)
        if any(sorted(order) != list(range(n)) for order in self.report_.get("orders", [])):
            raise ValueError("an order does not name every column once")

    @property
    def n_features_in_(self) -> int:
        return len(self.schema_.variables) + len(self.schema_.left_out)

    def describe(self) -> str:
        """What was learnt, for a person."""
        self._check_fitted()
        r = self.report_
        head = (
            f"{r['rows']:,} rows, {r['columns']} columns, {r['gaps']:,} gaps; {r['members']} network(s), "
            f"{r['parameters']:,} parameters, {self._describe_training()}.\n"
            f"Held-out log probability: {r['held_out_log_prob']:.3f} nats per row "
            f"(independent columns: {r['held_out_log_prob_of_marginals']:.3f}; higher is better)."
        )
        return f"{head}\n\n{self.schema_}"


def _split(data: Data, valid: Data | None, seed: int) -> tuple[Data, Data]:
    if valid is not None:
        return data, valid
    learn, held = hold_out(len(data), seed)
    return data.rows(learn), data.rows(held)


def _checked_weight(sample_weight, n_rows: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TableError("sample_weight holds something else than numbers; give one number for each row.") from None
    if weight.shape != (n_rows,):
        raise TableError(f"sample_weight has the shape {weight.shape} and the table {n_rows} rows; give one for each.")
    if not np.isfinite(weight).all() or (weight < 0).any() or weight.sum() <= 0:
        raise TableError("sample_weight must be finite, nowhere below zero, and not zero everywhere.")
    return weight
