"""The NPU's table: torch_npu's fused operators. The only file that imports torch_npu.

The fused operators' shape kernels leave most of their arguments unchecked, so they are checked
here. Their sources: torch_npu's schemas, and the documentation of npu_fusion_attention,
npu_rms_norm, npu_add_rms_norm, npu_rotary_mul and npu_swiglu. Nothing here makes the host wait.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch_npu
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from alpamayo_ros.devices.operators import Operators

MASK_AS_GIVEN, CAUSAL = 0, 3  # sparse modes; 3 aligns the diagonal at the last key
FRACTAL_NZ = 29  # torch_npu.Format: 16 x 16 blocks, as the cube unit reads them
COMPRESSED_MASK_SIDE = 2048  # of the triangle that stands for a causal mask of any size

# Derived tensors (a gamma in another type, a mask in the device's sense) by what they are made
# from. These are constants: weights, rotary tables and masks of a decision.
_derived: WeakIdKeyDictionary = WeakIdKeyDictionary()
_triangles: dict[torch.device, Tensor] = {}


def backend() -> Any:
    """The torch_npu module."""
    return torch_npu


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False
) -> Tensor:
    """As operators.attention, by the fused operator that graphs can capture.

    Raises:
        ValueError: shapes, head counts or types do not go together.
    """
    _check_attention(query, key, value, mask, causal)
    if causal:
        masked, mode = _triangle(query.device), CAUSAL
    elif mask is not None:
        masked, mode = _hidden(mask, query.shape[2]), MASK_AS_GIVEN
    else:
        masked, mode = None, MASK_AS_GIVEN
    heads, width = query.shape[1], query.shape[3]
    return torch_npu.npu_fusion_attention_v3(
        query,
        key,
        value,
        heads,
        "BNSD",
        atten_mask=masked,
        scale=1 / math.sqrt(width),
        sparse_mode=mode,
    )[0]


def packed_attention(query: Tensor, key: Tensor, value: Tensor, lengths: Sequence[int]) -> Tensor:
    """As operators.packed_attention, in one call whatever the number of sequences.

    Raises:
        ValueError: shapes or types do not go together.
    """
    ends = list(itertools.accumulate(lengths))
    if query.dim() != 3 or query.shape != key.shape or query.shape != value.shape:
        raise ValueError(f"packed attention is of (tokens, heads, width), got {query.shape}, "
                         f"{key.shape} and {value.shape}")  # fmt: skip
    if not ends or ends[-1] != query.shape[0] or min(lengths) < 1:
        raise ValueError(f"lengths {tuple(lengths)} do not add up to {query.shape[0]} tokens")
    _check_types(query, key, value)
    return torch_npu.npu_fusion_attention(
        query,
        key,
        value,
        query.shape[1],
        "TND",
        scale=1 / math.sqrt(query.shape[2]),
        actual_seq_qlen=ends,
        actual_seq_kvlen=ends,
    )[0]


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As operators.rms_norm; the fused kernel rounds once, after the weight.

    Raises:
        ValueError: the weight is not as wide as x.
    """
    _check_norm(x, x, weight)
    return torch_npu.npu_rms_norm(x, _gamma(weight, x.dtype), eps)[0].to(weight.dtype)


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """As operators.add_rms_norm; the fused kernel takes the residual's type for all.

    Raises:
        ValueError: x and residual are not of one shape, or the weight is not as wide.
    """
    _check_norm(x, residual, weight)
    gamma = _once(weight, residual.dtype, lambda w: w.to(residual.dtype))
    normed, _, total = torch_npu.npu_add_rms_norm(x.to(residual.dtype), residual, gamma, eps)
    return normed.to(weight.dtype), total


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As operators.rotary, with tables in x's type; x (..., S, D) of three or four axes."""
    if cos.dim() != x.dim() or cos.shape != sin.shape or x.dim() not in (3, 4) or x.shape[-1] % 2:
        raise ValueError(
            f"rotary is of three or four axes with an even last one, tables alike, got "
            f"{tuple(x.shape)}, {tuple(cos.shape)} and {tuple(sin.shape)}"
        )
    cos, sin = (_once(table, x.dtype, lambda t: t.to(x.dtype)) for table in (cos, sin))
    if x.dim() == 4:
        return torch_npu.npu_rotary_mul(x, cos, sin)
    return torch_npu.npu_rotary_mul(x[None], cos[None], sin[None])[0]


def swiglu(gate_up: Tensor) -> Tensor:
    """As operators.swiglu.

    Raises:
        ValueError: there are no two halves.
    """
    if gate_up.shape[-1] % 2:
        raise ValueError(f"swiglu is of an even last axis, got {tuple(gate_up.shape)}")
    return torch_npu.npu_swiglu(gate_up, dim=-1)


def fractal_nz(weight: Tensor) -> Tensor:
    """A matrix in the layout that the device multiplies by, so that no product converts it.

    Such layouts are off by default on Atlas A3 (documentation of allow_internal_format).
    """
    torch_npu.npu.config.allow_internal_format = True
    return torch_npu.npu_format_cast(weight, FRACTAL_NZ)


def npu_operators() -> Operators:
    """The NPU's table; what it leaves out has no better form there than PyTorch's own."""
    return Operators(
        attention=attention,
        packed_attention=packed_attention,
        rms_norm=rms_norm,
        add_rms_norm=add_rms_norm,
        rotary=rotary,
        swiglu=swiglu,
    )


def _check_norm(x: Tensor, residual: Tensor, weight: Tensor) -> None:
    if x.shape != residual.shape or weight.shape != x.shape[-1:]:
        raise ValueError(
            f"a norm is of one shape (..., N) and a weight (N,), got {tuple(x.shape)}, "
            f"{tuple(residual.shape)} and {tuple(weight.shape)}"
        )


def _check_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool
) -> None:
    _check_types(query, key, value)
    if query.dim() != 4 or key.dim() != 4:
        raise ValueError(f"attention is of four axes, got {query.shape} and {key.shape}")
    batch, heads, length, width = query.shape
    kv_batch, kv_heads, kv_length, kv_width = key.shape
    if key.shape != value.shape or (batch, width) != (kv_batch, kv_width) or heads % kv_heads:
        raise ValueError(
            f"attention of {tuple(query.shape)} to {tuple(key.shape)} and {tuple(value.shape)}: "
            "batch and width must be equal, query heads a multiple of key heads"
        )
    if causal and (mask is not None or length != kv_length):
        raise ValueError("causal attention takes no mask, and as many queries as keys")
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask must be bool, True where a key is seen, got {mask.dtype}")
    if mask.shape not in ((batch, 1, 1, kv_length), (batch, 1, length, kv_length)):
        raise ValueError(
            f"a mask must be ({batch}, 1, 1 or {length}, {kv_length}), got {tuple(mask.shape)}"
        )


def _check_types(*tensors: Tensor) -> None:
    types = {tensor.dtype for tensor in tensors}
    if len(types) != 1 or not types <= {torch.float32, torch.bfloat16, torch.float16}:
        raise ValueError(f"attention takes one floating type of at most 32 bits, got {types}")


def _gamma(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """A norm's weight in a type that the kernel takes: x's, or float32 with any."""
    if weight.dtype in (dtype, torch.float32):
        return weight
    return _once(weight, dtype, lambda w: w.to(dtype))


def _hidden(mask: Tensor, rows: int) -> Tensor:
    """A mask of what is seen, (B, 1, 1 or S, T), in the device's sense: (B, 1, S, T), True is out.

    The kernel broadcasts no rows.
    """
    return _once(mask, rows, lambda m: m.expand(-1, -1, rows, -1).logical_not())


def _triangle(device: torch.device) -> Tensor:
    """The upper triangle that stands for every causal mask."""
    if device not in _triangles:
        side = (COMPRESSED_MASK_SIDE, COMPRESSED_MASK_SIDE)
        _triangles[device] = torch.ones(side, dtype=torch.bool).triu(1).to(device)
    return _triangles[device]


def _once(source: Tensor, kind: Any, make: Callable[[Tensor], Tensor]) -> Tensor:
    """What `make` makes of a constant tensor, made at the first call."""
    derived = _derived.setdefault(source, {})
    if kind not in derived:
        derived[kind] = make(source)
    return derived[kind]
