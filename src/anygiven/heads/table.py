"""The head of a mixed table: all columns at once, grouped by domain, fast at 200 columns.

Every column has symbols (categories; atoms and the smooth part); numeric columns have a smooth part on normal scores
too, made by a column head (smooth.py): one for columns whose values are points, one for those on grids. A cell is
(symbol, low, high, log_width), as variables/domains.py says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from anygiven.heads.atoms import AtomsPlusContinuous
from anygiven.heads.categorical import Categorical
from anygiven.heads.conditional import in_double, uniform
from anygiven.heads.conditionals import Conditionals, JointHead
from anygiven.heads.mixtures import NARROW
from anygiven.heads.smooth import ColumnHead, Smooth, outputs
from anygiven.variables.domains import HIGH, LOG_WIDTH, LOW, SYMBOL, Domain, Numeric
from anygiven.variables.marginals import SCORE_LIMIT

LOGIT_LIMIT = 40.0  # exp stays inside float32, so symbols of all columns are normalised by one matmul
FAR = 1e4  # farther than any mass
POINTS, CELLS = "points", "cells"  # what the smooth values of a column are


class Layout:
    """Where the symbols and smooth parts of all columns stand; small arrays that belong to no device."""

    def __init__(self, domains: Sequence[Domain]):
        self.n_symbols = np.array([domain.n_symbols for domain in domains])
        self.symbol_start = self.n_symbols.cumsum() - self.n_symbols
        self.group = np.array([_group_of(domain) for domain in domains])
        self.place = np.zeros(len(domains), dtype=np.int64)  # of a column among those of its group
        for group in (POINTS, CELLS):
            self.place[self.group == group] = np.arange((self.group == group).sum())
        n_edges = np.array([len(getattr(domain, "edges", [])) for domain in domains])
        self.edge_start, self.edge_end = n_edges.cumsum() - n_edges, n_edges.cumsum()

    def of(self, columns: np.ndarray, device: torch.device) -> Asked:
        """What the answer about some columns (C,) needs to know."""

        def there(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array).to(device)

        size = self.n_symbols[columns]
        start, segment = size.cumsum() - size, np.repeat(np.arange(len(columns)), size)
        at = np.repeat(self.symbol_start[columns] - start, size) + np.arange(size.sum())
        among = {group: np.flatnonzero(self.group[columns] == group) for group in (POINTS, CELLS)}
        return Asked(
            columns, start, there(start), there(size), there(segment), there(at),
            {group: there(found) for group, found in among.items() if len(found)},
            {group: there(self.place[columns[found]]) for group, found in among.items() if len(found)},
        )  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """Some columns of a layout, as tensors on the model's device."""

    columns: np.ndarray  # (C,)
    starts: np.ndarray  # (C,) first symbol of each column among the S
    start: Tensor  # (C,) the same
    size: Tensor  # (C,) how many symbols each has; the last is the smooth part, where there is one
    segment: Tensor  # (S,) which of the C columns a symbol belongs to
    at: Tensor  # (S,) where the symbols stand among those of all columns
    among: dict[str, Tensor]  # group → where its columns stand among the C
    place: dict[str, Tensor]  # group → which of the group's columns they are


@dataclass(frozen=True)
class TableConditionals(Conditionals):
    """p(column | evidence) for C columns and B rows."""

    head: TableHead
    columns: Tensor  # (C,) which variables
    asked: Asked
    log_symbols: Tensor  # (B, S) normalised within each column's segment
    smooth: dict[str, Smooth]  # group → batch shape (B, C_group)

    def log_prob(self, cells: Tensor, is_asked: Tensor | None = None) -> Tensor:
        """(B, C, 4) → (B, C)."""
        log_p = self.log_symbols.gather(1, self.asked.start + cells[..., SYMBOL].long())
        for group, smooth in self.smooth.items():
            at = self.asked.among[group]
            inside = cells[:, at]
            if is_asked is None or not smooth.is_costly:
                density = smooth_log_prob(smooth, inside, group == CELLS)
            else:
                mine = torch.from_numpy(self.head.layout.group[self.asked.columns] == group)
                some = tuple(index.to(inside.device) for index in is_asked[:, mine].nonzero(as_tuple=True))
                found = smooth_log_prob(smooth.those(some), inside[some], group == CELLS)
                density = torch.zeros_like(inside[..., LOW]).index_put(some, found)
            log_p = log_p.index_add(1, at, torch.where(self._is_smooth(inside, at), density, 0.0))
        return log_p

    def _is_smooth(self, cells: Tensor, at: Tensor) -> Tensor:
        """(B, C_group) where a cell of these columns is of the smooth part."""
        return cells[..., SYMBOL].long() == self.asked.size[at] - 1

    def _smooth_weight(self, group: str) -> Tensor:
        """(B, C_group) the log probability of the smooth part."""
        at = self.asked.among[group]
        return self.log_symbols[:, self.asked.start[at] + self.asked.size[at] - 1]

    def temperature(self, t: float) -> TableConditionals:
        """Each column sharpened or flattened as its own Conditional would be."""
        tempered = normalise(self.log_symbols / t, self.asked)
        smooth = {group: part.temperature(t) for group, part in self.smooth.items()}
        return replace(self, log_symbols=tempered, smooth=smooth)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """(B, C, 4) cells; draws on a short grid are snapped to its cells."""
        cells = self.log_symbols.new_zeros(len(self.log_symbols), len(self.columns), 4)
        cells[..., SYMBOL] = self._draw_symbols(generator)
        position = self.head.position[self.asked.at][self.asked.start + cells[..., SYMBOL].long()]
        cells[..., LOW] = cells[..., HIGH] = position
        for group, smooth in self.smooth.items():
            at = self.asked.among[group]
            drawn = smooth.sample(generator).clamp(-SCORE_LIMIT, SCORE_LIMIT)
            is_smooth = self._is_smooth(cells[:, at], at)
            layout = self.head.layout
            low, high = self.head.snap(drawn, self.asked.columns[layout.group[self.asked.columns] == group])
            cells[:, at, LOW] = torch.where(is_smooth, low, cells[:, at, LOW])
            cells[:, at, HIGH] = torch.where(is_smooth, high, cells[:, at, HIGH])
        return cells

    def _draw_symbols(self, generator: torch.Generator | None) -> Tensor:
        """Inverse cdf in float64 over each column's segment of the running sum."""
        running = in_double(self.log_symbols).exp().cumsum(1)
        start, size = self.asked.start.to(running.device), self.asked.size.to(running.device)
        begin = torch.cat([running.new_zeros(len(running), 1), running], dim=1)[:, start]
        end = running[:, start + size - 1]
        u = begin + (end - begin) * uniform(begin.shape, generator, running.device)
        symbol = torch.searchsorted(running, u) - start
        return symbol.clamp(min=0).minimum(size - 1).to(self.log_symbols)

    def of(self, column: int) -> Categorical | AtomsPlusContinuous:
        """The Conditional of one variable, for the B rows."""
        c = int(np.flatnonzero(self.asked.columns == column)[0])
        layout = self.head.layout
        begin, size = int(self.asked.starts[c]), int(layout.n_symbols[column])
        symbols = Categorical(self.log_symbols[:, begin : begin + size])
        group = layout.group[column]
        if group not in (POINTS, CELLS):
            return symbols
        k = int((layout.group[self.asked.columns[:c]] == group).sum())
        first = int(layout.symbol_start[column])
        atoms = self.head.position[first : first + size - 1]
        return AtomsPlusContinuous(symbols, atoms, self.smooth[group].each(lambda tensor: tensor[:, k]))

    def entropy(self) -> Tensor:
        """(B, C): of the symbols, and of the smooth part as a density on normal scores, so that columns compare."""
        inside = self.log_symbols.exp() * self.log_symbols.clamp(min=-100)
        total = -inside.new_zeros(len(inside), len(self.columns)).index_add(1, self.asked.segment, inside)
        for group, smooth in self.smooth.items():
            total = total.index_add(1, self.asked.among[group], self._smooth_weight(group).exp() * smooth.entropy())
        return total

    def average(self, others: Sequence[TableConditionals]) -> TableConditionals:
        """The equal mixture of several members' conditionals, which is again symbols and a smooth part."""
        members = (self, *others)
        log_symbols = torch.stack([m.log_symbols for m in members]).logsumexp(0) - math.log(len(members))
        # A member's smooth part counts as much as it believes in it.
        smooth = {
            group: part.mixed([o.smooth[group] for o in others], [m._smooth_weight(group) for m in members])
            for group, part in self.smooth.items()
        }
        return replace(self, log_symbols=log_symbols, smooth=smooth)


def smooth_log_prob(smooth: Smooth, cells: Tensor, is_grid: bool) -> Tensor:
    """(…) of the smooth part's cells (…, 4): a log density in the user's units at a point, a log mass on a grid."""
    low, high, log_width = cells[..., LOW], cells[..., HIGH], cells[..., LOG_WIDTH]
    at_point = smooth.log_prob((low + high) / 2) + log_width
    if not is_grid:
        return at_point
    # A cell much narrower than the finest scale is a point with a width; one at the limit takes all beyond it.
    beyond = torch.where(low <= -SCORE_LIMIT, -FAR, low), torch.where(high >= SCORE_LIMIT, FAR, high)
    is_open = (low < high) & ((low <= -SCORE_LIMIT) | (high >= SCORE_LIMIT))
    return torch.where((high - low < NARROW * 1e-2) & ~is_open, at_point, smooth.log_mass(*beyond))


def normalise(logits: Tensor, asked: Asked) -> Tensor:
    """Log-softmax within each column's segment, for all columns by one matmul."""
    total = (asked.segment[:, None] == torch.arange(len(asked.columns), device=logits.device)).to(logits)  # (S, C)
    logits = logits.clamp(-LOGIT_LIMIT, LOGIT_LIMIT)
    return logits - (logits.exp() @ total).log()[:, asked.segment]


def _group_of(domain: Domain) -> str:
    if not isinstance(domain, Numeric):
        return "symbols"
    return POINTS if domain.step is None else CELLS


class TableHead(JointHead):
    """features (B, width), or (B, N, width) with features of each variable → TableConditionals.

    Symbols of ordered columns: logit_k = free_k + a·s_k + b·s_k², with s_k the place of symbol k on the normal scale.
    The two shared terms move and spread the whole distribution along the order, so neighbours learn from each other;
    the free logits take what does not follow the order.
    """

    position: Tensor  # (S,) of each symbol on the normal scale
    ordered: Tensor  # (S,) 1 where the variable has an order
    edges: Tensor  # of the cells of all short grids, one column after the other

    def __init__(self, width: int, domains: Sequence[Domain], n_components: int, column_head: type[ColumnHead]):
        super().__init__()
        self.layout = Layout(domains)
        self._register(domains)
        self.symbols = nn.Linear(width, len(self.position))
        self.order = nn.Linear(width, 2 * len(domains))  # a and b of every column
        self.smooth = nn.ModuleDict()
        for group in (POINTS, CELLS):
            n = int((self.layout.group == group).sum())
            if n:
                self.smooth[group] = column_head(width, n, n_components, group == CELLS)
        self._start_at_marginals(domains)

    def _register(self, domains: Sequence[Domain]) -> None:
        position = np.concatenate([domain.positions() for domain in domains])
        ordered = np.repeat([domain.is_ordered for domain in domains], self.layout.n_symbols)
        edges = np.concatenate([np.asarray(getattr(domain, "edges", []), dtype=np.float32) for domain in domains])
        for name, array in {"position": position, "ordered": ordered, "edges": edges}.items():
            self.register_buffer(name, torch.as_tensor(array, dtype=torch.float32), persistent=False)

    def _start_at_marginals(self, domains: Sequence[Domain]) -> None:
        nn.init.zeros_(self.symbols.weight)
        nn.init.zeros_(self.order.weight)
        nn.init.zeros_(self.order.bias)
        frequencies = torch.cat([torch.as_tensor(d.frequencies) for d in domains])
        with torch.no_grad():
            self.symbols.bias.copy_(frequencies.clamp(min=1e-12).log())

    def snap(self, z: Tensor, columns: np.ndarray) -> tuple[Tensor, Tensor]:
        """The cell (low, high) around each score (B, C); a column without a short grid keeps points."""
        low, high = z.clone(), z.clone()
        for c, column in enumerate(columns):
            edges = self.edges[self.layout.edge_start[column] : self.layout.edge_end[column]]
            if len(edges):
                at = torch.searchsorted(edges, z[:, c].contiguous(), right=True).clamp(1, len(edges) - 1)
                low[:, c], high[:, c] = edges[at - 1], edges[at]
        return low, high

    def forward(self, features: Tensor, columns: Tensor | None = None) -> TableConditionals:
        """Conditionals of all variables, or of the given ones only."""
        columns = torch.arange(len(self.layout.n_symbols)) if columns is None else columns
        asked = self.layout.of(columns.numpy(), features.device)
        if features.dim() == 3:
            features = features[:, columns.to(features.device)]  # (B, C, width)
        logits = self._logits(features, asked)
        a, b = outputs(self.order, features, columns.to(features.device), 2).unbind(-1)
        position = self.position[asked.at]
        moved = a[:, asked.segment] * position + b[:, asked.segment] * position**2
        logits = logits + self.ordered[asked.at] * moved
        smooth = {}
        for group, place in asked.place.items():
            mine = features if features.dim() == 2 else features[:, asked.among[group]]
            smooth[group] = self.smooth[group](mine, place)
        return TableConditionals(self, columns, asked, normalise(logits, asked), smooth)

    def _logits(self, features: Tensor, asked: Asked) -> Tensor:
        """(B, S) the free logits of the symbols: from shared features, or each from its own column's."""
        weight, bias = self.symbols.weight[asked.at], self.symbols.bias[asked.at]
        if features.dim() == 2:
            return nn.functional.linear(features, weight, bias)
        ends = asked.starts + self.layout.n_symbols[asked.columns]
        parts = [
            nn.functional.linear(features[:, c], weight[begin:end], bias[begin:end])
            for c, (begin, end) in enumerate(zip(asked.starts.tolist(), ends.tolist(), strict=True))
        ]
        return torch.cat(parts, dim=1) if parts else features.new_zeros(len(features), 0)
