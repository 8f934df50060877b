import torch

from anygiven.networks.activation import SquaredReLU


def test_squared_relu_has_the_gradient_that_its_formula_has():
    x = torch.tensor([[-2.0, -0.5, 0.0, 0.3, 4.0]], dtype=torch.float64, requires_grad=True)
    assert torch.equal(SquaredReLU()(x), x.detach().relu().square())
    assert torch.autograd.gradcheck(SquaredReLU(), (x[:, [0, 1, 3, 4]].detach().requires_grad_(),))
    SquaredReLU()(x).sum().backward()
    assert torch.equal(x.grad, 2 * x.detach().relu())
