"""The marginal of one numeric column, and the map between its values and normal scores.

Marginal first: z = Phi^-1(F(x)) carries a column to a standard normal, so a network that has learnt
nothing answers with the column's own marginal, and has only dependence left to learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

MAX_CENTRES = 256
MAX_FITTED = 20_000
N_QUICK = 5  # recipes
SCORE_LIMIT = 8.0  # all mass beyond this score is at it
LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Tail:
    """What lies beyond the outermost knot: it falls off exponentially; nothing, where that knot is a bound.

    Power laws fit some columns better there, but the network's own mixture stands on these scores, and where it is a
    little wider than normal it would have no mean under them.
    """

    mass: float
    scale: float = 1.0

    def share_beyond(self, distance: np.ndarray) -> np.ndarray:
        """Of the tail's mass, what is farther than a distance from the knot."""
        return np.exp(-np.maximum(distance, 0.0) / self.scale)

    def density(self, distance: np.ndarray) -> np.ndarray:
        return self.mass * self.share_beyond(distance) / self.scale

    def distance(self, share: np.ndarray) -> np.ndarray:
        """How far from the knot this share of the tail's mass begins."""
        with np.errstate(divide="ignore"):
            return -self.scale * np.log(share)


@dataclass(frozen=True)
class Marginal:
    """A distribution function, linear between knots, with a tail at each end."""

    knots: np.ndarray  # (k,) increasing
    below: np.ndarray  # (k,) F at the knots
    above: np.ndarray  # (k,) 1 - F, summed from the top so that the upper tail keeps its digits
    low: Tail
    high: Tail
    masses: np.ndarray  # (k − 1,) between the knots, in proportion: what is stored, so that all else is found again

    @classmethod
    def from_masses(cls, knots: np.ndarray, masses: np.ndarray, low: Tail, high: Tail) -> Marginal:
        masses = np.maximum(masses, 0.0)
        total = masses.sum()
        if total > 1 + 1e-9:
            masses = masses / total
            total = masses.sum()
        inside = masses / (total if total > 0 else 1.0) * (1 - low.mass - high.mass)
        below = low.mass + np.concatenate([[0.0], np.cumsum(inside)])
        above = high.mass + np.concatenate([np.cumsum(inside[::-1])[::-1], [0.0]])
        return cls(knots, below, above, low, high, masses)

    def tails(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F(x) and 1 - F(x), each with its own precision."""
        is_low, is_high = x < self.knots[0], x > self.knots[-1]
        out_low = self.low.mass * self.low.share_beyond(self.knots[0] - x)
        out_high = self.high.mass * self.high.share_beyond(x - self.knots[-1])
        below = np.where(is_low, out_low, np.where(is_high, 1 - out_high, np.interp(x, self.knots, self.below)))
        above = np.where(is_high, out_high, np.where(is_low, 1 - out_low, np.interp(x, self.knots, self.above)))
        return below, above

    def score(self, x: np.ndarray) -> np.ndarray:
        """z = Phi^-1(F(x)), computed from the nearer tail."""
        below, above = self.tails(x)
        z = np.where(below < 0.5, ndtri(np.minimum(below, 0.5)), -ndtri(np.minimum(above, 0.5)))
        return np.clip(z, -SCORE_LIMIT, SCORE_LIMIT)

    def log_slope(self, x: np.ndarray) -> np.ndarray:
        """log dz/dx, so that log N(z) + log dz/dx is the marginal's log density."""
        slopes = np.diff(self.below) / np.diff(self.knots)
        inside = slopes[np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(slopes) - 1)]
        out_low, out_high = self.low.density(self.knots[0] - x), self.high.density(x - self.knots[-1])
        density = np.where(x < self.knots[0], out_low, np.where(x > self.knots[-1], out_high, inside))
        z = self.score(x)
        return np.log(np.maximum(density, 1e-300)) + 0.5 * z * z + LOG_SQRT_2PI

    def value(self, z: np.ndarray) -> np.ndarray:
        """F^-1(Phi(z)): from a normal score back to the user's units."""
        below, above = ndtr(z), ndtr(-z)
        low_half = np.interp(below, self.below, self.knots)
        high_half = np.interp(-above, -self.above, self.knots)
        x = np.where(z < 0, low_half, high_half)
        is_low, is_high = below < self.low.mass, above < self.high.mass
        out_low = self.knots[0] - self.low.distance(np.where(is_low, below, 1.0) / max(self.low.mass, 1e-300))
        out_high = self.knots[-1] + self.high.distance(np.where(is_high, above, 1.0) / max(self.high.mass, 1e-300))
        return np.where(is_low, out_low, np.where(is_high, out_high, x))

    def without(self, intervals: list[tuple[float, float]]) -> Marginal:
        """The same distribution with no mass inside the intervals (they belong to atoms)."""
        if not intervals:
            return self
        edges = np.array(sorted({edge for interval in intervals for edge in interval}))
        knots = np.union1d(self.knots, edges)
        below, above = self.tails(knots)
        masses = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        middle = 0.5 * (knots[1:] + knots[:-1])
        for low, high in intervals:
            masses = np.where((middle > low) & (middle < high), 0.0, masses)
        return Marginal.from_masses(knots, masses, *_alone(self.low, self.high, masses.sum()))

    def moved(self, centre: float, scale: float) -> Marginal:
        """Of centre + scale · x."""
        low, high = (Tail(tail.mass, tail.scale * scale) for tail in (self.low, self.high))
        return Marginal(self.knots * scale + centre, self.below, self.above, low, high, self.masses)

    def within(self, low: float, high: float) -> Marginal:
        """The same distribution with no mass outside two bounds; the bounds may be infinite."""
        if np.isinf([low, high]).all():
            return self
        ends = [bound for bound in (low, high) if np.isfinite(bound)]
        knots = np.union1d(self.knots, ends)
        knots = knots[(knots >= low) & (knots <= high)]
        if len(knots) < 2:  # everything was outside: what is possible is alike
            knots = np.array([low, high])
            return Marginal.from_masses(knots, np.ones(1), Tail(0.0), Tail(0.0))
        below, above = self.tails(knots)
        masses = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        tails = (Tail(0.0) if np.isfinite(low) else self.low, Tail(0.0) if np.isfinite(high) else self.high)
        return Marginal.from_masses(knots, masses, *_alone(*tails, masses.sum()))

    def to_json(self) -> dict:
        return {
            "knots": self.knots.tolist(),
            "masses": self.masses.tolist(),
            "tails": [[tail.mass, tail.scale] for tail in (self.low, self.high)],
        }


def _alone(low: Tail, high: Tail, inside: float) -> tuple[Tail, Tail]:
    """The tails, holding all of the mass where nothing is left between them."""
    if inside > 0:
        return low, high
    total = max(low.mass + high.mass, 1e-300)
    return replace(low, mass=low.mass / total), replace(high, mass=high.mass / total)


# A candidate is a distribution function tabulated at knots: (knots, F at the knots).
Candidate = tuple[np.ndarray, np.ndarray]


def _quantiles(rising: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """As np.quantile, of values that are sorted already."""
    return np.interp(levels * (len(rising) - 1), np.arange(len(rising)), rising)


def _quantile_histogram(values: np.ndarray, n_bins: int) -> Candidate:
    """Bins of equal mass: narrow where the data is dense, so atoms blurred by noise stay sharp."""
    levels = np.linspace(0, 1, n_bins + 1)
    knots, first = np.unique(_quantiles(values, levels), return_index=True)
    if len(knots) < 2:
        knots = np.array([knots[0] - 0.5, knots[0] + 0.5])
        return knots, np.array([0.0, 1.0])
    last = np.append(first[1:] - 1, n_bins)
    cdf = levels[last]
    cdf[0] = 0.0
    return knots, cdf


def _cell_histogram(values: np.ndarray, width: int) -> Candidate:
    """Masses of the cells of an integer grid, `width` cells to a bin."""
    bins, counts = np.unique(np.floor((np.round(values) - 0.5) / width), return_counts=True)
    left, right = bins * width + 0.5, (bins + 1) * width + 0.5
    knots = np.union1d(left, right)
    until = np.concatenate([[0.0], np.cumsum(counts)])
    return knots, until[np.searchsorted(right, knots, side="right")] / counts.sum()


def _kernels(centres: np.ndarray, widths: np.ndarray) -> Candidate:
    """Gaussian kernels with a bandwidth for each centre."""
    spread = np.sort(np.concatenate([centres - 4 * widths, centres, centres + 4 * widths]))
    knots = np.unique(_quantiles(spread, np.linspace(0, 1, 300)))
    if len(knots) < 2:
        knots = np.array([centres[0] - 1, centres[0] + 1])
    cdf = ndtr((knots[:, None] - centres) / widths).mean(axis=1)  # (knots,)
    cdf[0], cdf[-1] = 0.0, 1.0
    return knots, cdf


def _recipes(n: int, is_grid: bool) -> list[Callable[[np.ndarray], Candidate]]:
    """Ways to estimate a distribution from n rising values, from smooth to sharp; cross-validation weighs them."""
    found = [partial(_fixed_kernels, width=width) for width in (0.1, 0.25, 0.6)]
    found += [partial(_adaptive_kernels, span=span) for span in (1, 3, 8, 20, 50) if span < n / 4]
    found += [partial(_quantile_histogram, n_bins=bins) for bins in (4, 12, 40, 120, 400, 1200) if bins <= n / 5]
    if is_grid:
        found += [partial(_cell_histogram, width=width) for width in (1, 4)]
    return found


def _centres(values: np.ndarray) -> np.ndarray:
    n = min(len(values), MAX_CENTRES)
    return _quantiles(values, (np.arange(n) + 0.5) / n)


def _fixed_kernels(values: np.ndarray, width: float) -> Candidate:
    centres = _centres(values)
    return _kernels(centres, np.full(len(centres), max(np.std(values) * width, 1e-12)))


def _adaptive_kernels(values: np.ndarray, span: int) -> Candidate:
    """A kernel's width is the distance to the `span`-th next centre: narrow in spikes, wide in tails."""
    centres = _centres(values)
    at = np.arange(len(centres))
    upper, lower = centres[np.minimum(at + span, len(at) - 1)], centres[np.maximum(at - span, 0)]
    return _kernels(centres, np.maximum((upper - lower) / 2, max(np.ptp(values) * 1e-5, 1e-12)))


def _density(candidate: Candidate, x: np.ndarray) -> np.ndarray:
    knots, cdf = candidate
    slopes = np.diff(cdf) / np.diff(knots)
    at = np.searchsorted(knots, x, side="right") - 1
    return np.where((at >= 0) & (at < len(slopes)), slopes[np.clip(at, 0, len(slopes) - 1)], 0.0)


def _mixture_weights(likelihoods: np.ndarray, n_iterations: int = 100) -> np.ndarray:
    """EM for the weights of fixed components; likelihoods is (points, components)."""
    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    for _ in range(n_iterations):
        shares = likelihoods * weights
        weights = (shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0)
        weights = weights + 1e-6
        weights /= weights.sum()
    return weights


def _spread_ties(values: np.ndarray) -> np.ndarray:
    """Spread the values of each cell of an integer grid evenly over the cell."""
    values = np.sort(values)
    _, start, counts = np.unique(values, return_index=True, return_counts=True)
    rank = np.arange(len(values)) - np.repeat(start, counts)
    return values + ((rank + 0.5) / np.repeat(counts, counts) - 0.5)


def weighted_values(values: np.ndarray, weight: np.ndarray, n: int, is_grid: bool) -> np.ndarray:
    """n values that are spread as the weighted ones are: between two of them, unless they stand on a grid."""
    order = np.argsort(values, kind="stable")
    values, running = values[order], np.cumsum(weight[order])
    levels = (np.arange(max(n, 2)) + 0.5) / max(n, 2) * running[-1]
    if is_grid:
        return values[np.searchsorted(running, levels)]
    return np.interp(levels, running - 0.5 * weight[order], values)


def fit_marginal(
    values: np.ndarray,
    is_grid: bool,
    rng: np.random.Generator,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    is_quick: bool = False,
) -> Marginal:
    """Fit by cross-validated mixing of histograms and kernels; a grid's values are integers.

    Nothing lies outside the bounds (on a grid: outside the cells of the bounds). Quick: mixed alike, not validated.
    """
    values = np.asarray(values, dtype=np.float64)
    mass = 0.5 / (len(values) + 2)
    if len(values) > MAX_FITTED:
        values = rng.choice(values, MAX_FITTED, replace=False)
    if is_grid:
        values, bounds = _spread_ties(values), (bounds[0] - 0.5, bounds[1] + 0.5)
    centre, scale = (0.0, 1.0) if is_grid else (float(np.median(values)), float(np.std(values)))
    if np.std(values) <= 1e-15 * float(np.abs(values).max()):
        half = max(abs(float(values[0])) * 1e-3, 1e-3)
        knots = np.array([values[0] - half, values[0] + half])
        return Marginal.from_masses(knots, np.ones(1), Tail(mass, half), Tail(mass, half)).within(*bounds)
    unit = np.sort((values - centre) / scale)
    recipes = _recipes(len(unit), is_grid)
    if is_quick or len(unit) < 30:
        chosen = (_fixed_kernels, _quantile_histogram) if is_quick else (_fixed_kernels,)
        recipes = [recipe for recipe in recipes if recipe.func in chosen][: N_QUICK if is_quick else None]
        weights = np.full(len(recipes), 1 / len(recipes))
    else:
        weights = _mixture_weights(_held_out(unit, recipes, rng))
    found = _blend([recipe(unit) for recipe in recipes], weights, unit, mass)
    return found.moved(centre, scale).within(*bounds)


def _blend(candidates: list[Candidate], weights: np.ndarray, values: np.ndarray, mass: float) -> Marginal:
    keep = np.flatnonzero(weights > 1e-3)
    knots = np.unique(np.concatenate([candidates[k][0] for k in keep]))
    knots = knots[np.concatenate([[True], np.diff(knots) > 1e-9 * np.std(values)])]
    cdf = sum(weights[k] * np.interp(knots, *candidates[k], left=0.0, right=1.0) for k in keep)
    masses = np.maximum(np.diff(cdf), 0.0) + 1e-12
    tails = _fit_tail(-values, mass), _fit_tail(values, mass)
    return Marginal.from_masses(*_thin(knots, masses), *tails)


def _fit_tail(values: np.ndarray, mass: float) -> Tail:
    """As far beyond the outermost knot as the outermost values go beyond those before them: the upper hundredth (ten at
    least), and of heavy tails no more than the upper tenth, or a tenth of the range."""
    values, span = np.sort(values), float(np.ptp(values))
    hundredth = _excess(values, max(10, len(values) // 100))
    tenth = max(_excess(values, max(10, len(values) // 10)), 0.1 * span)
    return Tail(mass, max(min(hundredth, tenth), 0.02 * span, 1e-300))


def _excess(values: np.ndarray, n: int) -> float:
    """How far the n greatest (half of them all, if there are few) lie beyond the next on average."""
    n = min(n, len(values) // 2)
    return float((values[-n:] - values[-n - 1]).mean()) if n else 0.0


def _thin(knots: np.ndarray, masses: np.ndarray, tolerance: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    """Join neighbouring segments of nearly equal density: a smaller file, the same distribution."""
    level = np.round(np.log(masses / np.diff(knots)) / tolerance)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(level) != 0]))
    return np.append(knots[starts], knots[-1]), np.add.reduceat(masses, starts)


def _held_out(values: np.ndarray, recipes: list, rng: np.random.Generator, n_folds: int = 3) -> np.ndarray:
    """Densities of held-out points under estimates made without them; (points, recipes)."""
    fold = rng.integers(n_folds, size=len(values))
    rows = []
    for k in range(n_folds):
        held = values[fold == k][:4000]
        rows.append(np.stack([_density(recipe(values[fold != k]), held) for recipe in recipes], axis=1))
    return np.concatenate(rows)
