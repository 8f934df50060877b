"""Defaults + fit + ask."""

from anygiven.estimators.conditional import Conditional
from anygiven.estimators.imputer import AnyOrderImputer
from anygiven.estimators.tabular import TabularDensity
from anygiven.estimators.text import TextDensity

DENSITIES = {"tabular": TabularDensity, "text": TextDensity}  # by the kind that a model folder states

__all__ = ["DENSITIES", "AnyOrderImputer", "Conditional", "TabularDensity", "TextDensity"]
