"""The CPU's table: matrix products by oneDNN where PyTorch would call its BLAS.

PyTorch's BLAS is MKL, which multiplies few rows with a large matrix on one core. On two cores of an
EPYC 9004 the head's 155697 x 512 took 34 ms for one row and 71 ms for six; oneDNN takes 15 and
20 ms, and it is nowhere slower.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from alpamayo_ros.devices.operators import Operators


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., in) times weight (out, in) transposed, plus bias: (..., out).

    oneDNN's operator has no gradient, and for bfloat16 PyTorch calls oneDNN itself.
    """
    if torch.is_grad_enabled() or x.dtype != torch.float32:
        return F.linear(x, weight, bias)
    return torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], "")


def cpu_operators() -> Operators:
    """The plain table, with oneDNN's product where this build of PyTorch has it."""
    has_onednn = torch.backends.mkldnn.is_available()
    if has_onednn and hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return Operators(linear=linear)
    return Operators()
