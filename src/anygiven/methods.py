"""ACE, MAC, ARDM and SFARM as settings of one machine, with the papers' figures.

    density = anygiven.methods.ace(data="gas").fit(table)          # unfitted densities: change what you like
    density = anygiven.methods.mac("text", max_minutes=60).fit("text8.txt")

A method is a network, a head, a law of training and a schedule; docs/methods.md says which line of which paper each is.
To add one, write a function here and name it in METHODS: the CLI and the tests find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anygiven.errors import QuestionError
from anygiven.kinds import KINDS
from anygiven.lattice import ARDM, Blend, CardMask, FromEvidence, Glimpse, Joint, Objective, UniformEvidence

# batch, learning rate, steps, steps of warm-up, noise, dropout, width, regulariser: ACE's code, data set by data set
ACE_FIGURES = {
    "power": (512, 1e-4, 1_600_000, 10_000, 0.005, 0.2, 512, 1.0),
    "gas": (2048, 1e-3, 1_000_000, 10_000, 0.001, 0.0, 512, 0.0),
    "hepmass": (2048, 5e-4, 1_000_000, 10_000, 0.003, 0.2, 512, 0.0),
    "miniboone": (2048, 1e-3, 15_000, 100, 0.005, 0.5, 512, 0.0),
    "bsds300": (2048, 1e-3, 1_000_000, 10_000, 0.001, 0.2, 1024, 0.0),
}
# MAC's Tables 4 and 5 were trained for both: its law for marginals and the law of conditionals, half of the rows each
FOR_BOTH = Blend((Glimpse(CardMask()), FromEvidence(UniformEvidence(), is_mean=True)), (0.5, 0.5))


def ace(kind: str = "table", data: str = "power", **changes: Any) -> Any:
    """ACE (Strauss & Oliva 2021): a proposal mixture and an energy, |evidence| uniform, the sum of the edges."""
    return _density(kind, {"table": _ace_settings(data, FromEvidence())}, "ACE", changes)


def mac(kind: str = "table", data: str = "power", **changes: Any) -> Any:
    """MAC (Shih et al. 2022): its cardinality-reweighted law D^CR(M, w-MAC) under Eq. 7. Tables as its Tables 4 and 5,
    ACE's network and figures trained for marginals and conditionals alike; texts and images as its Tables 1 to 3."""
    settings = {
        "table": _ace_settings(data, FOR_BOTH),
        "text": {**TEXT, "workload": Glimpse(CardMask())},
        "image": {**IMAGE, "workload": Glimpse(CardMask())},
    }
    return _density(kind, settings, "MAC", changes)


def ardm(kind: str = "table", data: str = "power", **changes: Any) -> Any:
    """ARDM (Hoogeboom et al. 2022): random orders, every step alike, weighted N / (N − t); with MAC's networks."""
    settings = {
        "table": _ace_settings(data, ARDM(Joint()), head="mixture"),
        "text": {**TEXT, "workload": ARDM(Joint())},
        "image": {**IMAGE, "workload": ARDM(Joint())},
    }
    return _density(kind, settings, "ARDM", changes)


def sfarm(kind: str = "image", **changes: Any) -> Any:
    """SFARM: images by the mixture of its seven masking modes (Eqs. 8–12); tables by the uniform mode with a dense
    network of three layers of 32 that is told the step, and one Gaussian a column."""
    settings = {
        "table": {
            "network": "sfarm", "width": 32, "depth": 3, "dropout": 0.0, "n_components": 1, "workload": ARDM(Joint()),
            "learning_rate": 1e-3, "weight_decay": 0.0, "batch_size": 100, "max_minutes": None,
            "training": {"schedule": "constant", "warmup_steps": 0, "ema": 0.0, "patience": 10**6},
        },
        "image": {**IMAGE, "workload": "modes"},
    }  # fmt: skip
    return _density(kind, settings, "SFARM", changes)


TEXT = {  # MAC's appendix D, which takes over ARDM's
    "network": "transformer", "length": 250, "alphabet": "text8", "width": 768, "depth": 12, "dropout": 0.0,
    "learning_rate": 5e-4, "weight_decay": 1e-3, "batch_size": 512, "max_minutes": None,
    "training": {
        "muon": False, "betas": [0.9, 0.99], "warmup_steps": 5000, "schedule": "constant", "clip": 0.25, "ema": 0.999,
        "patience": 10**6,
    },
}  # fmt: skip
IMAGE = {
    "network": "unet", "width": 256, "depth": 32, "n_sizes": 1, "dropout": 0.0, "learning_rate": 1e-4,
    "weight_decay": 0.0, "batch_size": 128, "max_minutes": None,
    "training": {
        "muon": False, "betas": [0.9, 0.999], "warmup_steps": 0, "schedule": "constant", "clip": 100.0, "ema": 0.9999,
        "patience": 10**6,
    },
}  # fmt: skip


def _ace_settings(data: str, objective: Objective, head: str = "ace") -> dict[str, Any]:
    if data not in list(ACE_FIGURES):  # it may be anything
        raise QuestionError(f"ACE has no figures for {data!r}; use one of {', '.join(ACE_FIGURES)}, and change them.")
    batch, rate, steps, warmup, noise, dropout, width, regulariser = ACE_FIGURES[data]
    return {
        "network": "ace", "head": head, "workload": objective, "width": width, "depth": 4, "dropout": dropout,
        "n_components": 10, "learning_rate": rate, "weight_decay": 0.0, "batch_size": batch, "max_steps": steps,
        "max_minutes": None,
        "training": {
            "schedule": "linear", "warmup_steps": 0, "ema": 0.0, "noise": noise, "energy_warmup": warmup,
            "energy_regulariser": regulariser, "patience": 10**6,
        },
    }  # fmt: skip


def _density(kind: str, settings: dict[str, dict[str, Any]], method: str, changes: dict[str, Any]) -> Any:
    """An unfitted density of that kind; what `changes` says comes before the method's own settings."""
    if kind not in settings:
        raise QuestionError(f"{method} has no settings for {kind!r}; use {' or '.join(settings)}.")
    training = changes.get("training") or {}
    if isinstance(training, dict):  # anything else is refused by fit
        training = {**settings[kind].get("training", {}), **training}
    density = KINDS[kind].density_class()
    options = {**settings[kind], **changes, "training": training}
    unknown = sorted(set(options) - set(density().get_params()))
    if unknown:
        raise QuestionError(f"{density.__name__} has no option {unknown[0]!r}.")
    return density(**options)


METHODS: dict[str, Callable[..., Any]] = {"ace": ace, "mac": mac, "ardm": ardm, "sfarm": sfarm}
