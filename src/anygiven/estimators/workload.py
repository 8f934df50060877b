"""The words by which a user states a workload, and the objective that trains for it."""

from __future__ import annotations

from typing import Any

import torch
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
    CardMask,
    GapPatterns,
    Glimpse,
    Growing,
    Joint,
    KnownAsked,
    MaskingMode,
    ModeMixture,
    Objective,
    Protocol,
    RandomBudget,
    RandomOrder,
    RandomScan,
    RandomSlant,
    RegionEvidence,
    SharedPaths,
    SomeOf,
    Staged,
    UniformEvidence,
    WholePath,
    Workload,
    seven_modes,
)
from anygiven.lattice.workloads import Mixture
from anygiven.networks import NETWORKS, PathNetwork
from anygiven.networks.unet import MAX_MODES, AbsorbingUNet
from anygiven.variables import Schema

# joint, other scans, slanted lines; regions, those in lines, random evidence, some pixels; looks, any order in groups
# (which take twice the time)
IMAGE_SHARES = (0.42, 0.07, 0.07, 0.14, 0.05, 0.12, 0.04, 0.07, 0.02)
TEXT_SHARES = (0.5, 0.1, 0.2, 0.1, 0.1)  # joint, marginals, conditionals, those of shorter texts, those in groups
WORKLOADS = ("any", "joint", "marginals", "conditionals", "bernoulli", "gaps")


def objective_of(workload: Any, schema: Schema, is_present: Tensor, network: str = "mlp") -> Objective:
    """What to train for the stated workload: looks for networks that look, whole paths for those that read paths.

    "any"           every conditional alike (ARDM's law): good for all questions, the default
    "marginals"     marginals along the canonical order (MAC's D^CR): better there, worse on conditionals
    "joint"         the joint along the canonical order only
    "conditionals"  |evidence| uniform;  "bernoulli"  each column known with probability ½
    "gaps"          the gap patterns of the table itself
    {"known": [...], "asked": [...]}, a Workload, or an Objective
    """
    if isinstance(workload, Objective):
        return workload
    if issubclass(NETWORKS[network], PathNetwork):
        return _whole_paths(workload, schema, is_present)
    if workload == "any":
        return ARDM(Joint())
    if workload == "joint":
        return Glimpse(Joint(), edges=True, cardinality=False)
    if workload == "marginals":
        return Glimpse(CardMask(), edges=False, cardinality=True)
    return ARDM(workload_of(workload, schema, is_present))


def _whole_paths(workload: Any, schema: Schema, is_present: Tensor) -> Objective:
    """Random evidence, then the rest in random order, one at a time or in groups; named workloads as they are."""
    if workload == "any":
        one_at_a_time = WholePath(UniformEvidence(), RandomOrder())
        return Blend((one_at_a_time, WholePath(UniformEvidence(), RandomBudget(RandomOrder()))), (0.5, 0.5))
    if workload == "joint":
        return WholePath(Joint())
    if workload == "marginals":
        return WholePath(CardMask())
    return WholePath(workload_of(workload, schema, is_present), RandomOrder())


def workload_of(workload: Any, schema: Schema, is_present: Tensor) -> Workload:
    if isinstance(workload, Workload):
        return workload
    if workload == "conditionals":
        return UniformEvidence()
    if workload == "bernoulli":
        return BernoulliEvidence()
    if workload == "gaps":
        patterns = is_present
        if bool(patterns.all()):
            raise QuestionError("The workload 'gaps' needs a table with gaps, and this one has none.")
        return GapPatterns(patterns)
    if isinstance(workload, dict) and set(workload) <= {"known", "asked"} and "known" in workload:
        known = tuple(schema.index(name) for name in workload["known"])
        asked = tuple(schema.index(name) for name in workload.get("asked", ()))
        if set(known) & set(asked):
            raise QuestionError("The workload names a column as both known and asked.")
        return KnownAsked(known, asked)
    raise QuestionError(
        f"{workload!r} is not a workload: use one of {', '.join(WORKLOADS)}, or {{'known': [...], 'asked': [...]}}."
    )


def _looking(workload: str) -> Objective | None:
    """Looks and glimpses for networks that look once a step."""
    return {
        "any": ARDM(Joint()), "joint": Glimpse(Joint(), edges=True, cardinality=False),
        "marginals": Glimpse(CardMask()), "conditionals": ARDM(UniformEvidence()),
    }.get(workload)  # fmt: skip


def text_objective_of(workload: Any, network: str = "path") -> Objective:
    """Whole paths for the stated workload; by default scoring from left to right and filling alike."""
    parts: dict[str, list[Objective]] = {
        "any": [WholePath(Joint()), WholePath(CardMask()), WholePath(UniformEvidence()),
                WholePath(Beginning(UniformEvidence())), WholePath(UniformEvidence(), RandomBudget(RandomOrder()))],
        "joint": [WholePath(Joint())],
        "marginals": [WholePath(CardMask())],
        "conditionals": [WholePath(UniformEvidence())],
    }  # fmt: skip
    if isinstance(workload, Objective):
        return workload
    if isinstance(workload, Workload):
        return WholePath(workload)
    if not isinstance(workload, str) or workload not in parts:
        raise QuestionError(f"{workload!r} is not a workload for text: use one of {', '.join(parts)}.")
    chosen = parts[workload]
    looks = None if issubclass(NETWORKS[network], PathNetwork) else _looking(workload)
    if looks is not None:
        return looks
    return Growing(SharedPaths(Blend(tuple(chosen), TEXT_SHARES) if len(chosen) > 1 else chosen[0]))


def image_objective_of(workload: Any, network: str, shape: tuple[int, ...]) -> Objective:
    """Whole paths in raster order for networks that read paths, steps of a mode's chain for those that look."""
    if isinstance(workload, Objective):
        return workload
    modes = seven_modes(shape)
    if issubclass(NETWORKS[network], PathNetwork):
        look = WholePath(UniformEvidence(), Budget(RandomOrder(), 1))
        parts: dict[str, Objective] = {
            "any": Alternating(
                (WholePath(Joint()), WholePath(Joint(), RandomScan(shape)), WholePath(Joint(), RandomSlant(shape)),
                 WholePath(RegionEvidence(modes)), WholePath(RegionEvidence(modes), RandomSlant(shape)),
                 WholePath(UniformEvidence()), WholePath(SomeOf(UniformEvidence())), look,
                 WholePath(UniformEvidence(), RandomBudget(RandomOrder()))), IMAGE_SHARES),
            "joint": WholePath(Joint()), "marginals": WholePath(CardMask()),
            "conditionals": WholePath(UniformEvidence()), "random": WholePath(UniformEvidence()),
            "modes": WholePath(RegionEvidence(modes)),
        }  # fmt: skip
    else:
        parts = {name: looks for name in ("joint", "marginals", "conditionals") if (looks := _looking(name))}
        parts |= {"any": Activations(modes), "modes": Activations(modes), "random": Activations(Anywhere(shape))}
    if isinstance(workload, Staged):
        _check_modes(workload, shape, network)
        is_path = issubclass(NETWORKS[network], PathNetwork)
        return WholePath(RegionEvidence(workload)) if is_path else Activations(workload)
    if isinstance(workload, Workload):
        if isinstance(workload, RegionEvidence):
            _check_modes(workload.modes, shape, network)
        return WholePath(workload) if issubclass(NETWORKS[network], PathNetwork) else ARDM(workload)
    if not isinstance(workload, str) or workload not in parts:
        raise QuestionError(f"{workload!r} is not a workload for images: use one of {', '.join(parts)}, or a mode.")
    return parts[workload]


def trained_modes(workload: Any, shape: tuple[int, ...]) -> list[Protocol]:
    """The masking modes of a workload, in the order of their numbers."""
    if workload in ("any", "modes"):
        return list(seven_modes(shape).modes)
    if isinstance(workload, ModeMixture):
        return list(workload.modes)
    return [workload] if isinstance(workload, MaskingMode) else []


def _check_modes(workload: Staged, shape: tuple[int, ...], network: str) -> None:
    modes = workload.modes if isinstance(workload, ModeMixture) else (workload,)
    for mode in modes:
        if isinstance(mode, MaskingMode) and tuple(mode.shape[:2]) != tuple(shape[:2]):
            raise QuestionError(
                f"A mode is for {mode.shape[:2]} and the images are {shape[:2]}; make it for their size."
            )
    if issubclass(NETWORKS[network], AbsorbingUNet) and len(modes) >= MAX_MODES:
        raise QuestionError(f"There are {len(modes)} modes; the U-Net can be told {MAX_MODES - 1} apart.")


def untrained_columns(workload: Any, schema: Schema, is_query: Tensor) -> list[str]:
    """The asked columns that the stated workload never trained."""
    parts = [workload]
    if isinstance(workload, Mixture):
        parts = list(workload.parts)
    asked = torch.zeros(len(schema.variables), dtype=torch.bool)
    for part in parts:
        if isinstance(part, dict):
            part = workload_of(part, schema, torch.ones(1, len(asked), dtype=torch.bool))
        if not isinstance(part, KnownAsked):
            return []
        mine = torch.ones_like(asked)
        mine[list(part.known)] = False
        if part.asked:
            mine = torch.zeros_like(asked)
            mine[list(part.asked)] = True
        asked |= mine
    wanted = is_query.any(dim=0) & ~asked
    return [schema.names[i] for i in wanted.nonzero().squeeze(1).tolist()]
