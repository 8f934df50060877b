"""AnyOrderModel = network + head behind the one contract: model(x, path)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from anygiven.heads.table import TableConditionals, TableHead
from anygiven.networks.absorbing import AbsorbingNetwork

MAX_UNROLLED_ROWS = 8192  # bounds the memory of a path that is unrolled into looks


class AnyOrderModel(nn.Module):
    """For every query variable i of a path: p(x_i | all x_j with step[j] < step[i]).

    x is (B, N, 4) cells; a path is anything with `step` (B, N): −1 evidence, 0 … T−1 query, larger: never.
    """

    def __init__(self, network: AbsorbingNetwork, head: TableHead):
        super().__init__()
        self.network = network
        self.head = head

    def look(self, x: Tensor, is_evidence: Tensor, columns: Tensor | None = None) -> TableConditionals:
        """The conditionals of all variables (or of the given columns) from this evidence."""
        return self.head(self.network(x, is_evidence), columns)

    def forward(self, x: Tensor, path) -> TableConditionals:
        """The conditionals along a path, stitched together from one look a step."""
        found = self.look(x, path.known_at(0))
        for t in range(1, path.n_steps):
            found = self.look(x, path.known_at(t)).where(path.asked_at(t), found)
        return found

    def log_prob(self, x: Tensor, path) -> Tensor:
        """(B, N) log p of each query variable, 0 elsewhere: the path unrolled into rows, in chunks."""
        out = x.new_zeros(x.shape[:2])
        for rows, t, columns in self._looks(path):
            conditionals = self.look(x[rows], path.known_at(t)[rows], columns)
            log_p = conditionals.log_prob(x[rows][:, columns])
            asked = path.asked_at(t)[rows][:, columns]
            patch = torch.zeros_like(out[rows]).index_copy(1, columns, torch.where(asked, log_p, 0.0))
            out = out.index_add(0, rows, patch)
        return out

    @staticmethod
    def _looks(path) -> Iterator[tuple[Tensor, int, Tensor]]:
        """(rows, step, columns asked by any of them), at most MAX_UNROLLED_ROWS rows at a time."""
        for t in range(path.n_steps):
            asked = path.asked_at(t)
            for rows in asked.any(dim=1).nonzero().squeeze(1).split(MAX_UNROLLED_ROWS):
                yield rows, t, asked[rows].any(dim=0).nonzero().squeeze(1)

    def walk(self, x: Tensor, path) -> Walk:
        return Walk(self, x, path)

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())


class EnsembleModel(AnyOrderModel):
    """Several models that look together: every conditional is the equal mixture of theirs."""

    def __init__(self, members: Sequence[AnyOrderModel]):
        nn.Module.__init__(self)
        self.members = nn.ModuleList(members)

    def look(self, x: Tensor, is_evidence: Tensor, columns: Tensor | None = None) -> TableConditionals:
        return TableConditionals.average([member.look(x, is_evidence, columns) for member in self.members])  # type: ignore[operator]


class Walk:
    """Drawing along a path: look, reveal, look again."""

    def __init__(self, model: AnyOrderModel, x: Tensor, path):
        self.model, self.x, self.path, self.step = model, x.clone(), path, 0

    @property
    def is_done(self) -> bool:
        return self.step >= self.path.n_steps

    @property
    def columns(self) -> Tensor:
        """The variables that any row asks at this step."""
        return self.path.asked_at(self.step).any(dim=0).nonzero().squeeze(1)

    def conditionals(self) -> TableConditionals:
        return self.model.look(self.x, self.path.known_at(self.step), self.columns)

    def reveal(self, cells: Tensor) -> None:
        """Take values (B, C, 4) for this step's columns and go on to the next step."""
        asked = self.path.asked_at(self.step)[:, self.columns]
        kept = self.x[:, self.columns]
        self.x[:, self.columns] = torch.where(asked.unsqueeze(-1), cells, kept)
        self.step += 1
