"""Defaults + fit + ask."""

from anygiven.estimators.conditional import Conditional
from anygiven.estimators.imputer import AnyOrderImputer
from anygiven.estimators.tabular import TabularDensity

__all__ = ["AnyOrderImputer", "Conditional", "TabularDensity"]
