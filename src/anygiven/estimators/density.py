"""What all densities share: a seed, a trained model, and a folder to keep it in."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from anygiven.errors import AnyGivenError, ModelFolderError
from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import build_model, joined
from anygiven.estimators.folder import load_folder, save_folder
from anygiven.estimators.options import check_options, seed_of
from anygiven.model import AnyOrderModel
from anygiven.variables.domains import Domain

if TYPE_CHECKING:
    from typing_extensions import Self


OF_THE_FIT = ("verbose", "checkpoint")  # of one run of fit, not of the model


class Density(BaseEstimator):
    """A fitted density has model_, architecture_, report_ and seed_."""

    kind: ClassVar[str]  # as its folder states
    random_state: Any
    model_: AnyOrderModel
    architecture_: Architecture
    report_: dict[str, Any]
    seed_: int

    @property
    @abstractmethod
    def domains(self) -> Sequence[Domain]:
        """Of the variables that are modelled."""

    @abstractmethod
    def _variables_to_json(self) -> dict[str, Any]:
        """What is modelled, as schema.json keeps it."""

    @abstractmethod
    def _variables_from_json(self, schema: dict[str, Any]) -> None: ...

    def _begin(self) -> None:
        """Before anything is read: the options are checked and the seed is fixed."""
        self._began = time.monotonic()
        check_options(self.get_params(deep=False))
        self.seed_ = seed_of(self.random_state)

    def _seconds(self) -> float:
        """Since fit was called."""
        return round(time.monotonic() - self._began, 1)

    def _generator(self, random_state) -> torch.Generator:
        return torch.Generator().manual_seed(seed_of(random_state))

    def save(self, path) -> None:
        """Write the model as a folder, whole or not at all."""
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

    @classmethod
    def load(cls, path) -> Self:
        """Read a model folder."""
        config, schema, weights, report = load_folder(Path(path))
        try:
            density = cls(**config["parameters"])
            density._variables_from_json(schema)
            density.architecture_ = Architecture(**config["architecture"])
            members = range(report.get("members", 1))
            density.model_ = joined([build_model(density.domains, density.architecture_, 0) for _ in members])
            density.model_.load_state_dict(weights)
        except (KeyError, TypeError, RuntimeError, AnyGivenError):
            raise ModelFolderError(f"{path} is damaged: its parts do not fit together; fit or copy it again.") from None
        density.report_, density.seed_ = report, config.get("seed", 0)
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
