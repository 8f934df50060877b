"""What a user says will be asked, resolved once: what is trained for it, and what was never asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from anygiven.errors import QuestionError
from anygiven.lattice import (
    ARDM,
    Activations,
    Alternating,
    Anywhere,
    Beginning,
    BernoulliEvidence,
    Blend,
    Budget,
    Canonical,
    CardMask,
    GapPatterns,
    Glimpse,
    Growing,
    Joint,
    KnownAsked,
    MaskingMode,
    Objective,
    Protocol,
    Question,
    RandomBudget,
    RandomOrder,
    RandomScan,
    RandomSlant,
    RegionEvidence,
    SharedPaths,
    SomeOf,
    Staged,
    Told,
    UniformEvidence,
    WholePath,
    Workload,
    seven_modes,
)
from anygiven.lattice.stored import from_json, to_json
from anygiven.lattice.support import Support
from anygiven.networks import NETWORKS, PathNetwork
from anygiven.networks.unet import MAX_MODES, AbsorbingUNet
from anygiven.variables import Schema
from anygiven.variables.stored import Stored

# joint, other scans, slanted lines; regions, those in lines, random evidence, some pixels; looks, any order in groups
# (which take twice the time)
IMAGE_SHARES = (0.42, 0.07, 0.07, 0.14, 0.05, 0.12, 0.04, 0.07, 0.02)
TEXT_SHARES = (0.5, 0.1, 0.2, 0.1, 0.1)  # joint, marginals, conditionals, those of shorter texts, those in groups
Words = dict[str, Callable[[], Objective]]


@dataclass(frozen=True)
class TrainedWorkload:
    """A workload as it was stated, and what was trained for it; it is saved with the model."""

    stated: Any  # a word, {"known": [...], "asked": [...]}, or a law of the lattice
    objective: Objective
    n_variables: int
    gaps: tuple[int, ...] = ()  # the variables that were missing now and then: open, whatever the law

    @cached_property
    def support(self) -> Support:
        """Which conditionals were trained. A law of the user's own is not saved: then nothing is known of it."""
        try:
            return Support.of(self.objective, self.n_variables, self.gaps)
        except QuestionError:
            return Support.of_everything(self.n_variables)

    def check(self) -> None:
        """Whether there is anything to train, for so many variables."""
        try:
            asks = bool(self.support.is_asked.any())
        except (ValueError, IndexError, RuntimeError) as error:
            raise QuestionError(f"The workload does not fit what is modelled: {error}.") from None
        if not asks:
            raise QuestionError("The workload asks nothing: what is known leaves no variable to be asked.")

    def never_asked(self, question: Question) -> list[int]:
        """The asked variables that were never asked in training."""
        return (question.is_query.any(0) & ~self.support.is_asked).nonzero().squeeze(1).tolist()

    def has_strange_shape(self, question: Question) -> list[str]:
        """What a network that reads whole paths never met: to it, what is given is not what was revealed before, and
        what is left open is not what comes later."""
        strange = []
        if not bool(self.support.is_given.any()) and bool(question.is_evidence.any()):
            strange.append("nothing was ever given")
        if not self.support.leaves_open and not bool((question.is_query | question.is_evidence).all()):
            strange.append("nothing was ever left open")
        return strange

    @property
    def trains_canonical_order(self) -> bool:
        return Canonical() in self.objective.protocols

    @property
    def trains_canonical_order_alone(self) -> bool:
        return set(self.objective.protocols) == {Canonical()}

    @property
    def trains_slanted_lines(self) -> bool:
        return any(isinstance(protocol, RandomSlant) for protocol in self.objective.protocols)

    def told(self, order: Protocol) -> Protocol:
        """A masking mode, with its number among those that were trained, for a network that is told it."""
        modes: list[Protocol] = list(self.objective.masking_modes)
        return Told(order, modes.index(order) + 1) if order in modes else order

    def to_json(self) -> dict[str, Any]:
        return {"stated": to_json(self.stated), "objective": to_json(self.objective), "gaps": list(self.gaps)}

    @classmethod
    def from_json(cls, stored: StoredWorkload, n_variables: int) -> TrainedWorkload:
        workload = cls(from_json(stored.stated), from_json(stored.objective), n_variables, tuple(stored.gaps))
        if not isinstance(workload.objective, Objective):
            raise ValueError("a workload needs an objective")
        if not set(workload.gaps) <= set(range(n_variables)):
            raise ValueError("there are gaps in a variable that is not there")
        return workload


class StoredWorkload(Stored):
    """workload.json."""

    stated: Any
    objective: dict[str, Any]
    gaps: list[int]


def _resolved(stated: Any, words: Words, trained_for: Callable[[Workload], Objective], noun: str) -> Objective:
    """A word, a workload or an objective → what is trained."""
    if isinstance(stated, Objective):
        return stated
    if isinstance(stated, Workload):
        return trained_for(stated)
    if not isinstance(stated, str) or stated not in words:
        raise QuestionError(f"{stated!r} is not a workload for {noun}: use one of {', '.join(words)}, or an object.")
    return words[stated]()


def _reads_paths(network: str) -> bool:
    return issubclass(NETWORKS[network], PathNetwork)


LOOKING: Words = {  # of networks that look once a step
    "any": lambda: ARDM(Joint()),
    "joint": lambda: Glimpse(Joint(), edges=True, cardinality=False),
    "marginals": lambda: Glimpse(CardMask()),
    "conditionals": lambda: ARDM(UniformEvidence()),
}


def table_workload(stated: Any, schema: Schema, is_present: Tensor, network: str = "mlp") -> TrainedWorkload:
    """What to train for the stated workload: looks for networks that look, whole paths for those that read paths.

    "any"           every conditional alike (ARDM's law): good for all questions, the default
    "marginals"     marginals along the canonical order (MAC's D^CR): better there, worse on conditionals
    "joint"         the joint along the canonical order only
    "conditionals"  |evidence| uniform;  "bernoulli"  each column known with probability ½
    "gaps"          the gap patterns of the table itself
    {"known": [...], "asked": [...]}, a Workload, or an Objective
    """

    def trained_for(workload: Workload) -> Objective:
        return WholePath(workload, RandomOrder()) if _reads_paths(network) else ARDM(workload)

    def in_groups() -> Objective:
        """Random evidence, then the rest in random order, one at a time or in groups."""
        groups = WholePath(UniformEvidence(), RandomBudget(RandomOrder()))
        return Blend((WholePath(UniformEvidence(), RandomOrder()), groups), (0.5, 0.5))

    words = dict(LOOKING)
    if _reads_paths(network):
        words |= {"any": in_groups, "joint": lambda: WholePath(Joint()), "marginals": lambda: WholePath(CardMask())}
    words |= {
        "conditionals": lambda: trained_for(UniformEvidence()),
        "bernoulli": lambda: trained_for(BernoulliEvidence()),
        "gaps": lambda: trained_for(_gaps_of(is_present)),
    }
    law = _known_asked(stated, schema) if isinstance(stated, dict) else stated
    gaps = (~is_present.all(0)).nonzero().squeeze(1).tolist()
    return TrainedWorkload(stated, _resolved(law, words, trained_for, "tables"), is_present.shape[1], tuple(gaps))


def _gaps_of(is_present: Tensor) -> GapPatterns:
    if bool(is_present.all()):
        raise QuestionError("The workload 'gaps' needs a table with gaps, and this one has none.")
    return GapPatterns.of(is_present)


def _known_asked(stated: dict, schema: Schema) -> KnownAsked:
    is_list = all(isinstance(names, list | tuple) for names in stated.values())
    if not set(stated) <= {"known", "asked"} or "known" not in stated or not is_list:
        raise QuestionError(f"{stated!r} is not a workload: it must be {{'known': [...], 'asked': [...]}}.")
    known = tuple(schema.index(name) for name in stated["known"])
    asked = tuple(schema.index(name) for name in stated.get("asked", ()))
    if set(known) & set(asked):
        raise QuestionError("The workload names a column as both known and asked.")
    return KnownAsked(known, asked)


def text_workload(stated: Any, length: int, network: str = "path") -> TrainedWorkload:
    """For texts of so many characters."""
    return TrainedWorkload(stated, text_objective(stated, network), length)


def text_objective(stated: Any, network: str = "path") -> Objective:
    """Whole paths for the stated workload; by default scoring from left to right and filling alike."""

    def shared(first: Objective, *others: Objective) -> Objective:
        return Growing(SharedPaths(Blend((first, *others), TEXT_SHARES) if others else first))

    words: Words = {
        "any": lambda: shared(
            WholePath(Joint()), WholePath(CardMask()), WholePath(UniformEvidence()),
            WholePath(Beginning(UniformEvidence())), WholePath(UniformEvidence(), RandomBudget(RandomOrder())),
        ),
        "joint": lambda: shared(WholePath(Joint())),
        "marginals": lambda: shared(WholePath(CardMask())),
        "conditionals": lambda: shared(WholePath(UniformEvidence())),
    }  # fmt: skip
    return _resolved(stated, words if _reads_paths(network) else LOOKING, WholePath, "text")


def image_workload(stated: Any, network: str, shape: tuple[int, ...]) -> TrainedWorkload:
    """Whole paths in raster order for networks that read paths, steps of a mode's chain for those that look."""
    modes, reads_paths = seven_modes(shape), _reads_paths(network)

    def everything() -> Objective:
        look = WholePath(UniformEvidence(), Budget(RandomOrder(), 1))
        return Alternating(
            (WholePath(Joint()), WholePath(Joint(), RandomScan(shape)), WholePath(Joint(), RandomSlant(shape)),
             WholePath(RegionEvidence(modes)), WholePath(RegionEvidence(modes), RandomSlant(shape)),
             WholePath(UniformEvidence()), WholePath(SomeOf(UniformEvidence())), look,
             WholePath(UniformEvidence(), RandomBudget(RandomOrder()))), IMAGE_SHARES)  # fmt: skip

    whole_paths: Words = {
        "any": everything,
        "joint": lambda: WholePath(Joint()),
        "marginals": lambda: WholePath(CardMask()),
        "conditionals": lambda: WholePath(UniformEvidence()),
        "random": lambda: WholePath(UniformEvidence()),
        "modes": lambda: WholePath(RegionEvidence(modes)),
    }
    chains: Words = {
        **LOOKING,
        "any": lambda: Activations(modes),
        "modes": lambda: Activations(modes),
        "random": lambda: Activations(Anywhere(shape)),
    }
    if isinstance(stated, Staged):
        _check_modes(stated, shape, network)
        chain = WholePath(RegionEvidence(stated)) if reads_paths else Activations(stated)
        return TrainedWorkload(stated, chain, math.prod(shape))
    if isinstance(stated, RegionEvidence):
        _check_modes(stated.modes, shape, network)
    trained_for = WholePath if reads_paths else ARDM
    objective = _resolved(stated, whole_paths if reads_paths else chains, trained_for, "images")
    return TrainedWorkload(stated, objective, math.prod(shape))


def _check_modes(workload: Staged, shape: tuple[int, ...], network: str) -> None:
    for mode in workload.masking_modes:
        if isinstance(mode, MaskingMode) and tuple(mode.shape[:2]) != tuple(shape[:2]):
            raise QuestionError(
                f"A mode is for {mode.shape[:2]} and the images are {shape[:2]}; make it for their size."
            )
    if issubclass(NETWORKS[network], AbsorbingUNet) and len(workload.masking_modes) >= MAX_MODES:
        raise QuestionError(
            f"There are {len(workload.masking_modes)} modes; the U-Net can be told {MAX_MODES - 1} apart."
        )
