"""Features → Conditionals: one head for variables of a shared domain, one for the columns of a table."""

from collections.abc import Sequence

from anygiven.heads.atoms import AtomsPlusContinuous
from anygiven.heads.categorical import Categorical, CategoricalHead
from anygiven.heads.conditional import Conditional
from anygiven.heads.conditionals import Conditionals, JointHead
from anygiven.heads.energy import ACEHead, EnergyDensity, EnergyHead
from anygiven.heads.levels import LevelMixture, PixelHead, PixelMixture
from anygiven.heads.mixtures import KernelMixture, MixtureHead
from anygiven.heads.shared import SharedCategories, SharedConditionals, SharedHead, SharedPixels
from anygiven.heads.smooth import ColumnHead, Smooth
from anygiven.heads.spline import SplineHead
from anygiven.heads.table import TableConditionals, TableHead, smooth_log_prob
from anygiven.variables.domains import Domain, SharedDomain

COLUMN_HEADS: dict[str, type[ColumnHead]] = {  # of a table's numeric columns
    "mixture": MixtureHead,
    "spline": SplineHead,
    "energy": EnergyHead,
    "ace": ACEHead,
}


def joint_head_for(width: int, domains: Sequence[Domain], n_components: int = 8, head: str = "mixture") -> JointHead:
    """One head for variables of a shared domain, the mixed-table head for all others."""
    if isinstance(domains, SharedDomain):
        return SharedHead(width, domains, n_components)
    return TableHead(width, domains, n_components, COLUMN_HEADS[head])


__all__ = [
    "COLUMN_HEADS", "ACEHead", "AtomsPlusContinuous", "Categorical", "CategoricalHead", "ColumnHead", "Conditional",
    "Conditionals", "EnergyDensity", "EnergyHead", "JointHead", "KernelMixture", "LevelMixture", "MixtureHead",
    "PixelHead", "PixelMixture", "SharedCategories", "SharedConditionals", "SharedHead", "SharedPixels", "Smooth",
    "SplineHead", "TableConditionals", "TableHead", "joint_head_for", "smooth_log_prob",
]  # fmt: skip
