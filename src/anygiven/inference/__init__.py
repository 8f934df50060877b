"""Plain functions of (model, question, protocol): how likely, a draw, the gaps filled."""

from anygiven.inference.distributions import Distribution, distribution_of, point_of
from anygiven.inference.drawing import draw, expected, nearly_independent, surest_first
from anygiven.inference.likelihood import (
    elbo,
    log_prob,
    log_prob_by_ratio,
    losses_by_evidence,
    order_ensemble,
    random_orders,
    scan_orders,
)
from anygiven.inference.orders import raster_order
from anygiven.inference.refining import refine
from anygiven.inference.summaries import distribution_at, fill

__all__ = [
    "Distribution", "distribution_at", "distribution_of", "draw", "elbo", "expected", "fill", "log_prob",
    "log_prob_by_ratio", "losses_by_evidence", "nearly_independent", "order_ensemble", "point_of", "random_orders",
    "raster_order", "refine", "scan_orders", "surest_first",
]  # fmt: skip
