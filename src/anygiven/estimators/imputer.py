"""AnyOrderImputer: the gaps of a numeric array or a table filled, as a scikit-learn transformer."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from anygiven.errors import QuestionError
from anygiven.estimators.tabular import STATISTICS, TabularDensity
from anygiven.variables import read_table


class AnyOrderImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill gaps by the conditional mean (numbers) or likeliest value (categories) given the rest of the row.

    Takes numeric arrays and frames as scikit-learn does, and mixed frames (pandas, polars, pyarrow) too.

    Parameters
    ----------
    statistic : "mean", "median", "mode" or "draw"
        "draw" fills with one joint draw of the gaps.
    workload : as in TabularDensity; "gaps" trains for the gap patterns of the table itself.
    schema, max_minutes, max_steps, verbose : as in TabularDensity
    random_state : int or None
        Of the fit, and of draws: with a seed every call of transform draws the same, with None each draws anew.
    """

    def __init__(
        self,
        statistic="mean",
        schema=None,
        workload="any",
        max_minutes=4.0,
        max_steps=None,
        verbose=None,
        random_state=0,
    ):
        self.statistic = statistic
        self.workload = workload
        self.schema = schema
        self.max_minutes = max_minutes
        self.max_steps = max_steps
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X, y=None, sample_weight=None):
        X = self._checked(X, reset=True)
        self.density_ = TabularDensity(
            schema=self.schema,
            workload=self.workload,
            max_minutes=self.max_minutes,
            max_steps=self.max_steps,
            verbose=self.verbose,
            random_state=self.random_state,
        ).fit(X, sample_weight=sample_weight)
        return self

    def transform(self, X):
        check_is_fitted(self)
        if self.statistic not in (*STATISTICS, "draw"):
            raise QuestionError(f"There is no statistic {self.statistic!r}; use {', '.join(STATISTICS)} or draw.")
        X = self._checked(X, reset=False)
        if self.statistic == "draw":
            return self.density_.impute(X, draws=1, random_state=self.random_state)[0]
        return self.density_.impute(X, statistic=self.statistic)

    def _checked(self, X, reset: bool):
        """Mixed frames go to the density as they are; everything else through scikit-learn's own checks."""
        if _is_mixed_frame(X):
            names = read_table(X).names
            if reset:
                self.n_features_in_ = len(names)
                self.feature_names_in_ = np.asarray(names, dtype=object)
            return X
        return validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan", copy=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _is_mixed_frame(X) -> bool:
    """A data frame (not an array) with at least one column that is not a number."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return False
    return any(not dtype.is_numeric() for dtype in frame.schema.values())
