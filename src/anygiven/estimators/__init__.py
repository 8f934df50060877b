"""Defaults + fit + ask."""

from anygiven.estimators.conditional import Conditional
from anygiven.estimators.imputer import AnyOrderImputer
from anygiven.estimators.tabular import TabularDensity
from anygiven.estimators.text import TextDensity

DENSITIES = {density.kind: density for density in (TabularDensity, TextDensity)}

__all__ = ["DENSITIES", "AnyOrderImputer", "Conditional", "TabularDensity", "TextDensity"]
