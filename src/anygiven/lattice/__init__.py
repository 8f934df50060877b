"""Which conditionals are asked: questions, workloads, protocols, objectives, enumeration."""

from anygiven.lattice.objectives import Blend, Glimpse, Looks, Objective, WholePath
from anygiven.lattice.protocols import Budget, Canonical, Protocol, RandomBudget, RandomOrder, Strided
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
    "EVIDENCE", "NEVER", "BernoulliEvidence", "Blend", "Budget", "Canonical", "CardMask", "GapPatterns",
    "Glimpse", "Joint", "KnownAsked", "Looks", "Mixture", "Objective", "Path", "Protocol", "Question",
    "RandomBudget", "RandomOrder", "Strided", "UniformEvidence", "WholePath", "Workload", "mixture",
]  # fmt: skip
