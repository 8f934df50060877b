"""Features → Conditional: one family a file, and the mixed-table head that groups them."""

from collections.abc import Sequence

from anygiven.heads.atoms import AtomsPlusContinuous, AtomsPlusContinuousHead
from anygiven.heads.categorical import (
    Bernoulli,
    BernoulliHead,
    Categorical,
    CategoricalHead,
    Ordinal,
    OrdinalHead,
)
from anygiven.heads.conditional import Conditional, Head
from anygiven.heads.conditionals import Conditionals, JointHead
from anygiven.heads.levels import LevelHead, LevelMixture, PixelHead, PixelMixture
from anygiven.heads.mixtures import (
    DiscretisedLogisticHead,
    DiscretisedMixture,
    Gaussian,
    GaussianHead,
    KernelMixture,
    MixtureHead,
)
from anygiven.heads.shared import SharedCategories, SharedConditionals, SharedHead, SharedPixels
from anygiven.heads.table import TableConditionals, TableHead
from anygiven.variables.domains import Domain, SharedDomain


def joint_head_for(width: int, domains: Sequence[Domain], n_components: int = 8) -> JointHead:
    """One head for variables that are alike, the mixed-table head for all others."""
    head = SharedHead if isinstance(domains, SharedDomain) else TableHead
    return head(width, domains, n_components)  # type: ignore[arg-type]


__all__ = [
    "AtomsPlusContinuous",
    "AtomsPlusContinuousHead",
    "Bernoulli",
    "BernoulliHead",
    "Categorical",
    "CategoricalHead",
    "Conditional",
    "Conditionals",
    "DiscretisedLogisticHead",
    "DiscretisedMixture",
    "Gaussian",
    "GaussianHead",
    "Head",
    "JointHead",
    "KernelMixture",
    "LevelHead",
    "LevelMixture",
    "MixtureHead",
    "Ordinal",
    "OrdinalHead",
    "PixelHead",
    "PixelMixture",
    "SharedCategories",
    "SharedConditionals",
    "SharedHead",
    "SharedPixels",
    "TableConditionals",
    "TableHead",
    "joint_head_for",
]  # fmt: skip
