"""The head of a mixed table: all columns at once, grouped by domain, fast at 200 columns.

Every column has symbols (categories; atoms and the smooth part); numeric columns have a kernel mixture on
normal scores too: Gaussian where values are points, logistic where they are cells of a grid. A cell is
(symbol, low, high, log_width), as variables/domains.py says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from anygiven.heads.atoms import AtomsPlusContinuous
from anygiven.heads.categorical import Categorical
from anygiven.heads.conditional import uniform
from anygiven.heads.conditionals import Conditionals, JointHead
from anygiven.heads.mixtures import NARROW, Kernel, KernelMixture, Logistic, Normal, standard_normal_start
from anygiven.variables.domains import HIGH, LOG_WIDTH, LOW, SYMBOL, Domain, Numeric
from anygiven.variables.marginals import SCORE_LIMIT

LOGIT_LIMIT = 40.0  # exp stays inside float32, so symbols of all columns are normalised by one matmul
FAR = 1e4  # farther than any mass
FINEST_LOG_SCALE, WIDEST_LOG_SCALE = -7.5, 3.0


@dataclass(frozen=True)
class TableConditionals(Conditionals):
    """p(column | evidence) for C columns and B rows."""

    layout: TableHead
    columns: Tensor  # (C,) which variables
    log_symbols: Tensor  # (B, S) normalised within each column's segment
    start: Tensor  # (C,) first symbol of each column among the S
    mixtures: dict[str, tuple[Tensor, Tensor, Tensor]]  # group → (logits, loc, scale), each (B, C_group, K)

    def log_prob(self, cells: Tensor) -> Tensor:
        """(B, C, 4) → (B, C)."""
        symbol = cells[..., SYMBOL].long()
        log_p = self.log_symbols.gather(1, self.start + symbol)
        for group in self.mixtures:
            at, column = self._group(group)
            inside = cells[:, at]
            smooth = smooth_log_prob(self.mixture(group), inside)
            is_smooth = inside[..., SYMBOL].long() == self.layout.smooth_symbol[column]
            log_p = log_p.index_add(1, at, torch.where(is_smooth, smooth, 0.0))
        return log_p

    def _group(self, group: str) -> tuple[Tensor, Tensor]:
        """Where the columns of a group stand among the C, and which variables they are."""
        at = (self.layout.group_of[self.columns] == self.layout.groups.index(group)).nonzero().squeeze(1)
        return at, self.columns[at]

    def mixture(self, group: str) -> KernelMixture:
        return KernelMixture(*self.mixtures[group], self.layout.kernels[group])

    def temperature(self, t: float) -> TableConditionals:
        """Each column sharpened or flattened as its own Conditional would be."""
        tempered = self.layout.normalise(self.log_symbols / t, self.columns)
        mixtures = {}
        for group in self.mixtures:
            mixture = self.mixture(group).temperature(t)
            mixtures[group] = (mixture.logits, mixture.loc, mixture.scale)
        return TableConditionals(self.layout, self.columns, tempered, self.start, mixtures)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """(B, C, 4) cells; draws on a short grid are snapped to its cells."""
        cells = self.log_symbols.new_zeros(len(self.log_symbols), len(self.columns), 4)
        cells[..., SYMBOL] = self._draw_symbols(generator)
        position = self.layout.position[self.layout.symbol_start[self.columns] + cells[..., SYMBOL].long()]
        cells[..., LOW] = cells[..., HIGH] = position
        for group in self.mixtures:
            at, column = self._group(group)
            drawn = self.mixture(group).sample(generator).clamp(-SCORE_LIMIT, SCORE_LIMIT)
            is_smooth = cells[:, at, SYMBOL].long() == self.layout.smooth_symbol[column]
            low, high = self.layout.snap(drawn, column)
            cells[:, at, LOW] = torch.where(is_smooth, low, cells[:, at, LOW])
            cells[:, at, HIGH] = torch.where(is_smooth, high, cells[:, at, HIGH])
        return cells

    def _draw_symbols(self, generator: torch.Generator | None) -> Tensor:
        """Inverse cdf in float64 over each column's segment of the running sum."""
        p = self.log_symbols.double().exp()
        running = p.cumsum(1)
        begin = torch.cat([running.new_zeros(len(p), 1), running], dim=1)[:, self.start]
        size = self.layout.n_symbols[self.columns]
        end = running[:, self.start + size - 1]
        u = begin + (end - begin) * uniform(begin.shape, generator)
        symbol = torch.searchsorted(running, u) - self.start
        return symbol.clamp(min=0).minimum(size - 1).to(self.log_symbols.dtype)

    def of(self, column: int) -> Categorical | AtomsPlusContinuous:
        """The Conditional of one variable, for the B rows."""
        c = int((self.columns == column).nonzero()[0])
        begin, size = int(self.start[c]), int(self.layout.n_symbols[column])
        symbols = Categorical(self.log_symbols[:, begin : begin + size])
        group = self.layout.groups[int(self.layout.group_of[column])]
        if group == "symbols":
            return symbols
        _, columns = self._group(group)
        k = int((columns == column).nonzero()[0])
        logits, loc, scale = (part[:, k] for part in self.mixtures[group])
        first = int(self.layout.symbol_start[column])
        atoms = self.layout.position[first : first + size - 1]
        return AtomsPlusContinuous(symbols, atoms, KernelMixture(logits, loc, scale, self.layout.kernels[group]))

    def entropy(self) -> Tensor:
        """(B, C): of the symbols, and of the smooth part as a density on normal scores, so that columns compare."""
        inside = self.log_symbols.exp() * self.log_symbols.clamp(min=-100)
        total = -inside.new_zeros(len(inside), len(self.columns)).index_add(
            1, self.layout.segment_of(self.columns), inside
        )
        for group in self.mixtures:
            at, column = self._group(group)
            weight = self.log_symbols[:, self.start[at] + self.layout.smooth_symbol[column]].exp()
            total = total.index_add(1, at, weight * self.mixture(group).entropy())
        return total

    def _segment(self) -> Tensor:
        """(S,) which of the C columns a symbol belongs to."""
        return self.layout.segment_of(self.columns)

    def average(self, others: Sequence[TableConditionals]) -> TableConditionals:
        """The equal mixture of several members' conditionals, which is again symbols and a kernel mixture."""
        first, members = self, (self, *others)
        log_symbols = torch.stack([m.log_symbols for m in members]).logsumexp(0) - math.log(len(members))
        mixtures = {}
        for group in first.mixtures:
            at, column = first._group(group)
            smooth = first.start[at] + first.layout.smooth_symbol[column]
            # A member's components count as much as it believes in the smooth part.
            logits = [m.mixtures[group][0].log_softmax(-1) + m.log_symbols[:, smooth, None] for m in members]
            parts = [torch.cat([m.mixtures[group][k] for m in members], dim=-1) for k in (1, 2)]
            mixtures[group] = (torch.cat(logits, dim=-1), *parts)
        return TableConditionals(first.layout, first.columns, log_symbols, first.start, mixtures)

    def where(self, is_taken: Tensor, other: TableConditionals) -> TableConditionals:
        """This one where is_taken (B, C), the other elsewhere."""
        by_symbol = is_taken[:, self._segment()]
        log_symbols = torch.where(by_symbol, self.log_symbols, other.log_symbols)
        mixtures = {}
        for group in self.mixtures:
            at, _ = self._group(group)
            taken = is_taken[:, at, None]
            pairs = zip(self.mixtures[group], other.mixtures[group], strict=True)
            mixtures[group] = tuple(torch.where(taken, mine, theirs) for mine, theirs in pairs)
        return TableConditionals(self.layout, self.columns, log_symbols, self.start, mixtures)


def smooth_log_prob(mixture: KernelMixture, cells: Tensor) -> Tensor:
    """(…) of the smooth part's cells (…, 4): a log density in the user's units at a point, a log mass on a grid."""
    low, high, log_width = cells[..., LOW], cells[..., HIGH], cells[..., LOG_WIDTH]
    at_point = mixture.log_prob((low + high) / 2) + log_width
    if isinstance(mixture.kernel, Normal):
        return at_point
    # A cell much narrower than the finest scale is a point with a width; one at the limit takes all beyond it.
    beyond = torch.where(low <= -SCORE_LIMIT, -FAR, low), torch.where(high >= SCORE_LIMIT, FAR, high)
    is_open = (low < high) & ((low <= -SCORE_LIMIT) | (high >= SCORE_LIMIT))
    return torch.where((high - low < NARROW * 1e-2) & ~is_open, at_point, mixture.log_mass(*beyond))


def _group_of(domain: Domain) -> int:
    """Of TableHead.groups: symbols alone, and points or cells beside them."""
    return 0 if not isinstance(domain, Numeric) else 1 if domain.step is None else 2


class TableHead(JointHead):
    """features (B, width), or (B, N, width) with features of each variable → TableConditionals."""

    groups = ("symbols", "points", "cells")
    n_symbols: Tensor  # (N,)
    symbol_start: Tensor  # (N,) among all symbols
    group_of: Tensor  # (N,) index into groups
    smooth_symbol: Tensor  # (N,) the symbol of the smooth part, −1 if there is none
    position: Tensor  # (S,) of each symbol on the normal scale
    segment: Tensor  # (S,) which variable a symbol belongs to
    ordered: Tensor  # (S,) 1 where the variable has an order

    def __init__(self, width: int, domains: Sequence[Domain], n_components: int = 8):
        super().__init__()
        self.kernels: dict[str, Kernel] = {"points": Normal(), "cells": Logistic()}
        self.n_components = n_components
        self._register_layout(domains)
        self.symbols = nn.Linear(width, len(self.position))
        self.order = nn.Linear(width, 2 * len(domains))  # a, b of OrdinalHead for every column
        self.smooth = nn.ModuleDict()
        for group, kernel in self.kernels.items():
            n = [_group_of(domain) for domain in domains].count(self.groups.index(group))
            if n:
                linear = nn.Linear(width, n * 3 * n_components)
                self._start_at_normal(linear, n, kernel)
                self.smooth[group] = linear
        self._start_at_marginals(domains)

    def _register_layout(self, domains: Sequence[Domain]) -> None:
        sizes = torch.tensor([domain.n_symbols for domain in domains])
        group = [_group_of(domain) for domain in domains]
        position = torch.cat([torch.as_tensor(d.positions(), dtype=torch.float32) for d in domains])
        layout = {
            "n_symbols": sizes,
            "symbol_start": sizes.cumsum(0) - sizes,
            "group_of": torch.tensor(group),
            "smooth_symbol": torch.where(torch.tensor(group) > 0, sizes - 1, -1),
            "position": position,
            "segment": torch.repeat_interleave(torch.arange(len(domains)), sizes, output_size=len(position)),
        }
        for name, tensor in layout.items():
            self.register_buffer(name, tensor, persistent=False)
        is_ordered = torch.tensor([d.is_ordered for d in domains])
        self.register_buffer("ordered", is_ordered[layout["segment"]].float(), persistent=False)
        self.edges = [torch.as_tensor(getattr(d, "edges", []), dtype=torch.float32) for d in domains]

    def _start_at_normal(self, linear: nn.Linear, n: int, kernel: Kernel) -> None:
        loc, scale = standard_normal_start(self.n_components, kernel)
        nn.init.normal_(linear.weight, std=1e-3)
        with torch.no_grad():
            linear.bias.copy_(torch.cat([torch.zeros(self.n_components), loc, scale.log()]).repeat(n))

    def _start_at_marginals(self, domains: Sequence[Domain]) -> None:
        nn.init.zeros_(self.symbols.weight)
        nn.init.zeros_(self.order.weight)
        nn.init.zeros_(self.order.bias)
        frequencies = torch.cat([torch.as_tensor(d.frequencies) for d in domains])
        with torch.no_grad():
            self.symbols.bias.copy_(frequencies.clamp(min=1e-12).log())

    def segment_of(self, columns: Tensor) -> Tensor:
        """(S,) which of the given columns each of their symbols belongs to."""
        return torch.repeat_interleave(torch.arange(len(columns)), self.n_symbols[columns])

    def symbols_of(self, columns: Tensor) -> Tensor:
        """(S,) the places of the given columns' symbols among all symbols."""
        size = self.n_symbols[columns]
        within = torch.arange(int(size.sum())) - torch.repeat_interleave(size.cumsum(0) - size, size)
        return torch.repeat_interleave(self.symbol_start[columns], size) + within

    def normalise(self, logits: Tensor, columns: Tensor) -> Tensor:
        """Log-softmax within each column's segment, for all columns by one matmul."""
        segment = self.segment_of(columns)
        total = logits.new_zeros(len(segment), len(columns))
        total[torch.arange(len(segment)), segment] = 1.0
        logits = logits.clamp(-LOGIT_LIMIT, LOGIT_LIMIT)
        return logits - (logits.exp() @ total).log()[:, segment]

    def snap(self, z: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """The cell (low, high) around each score (B, C); a column without a short grid keeps points."""
        low, high = z.clone(), z.clone()
        for c, column in enumerate(columns.tolist()):
            edges = self.edges[column]
            if len(edges):
                at = torch.searchsorted(edges, z[:, c].contiguous(), right=True).clamp(1, len(edges) - 1)
                low[:, c], high[:, c] = edges[at - 1], edges[at]
        return low, high

    def forward(self, features: Tensor, columns: Tensor | None = None) -> TableConditionals:
        """Conditionals of all variables, or of the given ones only."""
        columns = torch.arange(len(self.n_symbols)) if columns is None else columns
        per_variable = features.dim() == 3
        at = self.symbols_of(columns)
        segment = self.segment_of(columns)
        logits = self._apply(self.symbols, at, features, columns[segment] if per_variable else None)
        # The two ordinal numbers of each column, moved along its axis.
        pair = torch.stack([2 * columns, 2 * columns + 1], dim=1).flatten()
        shared = self._apply(self.order, pair, features, columns.repeat_interleave(2) if per_variable else None)
        a, b = shared.unflatten(-1, (len(columns), 2)).unbind(-1)
        position = self.position[at]
        logits = logits + self.ordered[at] * (a[:, segment] * position + b[:, segment] * position**2)
        start = self.n_symbols[columns].cumsum(0) - self.n_symbols[columns]
        mixtures = {group: self._mixture(group, features, columns) for group in self.smooth}
        mixtures = {group: parts for group, parts in mixtures.items() if parts is not None}
        return TableConditionals(self, columns, self.normalise(logits, columns), start, mixtures)

    def _mixture(self, group: str, features: Tensor, columns: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
        g = self.groups.index(group)
        wanted = columns[self.group_of[columns] == g]
        if len(wanted) == 0:
            return None
        place = ((self.group_of == g).cumsum(0) - 1)[wanted]
        width = 3 * self.n_components
        rows = (place[:, None] * width + torch.arange(width)).flatten()
        of = wanted.repeat_interleave(width) if features.dim() == 3 else None
        raw = self._apply(self.smooth[group], rows, features, of).view(-1, len(wanted), width)
        logits, loc, log_scale = raw.chunk(3, dim=-1)
        return logits, loc, log_scale.clamp(FINEST_LOG_SCALE, WIDEST_LOG_SCALE).exp()

    @staticmethod
    def _apply(linear: Any, rows: Tensor, features: Tensor, variables: Tensor | None) -> Tensor:
        """Some outputs of a linear layer: from shared features, or each from its own variable's features."""
        weight, bias = linear.weight[rows], linear.bias[rows]
        if variables is None:
            return nn.functional.linear(features, weight, bias)
        out = features.new_empty(len(features), len(rows))
        for variable in variables.unique().tolist():
            mine = (variables == variable).nonzero().squeeze(1)
            out[:, mine] = nn.functional.linear(features[:, variable], weight[mine], bias[mine])
        return out
