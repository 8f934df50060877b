"""The one place where values are hidden from a network. Nothing past this point can leak.

A test changes every non-evidence value and sees no output change.
"""

from __future__ import annotations

from torch import Tensor

from anygiven.lattice.question import NEVER

NOTHING = NEVER - 1  # the step of a token without content: later than anything a token may see


def hide(cells: Tensor, is_evidence: Tensor) -> Tensor:
    """Cells (B, N, 4) with everything that is not evidence set to zero."""
    return cells.masked_fill(~is_evidence.unsqueeze(-1), 0.0)


def visible(content_step: Tensor, horizon: Tensor) -> Tensor:
    """(B, Q, K) bool: a token sees content up to and including the step `horizon` (B, Q), and nothing later.

    For content the horizon is its own step, so evidence sees evidence; for a question it is the step before its own.
    """
    return content_step[:, None, :] <= horizon[:, :, None]
