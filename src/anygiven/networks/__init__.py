"""(cells, evidence) or (cells, path) → features."""

from collections.abc import Sequence

from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.mlp import ResidualMLP
from anygiven.networks.path import PathNetwork, PathWalk
from anygiven.networks.path_convolutions import PathConvolutions
from anygiven.networks.path_transformer import PathTransformer
from anygiven.networks.plain_mlp import ACENetwork, SFARMNetwork
from anygiven.networks.transformer import MaskedTransformer
from anygiven.networks.unet import AbsorbingUNet
from anygiven.variables.domains import Domain

NETWORKS: dict[str, type[AbsorbingNetwork] | type[PathNetwork]] = {
    "mlp": ResidualMLP,
    "transformer": MaskedTransformer,
    "path": PathTransformer,
    "convolutions": PathConvolutions,
    "unet": AbsorbingUNet,
    "ace": ACENetwork,
    "sfarm": SFARMNetwork,
}


def networks_for(domains: Sequence[Domain]) -> list[str]:
    """The names of the networks that read such variables."""
    return [name for name, network in NETWORKS.items() if network.reads(domains)]


__all__ = [
    "NETWORKS", "ACENetwork", "AbsorbingNetwork", "AbsorbingUNet", "MaskedTransformer", "PathConvolutions",
    "PathNetwork", "PathTransformer", "PathWalk", "ResidualMLP", "SFARMNetwork", "networks_for",
]  # fmt: skip
