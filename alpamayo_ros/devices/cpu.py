"""The CPU's table: oneDNN's matrix products, and no more passes over memory than needed.

Figures are from two cores of an EPYC 9004. PyTorch's BLAS is MKL, which multiplies few rows with a
large matrix on one core: the head's 155697 x 512 took it 34 ms for one row and 71 ms for six,
where oneDNN takes 15 and 20 ms; on many rows they are equal.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from alpamayo_ros.devices import operators
from alpamayo_ros.devices.operators import Operators

# 14 MB of float32. The C library returns blocks over 32 MB to the system, which clears them anew
# page by page for the next one: 16 images at once took 1.6 times as long as in parts, a language
# layer's MLP over 3006 tokens 1.25 times.
VALUES_AT_ONCE = 3_400_000


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., in) times weight (out, in) transposed, plus bias: (..., out)."""
    if _plain(x):
        return operators.linear(x, weight, bias)
    return torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], "")


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor, approximate: str) -> Tensor:
    """GELU ("none": exact, or "tanh") of a linear layer, in the product's own pass."""
    if _plain(x):
        return operators.linear_gelu(x, weight, bias, approximate)
    return torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "gelu", [], approximate)


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding in halves, without a copy of x with its halves exchanged."""
    if _plain(x):
        return operators.rotary(x, cos, sin)
    half = x.shape[-1] // 2
    first, second = x.split(half, dim=-1)
    cos, sin = cos[..., :half], sin[..., :half]  # both halves are the same
    turned = torch.empty(x.shape)
    into_first, into_second = turned.split(half, dim=-1)
    torch.mul(first, cos, out=into_first).addcmul_(second, sin, value=-1)
    torch.mul(second, cos, out=into_second).addcmul_(first, sin)
    return turned


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) * weight over the last axis, in one call."""
    if _plain(x) or _plain(weight):
        return operators.rms_norm(x, weight, eps)
    return F.rms_norm(x, weight.shape, weight, eps)


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(rms_norm(residual + x), residual + x)."""
    total = residual + x
    return rms_norm(total, weight, eps), total


def _plain(x: Tensor) -> bool:
    """Whether the plain operator is to be taken: it has gradients, and bfloat16's rounding."""
    return torch.is_grad_enabled() or x.dtype != torch.float32


def cpu_operators() -> Operators:
    """The CPU's table; the plain one where this build of PyTorch has no oneDNN."""
    has_onednn = torch.backends.mkldnn.is_available()
    if not has_onednn or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return Operators(values_at_once=VALUES_AT_ONCE)
    return Operators(
        linear=linear,
        linear_gelu=linear_gelu,
        rotary=rotary,
        rms_norm=rms_norm,
        add_rms_norm=add_rms_norm,
        values_at_once=VALUES_AT_ONCE,
    )
