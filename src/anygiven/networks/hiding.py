"""The one place where values are hidden from a network. Nothing past this point can leak.

A test changes every non-evidence value and sees no output change.
"""

from __future__ import annotations

from torch import Tensor


def hide(cells: Tensor, is_evidence: Tensor) -> Tensor:
    """Cells (B, N, 4) with everything that is not evidence set to nought."""
    return cells.masked_fill(~is_evidence.unsqueeze(-1), 0.0)
