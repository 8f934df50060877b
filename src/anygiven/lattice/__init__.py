"""Which conditionals are asked: questions, workloads, protocols, objectives, enumeration."""

from anygiven.lattice.objectives import Blend, Glimpse, Looks, Objective, WholePath
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
    BernoulliEvidence,
    CardMask,
    GapPatterns,
    Joint,
    KnownAsked,
    Mixture,
    UniformEvidence,
    Workload,
    mixture,
)

__all__ = [
    "EVIDENCE", "NEVER", "BernoulliEvidence", "BitReversal", "Blend", "Budget", "Canonical", "CardMask", "GapPatterns",
    "Glimpse", "Grouped", "Joint", "KnownAsked", "Looks", "Mixture", "Objective", "Path", "Protocol", "Question",
    "RandomBudget", "RandomOrder", "Strided", "UniformEvidence", "WholePath", "Workload", "mixture", "planned_sizes",
]  # fmt: skip
