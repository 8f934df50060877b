"""Rivals in likelihood: each takes a Split and returns log p of every test row, over its present cells.

All of them stand on the same marginals as anygiven does, so what differs is the dependence they find.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
from scipy.special import logsumexp, ndtri

from anygiven.variables.marginals import LOG_SQRT_2PI, Marginal, fit_marginal
from noised import Split


class Prepared:
    """Normal scores of the numbers, codes of the categories, and the log densities of the marginals."""

    def __init__(self, split: Split):
        self.split = split
        rng = np.random.default_rng(0)
        self.marginals: list[Marginal] = []
        self.levels: list[list[str]] = []
        for name in split.numeric:
            values = split.train[name].to_numpy(dtype=float)
            self.marginals.append(fit_marginal(values[~np.isnan(values)], False, rng))
        for name in split.categorical:
            self.levels.append(sorted(set(split.train[name].dropna())))
        self.z, self.log_slope, self.codes = self.encode(split.train)
        self.z_test, self.log_slope_test, self.codes_test = self.encode(split.test)

    def encode(self, frame):
        """Scores (n, d), log dz/dx (n, d) with NaN for gaps, and category codes (n, c) with −1 for gaps."""
        values = frame[self.split.numeric].to_numpy(dtype=float)
        z = np.stack([m.score(values[:, i]) for i, m in enumerate(self.marginals)], 1) if self.marginals else values
        slope = np.stack([m.log_slope(values[:, i]) for i, m in enumerate(self.marginals)], 1) if len(z.T) else values
        slope = np.where(np.isnan(values), 0.0, slope)
        z = np.where(np.isnan(values), np.nan, z)
        codes = np.full((len(frame), len(self.levels)), -1)
        for j, name in enumerate(self.split.categorical):
            index = {level: k for k, level in enumerate(self.levels[j])}
            codes[:, j] = [index.get(v, -1) if v is not None else -1 for v in frame[name]]
        return z, slope, codes

    def category_log_prob(self, codes: np.ndarray, probabilities: list[np.ndarray]) -> np.ndarray:
        total = np.zeros(len(codes))
        for j, p in enumerate(probabilities):
            present = codes[:, j] >= 0
            total[present] += np.log(p[codes[present, j]])
        return total

    def frequencies(self, weights: np.ndarray | None = None, rows=slice(None)) -> list[np.ndarray]:
        out = []
        for j, levels in enumerate(self.levels):
            codes = self.codes[rows, j]
            present = codes >= 0
            w = None if weights is None else weights[present]
            counts = np.bincount(codes[present], w, minlength=len(levels))
            total = np.bincount(self.codes[self.codes[:, j] >= 0, j], minlength=len(levels)) + 0.5
            counts = counts + total / total.sum()  # one pseudo-row with the overall frequencies
            out.append(counts / counts.sum())
        return out


def independent(p: Prepared) -> np.ndarray:
    z = p.z_test
    density = np.where(np.isnan(z), 0.0, -0.5 * z**2 - LOG_SQRT_2PI) + p.log_slope_test
    return density.sum(1) + p.category_log_prob(p.codes_test, p.frequencies())


def gaussian_log_prob(z: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """log N of the present part of each row; rows with the same gaps share one factorisation."""
    present = ~np.isnan(z)
    out = np.zeros(len(z))
    patterns, inverse = np.unique(present, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    if len(patterns) <= 300:
        for k, pattern in enumerate(patterns):
            if pattern.any():
                rows = inverse == k
                out[rows] = _log_normal(z[np.ix_(rows, pattern)] - mean[pattern], cov[np.ix_(pattern, pattern)])
        return out
    return _masked_log_normal(np.where(present, z - mean, 0.0), present, cov)


def _log_normal(centred: np.ndarray, cov: np.ndarray) -> np.ndarray:
    factor = np.linalg.cholesky(cov)
    white = np.linalg.solve(factor, centred.T)
    return -0.5 * (white**2).sum(0) - np.log(np.diag(factor)).sum() - len(cov) * LOG_SQRT_2PI


def _masked_log_normal(centred: np.ndarray, present: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Many patterns: one batched factorisation, with the identity in the place of the gaps."""
    out = []
    cov_t = torch.from_numpy(cov)
    for start in range(0, len(centred), 2000):
        m = torch.from_numpy(present[start : start + 2000])
        both = m[:, :, None] & m[:, None, :]
        blocks = torch.where(both, cov_t, torch.eye(len(cov), dtype=torch.float64))
        factor = torch.linalg.cholesky(blocks)
        c = torch.from_numpy(centred[start : start + 2000])[:, :, None]
        white = torch.linalg.solve_triangular(factor, c, upper=False).squeeze(2)
        log_det = factor.diagonal(dim1=1, dim2=2).log().sum(1)
        out.append((-0.5 * (white**2).sum(1) - log_det - m.sum(1) * LOG_SQRT_2PI).numpy())
    return np.concatenate(out)


def completed(z: np.ndarray, n_iterations: int = 8) -> np.ndarray:
    """Gaps filled by draws from one Gaussian fitted by stochastic EM: what the mixture is fitted on."""
    if not np.isnan(z).any():
        return z
    rng = np.random.default_rng(0)
    gaps = np.isnan(z)
    full = np.where(gaps, rng.standard_normal(z.shape), z)
    for _ in range(n_iterations):
        mean, cov = full.mean(0), np.cov(full.T) + 1e-3 * np.eye(z.shape[1])
        precision = np.linalg.inv(cov)
        for i in np.flatnonzero(gaps.any(0)):  # one Gibbs sweep
            others = np.delete(np.arange(z.shape[1]), i)
            centre = mean[i] - (full[:, others] - mean[others]) @ precision[i, others] / precision[i, i]
            noise = rng.standard_normal(len(z)) / np.sqrt(precision[i, i])
            full[:, i] = np.where(gaps[:, i], centre + noise, full[:, i])
    return full


def gaussian_copula(p: Prepared) -> np.ndarray:
    """One correlation matrix over the normal scores; categories independent."""
    out = p.category_log_prob(p.codes_test, p.frequencies()) + p.log_slope_test.sum(1)
    if p.z.shape[1]:
        full = completed(p.z)
        out += gaussian_log_prob(
            p.z_test, full.mean(0), np.cov(full.T).reshape(full.shape[1], -1) + 1e-5 * np.eye(full.shape[1])
        )
    return out


class ScoreMixture:
    """Full-covariance Gaussians on normal scores times categories, by EM; size chosen on held-out rows."""

    def __init__(self, p: Prepared, n_components: int, rows: np.ndarray, seed: int = 0, n_iterations: int = 40):
        rng = np.random.default_rng(seed)
        self.p = p
        full = completed(p.z)[rows] if p.z.shape[1] else np.zeros((len(rows), 0))
        codes = p.codes[rows]
        n, d = full.shape
        resp = self._start(full, codes, n_components, rng)
        ridge = 1e-4 + 0.3 * n_components / n
        for _ in range(n_iterations):
            self.weights = (resp.sum(0) + 1e-3) / (resp.sum() + 1e-3 * n_components)
            self.means, self.covs, self.tables = [], [], []
            for k in range(n_components):
                w = resp[:, k] + 1e-8
                mean = w @ full / w.sum()
                centred = full - mean
                cov = (centred * w[:, None]).T @ centred / w.sum() + ridge * np.eye(d)
                self.means.append(mean)
                self.covs.append(cov)
                self.tables.append(p.frequencies(w, rows))
            log_joint = self._log_joint(full, codes)
            new = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
            moved = np.abs(new - resp).mean()
            resp = new
            if moved < 1e-4 / n_components:
                break

    def _start(self, full, codes, k, rng):
        from sklearn.cluster import KMeans

        onehot = [np.eye(len(levels) + 1)[codes[:, j]] for j, levels in enumerate(self.p.levels) if len(levels) < 50]
        points = np.concatenate([full, *onehot], axis=1)
        if points.shape[1] == 0:
            points = rng.standard_normal((len(full), 1))
        sample = points[rng.permutation(len(points))[:5000]]
        labels = KMeans(k, n_init=2, random_state=int(rng.integers(1000))).fit(sample).predict(points)
        return np.eye(k)[labels] * 0.9 + 0.1 / k

    def _log_joint(self, z, codes):
        columns = []
        for k, weight in enumerate(self.weights):
            column = np.log(weight) + self.p.category_log_prob(codes, self.tables[k])
            if z.shape[1]:
                column = column + gaussian_log_prob(z, self.means[k], self.covs[k])
            columns.append(column)
        return np.stack(columns, 1)

    def log_prob(self, z, log_slope, codes):
        return logsumexp(self._log_joint(z, codes), axis=1) + log_slope.sum(1)


def score_mixture(p: Prepared, sizes=(1, 2, 4, 8, 15, 30)) -> np.ndarray:
    rng = np.random.default_rng(0)
    order = rng.permutation(len(p.z))[:12000]
    cut = max(len(order) // 8, 20)
    held, rows = order[:cut], order[cut:]
    best, best_score = None, -np.inf
    for size in sizes:
        if size > len(rows) / 10:
            break
        mixture = ScoreMixture(p, size, rows)
        score = mixture.log_prob(p.z[held], p.log_slope[held], p.codes[held]).mean()
        if score > best_score:
            best, best_score = size, score
        elif size > 2 * (best or 1):
            break
    assert best is not None
    final = ScoreMixture(p, best, order)
    return final.log_prob(p.z_test, p.log_slope_test, p.codes_test)


class Bins:
    """Quantile bins of the scores beside the categories, and the marginal's own density inside a bin."""

    def __init__(self, p: Prepared, n_bins: int):
        self.n_bins = n_bins
        self.edges = ndtri(np.arange(1, n_bins) / n_bins)
        self.sizes = [n_bins] * p.z.shape[1] + [len(levels) for levels in p.levels]

    def symbols(self, z: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """(rows, columns), −1 for gaps."""
        binned = np.where(np.isnan(z), -1, np.searchsorted(self.edges, np.nan_to_num(z)))
        return np.concatenate([binned, codes], axis=1).astype(int)

    def log_inside(self, z: np.ndarray, log_slope: np.ndarray) -> np.ndarray:
        """log density of each row's numbers given their bins."""
        density = -0.5 * np.nan_to_num(z) ** 2 - LOG_SQRT_2PI + log_slope + np.log(self.n_bins)
        return np.where(np.isnan(z), 0.0, density).sum(1)


class ChowLiu:
    """A tree over quantile bins and categories, with the marginal's own density inside a bin."""

    def __init__(self, p: Prepared, n_bins: int, pseudo: float, rows: np.ndarray):
        self.bins = Bins(p, n_bins)
        self.sizes = self.bins.sizes
        symbols = self.bins.symbols(p.z[rows], p.codes[rows])
        self.pseudo = pseudo
        self.margins = [self._margin(symbols[:, i], size) for i, size in enumerate(self.sizes)]
        self._grow(symbols)

    def _margin(self, column, size):
        counts = np.bincount(column[column >= 0], minlength=size) + 0.5
        return counts / counts.sum()

    def _pair(self, symbols, i, j):
        """P(i, j) smoothed towards independence."""
        both = (symbols[:, i] >= 0) & (symbols[:, j] >= 0)
        flat = symbols[both, i] * self.sizes[j] + symbols[both, j]
        counts = np.bincount(flat, minlength=self.sizes[i] * self.sizes[j]).reshape(self.sizes[i], self.sizes[j])
        prior = np.outer(self.margins[i], self.margins[j])
        size = self.pseudo * np.sqrt(self.sizes[i] * self.sizes[j])
        return (counts + size * prior) / (counts.sum() + size), int(both.sum())

    def _grow(self, symbols):
        from scipy.sparse.csgraph import minimum_spanning_tree

        n = len(self.sizes)
        weight = np.zeros((n, n))
        for i in range(n):
            for j in range(i + 1, n):
                pair, _ = self._pair(symbols, i, j)
                outer = np.outer(pair.sum(1), pair.sum(0))
                weight[i, j] = -(pair * np.log(pair / outer)).sum() - 1e-9
        tree = minimum_spanning_tree(weight).toarray()
        links = tree + tree.T
        self.order, self.parent, seen = [0], {0: -1}, {0}
        for node in self.order:
            for other in range(n):
                if other not in seen and links[node, other] < 0:
                    seen.add(other)
                    self.parent[other] = node
                    self.order.append(other)
        for other in range(n):
            if other not in seen:
                self.parent[other] = -1
                self.order.append(other)
        self.tables = {}
        for node in self.order:
            up = self.parent[node]
            if up >= 0:
                pair, _ = self._pair(symbols, up, node)
                self.tables[node] = pair / pair.sum(1, keepdims=True)

    def log_prob(self, z, log_slope, codes):
        """Sum-product from the leaves to the roots: gaps are summed out exactly."""
        symbols = self.bins.symbols(z, codes)
        rows = len(symbols)
        belief = {i: np.zeros((rows, size)) for i, size in enumerate(self.sizes)}
        for i, size in enumerate(self.sizes):
            present = symbols[:, i] >= 0
            wrong = np.arange(size)[None, :] != symbols[:, [i]]
            belief[i][present] = np.where(wrong[present], -np.inf, 0.0)
        total = np.zeros(rows)
        with np.errstate(divide="ignore"):
            for node in reversed(self.order):
                up = self.parent[node]
                top = belief[node].max(1, keepdims=True)
                mass = np.exp(belief[node] - top)
                if up >= 0:
                    belief[up] += np.log(mass @ self.tables[node].T) + top
                else:
                    total += np.log(mass @ self.margins[node]) + top[:, 0]
        return total + self.bins.log_inside(z, log_slope)


def chow_liu(p: Prepared) -> np.ndarray:
    rng = np.random.default_rng(0)
    order = rng.permutation(len(p.z))[:30000]
    cut = max(len(order) // 8, 20)
    held, rows = order[:cut], order[cut:]
    best, best_score = (8, 1.0), -np.inf
    for n_bins in (4, 8, 16, 32):
        for pseudo in (0.3, 1.0, 4.0):
            tree = ChowLiu(p, n_bins, pseudo, rows)
            score = tree.log_prob(p.z[held], p.log_slope[held], p.codes[held]).mean()
            if score > best_score:
                best, best_score = (n_bins, pseudo), score
    return ChowLiu(p, *best, order).log_prob(p.z_test, p.log_slope_test, p.codes_test)


def spflow(p: Prepared) -> np.ndarray:
    """LearnSPN of SPFlow 1.1 over bins and categories, in the environment that SPFLOW_PYTHON points to."""
    python = os.environ.get("SPFLOW_PYTHON")
    if not python:
        raise RuntimeError("set SPFLOW_PYTHON to a python with spflow==1.1.0 to measure this rival")
    order = np.random.default_rng(0).permutation(len(p.z))[:5000]
    cut = max(len(order) // 8, 20)
    parts = {"held": order[:cut], "train": order[cut:]}
    best, best_score = None, -np.inf
    for n_bins in (8, 16):
        bins = Bins(p, n_bins)
        varies = np.array(bins.sizes) > 1  # it has no leaf for a constant
        symbols = {name: bins.symbols(p.z[rows], p.codes[rows])[:, varies] for name, rows in parts.items()}
        test = bins.symbols(p.z_test, p.codes_test)[:, varies]
        masses = _spflow_masses(python, sizes=np.array(bins.sizes)[varies], test=test, **symbols)
        score = (masses["held"] + bins.log_inside(p.z[order[:cut]], p.log_slope[order[:cut]])).mean()
        if score > best_score:
            best, best_score = masses["test"] + bins.log_inside(p.z_test, p.log_slope_test), score
    assert best is not None
    return best


def _spflow_masses(python: str, **arrays) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = f"{folder}/symbols.npz", f"{folder}/masses.npz"
        np.savez(asked, **arrays)
        script = str(Path(__file__).with_name("spflow_scores.py"))
        done = subprocess.run([python, script, asked, answered], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        with np.load(answered) as file:
            return dict(file)


RIVALS = {
    "independent marginals": independent,
    "Gaussian copula": gaussian_copula,
    "mixture on normal scores": score_mixture,
    "Chow-Liu tree": chow_liu,
    "SPFlow": spflow,
}
