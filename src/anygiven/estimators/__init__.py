"""Defaults + fit + ask."""

from anygiven.estimators.answers import Answer
from anygiven.estimators.images import ImageDensity
from anygiven.estimators.imputer import AnyOrderImputer
from anygiven.estimators.tabular import TabularDensity
from anygiven.estimators.text import TextDensity

__all__ = ["Answer", "AnyOrderImputer", "ImageDensity", "TabularDensity", "TextDensity"]
