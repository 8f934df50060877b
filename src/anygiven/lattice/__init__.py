"""Which conditionals are asked: questions, workloads, protocols, objectives, enumeration."""

from anygiven.lattice.modes import (
    MODES,
    N_SCANS,
    SLANTS,
    Anywhere,
    BottomToTop,
    ExteriorPatch,
    InteriorPatch,
    LeftToRight,
    Mode,
    ModeMixture,
    RandomScan,
    RandomSlant,
    RegionEvidence,
    RegionMode,
    RightToLeft,
    Slanted,
    Staged,
    Told,
    TopToBottom,
    scan_order,
    seven_modes,
)
from anygiven.lattice.objectives import (
    Activations,
    Alternating,
    Blend,
    Glimpse,
    Growing,
    Looks,
    Objective,
    Shared,
    WholePath,
    Window,
)
from anygiven.lattice.protocols import (
    BitReversal,
    Budget,
    Canonical,
    Grouped,
    Protocol,
    RandomBudget,
    RandomOrder,
    Strided,
    planned_sizes,
)
from anygiven.lattice.question import EVIDENCE, NEVER, Path, Question
from anygiven.lattice.workloads import (
    Beginning,
    BernoulliEvidence,
    CardMask,
    GapPatterns,
    Joint,
    KnownAsked,
    Mixture,
    SomeOf,
    UniformEvidence,
    Workload,
    mixture,
)

__all__ = [
    "EVIDENCE", "MODES", "NEVER", "N_SCANS", "SLANTS", "Activations", "Alternating", "Anywhere", "Beginning",
    "BernoulliEvidence", "BitReversal", "Blend", "BottomToTop", "Budget", "Canonical", "CardMask", "ExteriorPatch",
    "GapPatterns", "Glimpse", "Grouped", "Growing", "InteriorPatch", "Joint", "KnownAsked", "LeftToRight", "Looks",
    "Mixture", "Mode", "ModeMixture", "Objective", "Path", "Protocol", "Question", "RandomBudget", "RandomOrder",
    "RandomScan", "RandomSlant", "RegionEvidence", "RegionMode", "RightToLeft", "Shared", "Slanted", "SomeOf",
    "Staged", "Strided", "Told", "TopToBottom", "UniformEvidence", "WholePath", "Window", "Workload", "mixture",
    "planned_sizes", "scan_order", "seven_modes",
]  # fmt: skip
