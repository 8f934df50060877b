"""An absorbing U-Net: looks from the evidence of a grid, with how much is known and the masking mode in every block."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from anygiven.errors import require
from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.grids import Planes, grid_of, is_grid
from anygiven.networks.hiding import hide
from anygiven.variables.domains import Domain

MAX_MODES = 32  # masking modes that can be told apart, 0 included
TIMES = 1000  # diffusers' own scale of time


class AbsorbingUNet(AbsorbingNetwork):
    """`depth` residual blocks at each of `n_sizes` sizes, each half as large and twice as wide as the one before.

    With one size nothing is made smaller: SFARM's settings for 28×28 and 32×32 images.
    """

    settings = ("width", "depth", "dropout", "n_sizes")
    takes_masking_mode = True

    @classmethod
    def reads(cls, domains: Sequence[Domain]) -> bool:
        return is_grid(domains)

    def __init__(
        self, domains: Sequence[Domain], width: int = 32, depth: int = 2, dropout: float = 0.0, n_sizes: int = 2
    ):
        super().__init__()
        domain, self.shape = grid_of(domains)
        self.width, self.halvings = width, n_sizes - 1
        self.planes = Planes(domain)
        # Where each channel is a variable, a pixel has planes and features for each of them.
        self.n_per_pixel = domains.shape[2] if len(domains.shape) == 3 else 1  # type: ignore[attr-defined]
        self.size = (self.shape[0], self.shape[1] // self.n_per_pixel)
        widths = tuple(width * 2**k for k in range(n_sizes))
        diffusers = require("diffusers", "images")
        net = diffusers.UNet2DModel(
            in_channels=self.n_per_pixel * self.planes.n_planes, out_channels=self.n_per_pixel * width,
            layers_per_block=depth, block_out_channels=widths, norm_num_groups=min(8, width), dropout=dropout,
            down_block_types=("DownBlock2D",) * n_sizes, up_block_types=("UpBlock2D",) * n_sizes,
            num_class_embeds=MAX_MODES, attention_head_dim=max(8, widths[-1] // 4),
        )  # fmt: skip
        self.net = net.to(memory_format=torch.channels_last)  # a quarter less time on a CPU

    def forward(self, cells: Tensor, is_evidence: Tensor, masking_mode: Tensor | None = None) -> Tensor:
        known = is_evidence.unsqueeze(-1)
        planes = self.planes(hide(cells, is_evidence)) * known  # (B, N, planes)
        grid = planes.reshape(len(cells), *self.size, -1).permute(0, 3, 1, 2)
        time = (TIMES - 1) * is_evidence.float().mean(1)
        masking_mode = (
            torch.zeros(len(cells), dtype=torch.int64, device=cells.device) if masking_mode is None else masking_mode
        )
        found = self.net(self._padded(grid), time, class_labels=masking_mode).sample[
            :, :, : self.size[0], : self.size[1]
        ]
        return found.permute(0, 2, 3, 1).reshape(len(cells), -1, self.width)

    def _padded(self, grid: Tensor) -> Tensor:
        """Sides that can be halved so often."""
        unit = 2**self.halvings
        return pad(grid, (0, -grid.shape[3] % unit, 0, -grid.shape[2] % unit))
