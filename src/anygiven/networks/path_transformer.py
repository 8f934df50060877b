"""The path Transformer: one pass scores every edge of a path.

A token holds a value (content), asks for a variable (target), or both. Content j is visible to a token iff its step is
not later than the token's horizon: content sees its own step (so evidence sees evidence), a question only earlier
ones. Rest variables are not in the sequence. A path that reveals one variable at a time is *fused*: each content
token also asks for the next variable, which halves the tokens; groups and looks have question tokens of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from anygiven.lattice.question import EVIDENCE, NEVER
from anygiven.networks.attention import Attended, AttentionBlock, Memory, Rotary
from anygiven.networks.hiding import NOTHING, visible
from anygiven.networks.neighbours import neighbours_for
from anygiven.networks.path import PathNetwork, PathWalk, asks, last_step
from anygiven.networks.tokens import tokens_for
from anygiven.variables.domains import Domain

NONE = -1  # no variable
BLIND = -2  # the horizon of padding
MAX_ATTENTION = 2**24  # rows × tokens² of one pass, so that memory is bounded
MIN_BUCKET = 8  # rows
SLACK = 6  # tokens of padding that cost less than another pass


@dataclass(frozen=True)
class TokenRows:
    """B rows of L tokens."""

    content: Tensor  # (B, L) the variable whose value the token holds, NONE if it holds none
    content_step: Tensor  # (B, L) from when on others may see it
    target: Tensor  # (B, L) the variable the token asks for, NONE if it asks for none
    horizon: Tensor  # (B, L) the last step it sees
    is_causal: bool = False  # every token sees itself and all before it

    def to(self, device: torch.device) -> TokenRows:
        return TokenRows(
            self.content.to(device), self.content_step.to(device), self.target.to(device), self.horizon.to(device),
            self.is_causal,
        )  # fmt: skip

    @property
    def place(self) -> Tensor:
        """(B, L) the variable a token is about: what it asks for, or else what it holds."""
        return torch.where(self.target != NONE, self.target, self.content.clamp(min=0))

    def mask(self) -> Tensor | None:
        """(B, 1, L, L) float; None where the causal mask does."""
        if self.is_causal:
            return None
        itself = torch.eye(self.content.shape[1], dtype=torch.bool, device=self.content.device)
        return as_bias(visible(self.content_step, self.horizon) | itself)


def as_bias(is_visible: Tensor) -> Tensor:
    """(B, Q, K) bool → (B, 1, Q, K) float, −inf where not visible."""
    bias = torch.zeros(is_visible.shape, device=is_visible.device)
    return bias.masked_fill_(~is_visible, -torch.inf).unsqueeze(1)


def is_single_file(step: Tensor) -> Tensor:
    """(B,) whether a row reveals one variable at a time, at every step from the first to its last."""
    ordered = torch.where(asks(step), step, NEVER).sort(dim=1).values  # (B, N) the asked ones first
    return ((ordered == torch.arange(step.shape[1])) | (ordered == NEVER)).all(1)


def n_tokens(step: Tensor, is_fused: Tensor) -> Tensor:
    """(B,) how many tokens a row needs: evidence, targets, and if not fused the content of all steps but the last."""
    contents = (asks(step) & (step < last_step(step))).sum(1)
    return (step != NEVER).sum(1) + torch.where(is_fused, 0, contents)


def fused(step: Tensor) -> TokenRows:
    """evidence …, START → u₀, u₀ → u₁, u₁ → u₂, …: content and the next target in one token."""
    order = step.argsort(dim=1, stable=True)  # (B, N) evidence, queries, rest
    n_known, n_all = (step == EVIDENCE).sum(1, keepdim=True), (step != NEVER).sum(1, keepdim=True)
    k = torch.arange(max(1, int(n_all.max()))).expand(len(step), -1)
    has_content = (k != n_known) & (k < n_all)
    content = order.gather(1, torch.where(k < n_known, k, k - 1).clamp(min=0))
    content_step = torch.where(has_content, step.gather(1, content), NOTHING)
    horizon = torch.where(has_content, content_step, BLIND)
    is_start = (k == n_known) & (n_known < n_all)
    target = torch.where((k >= n_known) & (k < n_all), order.gather(1, k), NONE)
    return TokenRows(
        torch.where(has_content, content, NONE), torch.where(is_start, 0, content_step), target,
        torch.where(is_start, EVIDENCE, horizon), is_causal=not bool(n_known.any()),
    )  # fmt: skip


def two_kinds(step: Tensor) -> TokenRows:
    """Content tokens of all steps but the last, then a question token for every query variable."""
    order = step.argsort(dim=1, stable=True)
    n_known = (step == EVIDENCE).sum(1, keepdim=True)
    n_content = (step < last_step(step)).sum(1, keepdim=True)
    n_query = asks(step).sum(1, keepdim=True)
    k = torch.arange(max(1, int((n_content + n_query).max()))).expand(len(step), -1)
    has_content = k < n_content
    has_target = ~has_content & (k < n_content + n_query)
    content = order.gather(1, k.clamp(max=step.shape[1] - 1))
    asked = order.gather(1, (n_known + k - n_content).clamp(0, step.shape[1] - 1))
    content_step = torch.where(has_content, step.gather(1, content), NOTHING)
    before = torch.where(has_target, step.gather(1, asked) - 1, BLIND)
    return TokenRows(
        torch.where(has_content, content, NONE), content_step, torch.where(has_target, asked, NONE),
        torch.where(has_content, content_step, before),
    )  # fmt: skip


def buckets(step: Tensor, is_fused: Tensor) -> Iterator[tuple[Tensor, bool]]:
    """(rows, whether they are fused): rows of like length together, so that little is padded."""
    length = n_tokens(step, is_fused)
    for fuse in (True, False):
        rows = (is_fused == fuse).nonzero().squeeze(1)
        rows = rows[length[rows].argsort(descending=True)]
        while len(rows):
            longest = max(1, int(length[rows[0]]))
            near = int(((length[rows] * 4 >= longest * 3) | (longest - length[rows] <= SLACK)).sum())
            take = min(max(near, MIN_BUCKET), max(1, MAX_ATTENTION // longest**2), len(rows))
            yield rows[:take], fuse
            rows = rows[take:]


class PathTransformer(PathNetwork):
    settings = ("width", "depth", "dropout", "n_heads")

    def __init__(
        self, domains: Sequence[Domain], width: int = 96, depth: int = 3, dropout: float = 0.1, n_heads: int = 4
    ):
        super().__init__()
        self.width, self.n_heads, self.head_width = width, n_heads, width // n_heads
        self.tokens = tokens_for(domains, width)
        self.targets = nn.Parameter(0.1 * torch.randn(len(domains), width))  # the names of what is asked
        self.no_content = nn.Parameter(0.1 * torch.randn(width))
        self.blocks = nn.ModuleList(AttentionBlock(width, n_heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.rotary = Rotary(domains, self.head_width)
        self.fuses = True  # paths that reveal one variable at a time
        self.neighbours = neighbours_for(domains, width)

    def forward(self, cells: Tensor, step: Tensor) -> Tensor:
        out, device = cells.new_zeros(*step.shape, self.width), cells.device
        for rows, fuse in buckets(step, is_single_file(step) & self.fuses):
            some = step[rows]
            sequence, is_shown = (fused if fuse else two_kinds)(some), some < last_step(some)
            b, k = (sequence.target != NONE).nonzero(as_tuple=True)
            places = rows[b].to(device), sequence.target[b, k].to(device)
            sequence = sequence.to(device)
            seen = self.attended(sequence, sequence.mask())
            h = self.embed(sequence, cells[rows.to(device)], some.to(device), is_shown.to(device))
            for block in self.blocks:
                h = block(h, seen)
            out = out.index_put(places, self.norm(h[b.to(device), k.to(device)]))
        return out

    def embed(self, sequence: TokenRows, cells: Tensor, step: Tensor, is_shown: Tensor) -> Tensor:
        """(B, L, width): what is held, what is asked, and what stands next to it."""
        content = sequence.content.clamp(min=0)
        held = self.tokens.values_of(content, cells, is_shown) + embedding(content, self.tokens.names)
        held = torch.where((sequence.content != NONE).unsqueeze(-1), held, self.no_content)
        asked = embedding(sequence.target.clamp(min=0), self.targets)
        h = held + asked * (sequence.target != NONE).unsqueeze(-1)
        if self.neighbours is None:
            return h
        return h + self.neighbours(cells, step, is_shown, sequence.place, sequence.horizon)

    def attended(self, sequence: TokenRows, mask: Tensor | None, n_remembered: int = 0) -> Attended:
        """A token asks from its target's place, or its content's; it offers from its content's, or its target's."""
        offering = torch.where(sequence.content != NONE, sequence.content, sequence.place)
        return Attended(mask, mask is None, self.rotary(sequence.place), self.rotary(offering), n_remembered)

    def walk(self, cells: Tensor, step: Tensor) -> PathWalk:
        is_fused = is_single_file(step) & self.fuses
        if bool(is_fused.all()) or not bool(is_fused.any()):
            return TransformerWalk(self, cells, step, bool(is_fused.all()))
        return MixedWalk(self, cells, step, is_fused)


class MixedWalk(PathWalk):
    """Rows that reveal one variable at a time beside rows that reveal groups: each kind walks on its own."""

    def __init__(self, network: PathTransformer, cells: Tensor, step: Tensor, is_fused: Tensor):
        self.out = cells.new_zeros(*step.shape, network.width)
        kinds = [(is_fused.nonzero().squeeze(1), True), ((~is_fused).nonzero().squeeze(1), False)]
        self.parts = [
            (rows, TransformerWalk(network, cells[rows.to(cells.device)], step[rows], fuse)) for rows, fuse in kinds
        ]

    def features(self) -> Tensor:
        for rows, walk in self.parts:
            self.out[rows.to(self.out.device)] = walk.features()
        return self.out

    def reveal(self, cells: Tensor, step: Tensor) -> None:
        for rows, walk in self.parts:
            walk.reveal(cells[rows.to(cells.device)], step[rows])


class TransformerWalk(PathWalk):
    """A path with the keys and values of all that was seen; the same answers as one pass over the whole path."""

    def __init__(self, network: PathTransformer, cells: Tensor, step: Tensor, is_fused: bool):
        self.network, self.cells, self.step, self.t = network, cells, step, 0
        self.is_fused = is_fused
        self.remembered = step.new_zeros(len(step), 0)  # (B, K) from when on each remembered token is visible
        self.device = cells.device
        size = (len(step), network.n_heads, network.head_width)
        self.memories = [Memory.empty(*size, self.device) for _ in network.blocks]
        self.revealed = step == EVIDENCE  # (B, N) content that is not yet in memory
        self.out = cells.new_zeros(
            *step.shape, network.width
        )  # one for all steps: new ones would cost more than a step
        self.found: Tensor | None = None

    def features(self) -> Tensor:
        if self.found is None:
            self.found = self._advance()
        return self.found

    def reveal(self, cells: Tensor, step: Tensor) -> None:
        self.features()  # what came before must be in memory
        self.revealed = step == self.t
        self.cells, self.step, self.found, self.t = cells, step, None, self.t + 1

    def _advance(self) -> Tensor:
        sequence, n_remembered = self._next_tokens()
        step = torch.cat([self.remembered, sequence.content_step], dim=1)
        itself = torch.eye(sequence.content.shape[1], dtype=torch.bool)
        is_visible = visible(step, sequence.horizon)
        is_visible[:, :, self.remembered.shape[1] :] |= itself
        b, k = (sequence.target != NONE).nonzero(as_tuple=True)
        places = b.to(self.device), sequence.target[b, k].to(self.device)
        there = sequence.to(self.device)
        seen = self.network.attended(there, as_bias(is_visible.to(self.device)), n_remembered)
        h = self.network.embed(there, self.cells, self.step.to(self.device), (self.step < self.t).to(self.device))
        for block, memory in zip(self.network.blocks, self.memories, strict=True):
            h = block(h, seen, memory)
        self.remembered = step[:, : self.remembered.shape[1] + n_remembered]
        self.out[places] = self.network.norm(h[b.to(self.device), k.to(self.device)])
        return self.out

    def _next_tokens(self) -> tuple[TokenRows, int]:
        """What is new since the last step, and how many of these tokens are remembered."""
        now = torch.where(self.step <= self.t, self.step, NEVER)
        if self.is_fused and self.t == 0:
            sequence = fused(now)
            return sequence, sequence.content.shape[1]
        if self.is_fused:
            return self._fused_token(), 1
        content, asked = listed(self.revealed), listed(now == self.t)
        content_step = torch.where(content != NONE, now.gather(1, content.clamp(min=0)), NOTHING)
        horizon = torch.where(content != NONE, content_step, BLIND)
        before = torch.where(asked != NONE, self.t - 1, BLIND)
        none, nothing = torch.full_like(content, NONE), torch.full_like(asked, NOTHING)
        sequence = TokenRows(
            torch.cat([content, torch.full_like(asked, NONE)], 1), torch.cat([content_step, nothing], 1),
            torch.cat([none, asked], 1), torch.cat([horizon, before], 1),
        )  # fmt: skip
        return sequence, content.shape[1]

    def _fused_token(self) -> TokenRows:
        """(B, 1): the variable revealed last, asking for the next."""
        content, target = listed(self.revealed, 1), listed(self.step == self.t, 1)
        step = torch.where(content != NONE, self.t - 1, NOTHING)
        return TokenRows(content, step, target, torch.where(content != NONE, step, BLIND))


def listed(is_member: Tensor, at_least: int = 0) -> Tensor:
    """(B, L) the members of each row, NONE after the last."""
    count = is_member.sum(1, keepdim=True)
    length = max(at_least, int(count.max()) if len(count) else 0)
    members = is_member.long().argsort(dim=1, descending=True, stable=True)[:, :length]
    return torch.where(torch.arange(length) < count, members, NONE)
