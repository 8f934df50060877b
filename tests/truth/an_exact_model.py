"""A model without a network: every conditional of a small table of probabilities, by enumeration."""

import numpy as np
import torch

from anygiven.heads import Categorical, SharedCategories
from anygiven.model import Unrolled
from anygiven.variables.domains import SYMBOL


class ExactModel(Unrolled):
    """p(x_i | evidence) of the joint `table` (K, K, …, K)."""

    def __init__(self, table: np.ndarray):
        super().__init__()
        self.table = table
        self.looks = 0
        self.anchor = torch.nn.Parameter(torch.zeros(1))

    def look(self, x, is_evidence, columns=None, masking_mode=None):
        self.looks += 1
        columns = torch.arange(self.table.ndim) if columns is None else columns
        p = [[self.conditional(row, known, int(i)) for i in columns]
             for row, known in zip(x[..., SYMBOL].long().tolist(), is_evidence.tolist(), strict=True)]  # fmt: skip
        size = self.table.shape[0]
        logits = torch.tensor(np.array(p).reshape(len(x), len(columns), size)).clamp(min=1e-30).log().float()
        return SharedCategories(columns, Categorical(logits))

    def conditional(self, row, is_known, variable: int) -> np.ndarray:
        """(K,) also of a variable that is itself known: as if it were not."""
        given = tuple(
            value if known and i != variable else slice(None)
            for i, (value, known) in enumerate(zip(row, is_known, strict=True))
        )
        left = self.table[given]
        place = sum(1 for i in range(variable) if not (is_known[i] and i != variable))
        mass = left.sum(axis=tuple(axis for axis in range(left.ndim) if axis != place))
        return mass / mass.sum()

    def log_prob_of(self, row, is_query, is_evidence) -> float:
        """The truth: log p(query | evidence)."""
        both = tuple(v if q or e else slice(None) for v, q, e in zip(row, is_query, is_evidence, strict=True))
        given = tuple(v if e else slice(None) for v, e in zip(row, is_evidence, strict=True))
        return float(np.log(self.table[both].sum() / self.table[given].sum()))
