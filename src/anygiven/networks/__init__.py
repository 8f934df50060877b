"""(cells, evidence) or (cells, path) → features."""

from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.mlp import ResidualMLP
from anygiven.networks.path import PathNetwork, PathWalk
from anygiven.networks.path_convolutions import PathConvolutions
from anygiven.networks.path_transformer import PathTransformer
from anygiven.networks.transformer import MaskedTransformer

NETWORKS: dict[str, type[AbsorbingNetwork] | type[PathNetwork]] = {
    "mlp": ResidualMLP,
    "transformer": MaskedTransformer,
    "path": PathTransformer,
    "convolutions": PathConvolutions,
}

__all__ = [
    "NETWORKS", "AbsorbingNetwork", "MaskedTransformer", "PathConvolutions", "PathNetwork", "PathTransformer",
    "PathWalk", "ResidualMLP",
]  # fmt: skip
