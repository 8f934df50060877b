"""Small lattices in full: every mask, every path, every law, by enumeration. For tests, docs and figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from math import comb, factorial, log

Mask = tuple[int, ...]  # 1 where the variable is in the set; the leftmost is variable 1


def masks(n: int) -> Iterator[Mask]:
    """All 2^n subsets."""
    return product((0, 1), repeat=n)


def card_mask_law(n: int) -> dict[Mask, float]:
    """M(e) ∝ 1 / C(n, |e|) over non-empty masks: the cardinality is uniform in 1 … n."""
    return {mask: 1 / (n * comb(n, sum(mask))) for mask in masks(n) if any(mask)}


def canonical_edges(mask: Mask) -> list[tuple[Mask, int, float]]:
    """The path of w-MAC from ∅ to the mask: (prefix, variable revealed, probability)."""
    prefix, edges = [0] * len(mask), []
    for i, member in enumerate(mask):
        if member:
            edges.append((tuple(prefix), i, 1.0))
            prefix[i] = 1
    return edges


def random_order_edges(mask: Mask) -> list[tuple[Mask, int, float]]:
    """All edges below the mask with the probability that w-RND walks them."""
    members = [i for i, member in enumerate(mask) if member]
    k = len(members)
    edges = []
    for chosen in product((0, 1), repeat=k):
        prefix = [0] * len(mask)
        for i, inside in zip(members, chosen, strict=True):
            prefix[i] = inside
        size = sum(chosen)
        if size < k:
            walked = factorial(size) * factorial(k - size - 1) / factorial(k)
            edges += [(tuple(prefix), i, walked) for i, inside in zip(members, chosen, strict=True) if not inside]
    return edges


def edge_law(mask_law: dict[Mask, float], path_edges, per_question: bool) -> dict[tuple[Mask, int], float]:
    """D(i, e): how often each edge is walked. `per_question`: the appendix's M(e)/|e| instead of M(e) per edge."""
    law: dict[tuple[Mask, int], float] = defaultdict(float)
    for mask, probability in mask_law.items():
        for prefix, variable, walked in path_edges(mask):
            law[prefix, variable] += probability * walked / (sum(mask) if per_question else 1)
    total = sum(law.values())
    return {edge: value / total for edge, value in law.items()}


def prefix_law(edges: dict[tuple[Mask, int], float], cardinality: bool) -> dict[Mask, float]:
    """D(e) = Σ_i D(i, e), reweighted by 1+|e| if asked."""
    law: dict[Mask, float] = defaultdict(float)
    for (prefix, _), probability in edges.items():
        law[prefix] += probability * (1 + sum(prefix) if cardinality else 1)
    total = sum(law.values())
    return {mask: value / total for mask, value in law.items()}


def entropy(law: dict) -> float:
    """In nats."""
    return -sum(p * log(p) for p in law.values() if p > 0)
