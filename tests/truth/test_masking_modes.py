"""SFARM's chains: closed-form marginals against simulation, and ARDM's objective as the uniform mode."""

import pytest
import torch

from anygiven.lattice import ARDM, MODES, Activations, Anywhere, Joint, LeftToRight, RegionMode, seven_modes
from anygiven.lattice.masking_modes import activation_probability

SHAPE = (4, 5)
N = 20


def present(n: int) -> torch.Tensor:
    return torch.ones(n, N, dtype=torch.bool)


def simulated(stage: torch.Tensor, n_steps: int, generator: torch.Generator) -> torch.Tensor:
    """The Markov chain itself (Eqs. 4–6, 12): at each step one element of the current stage, uniformly."""
    active = torch.zeros(stage.shape, dtype=torch.bool)
    for _ in range(n_steps):
        current = stage.masked_fill(active, 99).amin(1, keepdim=True)
        candidates = (~active & (stage == current)).double()
        active.scatter_(1, torch.multinomial(candidates, 1, generator=generator), True)
    return active


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("i", [1, 6, 13, 20])
def test_marginals_in_closed_form_are_those_of_the_chain(name, i):
    generator = torch.Generator().manual_seed(0)
    stage, _ = MODES[name](SHAPE).stages(torch.Size((1, N)), generator)
    n = 20_000
    exact = activation_probability(stage, torch.tensor([i]))[0]
    found = simulated(stage.expand(n, N), i, generator).float().mean(0)
    assert float((found - exact).abs().max()) < 4 * (0.25 / n) ** 0.5


def test_prefixes_are_drawn_from_the_marginals_without_simulating():
    """Given the region and how many are active, every element is active as often as α says."""
    generator = torch.Generator().manual_seed(1)
    left = RegionMode(SHAPE, lambda n, shape, generator: (torch.arange(5) < 2).expand(n, *shape))
    path, _ = Activations(left).draw(present(60_000), generator)
    active = path.is_evidence
    stage = (~left.region(1, generator)).long().view(1, N)
    for i in (3, 8, 12):
        rows = active.sum(1) == i
        exact = activation_probability(stage, torch.tensor([i]))[0]
        assert float((active[rows].float().mean(0) - exact).abs().max()) < 4 * (0.25 / int(rows.sum())) ** 0.5


def test_the_uniform_mode_is_ardm_to_the_last_digit():
    ours = Activations(Anywhere(SHAPE)).draw(present(500), torch.Generator().manual_seed(3))
    ardm = ARDM(Joint()).draw(present(500), torch.Generator().manual_seed(3))
    assert torch.equal(ours[0].step, ardm[0].step)
    assert torch.equal(ours[1], ardm[1])


@pytest.mark.parametrize("several", [1, 3])
def test_every_element_counts_once_on_average(several):
    """Σ over the steps of E[Σ p(next) log p] counts each element exactly once."""
    generator = torch.Generator().manual_seed(5)
    _, weights = Activations(LeftToRight(SHAPE), several=several).draw(present(100_000), generator)
    assert float((weights.mean(0) - 1).abs().max()) < 0.05


def test_only_what_may_come_next_is_trained():
    generator = torch.Generator().manual_seed(7)
    modes = seven_modes(SHAPE)
    path, weights = Activations(modes, told=1.0).draw(present(2000), generator)
    assert path.masking_mode is not None
    assert set(path.masking_mode.tolist()) == set(range(1, 8))
    assert torch.equal(weights > 0, path.is_query)
    halves = path.masking_mode == 2  # left to right: as long as the left is not whole, nothing to its right is asked
    known, asked = path.is_evidence[halves].view(-1, *SHAPE), path.is_query[halves].view(-1, *SHAPE)
    leftmost_unknown = (~known).any(1).float().argmax(1)
    columns_asked = asked.any(1)
    assert all(columns_asked[r, c] for r, c in enumerate(leftmost_unknown.tolist()))


def test_regions_look_like_their_names():
    generator = torch.Generator().manual_seed(9)
    regions = {name: mode(SHAPE).region(50, generator) for name, mode in MODES.items()}
    assert regions["random"].all()
    assert regions["left to right"][:, :, 0].all()
    assert not regions["left to right"][:, :, -1].any()
    assert regions["right to left"][:, :, -1].all()
    assert regions["top to bottom"][:, 0].all()
    assert not regions["bottom to top"][:, 0].any()
    inside = regions["exterior patch"]
    assert (inside.sum((1, 2)) == inside.any(1).sum(1) * inside.any(2).sum(1)).all()  # a box
    assert regions["interior patch"].any((1, 2)).all()
