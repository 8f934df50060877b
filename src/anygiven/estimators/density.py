"""What all densities share: how they are fitted, saved, loaded, and what they say of what was never trained."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import torch
from msgspec import Meta
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from typing_extensions import TypedDict

from anygiven.errors import AnyGivenError, AnyGivenWarning, ModelFolderError, QuestionError
from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import (
    Recipe,
    Split,
    build_model,
    fingerprint_of,
    fit_models,
    joined,
    remove_checkpoints,
)
from anygiven.estimators.folder import StoredModel, load_folder, read_steadily, save_folder, shapes_of
from anygiven.estimators.options import check_against_weights, check_options, device_of, seed_of, settings_with
from anygiven.estimators.workload import StoredWorkload, TrainedWorkload
from anygiven.lattice import Path, Protocol, Question
from anygiven.model import AnyOrderModel, PathModel
from anygiven.networks import networks_for
from anygiven.training import Outcome, Settings
from anygiven.variables.domains import Domain
from anygiven.variables.modelled import Variables
from anygiven.variables.stored import read_stored

if TYPE_CHECKING:
    from typing_extensions import Self


MAX_VARIABLES = 2**24
OF_THE_FIT = ("verbose", "checkpoint", "device", "workload")  # of one run of fit, or kept elsewhere
MOST_NAMED = 5  # variables in a sentence
MOST_LOOKED_AT = 256  # rows of a question, when it is asked whether such were trained


HowMany = Annotated[int, Meta(ge=0, le=2**53)]


class Report(TypedDict):
    """What every fit tells of itself."""

    parameters: HowMany
    steps: HowMany
    best_step: HowMany
    training_seconds: float
    seconds: float
    stopped: str
    is_cut_short: bool
    curve: list[tuple[HowMany, float, float | None]]  # step, seconds, nats of the validation questions


class Density(BaseEstimator):
    """What a kind of data models (variables_), for which questions (workload_), by which model (model_), and what every
    density does with them: it is fitted, saved, loaded and described alike.
    """

    kind: ClassVar[str]  # as its folder states
    variables_type: ClassVar[type[Variables]]
    report_type: ClassVar[Any]  # of report.json
    workload: Any
    network: str
    max_minutes: float | None
    training: dict[str, Any] | None = None
    checkpoint: Any
    verbose: bool | None
    device: Any
    random_state: Any
    variables_: Variables
    workload_: TrainedWorkload
    model_: AnyOrderModel
    architecture_: Architecture
    report_: dict[str, Any]
    seed_: int
    checkpoint_: Any = None  # of the fit, until the model is saved

    @abstractmethod
    def describe(self) -> str:
        """What was learnt, for a person."""

    @abstractmethod
    def _default_architecture(self, n: int) -> Architecture:
        """For so much data of this kind."""

    @abstractmethod
    def _settings(self, n: int) -> Settings:
        """How it is trained on so much data."""

    # ------------------------------------------------------------------ fitting

    def _begin(self) -> None:
        """Before anything is read: the options are checked and the seed is fixed."""
        self._began = time.monotonic()
        check_options(self.get_params(deep=False))
        self.seed_, self._device = seed_of(self.random_state), device_of(self.device)
        if not (self.checkpoint is None or isinstance(self.checkpoint, str | os.PathLike)):
            raise QuestionError(f"checkpoint is {self.checkpoint!r}; it must be the path of a folder.")
        self.checkpoint_ = self.checkpoint

    def _choose_architecture(self, n: int) -> Architecture:
        """By how much data there is, unless it is given."""
        networks = networks_for(self.domains)
        if self.network not in ("auto", *networks):
            raise QuestionError(
                f"There is no network {self.network!r} for {self.kind}s; use auto or one of {', '.join(networks)}."
            )
        chosen, options = self._default_architecture(n), self.get_params(deep=False)
        names = [field.name for field in fields(Architecture) if field.name != "network"]
        return replace(chosen, **{name: options[name] for name in names if options.get(name) is not None})

    def _learn(
        self, split: Split, n: int, told_by: Sequence[Any], closing: float = 1.0, n_members: int = 1
    ) -> list[Outcome]:
        """Train on rows for the workload; `told_by` are arrays by which a checkpoint knows the data."""
        domains, objective = self.variables_.domains, self.workload_.objective
        self.workload_.check()
        settings = settings_with(self._settings(n), self.training)
        recipe = Recipe(domains, self.architecture_, objective, settings, self._device)
        fingerprint = fingerprint_of(recipe, str(self.workload), *told_by) if self.checkpoint else ""
        self.model_, outcomes = fit_models(
            recipe, split, n_members, self.checkpoint, fingerprint, self.verbose, self._began, closing
        )
        return outcomes

    def _report_of(self, outcomes: list[Outcome]) -> dict[str, Any]:
        """What every fit tells of itself."""
        return {
            "parameters": self.model_.n_parameters, "steps": sum(o.steps for o in outcomes),
            "best_step": outcomes[0].best_step, "training_seconds": round(sum(o.seconds for o in outcomes), 1),
            "stopped": outcomes[0].stopped, "is_cut_short": any(o.is_cut_short for o in outcomes),
            "curve": outcomes[0].curve,
        }  # fmt: skip

    def _seconds(self) -> float:
        """Since fit was called."""
        return round(time.monotonic() - self._began, 1)

    # ------------------------------------------------------------------ what all answers need

    @property
    def domains(self) -> Sequence[Domain]:
        return self.variables_.domains

    @property
    def _reads_paths(self) -> bool:
        """Whether the model scores a whole path in one pass."""
        return isinstance(self.model_, PathModel)

    def _warn_untrained(self, question: Question, orders: Sequence[Protocol] = ()) -> None:
        """Say so where the workload trained no such question, along these orders or, without any, in one look."""
        workload, named = self.workload_, self.variables_.name_of
        never = workload.never_asked(question)
        if never:
            names = ", ".join(named(variable) for variable in never[:MOST_NAMED])
            self._say(f"The model was fitted for other questions: {names} was never asked in training, so this answer "
                      "is close to its marginal; fit with workload='any' to ask it.")  # fmt: skip
        strange = workload.has_strange_shape(question) if self._reads_paths else []
        for path in () if strange else self._few_paths(question, orders):
            found = workload.support.strange(path)
            if found is not None:
                strange = [found.said(named)]
                break
        if strange:
            self._say(f"The model was fitted for other questions: {' and '.join(strange)}; this answer may be far off; "
                      "fit with workload='any' to ask it.")  # fmt: skip

    def _few_paths(self, question: Question, orders: Sequence[Protocol]) -> Iterator[Path]:
        """Of the first rows that ask different things."""
        both = torch.stack([question.is_query, question.is_evidence], dim=1).flatten(1)
        _, first = np.unique(both[:MOST_LOOKED_AT].numpy(), axis=0, return_index=True)
        few = Question(question.is_query[first], question.is_evidence[first])
        if not orders:
            yield Path.look(few.is_evidence, few.is_query)
        for order in orders:
            yield order.path(few, torch.Generator().manual_seed(0))

    @staticmethod
    def _say(sentence: str) -> None:
        warnings.warn(sentence, AnyGivenWarning, stacklevel=5)

    def _generator(self, random_state) -> torch.Generator:
        return torch.Generator().manual_seed(seed_of(random_state))

    def save(self, path) -> None:
        """Write the model as a folder, whole or not at all; then the checkpoint of its training is removed."""
        self._check_fitted()
        from anygiven import __version__

        config = {
            "kind": self.kind,
            "version": __version__,
            "architecture": self.architecture_.to_json(),
            "parameters": {
                key: value for key, value in self.get_params().items() if _is_plain(value) and key not in OF_THE_FIT
            },
            "seed": self.seed_,
        }
        weights = {name: tensor.detach().cpu() for name, tensor in self.model_.state_dict().items()}
        variables, workload = self.variables_.to_json(), self.workload_.to_json()
        save_folder(FilePath(path), config, variables, workload, weights, self.report_)
        if self.checkpoint_:
            remove_checkpoints(FilePath(self.checkpoint_))
            self.checkpoint_ = None

    @classmethod
    def load(cls, path) -> Self:
        """Read a model folder."""
        folder = FilePath(path)
        return read_steadily(folder, lambda: cls._from_stored(load_folder(folder)))

    @classmethod
    def _from_stored(cls, stored: StoredModel) -> Self:
        if stored.config.kind != cls.kind:
            raise ModelFolderError(
                f"{stored.folder} is a model of another kind of data ({stored.config.kind}); use anygiven.load."
            )
        try:
            density = cls._without_weights(stored)
        except (AnyGivenError, ValueError, TypeError, KeyError, IndexError, RuntimeError, ArithmeticError, MemoryError):
            raise ModelFolderError(
                f"{stored.folder} is damaged: its parts do not fit together; fit or copy it again."
            ) from None
        weights = stored.weights()
        members = range(density.report_.get("members", 1))
        density.model_ = joined([build_model(density.domains, density.architecture_, 0) for _ in members])
        density.model_.load_state_dict(weights)
        density.model_.to(device_of(density.device))
        return density

    @classmethod
    def _without_weights(cls, stored: StoredModel) -> Self:
        """All but the weights; of the network it is found out what shapes they must have, without making it."""
        config = stored.config
        check_options(config.parameters)
        if set(OF_THE_FIT) & set(config.parameters):
            raise ValueError("a parameter is not the model's")
        density = cls(**config.parameters)
        density.architecture_, density.seed_ = config.architecture, config.seed
        report = read_stored(stored.report, cls.report_type)
        density.report_ = {key: math.nan if value is None else value for key, value in report.items()}
        n_members = density.report_.get("members", 1)
        check_against_weights(config.architecture, n_members, len(stored.shapes), stored.n_weights)
        kind = cls.variables_type
        density.variables_ = kind.from_stored(read_stored(stored.schema, kind.stored_type))
        if len(density.domains) > MAX_VARIABLES:
            raise ValueError("there are more variables than can be")
        workload = read_stored(stored.workload, StoredWorkload)
        density.workload_ = TrainedWorkload.from_json(workload, len(density.domains))
        density.workload = density.workload_.stated
        with torch.device("meta"):
            density.model_ = joined([build_model(density.domains, density.architecture_, 0) for _ in range(n_members)])
        if shapes_of(density.model_.state_dict()) != stored.shapes:
            raise ValueError("the weights are of another network")
        density._try_out()
        return density

    def _try_out(self) -> None:
        """Touch what answers rely on: a folder whose parts do not fit is refused when it is read, not when asked."""
        self.variables_.try_out()
        self.workload_.check()
        self.describe()

    def _describe_training(self) -> str:
        """ "1,504 steps in 12 s (time is up …), for workload='any'"."""
        r = self.report_
        more = "; it was still getting better: more minutes would help" if r.get("is_cut_short") else ""
        stated = f"for workload={self.workload_.stated!r}"
        return f"{r['steps']:,} steps in {r['seconds']:.0f} s ({r['stopped']}{more}), {stated}"

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit first.")


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
