"""(cells, evidence) → features."""

from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.mlp import ResidualMLP
from anygiven.networks.transformer import MaskedTransformer

NETWORKS: dict[str, type[AbsorbingNetwork]] = {"mlp": ResidualMLP, "transformer": MaskedTransformer}

__all__ = ["NETWORKS", "AbsorbingNetwork", "MaskedTransformer", "ResidualMLP"]
