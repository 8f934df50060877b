"""Features → Conditional: one family a file, and the mixed-table head that groups them."""

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
from anygiven.heads.mixtures import (
    DiscretisedLogisticHead,
    DiscretisedMixture,
    Gaussian,
    GaussianHead,
    KernelMixture,
    MixtureHead,
)
from anygiven.heads.table import TableConditionals, TableHead

__all__ = [
    "AtomsPlusContinuous", "AtomsPlusContinuousHead", "Bernoulli", "BernoulliHead", "Categorical",
    "CategoricalHead", "Conditional", "DiscretisedLogisticHead", "DiscretisedMixture", "Gaussian", "GaussianHead",
    "Head", "KernelMixture", "MixtureHead", "Ordinal", "OrdinalHead", "TableConditionals", "TableHead",
]  # fmt: skip
