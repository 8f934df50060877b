"""Rivals in imputation: each learns from the training rows and fills the gaps of the test rows.

They see numbers as numbers and categories as codes; a code comes back rounded to the nearest category.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from noised import Split

MAX_TRAIN = 10_000  # rows that the slow rivals learn from


class Coded:
    """A split as two float matrices: numbers standardised, categories as codes, NaN for gaps."""

    def __init__(self, split: Split, test: pd.DataFrame):
        self.split, self.names = split, list(split.train.columns)
        self.is_category = np.array([name not in split.numeric for name in self.names])
        self.levels = [
            sorted(set(split.train[n].dropna())) if c else [] for n, c in zip(self.names, self.is_category, strict=True)
        ]
        train = self._codes(split.train)
        self.mean = np.where(self.is_category, 0.0, np.nanmean(train, axis=0))
        self.scale = np.where(self.is_category, 1.0, np.nanstd(train, axis=0) + 1e-12)
        self.train = (train - self.mean) / self.scale
        self.test = (self._codes(test) - self.mean) / self.scale

    def _codes(self, frame: pd.DataFrame) -> np.ndarray:
        columns = []
        for name, levels in zip(self.names, self.levels, strict=True):
            if levels:
                index = {level: float(k) for k, level in enumerate(levels)}
                columns.append(np.array([index.get(v, np.nan) for v in frame[name]]))
            else:
                columns.append(frame[name].to_numpy(dtype=float))
        return np.stack(columns, axis=1)

    def subsample(self) -> np.ndarray:
        rows = np.random.default_rng(0).permutation(len(self.train))[:MAX_TRAIN]
        return self.train[rows]

    def decode(self, filled: np.ndarray) -> pd.DataFrame:
        """Codes → the user's values."""
        out = {}
        for j, (name, levels) in enumerate(zip(self.names, self.levels, strict=True)):
            if levels:
                index = np.clip(np.round(filled[:, j]), 0, len(levels) - 1).astype(int)
                out[name] = np.array(levels, dtype=object)[index]
            else:
                out[name] = filled[:, j] * self.scale[j] + self.mean[j]
        return pd.DataFrame(out)


def mean_mode(coded: Coded) -> pd.DataFrame:
    filled = coded.test.copy()
    for j in range(filled.shape[1]):
        column = coded.train[:, j]
        present = column[~np.isnan(column)]
        centre = np.bincount(present.astype(int)).argmax() if coded.is_category[j] else present.mean()
        filled[np.isnan(filled[:, j]), j] = centre
    return coded.decode(filled)


def nearest_neighbours(coded: Coded) -> pd.DataFrame:
    """KNN on numbers and one-hot categories; the neighbours' mean code, or their likeliest category."""
    from sklearn.impute import KNNImputer

    blocks, places = [], []
    both = np.concatenate([coded.subsample(), coded.test])
    n_train = len(both) - len(coded.test)
    for j, levels in enumerate(coded.levels):
        places.append(sum(b.shape[1] for b in blocks))
        column = both[:, j]
        if levels:
            hot = np.eye(len(levels))[np.nan_to_num(column).astype(int)] * 0.7
            blocks.append(np.where(np.isnan(column)[:, None], np.nan, hot))
        else:
            blocks.append(column[:, None])
    wide = np.concatenate(blocks, axis=1)
    filled_wide = KNNImputer(n_neighbors=10, weights="distance").fit(wide[:n_train]).transform(wide[n_train:])
    filled = coded.test.copy()
    for j, levels in enumerate(coded.levels):
        at = places[j]
        value = filled_wide[:, at : at + len(levels)].argmax(1) if levels else filled_wide[:, at]
        filled[:, j] = np.where(np.isnan(filled[:, j]), value, filled[:, j])
    return coded.decode(filled)


def iterative(coded: Coded) -> pd.DataFrame:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer = IterativeImputer(random_state=0, max_iter=10, keep_empty_features=True).fit(coded.subsample())
        return coded.decode(imputer.transform(coded.test))


def extra_trees(coded: Coded, rounds: int = 3) -> pd.DataFrame:
    """A chain of ExtraTrees fitted with 30 % extra gaps, so that it learns to answer from part of a row."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    rng = np.random.default_rng(0)
    train = coded.subsample()
    gappy = np.where(rng.random(train.shape) < 0.3, np.nan, train)
    centre = np.array([np.nanmedian(c) if not cat else np.bincount(c[~np.isnan(c)].astype(int)).argmax()
                       for c, cat in zip(train.T, coded.is_category, strict=True)])  # fmt: skip
    fit_gaps, test_gaps = np.isnan(gappy), np.isnan(coded.test)
    fit_full, test_full = np.where(fit_gaps, centre, gappy), np.where(test_gaps, centre, coded.test)
    for _ in range(rounds):
        for j in range(train.shape[1]):
            known = ~np.isnan(train[:, j])
            if not test_gaps[:, j].any() or len(np.unique(train[known, j])) < 2:
                continue
            others = [k for k in range(train.shape[1]) if k != j]
            kind = ExtraTreesClassifier if coded.is_category[j] else ExtraTreesRegressor
            trees = kind(60, min_samples_leaf=3, max_features=0.6, random_state=0)
            trees.fit(np.concatenate([fit_full[known][:, others], fit_gaps[known][:, others]], 1), train[known, j])
            for full, gaps in ((fit_full, fit_gaps), (test_full, test_gaps)):
                if gaps[:, j].any():
                    inside = np.concatenate([full[gaps[:, j]][:, others], gaps[gaps[:, j]][:, others]], 1)
                    full[gaps[:, j], j] = trees.predict(inside)
    return coded.decode(test_full)


def mice_forest(coded: Coded) -> pd.DataFrame:
    """miceforest on training and test rows together, its trees' own predictions, mean (or vote) over three chains.

    This is its strongest use found: fitting on the training rows and then impute_new_data scores lower, and there
    complete_data() without an iteration returns the random starting values.
    """
    import miceforest as mf

    train = coded.subsample()
    both = np.concatenate([train, coded.test])
    frame = pd.DataFrame({f"c{j}": both[:, j] for j in range(both.shape[1])})
    for j, levels in enumerate(coded.levels):
        if levels:  # only the classes that occur: LightGBM refuses an empty one
            frame[f"c{j}"] = frame[f"c{j}"].astype("category")
    varies = [name for name in frame.columns if frame[name].nunique() > 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = mf.ImputationKernel(
            frame[varies], num_datasets=3, mean_match_strategy="fast", mean_match_candidates=0, random_state=0
        )
        kernel.mice(5, num_threads=1, num_iterations=60, verbose=False)
        chains = [kernel.complete_data(k, iteration=5).astype(float)[len(train) :] for k in range(3)]
    filled = coded.test.copy()
    for name in varies:
        j = int(name[1:])
        columns = np.stack([chain[name].to_numpy() for chain in chains])  # (3, rows)
        answer = np.median(columns, axis=0) if coded.is_category[j] else columns.mean(axis=0)
        filled[:, j] = np.where(np.isnan(filled[:, j]), answer, filled[:, j])
    return coded.decode(np.nan_to_num(filled))


RIVALS = {
    "mean/mode": mean_mode,
    "KNN": nearest_neighbours,
    "IterativeImputer": iterative,
    "ExtraTrees chain": extra_trees,
    "miceforest": mice_forest,
}
