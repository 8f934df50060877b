"""Refined draws follow the joint's conditional, by enumeration, whatever the direct conditional says."""

from itertools import product

import pytest
import torch

from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import build_model
from anygiven.inference import draw, log_prob, refine
from anygiven.lattice import Canonical, Question
from anygiven.variables.domains import CategoricalDomain, SharedDomain

N, N_ASKED, N_ROWS = 7, 5, 3000
ASKED = torch.tensor([1, 2, 4, 5, 6])


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("network", ["path", "transformer"])
def test_refined_draws_follow_the_joint(network, temperature):
    domains = SharedDomain(CategoricalDomain(("a", "b"), (1, 1)), (N,))
    model = build_model(domains, Architecture(network, 16, 1, 0.0, 0, n_heads=2), 0).eval()
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    is_query = torch.zeros(1, N, dtype=torch.bool).index_fill(1, ASKED, True)
    states = torch.zeros(2**N_ASKED, N, 4)
    states[:, ASKED, 0] = torch.tensor(list(product((0.0, 1.0), repeat=N_ASKED)))
    states[:, 0, 0] = 1.0  # the evidence: places 0 and 3
    everything = torch.ones(len(states), N, dtype=torch.bool)
    joint = log_prob(model, states, Question(everything, ~everything)) / temperature
    truth = joint.softmax(0)

    question = Question(is_query.expand(N_ROWS, -1), ~is_query.expand(N_ROWS, -1))
    generator = torch.Generator().manual_seed(1)
    first = draw(model, states[:1].repeat(N_ROWS, 1, 1), Canonical().path(question), generator, temperature)
    refined = refine(model, first, question, 12, generator, temperature)

    def distance(x: torch.Tensor) -> float:
        """Total variation between the draws and the truth."""
        code = (x[:, ASKED, 0] * 2 ** torch.arange(N_ASKED - 1, -1, -1)).sum(1).long()
        return float((torch.bincount(code, minlength=2**N_ASKED) / N_ROWS - truth).abs().sum()) / 2

    noise = float((truth * (1 - truth) / N_ROWS).sqrt().sum()) / 2  # of a perfect sampler, about
    assert distance(first) > 4 * noise  # the two routes of these random weights differ
    assert distance(refined) < 2 * noise
    assert torch.equal(refined[:, [0, 3]], first[:, [0, 3]])
