"""Gradients written by hand are those of the plain formulas, by finite differences and by torch's own way."""

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from anygiven.networks.fast_gradients import (
    PLACES,
    depthwise,
    fed_forward,
    masked_depthwise,
    plain_depthwise,
    plain_fed_forward,
    plain_masked_depthwise,
)


def exact(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
def test_depthwise(kernel, stride):
    torch.manual_seed(0)
    assert gradcheck(lambda x, weight: depthwise(x, weight, stride), (exact(2, 4, 7, 3), exact(3, kernel, kernel)))
    conv = nn.Conv2d(3, 3, kernel, padding=stride * (kernel // 2), dilation=stride, groups=3, bias=False)
    x = torch.randn(2, 4, 7, 3)
    mixed = depthwise(x, conv.weight.squeeze(1), stride)
    assert torch.allclose(mixed, conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1), atol=1e-5)


@pytest.mark.parametrize("stride", [1, 2])
def test_masked_depthwise(stride):
    torch.manual_seed(0)
    mask = (torch.rand(2, 9, 4, 5, 1) < 0.5).double()
    x, weight = exact(2, 4, 5, 3), exact(3, 3, 3)
    assert gradcheck(lambda x, weight: masked_depthwise(x, weight, mask, stride), (x, weight))
    everything = masked_depthwise(x, weight, torch.ones_like(mask), stride)
    assert torch.allclose(everything, depthwise(x, weight, stride))


def test_fed_forward():
    torch.manual_seed(0)
    assert gradcheck(fed_forward, (exact(3, 2, 4), exact(4), exact(4), exact(6, 4), exact(5, 6)))


def test_fed_forward_in_several_pieces():
    """More places than fit in one piece, and a last piece that is shorter."""
    torch.manual_seed(0)
    shapes = ((2 * PLACES + 3, 4), (4,), (4,), (6, 4), (5, 6))
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    x, scale, shift, up, down = inputs
    plain = nn.functional.linear(nn.functional.linear(
        nn.functional.layer_norm(x, (4,), scale, shift), up).relu().square(), down)  # fmt: skip
    weights = torch.randn_like(plain)
    expected = torch.autograd.grad((plain * weights).sum(), inputs)
    found = torch.autograd.grad((fed_forward(*inputs) * weights).sum(), inputs)
    for mine, its in zip(found, expected, strict=True):
        assert torch.allclose(mine, its, rtol=1e-3, atol=1e-3)


def with_gradients(map_of, *tensors):
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    found = map_of(*leaves)
    found.square().sum().backward()
    return [found.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("stride", [1, 2])
def test_the_plain_path_of_other_devices_is_the_same(stride):
    """On the CPU both can be run: values and gradients are equal."""
    torch.manual_seed(1)
    x, weight = exact(2, 5, 6, 4), exact(4, 3, 3)
    mask = (torch.rand(2, 9, 5, 6, 1) < 0.5).double()
    layer = exact(4), exact(4), exact(12, 4), exact(4, 12)
    pairs = [
        (lambda a, b: depthwise(a, b, stride), lambda a, b: plain_depthwise(a, b, stride), (x, weight)),
        (lambda a, b: masked_depthwise(a, b, mask, stride), lambda a, b: plain_masked_depthwise(a, b, mask, stride),
         (x, weight)),
        (fed_forward, plain_fed_forward, (x, *layer)),
    ]  # fmt: skip
    for fast, plain, tensors in pairs:
        for ours, theirs in zip(with_gradients(fast, *tensors), with_gradients(plain, *tensors), strict=True):
            assert torch.allclose(ours, theirs, atol=1e-10)
