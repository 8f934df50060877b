"""The rival that a user of text would pick: a character n-gram with Witten-Bell smoothing."""

from __future__ import annotations

import numpy as np


class WittenBell:
    """p_k(c | h) = (n(hc) + t(h) p_{k−1}(c | h')) / (n(h) + t(h)), with t(h) the number of symbols seen after h."""

    def __init__(self, symbols: np.ndarray, n_symbols: int, order: int = 6):
        self.base, self.order = n_symbols, order
        self.tables = [self._count(symbols.astype(np.int64), k) for k in range(order)]

    def _count(self, symbols: np.ndarray, k: int):
        """Of contexts of k symbols: grams and their counts, contexts with their counts and numbers of followers."""
        codes = self._codes(symbols, k + 1)
        grams, n = np.unique(codes, return_counts=True)
        contexts, first = np.unique(grams // self.base, return_index=True)
        return grams, n, contexts, np.add.reduceat(n, first), np.diff(np.append(first, len(grams)))

    def _codes(self, symbols: np.ndarray, size: int) -> np.ndarray:
        """(…, n − size + 1) each run of `size` symbols as one number."""
        n = symbols.shape[-1] - size + 1
        code = np.zeros((*symbols.shape[:-1], n), dtype=np.int64)
        for k in range(size):
            code = code * self.base + symbols[..., k : k + n]
        return code

    def log2_prob(self, chunks: np.ndarray) -> np.ndarray:
        """(B,) of chunks (B, length) that know nothing of what came before."""
        chunks = chunks.astype(np.int64)
        p = np.full(chunks.shape, 1.0 / self.base)
        for k, (grams, n, contexts, totals, followers) in enumerate(self.tables[: chunks.shape[1]]):
            codes = self._codes(chunks, k + 1)  # places k … length − 1 have k symbols before them
            count, total = _found(grams, n, codes), _found(contexts, totals, codes // self.base)
            kinds = _found(contexts, followers, codes // self.base)
            smoothed = (count + kinds * p[:, k:]) / np.maximum(total + kinds, 1)
            p[:, k:] = np.where(total > 0, smoothed, p[:, k:])
        return np.log2(p).sum(1)


def _found(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)
