"""Defaults + fit + ask."""

from anygiven.estimators.conditional import Conditional
from anygiven.estimators.images import ImageDensity
from anygiven.estimators.imputer import AnyOrderImputer
from anygiven.estimators.tabular import TabularDensity
from anygiven.estimators.text import TextDensity

DENSITIES = {density.kind: density for density in (TabularDensity, TextDensity, ImageDensity)}

__all__ = ["DENSITIES", "AnyOrderImputer", "Conditional", "ImageDensity", "TabularDensity", "TextDensity"]
