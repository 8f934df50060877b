"""AnyOrderImputer among scikit-learn's estimators."""

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from anygiven import AnyOrderImputer


@parametrize_with_checks([AnyOrderImputer(max_steps=5, verbose=False)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_works_in_a_pipeline():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    x[:, 1] += x[:, 0]
    y = x[:, 1] > 0
    gappy = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    pipeline = make_pipeline(AnyOrderImputer(max_steps=200, verbose=False), StandardScaler(), LogisticRegression())
    assert pipeline.fit(gappy, y).score(gappy, y) > 0.8


def test_mixed_frames(table):
    imputer = AnyOrderImputer(max_steps=10, verbose=False)
    filled = imputer.fit_transform(table)
    assert not filled.isna().any().any()
    assert list(imputer.get_feature_names_out()) == list(table.columns)
    assert isinstance(imputer.transform(pl.from_pandas(table)), pl.DataFrame)
    drawn = AnyOrderImputer(max_steps=10, verbose=False, statistic="draw").fit_transform(table)
    assert not drawn.isna().any().any()
