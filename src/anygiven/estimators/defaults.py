"""Architecture and schedule that suit a table's size, so that nobody has to tune.

On small tables the network is narrow and held back (dropout, decay, early stopping), so that it starts at the
marginals and earns every dependence; on large ones it is wider and sees the table several times.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Architecture:
    network: str
    width: int
    depth: int
    dropout: float
    n_components: int
    n_heads: int = 4  # of attention
    kernel: int = 5  # of convolutions
    n_sizes: int = 2  # of a U-Net
    n_strides: int = 2  # of path convolutions: their blocks look 1, 2, 4, … places apart in turn
    head: str = "mixture"  # of a table's numeric columns

    def to_json(self) -> dict:
        return asdict(self)


def architecture_for(n_rows: int, n_variables: int, network: str) -> Architecture:
    network = "mlp" if network == "auto" else network
    width = 128 if n_rows < 20_000 and n_variables <= 30 else 192
    width = width if network == "mlp" else 64
    dropout = 0.2 if n_rows < 2_000 else 0.1 if n_rows < 10_000 and n_variables > 8 else 0.0
    n_components = 16 if n_variables <= 20 else 12 if n_variables <= 60 else 8
    return Architecture(network, width, 3, dropout, n_components)


def steps_for(n_rows: int) -> int:
    """Optimiser steps at most; early stopping ends sooner where there is little to learn."""
    return 8_000 if n_rows < 20_000 else 12_000


def text_architecture_for(n_characters: int, network: str) -> Architecture:
    """Small for a chapter, wider for a shelf of books."""
    width, depth = (64, 3) if n_characters < 100_000 else (128, 4) if n_characters < 2_000_000 else (192, 5)
    return Architecture(network, width, depth, 0.1 if n_characters < 2_000_000 else 0.0, 0)


def image_architecture_for(n_images: int, network: str) -> Architecture:
    """Small ones, for a laptop."""
    width, depth = {"convolutions": (64, 8), "unet": (32, 2)}.get(network, (96, 4))
    return Architecture(network, width, depth, 0.0 if n_images >= 10_000 else 0.1, 0)
