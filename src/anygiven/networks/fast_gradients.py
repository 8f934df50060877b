"""Maps of whole grids; on a CPU with gradients of their own, since torch's are slow there.

With them a training step of path convolutions takes about half the time.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn.functional import conv2d, layer_norm, linear, pad

PLACES = 1024  # fed forward at a time: what is made of them stays in the processor's cache
EPSILON = 1e-5  # of the layer norm
COLUMNS = 3  # of a kernel: oneDNN is slow for the gradient of wider ones


def depthwise(x: Tensor, weight: Tensor, stride: int = 1) -> Tensor:
    """(B, H, W, C) with kernels (C, K, K) of neighbours `stride` places apart, zero beyond the border."""
    if x.device.type != "cpu":
        return plain_depthwise(x, weight, stride)
    if stride == 1:
        return _Depthwise.apply(x, weight)  # type: ignore[return-value]
    height, width = x.shape[1:3]
    x = pad(x, (0, 0, 0, -width % stride, 0, -height % stride))
    parts = x.unflatten(2, (-1, stride)).unflatten(1, (-1, stride)).permute(0, 2, 4, 1, 3, 5)  # (B, s, s, …)
    mixed = _Depthwise.apply(parts.flatten(0, 2), weight).view(parts.shape)  # type: ignore[union-attr]
    return mixed.permute(0, 3, 1, 4, 2, 5).flatten(3, 4).flatten(1, 2)[:, :height, :width]


def masked_depthwise(x: Tensor, weight: Tensor, mask: Tensor, stride: int = 1) -> Tensor:
    """The same with a mask (B, K², H, W, 1): what each place sees of each of its neighbours."""
    if x.device.type != "cpu":
        return plain_masked_depthwise(x, weight, mask, stride)
    return _MaskedDepthwise.apply(x, weight, mask, stride)  # type: ignore[return-value]


def fed_forward(x: Tensor, scale: Tensor, shift: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """(…, m): down · relu(up · normed(x))² of each place (…, n), for matrices (k, n) and (m, k)."""
    if x.device.type != "cpu":
        return plain_fed_forward(x, scale, shift, up, down)
    return _FedForward.apply(x.reshape(-1, x.shape[-1]), scale, shift, up, down).unflatten(0, x.shape[:-1])  # type: ignore[union-attr]


# ------------------------------------------------------------------ the same for other devices, with torch's gradients


def plain_depthwise(x: Tensor, weight: Tensor, stride: int = 1) -> Tensor:
    reach = stride * (weight.shape[-1] // 2)
    mixed = conv2d(x.permute(0, 3, 1, 2), weight.unsqueeze(1), padding=reach, dilation=stride, groups=len(weight))
    return mixed.permute(0, 2, 3, 1)


def plain_masked_depthwise(x: Tensor, weight: Tensor, mask: Tensor, stride: int = 1) -> Tensor:
    reach, taps = stride * (weight.shape[-1] // 2), weight.flatten(1)
    wide, out = _with_margin(x, reach), torch.zeros_like(x)
    for k, (rows, columns) in enumerate(_windows(x, reach, stride)):
        out = out + wide[:, rows, columns] * mask[:, k] * taps[:, k]
    return out


def plain_fed_forward(x: Tensor, scale: Tensor, shift: Tensor, up: Tensor, down: Tensor) -> Tensor:
    hidden = linear(layer_norm(x, x.shape[-1:], scale, shift, EPSILON), up).relu()
    return linear(hidden.square(), down)


# ------------------------------------------------------------------ with gradients of their own


def _planes(x: Tensor, weight: Tensor) -> Tensor:
    mixed = conv2d(x.permute(0, 3, 1, 2), weight.unsqueeze(1), padding=weight.shape[-1] // 2, groups=len(weight))
    return mixed.permute(0, 2, 3, 1)


class _Depthwise(Function):
    """The gradient of the kernels is found a few columns at a time."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x, weight)
        return _planes(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):  # type: ignore[override]
        x, weight = ctx.saved_tensors
        of_x = _planes(gradient, weight.flip(1, 2)) if ctx.needs_input_grad[0] else None
        n_channels, kernel, width, reach = *weight.shape[:2], x.shape[2], weight.shape[-1] // 2
        wide = pad(x, (0, 0, reach, reach)).permute(0, 3, 1, 2)  # (B, C, H, W + 2 reach)
        gradient = gradient.permute(0, 3, 1, 2)
        parts = []
        for first in range(0, kernel, COLUMNS):
            columns = weight[:, None, :, first : first + COLUMNS].contiguous()
            seen = wide[..., first : first + width + columns.shape[-1] - 1]
            seen = seen.contiguous(memory_format=torch.channels_last)
            found = torch.ops.aten.convolution_backward(
                gradient, seen, columns, None, [1, 1], [reach, 0], [1, 1], False, [0, 0], n_channels,
                (False, True, False),
            )  # fmt: skip
            parts.append(found[1].squeeze(1))
        return of_x, torch.cat(parts, dim=2)


class _MaskedDepthwise(Function):
    """Neighbour by neighbour, image by image: nothing as large as all neighbours of all places is ever made."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, mask: Tensor, stride: int) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x, weight, mask)
        ctx.stride = stride
        out, reach = torch.zeros_like(x), stride * (weight.shape[-1] // 2)
        for row, wide in enumerate(_with_margin(x, reach)):
            for k, window in enumerate(_windows(x, reach, stride)):
                out[row].addcmul_(wide[window] * mask[row, k], weight.flatten(1)[:, k])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):  # type: ignore[override]
        x, weight, mask = ctx.saved_tensors
        reach = ctx.stride * (weight.shape[-1] // 2)
        taps = weight.flatten(1).t().contiguous()  # (K², C)
        of_taps, of_wide = torch.zeros_like(taps), torch.zeros_like(_with_margin(x, reach))
        for row, wide in enumerate(_with_margin(x, reach)):
            for k, window in enumerate(_windows(x, reach, ctx.stride)):
                g = gradient[row] * mask[row, k]
                of_wide[row][window].addcmul_(g, taps[k])
                of_taps[k] += g.mul_(wide[window]).sum((0, 1))
        of_x = of_wide[:, reach : reach + x.shape[1], reach : reach + x.shape[2]]
        return of_x, of_taps.t().reshape(weight.shape), None, None


def _with_margin(x: Tensor, reach: int) -> Tensor:
    return pad(x, (0, 0, *(reach,) * 4))


def _windows(x: Tensor, reach: int, stride: int) -> list[tuple[slice, slice]]:
    """Where the neighbours of all places lie in a grid with a margin, one window for each of K²."""
    height, width = x.shape[1:3]
    starts = range(0, 2 * reach + 1, stride)
    return [(slice(y, y + height), slice(x, x + width)) for y in starts for x in starts]


class _FedForward(Function):
    """What lies between the two matrices is four times as wide as a vector: it is made again, not kept."""

    @staticmethod
    def forward(ctx, x: Tensor, scale: Tensor, shift: Tensor, up: Tensor, down: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x, scale, shift, up, down)
        out = x.new_empty(len(x), len(down))
        rows, wide = down.t().contiguous(), x.new_empty(min(len(x), PLACES), len(up))
        for first in range(0, len(x), PLACES):
            piece = slice(first, first + PLACES)
            normed, _, _ = _normed(x[piece], scale, shift)
            hidden = torch.mm(normed, up.t(), out=wide[: len(normed)]).relu_()
            torch.mm(hidden.square_(), rows, out=out[piece])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):  # type: ignore[override]
        x, scale, shift, up, down = ctx.saved_tensors
        gradient, of_x = gradient.contiguous(), torch.empty_like(x)
        of_scale, of_shift, of_up, of_down = (torch.zeros_like(p) for p in (scale, shift, up, down))
        wide, squares = x.new_empty(2, min(len(x), PLACES), len(up))
        for first in range(0, len(x), PLACES):
            piece = slice(first, first + PLACES)
            seen, g = x[piece], gradient[piece]
            normed, mean, deviation = _normed(seen, scale, shift)
            hidden = torch.mm(normed, up.t(), out=wide[: len(g)]).relu_()
            square = torch.mul(hidden, hidden, out=squares[: len(g)])
            of_down.addmm_(g.t(), square)
            of_hidden = torch.mm(g, down, out=square).mul_(hidden).mul_(2)
            of_up.addmm_(of_hidden.t(), normed)
            found = torch.ops.aten.native_layer_norm_backward(
                of_hidden @ up, seen, [x.shape[1]], mean, deviation, scale, shift, (True, True, True)
            )
            of_x[piece] = found[0]
            of_scale += found[1]
            of_shift += found[2]
        return of_x, of_scale, of_shift, of_up, of_down


def _normed(x: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm, and the means and inverse deviations that its gradient needs."""
    return torch.ops.aten.native_layer_norm(x, [x.shape[-1]], scale, shift, EPSILON)
