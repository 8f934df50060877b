"""What all densities share: a seed, a trained model, and a folder to keep it in."""

from __future__ import annotations

import json
import math
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from msgspec import Meta
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from typing_extensions import TypedDict

from anygiven.errors import AnyGivenError, ModelFolderError
from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import build_model, joined, remove_checkpoints
from anygiven.estimators.folder import StoredModel, load_folder, read_steadily, save_folder, shapes_of
from anygiven.estimators.options import check_against_weights, check_options, seed_of
from anygiven.model import AnyOrderModel
from anygiven.variables.domains import Domain
from anygiven.variables.stored import read_stored

if TYPE_CHECKING:
    from typing_extensions import Self


MAX_VARIABLES = 2**24
OF_THE_FIT = ("verbose", "checkpoint")  # of one run of fit, not of the model


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
    """A fitted density has model_, architecture_, report_ and seed_."""

    kind: ClassVar[str]  # as its folder states
    stored_type: ClassVar[Any]  # of schema.json
    report_type: ClassVar[Any]  # of report.json
    random_state: Any
    model_: AnyOrderModel
    architecture_: Architecture
    report_: dict[str, Any]
    seed_: int
    checkpoint_: Any = None  # of the fit, until the model is saved

    @property
    @abstractmethod
    def domains(self) -> Sequence[Domain]:
        """Of the variables that are modelled."""

    @abstractmethod
    def _variables_to_json(self) -> dict[str, Any]:
        """What is modelled, as schema.json keeps it."""

    @abstractmethod
    def _variables_from_stored(self, stored: Any) -> None:
        """From what schema.json keeps, read as `stored_type`."""

    def _try_out(self) -> None:
        """Touch what answers rely on: a folder whose parts do not fit is refused when it is read, not when asked."""
        self.describe()

    @abstractmethod
    def describe(self) -> str:
        """What was learnt, for a person."""

    def _begin(self) -> None:
        """Before anything is read: the options are checked and the seed is fixed."""
        self._began = time.monotonic()
        check_options(self.get_params(deep=False))
        self.seed_ = seed_of(self.random_state)
        self.checkpoint_ = getattr(self, "checkpoint", None)

    def _seconds(self) -> float:
        """Since fit was called."""
        return round(time.monotonic() - self._began, 1)

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
        weights = {name: tensor.detach() for name, tensor in self.model_.state_dict().items()}
        save_folder(Path(path), config, self._variables_to_json(), weights, self.report_)
        if self.checkpoint_:
            remove_checkpoints(Path(self.checkpoint_))
            self.checkpoint_ = None

    @classmethod
    def load(cls, path) -> Self:
        """Read a model folder."""
        folder = Path(path)
        return read_steadily(folder, lambda: cls._from_stored(load_folder(folder)))

    @classmethod
    def _from_stored(cls, stored: StoredModel) -> Self:
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
        return density

    @classmethod
    def _without_weights(cls, stored: StoredModel) -> Self:
        """All but the weights; of the network it is found out what shapes they must have, without making it."""
        config = stored.config
        check_options(config.parameters)
        density = cls(**config.parameters)
        density.architecture_, density.seed_ = config.architecture, config.seed
        report = read_stored(stored.report, cls.report_type)
        density.report_ = {key: math.nan if value is None else value for key, value in report.items()}
        n_members = density.report_.get("members", 1)
        check_against_weights(config.architecture, n_members, len(stored.shapes), stored.n_weights)
        density._variables_from_stored(read_stored(stored.schema, cls.stored_type))
        if len(density.domains) > MAX_VARIABLES:
            raise ValueError("there are more variables than can be")
        with torch.device("meta"):
            density.model_ = joined([build_model(density.domains, density.architecture_, 0) for _ in range(n_members)])
        if shapes_of(density.model_.state_dict()) != stored.shapes:
            raise ValueError("the weights are of another network")
        density._try_out()
        return density

    def _describe_training(self) -> str:
        """ "1,504 steps in 12 s (time is up …)"."""
        r = self.report_
        more = "; it was still getting better: more minutes would help" if r.get("is_cut_short") else ""
        return f"{r['steps']:,} steps in {r['seconds']:.0f} s ({r['stopped']}{more})"

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit first.")


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
