"""Every path network: rest costs nothing, the cache changes nothing, and walking draws what one pass scores."""

import pytest
import torch

from anygiven.heads import joint_head_for
from anygiven.lattice import (
    N_SCANS,
    SLANTS,
    BernoulliEvidence,
    Budget,
    Canonical,
    CardMask,
    Joint,
    Path,
    RandomOrder,
    Slanted,
    Strided,
    UniformEvidence,
    scan_order,
)
from anygiven.model import PathModel, any_order_model
from anygiven.networks import NETWORKS, PathNetwork
from anygiven.networks.path_convolutions import LookVisibility, ScanVisibility, visibilities
from anygiven.networks.path_transformer import buckets, fused, n_tokens, two_kinds
from anygiven.variables.domains import Binary, CategoricalDomain, Levels, SharedDomain

TABLE = [
    CategoricalDomain(("a", "b", "c"), (3, 2, 1)),
    Binary((0, 1), (4, 6)),
    CategoricalDomain(("x", "y"), (1, 1)),
] * 3
TEXT = SharedDomain(CategoricalDomain(tuple("abcde"), (5, 4, 3, 2, 1)), (9,))
WORLDS = {
    "table": TABLE, "text": TEXT, "image": SharedDomain(Levels((5, 4)), (3, 4)),
    "colour": SharedDomain(Levels((5, 4, 3), 3), (3, 3)),
    "channels": SharedDomain(Levels((5, 4, 3)), (2, 2, 3)),
}  # fmt: skip
CASES = [
    pytest.param(name, world, id=f"{name}-{world}")
    for name, network in NETWORKS.items()
    if issubclass(network, PathNetwork)
    for world in WORLDS
    if network.reads(WORLDS[world])
]
PROTOCOLS = [
    Canonical(), RandomOrder(), Strided(3), Budget(RandomOrder(), 3), Canonical((8, 7, 6, 5, 4, 3, 2, 1, 0)),
    Slanted((3, 3), 1), Slanted((3, 3), 2),
]  # fmt: skip
WORKLOADS = [Joint(), CardMask(), UniformEvidence(), BernoulliEvidence(0.5)]


def model_for(name: str, domains, depth: int = 2, **settings) -> PathModel:
    torch.manual_seed(0)
    components = 2 if isinstance(domains[0], Levels) and domains[0].n_channels > 1 else 0
    model = PathModel(
        NETWORKS[name](domains, 32, depth, 0.0, **settings), joint_head_for(32, domains, components)
    ).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def rows(domains, n: int = 24) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    x = torch.zeros(n, len(domains), 4)
    for i, domain in enumerate(domains):
        for channel in range(domain.n_channels if isinstance(domain, Levels) else 1):
            x[:, i, channel] = torch.randint(domain.n_symbols, (n,), generator=generator).float()
    return x


def fitted(protocol, domains):
    """The same for this world's variables, or its grid."""
    if isinstance(protocol, Canonical) and protocol.order:
        return Canonical(tuple(reversed(range(len(domains)))))
    is_grid = isinstance(domains, SharedDomain) and len(domains.shape) > 1
    return Slanted(domains.shape, protocol.slant) if isinstance(protocol, Slanted) and is_grid else protocol


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: type(w).__name__)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize(("name", "world"), CASES)
def test_cache_equals_no_cache(name, world, protocol, workload):
    model, x = model_for(name, WORLDS[world]), rows(WORLDS[world])
    generator = torch.Generator().manual_seed(5)
    path = fitted(protocol, WORLDS[world]).path(
        workload.draw(torch.ones(x.shape[:2], dtype=torch.bool), generator), generator
    )
    assert torch.allclose(walked_log_prob(model, x, path), whole_log_prob(model, x, path), atol=1e-5)


@pytest.mark.parametrize("n_strides", [1, 2, 3, 4])
def test_however_far_neighbours_are(n_strides):
    """Walks and lines that cannot see each other give the numbers of raster order in one pass."""
    domains = SharedDomain(Levels((5, 4)), (9, 10))
    model, x = model_for("convolutions", domains, depth=4, n_strides=n_strides), rows(domains, 6)
    question = UniformEvidence().draw(torch.ones(x.shape[:2], dtype=torch.bool), torch.Generator().manual_seed(5))
    whole = whole_log_prob(model, x, Canonical().path(question))
    lines = Slanted(domains.shape, model.network.lossless_slant).path(question)
    assert torch.allclose(walked_log_prob(model, x, Canonical().path(question)), whole, atol=1e-4)
    assert torch.allclose(walked_log_prob(model, x, lines), whole, atol=1e-4)


@torch.no_grad()
def whole_log_prob(model, x, path):
    return model.log_prob(x, path)


@torch.no_grad()
def walked_log_prob(model, x, path):
    walk, walked = model.walk(x, path), torch.zeros(x.shape[:2])
    while not walk.is_done:
        columns, log_p = walk.columns, torch.zeros_like(walked)
        log_p[:, columns] = walk.conditionals().log_prob(x[:, columns])
        walked += torch.where(path.asked_at(walk.t), log_p, 0.0)
        walk.reveal(x[:, columns])
    return walked


@pytest.mark.parametrize(("name", "world"), CASES)
def test_rows_of_different_kinds_walk_together(name, world):
    """One variable at a time beside groups, steps that nobody uses, all known: each row as if it were alone."""
    model, x = model_for(name, WORLDS[world]), rows(WORLDS[world], 4)
    n = x.shape[1]
    step = torch.stack([torch.arange(n), torch.arange(n) // 2, torch.arange(n) * 2, torch.full((n,), -1)])
    step[1, -1] = n + 3
    path = Path(step)
    whole = whole_log_prob(model, x, path)
    assert torch.allclose(walked_log_prob(model, x, path), whole, atol=1e-5)
    alone = torch.cat([whole_log_prob(model, x[[b]], path.rows([b])) for b in range(len(x))])
    assert torch.allclose(whole, alone, atol=1e-5)


@pytest.mark.parametrize(("name", "world"), CASES)
def test_steps_with_a_gap_do_not_leak(name, world):
    """0, 0, 2 has as many variables as steps and still reveals two at once."""
    model, x = model_for(name, WORLDS[world]), rows(WORLDS[world])
    step = torch.full(x.shape[:2], -1)
    step[:, :3] = torch.tensor([0, 0, 2])
    changed = x.clone()
    changed[:, 0, 0] = (x[:, 0, 0] + 1) % WORLDS[world][0].n_symbols
    before, after = (whole_log_prob(model, cells, Path(step)) for cells in (x, changed))
    assert torch.allclose(before[:, 1], after[:, 1], atol=1e-6)


@pytest.mark.parametrize(("name", "world"), CASES)
def test_a_look_at_some_variables_is_a_look_at_all(name, world):
    model, x = model_for(name, WORLDS[world]), rows(WORLDS[world])
    known = torch.arange(x.shape[1]) % 3 == 0
    is_evidence, columns = known.expand(x.shape[:2]), torch.tensor([1, 4])
    with torch.no_grad():
        of_all = model.look(x, is_evidence).log_prob(x)[:, columns]
        of_some = model.look(x, is_evidence, columns).log_prob(x[:, columns])
    assert torch.allclose(of_all, of_some, atol=1e-5)


@pytest.mark.parametrize(("name", "world"), CASES)
def test_a_walk_that_puts_variables_off_equals_the_path_so_far(name, world):
    model, x = model_for(name, WORLDS[world]), rows(WORLDS[world])
    path = Path.look(torch.zeros(x.shape[:2], dtype=torch.bool), torch.ones(x.shape[:2], dtype=torch.bool))
    generator = torch.Generator().manual_seed(1)
    walk, n_steps = model.walk(x, path), 0
    with torch.no_grad():
        while not walk.is_done:
            columns = walk.columns
            chosen = torch.rand(len(x), len(columns), generator=generator) < 0.4
            chosen[:, 0] = True
            whole, asked = model.log_prob(x, Path(walk.step))[:, columns], walk.is_asked[:, columns]
            assert torch.allclose(whole[asked], walk.conditionals().log_prob(x[:, columns])[asked], atol=1e-5)
            walk.reveal(x[:, columns], chosen)
            n_steps += 1
    assert 1 < n_steps < x.shape[1] + 1


@pytest.mark.parametrize(("name", "world"), CASES)
def test_rest_does_not_count(name, world):
    """Answers do not depend on rest variables, nor on the rows they are asked with."""
    model, x = model_for(name, WORLDS[world]), rows(WORLDS[world])
    generator = torch.Generator().manual_seed(5)
    path = RandomOrder().path(CardMask().draw(torch.ones(x.shape[:2], dtype=torch.bool), generator), generator)
    garbage = torch.where((path.step == 2**31 - 1).unsqueeze(-1), torch.nan, x)
    with torch.no_grad():
        whole = model.log_prob(x, path)
        assert torch.allclose(whole, model.log_prob(garbage, path), atol=1e-6)
        alone = torch.cat([model.log_prob(x[[b]], path.rows([b])) for b in range(len(x))])
    assert torch.allclose(whole, alone, atol=1e-5)


def test_rest_is_not_in_the_sequence():
    present = torch.ones(24, 9, dtype=torch.bool)
    path = Canonical().path(CardMask().draw(present, torch.Generator().manual_seed(5)))
    fused = torch.ones(len(present), dtype=torch.bool)
    assert n_tokens(path.step, fused).tolist() == path.is_query.sum(1).tolist()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize(("name", "world"), CASES)
def test_only_earlier_steps_are_seen(name, world, protocol):
    model, x = model_for(name, WORLDS[world]), rows(WORLDS[world])
    generator = torch.Generator().manual_seed(5)
    path = fitted(protocol, WORLDS[world]).path(
        UniformEvidence().draw(torch.ones(x.shape[:2], dtype=torch.bool), generator), generator
    )
    with torch.no_grad():
        before = model.log_prob(x, path)
        moved = 0
        for i, domain in enumerate(WORLDS[world]):
            changed = x.clone()
            changed[:, i, 0] = (x[:, i, 0] + 1) % domain.n_symbols
            after = model.log_prob(changed, path)
            untouched = (path.step <= path.step[:, [i]]) & (torch.arange(x.shape[1]) != i)
            assert torch.allclose(before[untouched], after[untouched], atol=1e-5)
            moved += int((before[~untouched] != after[~untouched]).sum())
    assert moved > 100  # later ones do see it


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 3)])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: type(w).__name__)
def test_scans_need_no_mask_for_each_pair(shape, workload):
    """The eight scanning orders and the slants, with any evidence: kernels with holes see what masks see."""
    domains = SharedDomain(Levels((5, 4)), shape)
    model, x = model_for("convolutions", domains), rows(domains)
    orders = [Canonical(scan_order(domains.shape, number)) for number in range(N_SCANS)]
    for protocol in orders + [Slanted(domains.shape, slant) for slant in SLANTS]:
        path = protocol.path(workload.draw(torch.ones(x.shape[:2], dtype=torch.bool), torch.Generator().manual_seed(5)))
        kinds = {
            type(visibility) for _, visibility in visibilities(path.step, model.network.shape, model.network.scans)
        }
        assert kinds <= {ScanVisibility, LookVisibility}
        fast = whole_log_prob(model, x, path)
        known_scans, model.network.scans = model.network.scans, []
        assert torch.allclose(fast, whole_log_prob(model, x, path), atol=1e-5)
        model.network.scans = known_scans


@pytest.mark.parametrize(
    ("name", "world"),
    [(n, w) for n, network in NETWORKS.items() for w in ("text", "image", "channels") if network.reads(WORLDS[w])],
)
def test_looks_see_evidence_alone(name, world):
    torch.manual_seed(0)
    domains = WORLDS[world]
    model = any_order_model(NETWORKS[name](domains, 32, 2, 0.0), joint_head_for(32, domains, 0)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    x = rows(domains)
    known = torch.rand(x.shape[:2], generator=torch.Generator().manual_seed(2)) < 0.5
    garbage = torch.where(known.unsqueeze(-1), x, torch.nan)
    seen = x.clone()
    seen[..., 0] = torch.where(known, (x[..., 0] + 1) % domains[0].n_symbols, x[..., 0])
    with torch.no_grad():
        here, there, other = (model.look(cells, known).conditional.logits for cells in (x, garbage, seen))
    asked = ~known & known.any(1, keepdim=True)
    assert torch.equal(here[asked], there[asked])
    assert not torch.allclose(here[asked], other[asked])


def test_buckets_cover_every_row_once_with_little_padding():
    generator = torch.Generator().manual_seed(0)
    present = torch.ones(256, 64, dtype=torch.bool)
    step = Canonical().path(CardMask().draw(present, generator)).step
    fused, taken, padded = torch.arange(256) % 2 == 0, [], 0
    for part, fuse in buckets(step, fused):
        assert (fused[part] == fuse).all()
        taken += part.tolist()
        padded += len(part) * int(n_tokens(step[part], fused[part]).max())
    assert sorted(taken) == list(range(256))
    assert padded < 1.25 * int(n_tokens(step, fused).sum())


def test_tokens_of_a_small_path_by_hand():
    """Evidence 2; then 0, then 3; variable 1 is rest."""
    step = Path(torch.tensor([[0, 2**31 - 1, -1, 1]])).step
    sequence = fused(step)
    assert sequence.content.tolist() == [[2, -1, 0]]
    assert sequence.target.tolist() == [[-1, 0, 3]]
    assert (sequence.mask()[0, 0] == 0).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    sequence = two_kinds(step)
    assert sequence.content.tolist() == [[2, 0, -1, -1]]
    assert sequence.target.tolist() == [[-1, -1, 0, 3]]
    assert (sequence.mask()[0, 0] == 0).tolist() == [
        [True, False, False, False], [True, True, False, False], [True, False, True, False], [True, True, False, True],
    ]  # fmt: skip
