"""Plain functions of (model, question, protocol): how likely, a draw, the gaps filled."""

from anygiven.inference.drawing import draw, nearly_independent
from anygiven.inference.likelihood import log_prob, log_prob_by_ratio, losses_by_evidence, order_ensemble
from anygiven.inference.summaries import fill, summarise

__all__ = [
    "draw",
    "fill",
    "log_prob",
    "log_prob_by_ratio",
    "losses_by_evidence",
    "nearly_independent",
    "order_ensemble",
    "summarise",
]
