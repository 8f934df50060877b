"""No output changes when a value that may not be seen changes."""

import pytest
import torch

from anygiven.estimators.table_questions import encoded
from anygiven.heads import joint_head_for
from anygiven.lattice import ARDM, Budget, RandomOrder, UniformEvidence
from anygiven.model import AnyOrderModel, any_order_model
from anygiven.networks import NETWORKS, networks_for
from anygiven.variables import read_table


def scrambled_model(name: str, domains) -> AnyOrderModel:
    """Far from the marginals, so that a leak would show."""
    torch.manual_seed(0)
    model = any_order_model(NETWORKS[name](domains, 32, 2, 0.0), joint_head_for(32, domains)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("name", networks_for([]))
def test_conditionals_do_not_see_what_is_not_evidence(name, density, table):
    model = scrambled_model(name, density.schema_.domains)
    x, _ = encoded(density.schema_, read_table(table))
    other = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))]
    is_evidence = torch.rand(x.shape[:2], generator=torch.Generator().manual_seed(2)) < 0.5
    mixed = torch.where(is_evidence.unsqueeze(-1), x, other)
    garbage = torch.where(is_evidence.unsqueeze(-1), x, torch.full_like(x, float("nan")))
    with torch.no_grad():
        here = model.look(x, is_evidence)
        for changed in (mixed, garbage):
            there = model.look(changed, is_evidence)
            assert torch.equal(here.log_symbols, there.log_symbols)
            for group, smooth in here.smooth.items():
                for name in ("logits", "loc", "scale"):
                    assert torch.equal(getattr(smooth, name), getattr(there.smooth[group], name))


@pytest.mark.parametrize("protocol", [RandomOrder(), Budget(RandomOrder(), 3)], ids=["one at a time", "groups"])
@pytest.mark.parametrize("name", networks_for([]))
def test_a_path_sees_only_earlier_steps(name, protocol, density, table):
    """Changing a variable moves the log probability of itself and of later variables only."""
    model = scrambled_model(name, density.schema_.domains)
    x, is_present = encoded(density.schema_, read_table(table.dropna().head(40)))
    generator = torch.Generator().manual_seed(0)
    path = protocol.path(UniformEvidence().draw(is_present, generator), generator)
    moved = 0
    with torch.no_grad():
        before = model.log_prob(x, path)
        for i in range(x.shape[1]):
            changed = x.clone()
            changed[:, i] = x[:, i].roll(7, dims=0)
            after = model.log_prob(changed, path)
            untouched = (path.step <= path.step[:, [i]]) & (torch.arange(x.shape[1]) != i)
            assert torch.allclose(before[untouched], after[untouched], rtol=1e-5, atol=1e-5)
            moved += int((before[~untouched] != after[~untouched]).sum())
    assert moved > 100  # later ones do see it


def test_gaps_never_enter(density, table):
    """Cells that are not present are neither evidence nor asked, in any workload."""
    _, is_present = encoded(density.schema_, read_table(table))
    generator = torch.Generator().manual_seed(0)
    for objective in (ARDM(), ARDM(UniformEvidence())):
        path, weights = objective.draw(is_present, generator)
        assert not (path.is_evidence & ~is_present).any()
        assert float(weights[~is_present].abs().sum()) == 0
