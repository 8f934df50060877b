"""Cells → tokens of a Transformer: what a variable is called, and what its value looks like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anygiven.networks.embedding import CellFeatures
from anygiven.networks.hiding import hide
from anygiven.variables.domains import Domain, Levels, SharedDomain


class Tokens(nn.Module, ABC):
    """The vectors of N variables."""

    names: nn.Parameter  # (N, width)

    @abstractmethod
    def values(self, cells: Tensor, is_shown: Tensor) -> Tensor:
        """(B, N, width) of the values; one and the same vector for whatever is not shown."""

    def values_of(self, variables: Tensor, cells: Tensor, is_shown: Tensor) -> Tensor:
        """(B, L, width) of the values of some variables (B, L)."""
        values = self.values(cells, is_shown)
        return values.gather(1, variables.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


class OwnTokens(Tokens):
    """Columns of a table: each has its own symbols and its own scale."""

    def __init__(self, domains: Sequence[Domain], width: int):
        super().__init__()
        self.cells = CellFeatures(domains)
        self.names = nn.Parameter(0.3 * torch.randn(len(domains), width))
        self.symbols = nn.Embedding(self.cells.n_symbols, width)
        self.scores = nn.Parameter(0.1 * torch.randn(len(domains), self.cells.n_features, width))
        nn.init.normal_(self.symbols.weight, std=0.3)

    def values(self, cells: Tensor, is_shown: Tensor) -> Tensor:
        index, features = self.cells(cells, is_shown)
        return self.symbols(index) + torch.einsum("bnf,nfw->bnw", features, self.scores)


class SharedTokens(Tokens):
    """Characters or pixels: one alphabet for all places."""

    def __init__(self, domains: SharedDomain, width: int):
        super().__init__()
        self.names = nn.Parameter(0.1 * torch.randn(len(domains), width))
        self.n_channels = domains.domain.n_channels if isinstance(domains.domain, Levels) else 1
        self.n_symbols = domains.domain.n_symbols
        self.symbols = nn.Embedding(self.n_channels * self.n_symbols + 1, width)  # the last: not shown
        nn.init.normal_(self.symbols.weight, std=0.3 / self.n_channels**0.5)

    def _symbols(self, cells: Tensor, is_shown: Tensor) -> Tensor:
        """(B, N, channels): a pixel has one for each channel, all others have one."""
        shown = hide(cells, is_shown)[..., : self.n_channels].long()
        shown = shown + self.n_symbols * torch.arange(self.n_channels, device=shown.device)
        return torch.where(is_shown.unsqueeze(-1), shown, self.symbols.num_embeddings - 1)

    def values(self, cells: Tensor, is_shown: Tensor) -> Tensor:
        return self.symbols(self._symbols(cells, is_shown)).sum(-2)

    def values_of(self, variables: Tensor, cells: Tensor, is_shown: Tensor) -> Tensor:
        index = variables.unsqueeze(-1).expand(-1, -1, self.n_channels)
        return self.symbols(self._symbols(cells, is_shown).gather(1, index)).sum(-2)


def tokens_for(domains: Sequence[Domain], width: int) -> Tokens:
    return SharedTokens(domains, width) if isinstance(domains, SharedDomain) else OwnTokens(domains, width)
