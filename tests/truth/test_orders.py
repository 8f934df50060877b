"""Scanning orders, and what is known to be lost by asking several at once."""

import torch

from anygiven.inference import losses_by_evidence, random_orders, scan_orders
from anygiven.lattice import Canonical
from anygiven.variables.rows import Data


def test_scans_come_before_random_orders():
    orders = scan_orders((3, 4), 10, seed=0)
    assert len(orders) == 10
    assert orders[0] == Canonical()
    assert len({order.order for order in orders}) == 10
    assert orders[1].order[:4] == (3, 2, 1, 0)
    assert len(random_orders(5, 3, 0)) == 3


class FallsWithEvidence:
    """A model to which a variable costs as many nats as there are others unknown."""

    device = torch.device("cpu")

    def log_prob(self, x, path):
        return -path.is_query.sum(1, keepdim=True) * path.is_query.float()


def test_losses_are_those_of_so_much_evidence():
    data = Data(torch.zeros(5, 8, 4), torch.ones(5, 8, dtype=torch.bool))
    sizes, losses = losses_by_evidence(FallsWithEvidence(), data)
    assert sizes[0] == 0
    assert sizes == sorted(set(sizes))
    assert max(sizes) < 8
    assert losses == [8 - size for size in sizes]
