"""Every network × head on devices that this machine does not have.

The meta device has shapes and gradients and no values; fake tensors that claim to be CUDA catch a tensor that was left
on the CPU.
"""

import pytest
import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import FakeTensorDeviceMismatchError
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from anygiven.heads import COLUMN_HEADS, joint_head_for
from anygiven.lattice import Budget, Canonical, RandomOrder, UniformEvidence
from anygiven.model import any_order_model
from anygiven.networks import NETWORKS
from anygiven.training.loss import PathLoss
from anygiven.variables.domains import Binary, CategoricalDomain, Levels, SharedDomain
from anygiven.variables.schema import schema_of
from anygiven.variables.tables import read_table

N = 5
NUMBERS = schema_of(read_table({"x": [0.1 * k**2 for k in range(60)], "n": [k % 17 for k in range(60)]}), None, 0)
DOMAINS = {
    "table": [CategoricalDomain(("a", "b", "c"), (3, 2, 1)), Binary((0, 1), (4, 6)), *NUMBERS.domains],
    "text": SharedDomain(CategoricalDomain(tuple("abcde"), (5, 4, 3, 2, 1)), (6,)),
    "image": SharedDomain(Levels((5, 4, 3), 1), (4, 4)),
    "colour": SharedDomain(Levels((5, 4, 3), 3), (4, 4)),
}
PAIRS = [
    (network, world, head)
    for network, kind in NETWORKS.items() for world, domains in DOMAINS.items() if kind.reads(domains)
    for head in (COLUMN_HEADS if world == "table" else ["mixture"])
]  # fmt: skip
ORDERS = {"one by one": Canonical(), "random": RandomOrder(), "in groups": Budget(RandomOrder(), 2)}


def model_of(network: str, world: str, head: str):
    domains = DOMAINS[world]
    made = NETWORKS[network](domains, 16, 2, 0.0)
    return any_order_model(made, joint_head_for(16, domains, 2 if world in ("table", "colour") else 0, head))


def path_of(world: str, order: str):
    generator = torch.Generator().manual_seed(0)
    present = torch.ones(N, len(DOMAINS[world]), dtype=torch.bool)
    return ORDERS[order].path(UniformEvidence().draw(present, generator), generator)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("network", "world", "head"), PAIRS)
def test_training_runs_on_the_meta_device(network, world, head, order):
    model = model_of(network, world, head).to("meta")
    path, x = path_of(world, order), torch.zeros(N, len(DOMAINS[world]), 4, device="meta")
    loss = PathLoss(model)(x, path, path.is_query.float())
    assert loss.device.type == "meta"
    loss.backward()
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert not [name for name in without if not name.startswith(("network.no_content", "network.is_known"))]


CUDA = torch.device("cuda:0")


class PretendedCuda(TorchFunctionMode):
    """Tensors made on or moved to CUDA are fake ones; those of the CPU are real, so that paths have values.

    Square brackets of fake CUDA tensors fail on a machine without CUDA, so they are taken apart here.
    """

    def __init__(self):
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.Tensor.__getitem__ and isinstance(args[0], FakeTensor):
            view, tensors = _taken_apart(*args)
            return torch.ops.aten.index(view, tensors) if any(t is not None for t in tensors) else view
        if function is torch.Tensor.__setitem__ and isinstance(args[0], FakeTensor):
            view, tensors = _taken_apart(*args[:2])
            value = args[2] if isinstance(args[2], torch.Tensor) else torch.full((), args[2], device=args[0].device)
            if any(t is not None for t in tensors):
                return torch.ops.aten.index_put_(view, tensors, value)
            return torch.ops.aten.copy_(view, value.expand(view.shape))
        if function is torch.Tensor.contiguous and isinstance(args[0], FakeTensor):
            return torch.ops.aten.clone(args[0])
        if function is torch.Tensor.__invert__:
            return torch.bitwise_not(*args)
        if function is torch.Tensor.log_softmax and isinstance(args[0], FakeTensor):
            return args[0] - args[0].logsumexp(-1, keepdim=True)
        if any(_is_cuda(value) for value in tree_leaves((args, kwargs))):
            with self.fake:
                return function(*args, **kwargs)
        return function(*args, **kwargs)


def _is_cuda(value) -> bool:
    return isinstance(value, FakeTensor) or (isinstance(value, torch.device) and value.type == "cuda")


def _taken_apart(x, index):
    """A view by the slices, numbers and Nones of an index, and its tensors."""
    index = index if isinstance(index, tuple) else (index,)
    n_taken = sum(item is not None and item is not Ellipsis for item in index)
    dim, tensors = 0, []
    for item in index:
        if item is Ellipsis:
            skipped = x.dim() - dim - sum(i is not None for i in index[index.index(Ellipsis) + 1 :])
            dim, tensors = dim + skipped, tensors + [None] * skipped
        elif isinstance(item, int):
            x = torch.ops.aten.select(x, dim, item)
        else:
            if item is None:
                x = torch.ops.aten.unsqueeze(x, dim)
            elif isinstance(item, slice):
                x = torch.ops.aten.slice(x, dim, item.start, item.stop, item.step or 1)
            is_tensor = isinstance(item, torch.Tensor)
            assert is_tensor or item is None or isinstance(item, slice), f"{item!r} of {n_taken}"
            tensors.append(item if is_tensor else None)
            dim += 1
    return x, tensors


def on_cuda(model):
    """The model with fake parameters and buffers that claim to be on CUDA."""
    for module in model.modules():
        for name, p in list(module._parameters.items()):
            if p is not None:
                module._parameters[name] = torch.empty(p.shape, dtype=p.dtype, device=CUDA)
        for name, b in list(module._buffers.items()):
            if b is not None:
                module._buffers[name] = torch.empty(b.shape, dtype=b.dtype, device=CUDA)
    return model


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("network", "world", "head"), PAIRS)
def test_nothing_is_left_on_the_cpu(network, world, head, order):
    """Scores, looks and walks of a model on a device that claims to be CUDA: mixing devices raises."""
    model, path = model_of(network, world, head).eval(), path_of(world, order)
    columns = torch.tensor([1, 3])
    with torch.no_grad(), PretendedCuda():
        model = on_cuda(model)
        x = torch.zeros(N, len(DOMAINS[world]), 4, device=CUDA)
        assert model.log_prob(x, path).device == CUDA
        look = model.look(x, path.known_at(0), columns)
        asked = x[:, columns.to(CUDA)]
        assert look.log_prob(asked).device == CUDA
        assert look.entropy().device == CUDA
        assert look.temperature(0.5).average([look]).log_prob(asked).device == CUDA
        assert look.sample(torch.Generator().manual_seed(0)).device == CUDA
        walk = model.walk(x, path)
        walk.reveal(walk.conditionals().sample(torch.Generator().manual_seed(0)))
        if not walk.is_done:
            assert walk.conditionals().sample(torch.Generator().manual_seed(0)).device == CUDA


def test_a_tensor_that_is_left_on_the_cpu_is_caught():
    with torch.no_grad(), PretendedCuda():
        there = torch.zeros(3, device=CUDA)
        with pytest.raises(FakeTensorDeviceMismatchError):
            there + torch.arange(3)
