"""No output changes when a value that is not evidence changes."""

import pytest
import torch

from anygiven.heads import TableHead
from anygiven.lattice import CardMask, Looks, RandomOrder, UniformEvidence
from anygiven.model import AnyOrderModel
from anygiven.networks import NETWORKS


@pytest.mark.parametrize("name", NETWORKS)
def test_conditionals_do_not_see_what_is_not_evidence(name, density, table):
    domains = density.schema_.domains
    torch.manual_seed(0)
    network = NETWORKS[name](domains, 32, 2, 0.0)
    model = AnyOrderModel(network, TableHead(32, domains)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # away from the marginals, so that a leak would show
    x, _ = density._encode(density_table(table))
    other = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))]
    is_evidence = torch.rand(x.shape[:2], generator=torch.Generator().manual_seed(2)) < 0.5
    mixed = torch.where(is_evidence.unsqueeze(-1), x, other)
    garbage = torch.where(is_evidence.unsqueeze(-1), x, torch.full_like(x, float("nan")))
    with torch.no_grad():
        here = model.look(x, is_evidence)
        for changed in (mixed, garbage):
            there = model.look(changed, is_evidence)
            assert torch.equal(here.log_symbols, there.log_symbols)
            for group in here.mixtures:
                pairs = zip(here.mixtures[group], there.mixtures[group], strict=True)
                assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_path_sees_only_earlier_steps(name, density, table):
    """Changing a variable moves the log probability of later variables only."""
    domains = density.schema_.domains
    torch.manual_seed(0)
    network = NETWORKS[name](domains, 32, 2, 0.0)
    model = AnyOrderModel(network, TableHead(32, domains)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, is_present = density._encode(density_table(table.dropna().head(40)))
    generator = torch.Generator().manual_seed(0)
    path = RandomOrder().path(CardMask().draw(is_present, generator), generator)
    with torch.no_grad():
        before = model.log_prob(x, path)
        for i in range(x.shape[1]):
            changed = x.clone()
            changed[:, i] = x[:, i].roll(7, dims=0)
            after = model.log_prob(changed, path)
            untouched = path.step < path.step[:, [i]]
            assert torch.equal(before[untouched], after[untouched])


def test_gaps_never_enter(density, table):
    """Cells that are not present are neither evidence nor asked, in any workload."""
    _, is_present = density._encode(density_table(table))
    generator = torch.Generator().manual_seed(0)
    for objective in (Looks(), Looks(UniformEvidence())):
        path, weights = objective.draw(is_present, generator)
        assert not (path.is_evidence & ~is_present).any()
        assert float(weights[~is_present].abs().sum()) == 0


def density_table(table):
    from anygiven.variables import read_table

    return read_table(table)
