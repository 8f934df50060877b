"""AnyOrderModel = network + head behind the one contract: look, log_prob, walk.

Cells are on the model's device; what is of the lattice (masks, paths, columns, masking modes) stays on the CPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from anygiven.heads.conditionals import Conditionals, JointHead
from anygiven.heads.smooth import ColumnHead, Phase
from anygiven.lattice.question import EVIDENCE, NEVER, Path
from anygiven.networks.absorbing import AbsorbingNetwork
from anygiven.networks.hiding import hide
from anygiven.networks.path import PathNetwork
from anygiven.variables.domains import LOG_WIDTH

MAX_UNROLLED_ROWS = 8192  # bounds the memory of a path that is unrolled into looks
FEW_ROWS = 32  # are looked at as they are
SHARED = 0.8  # of the rows at most must be distinct for their sorting to pay


class AnyOrderModel(nn.Module, ABC):
    """For every query variable i of a path: p(x_i | all x_j with step[j] < step[i]).

    x is (B, N, 4) cells.
    """

    @abstractmethod
    def look(
        self, x: Tensor, is_evidence: Tensor, columns: Tensor | None = None, masking_mode: Tensor | None = None
    ) -> Conditionals:
        """The conditionals of all variables (or of the given columns) from this evidence.

        `masking_mode` (B,) is the masking mode that the evidence is from, for networks that want to know; 0: unsaid.
        """

    @abstractmethod
    def log_prob(self, x: Tensor, path: Path) -> Tensor:
        """(B, N) log p of each query variable, 0 elsewhere."""

    def walk(self, x: Tensor, path: Path) -> Walk:
        return Walk(self, x, path)

    def begin(self, phase: Phase) -> None:
        """Before a step of the training: heads that are not trained by their likelihood alone want to know."""
        for module in self.modules():
            if isinstance(module, ColumnHead):
                module.begin(phase)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())


def any_order_model(network: AbsorbingNetwork | PathNetwork, head: JointHead) -> AnyOrderModel:
    """The model that keeps the contract in the network's own way."""
    return PathModel(network, head) if isinstance(network, PathNetwork) else LookingModel(network, head)


class Unrolled(AnyOrderModel):
    """Keeps the contract by looks alone: a path is unrolled into rows, in chunks that fit memory."""

    def log_prob(self, x: Tensor, path: Path) -> Tensor:
        out, device = x.new_zeros(x.shape[:2]), x.device
        for rows, t, columns in self._looks(path):
            some, at, rows = path.rows(rows), columns.to(device), rows.to(device)
            cells, asked = x[rows], some.asked_at(t)[:, columns]
            log_p = self.look(cells, some.known_at(t), columns, some.masking_mode).log_prob(cells[:, at], asked)
            patch = torch.zeros_like(out[rows]).index_copy(1, at, torch.where(asked.to(device), log_p, 0.0))
            out = out.index_add(0, rows, patch)
        return out

    @staticmethod
    def _looks(path: Path) -> Iterator[tuple[Tensor, int, Tensor]]:
        """(rows, step, columns asked by any of them), at most MAX_UNROLLED_ROWS rows at a time."""
        for t in range(path.n_steps):
            asked = path.asked_at(t)
            for rows in asked.any(dim=1).nonzero().squeeze(1).split(MAX_UNROLLED_ROWS):
                yield rows, t, asked[rows].any(dim=0).nonzero().squeeze(1)


class LookingModel(Unrolled):
    """An absorbing network and a head."""

    def __init__(self, network: AbsorbingNetwork, head: JointHead):
        super().__init__()
        self.network = network
        self.head = head

    def look(
        self, x: Tensor, is_evidence: Tensor, columns: Tensor | None = None, masking_mode: Tensor | None = None
    ) -> Conditionals:
        is_evidence = is_evidence.to(x.device)
        if self.network.takes_masking_mode:
            masking_mode = None if masking_mode is None else masking_mode.to(x.device)
            return self.head(self.network(x, is_evidence, masking_mode), columns)
        return self.head(self._features(x, is_evidence), columns)

    def _features(self, x: Tensor, is_evidence: Tensor) -> Tensor:
        """Of every row; rows that know the same are looked at once."""
        if torch.is_grad_enabled() or len(x) < FEW_ROWS:
            return self.network(x, is_evidence)
        some = slice(0, max(FEW_ROWS, len(x) // 16))  # where hardly any of these are alike, it is not worth the search
        first, place = distinct_rows(hide(x[some], is_evidence[some]), is_evidence[some])
        if len(first) > SHARED * len(place):
            return self.network(x, is_evidence)
        first, place = distinct_rows(hide(x, is_evidence), is_evidence)
        return self.network(x[first], is_evidence[first])[place]


def distinct_rows(hidden: Tensor, is_evidence: Tensor) -> tuple[Tensor, Tensor]:
    """(U,) one row of each kind, and (B,) which of these each is like, for cells (B, N, 4) without what is hidden."""
    numbers = hidden[..., :LOG_WIDTH].contiguous().view(torch.int32).flatten(1).long()
    numbers = torch.cat([numbers, is_evidence.long()], dim=1)
    factors = torch.randint(1 << 62, (numbers.shape[1],), generator=torch.Generator().manual_seed(0)) | 1
    factors = factors.to(numbers.device)
    _, place = ((numbers ^ (numbers >> 13)) * factors).sum(1).unique(return_inverse=True)
    number = torch.arange(len(place), device=place.device)
    first = torch.empty_like(number[: int(place.max()) + 1]).scatter_(0, place, number)
    if not torch.equal(numbers[first][place], numbers):  # two kinds under one number: as good as never
        first = place = number
    return first, place


class EnsembleModel(Unrolled):
    """Several models that look together: every conditional is the equal mixture of theirs."""

    def __init__(self, members: Sequence[AnyOrderModel]):
        super().__init__()
        self.members = nn.ModuleList(members)

    def look(
        self, x: Tensor, is_evidence: Tensor, columns: Tensor | None = None, masking_mode: Tensor | None = None
    ) -> Conditionals:
        first, *others = [member.look(x, is_evidence, columns, masking_mode) for member in self.members]  # type: ignore[operator]
        return first.average(others)


class PathModel(AnyOrderModel):
    """A path network and a head: all edges of a path in one pass."""

    def __init__(self, network: PathNetwork, head: JointHead):
        super().__init__()
        self.network = network
        self.head = head

    def look(
        self, x: Tensor, is_evidence: Tensor, columns: Tensor | None = None, masking_mode: Tensor | None = None
    ) -> Conditionals:
        step = torch.where(is_evidence, EVIDENCE, NEVER)
        asked = torch.ones(x.shape[1], dtype=torch.bool)
        if columns is not None and not self.network.sees_the_asked:
            asked = torch.zeros_like(asked).index_fill(0, columns, True)
        return self.head(self.network(x, torch.where(asked & ~is_evidence, 0, step)), columns)

    def log_prob(self, x: Tensor, path: Path) -> Tensor:
        is_query = path.is_query.to(x.device)
        log_p = self.head(self.network(x, path.step)).log_prob(
            x.masked_fill(~is_query.unsqueeze(-1), 0.0), path.is_query
        )
        return torch.where(is_query, log_p, 0.0)

    def walk(self, x: Tensor, path: Path) -> Walk:
        return MemoryWalk(self, x, path)


class Walk:
    """Drawing along a path: look, reveal, look again. What is asked may also be postponed, step by step."""

    def __init__(self, model: AnyOrderModel, x: Tensor, path: Path):
        self.model, self.x, self.step, self.t = model, x.clone(), path.step.clone(), 0
        self.masking_mode = path.masking_mode

    @property
    def is_done(self) -> bool:
        return not bool(((self.step >= self.t) & (self.step < NEVER)).any())

    @property
    def is_asked(self) -> Tensor:
        """(B, N) the variables of this step."""
        return self.step == self.t

    @property
    def columns(self) -> Tensor:
        """The variables that any row asks at this step."""
        return self.is_asked.any(dim=0).nonzero().squeeze(1)

    def conditionals(self) -> Conditionals:
        return self.model.look(self.x, self.step < self.t, self.columns, self.masking_mode)

    def reveal(self, cells: Tensor, is_revealed: Tensor | None = None) -> None:
        """Take values (B, C, 4) for this step's columns and go on; with is_revealed (B, C) for some of them only, and
        the others are asked again."""
        columns, asked = self.columns, self.is_asked
        if is_revealed is not None:
            taken = asked.clone()
            taken[:, columns] &= is_revealed.cpu()
            self.step[asked & ~taken] = self.t + 1
            asked = taken
        at, asked = columns.to(self.x.device), asked[:, columns].to(self.x.device)
        self.x[:, at] = torch.where(asked.unsqueeze(-1), cells, self.x[:, at])
        self.t += 1


class MemoryWalk(Walk):
    """The same with a memory of what was seen: each step costs what it adds."""

    def __init__(self, model: PathModel, x: Tensor, path: Path):
        super().__init__(model, x, path)
        self.head = model.head
        self.seen = model.network.walk(self.x, self.step)

    def conditionals(self) -> Conditionals:
        return self.head(self.seen.features(), self.columns)

    def reveal(self, cells: Tensor, is_revealed: Tensor | None = None) -> None:
        super().reveal(cells, is_revealed)
        self.seen.reveal(self.x, self.step)
