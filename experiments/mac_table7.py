"""MAC's Table 7 and Fig. 2: how often each training law meets each mask, and the lattice with its edge weights.

Every law over N = 12 variables by exact enumeration, and by drawing from the samplers that training uses. The
picture shows all subsets of four variables: an edge is one univariate conditional, as wide as the law trains it.
"""

from __future__ import annotations

import torch

from anygiven.lattice import Canonical, CardMask, Glimpse, RandomOrder
from anygiven.lattice.enumeration import (
    Mask,
    canonical_edges,
    card_mask_law,
    edge_law,
    entropy,
    masks,
    prefix_law,
    random_order_edges,
)

N = 12
SHOWN = ["011111111110", "100000000000", "100000000101", "100000001000", "111111111110"]
# name: (protocol, edges of a path, one count per question as the appendix samples, reweighted by 1 + |e|)
LAWS = {
    "D(M, w-RND), appendix": (RandomOrder(), random_order_edges, True, False),
    "D(M, w-MAC), appendix": (Canonical(), canonical_edges, True, False),
    "D^CR(M, w-MAC), appendix": (Canonical(), canonical_edges, True, True),
    "D(M, w-MAC), Eq. 6": (Canonical(), canonical_edges, False, False),
    "D^CR(M, w-MAC), Eq. 6": (Canonical(), canonical_edges, False, True),
}
SCALES = {"laptop": {"draws": 200_000}, "paper": {"draws": 1_000_000}}


def measure(run) -> dict:
    draws = run.settings["draws"] if run.max_steps is None else 1000 * run.max_steps
    rows = {"M": _row(card_mask_law(N), None)}
    for name, (protocol, edges, per_question, cardinality) in LAWS.items():
        exact = prefix_law(edge_law(card_mask_law(N), edges, per_question), cardinality)
        objective = Glimpse(CardMask(), protocol, edges=not per_question, cardinality=cardinality)
        rows[name] = _row(exact, _drawn(objective, draws, run.seed))
    return {"data": f"all {2**N} masks of {N} variables; {draws} draws", "laws": rows}


def _row(exact: dict[Mask, float], drawn: dict[str, int] | None) -> dict:
    """Entropy in nats and counts per million, exact and as drawn."""
    keys = {text: tuple(int(c) for c in text) for text in SHOWN}
    found = {"entropy": entropy(exact), "exact": {text: 1e6 * exact.get(key, 0.0) for text, key in keys.items()}}
    if drawn:
        total = sum(drawn.values())
        found["drawn"] = {text: 1e6 * drawn.get(text, 0) / total for text in SHOWN}
    return found


def _drawn(objective: Glimpse, draws: int, seed: int) -> dict[str, int]:
    generator = torch.Generator().manual_seed(seed)
    path, _ = objective.draw(torch.ones(draws, N, dtype=torch.bool), generator)
    codes, counts = (path.is_evidence.long() @ (2 ** torch.arange(N - 1, -1, -1))).unique(return_counts=True)
    return {format(code, f"0{N}b"): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}


def table(results: dict) -> str:
    lines = [f"{'per million':<28}{'entropy':>9}" + "".join(f"{mask:>16}" for mask in SHOWN)]
    for name, row in results["laws"].items():
        for kind in ("exact", "drawn"):
            if kind in row:
                label = f"{name:<28}{row['entropy']:>9.4f}" if kind == "exact" else f"{'  as drawn':<37}"
                lines.append(label + "".join(f"{row[kind][mask]:>16.0f}" for mask in SHOWN))
    return "\n".join(lines)


def draw(results: dict):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    laws = {
        "all conditionals, random orders (ARDM)": edge_law(card_mask_law(4), random_order_edges, False),
        "canonical order (MAC): 15 of 32 edges": edge_law(card_mask_law(4), canonical_edges, False),
    }
    draw_lattice(axes[0], 4, {(mask, i): 1.0 for mask in masks(4) for i in range(4) if not mask[i]}, width=lambda _: 1)
    axes[0].set_title("the lattice: 32 univariate conditionals")
    for axis, (title, law) in zip(axes[1:], laws.items(), strict=True):
        draw_lattice(axis, 4, law, width=lambda weight: 60 * weight)
        axis.set_title(title)
    return figure


def draw_lattice(axis, n: int, weights: dict[tuple[Mask, int], float], width) -> None:
    """Subsets by cardinality from the empty one at the bottom; an edge adds one variable, `width`(weight) wide."""
    place = {}
    for size in range(n + 1):
        level = sorted((m for m in masks(n) if sum(m) == size), reverse=True)
        place |= {mask: (k - (len(level) - 1) / 2, size) for k, mask in enumerate(level)}
    for (mask, i), weight in weights.items():
        above = tuple(1 if j == i else bit for j, bit in enumerate(mask))
        (x0, y0), (x1, y1) = place[mask], place[above]
        axis.plot([x0, x1], [y0, y1], color="C0", linewidth=max(0.4, width(weight)), zorder=1, solid_capstyle="round")
    for mask, (x, y) in place.items():
        label = "".join(str(i + 1) for i, bit in enumerate(mask) if bit) or "∅"
        axis.text(x, y, label, ha="center", va="center", fontsize=8, zorder=2,
                  bbox={"boxstyle": "round,pad=0.25", "fc": "white", "ec": "0.5"})  # fmt: skip
    axis.set_axis_off()
