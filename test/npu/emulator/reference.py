"""The mathematics of torch_npu's fused operators, and the rules for their arguments.

From the operators' public documentation. Their shape kernels leave most rules unchecked; here a
broken one is an error. The arithmetic is float32, then rounded once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

HALF_TYPES = (torch.float16, torch.bfloat16)
FLOAT_TYPES = (*HALF_TYPES, torch.float32)
COMPRESSED_MASK = (2048, 2048)
ORDERS = {"BSND": (0, 2, 1, 3), "BNSD": (0, 1, 2, 3)}  # to (B, heads, S, D), and back
MASKED_OUT = -1e30  # of a row of which nothing is left; else minus infinity


def require(holds: bool, message: str) -> None:
    """Refuse arguments as the device would."""
    if not holds:
        raise RuntimeError(message)


def _heads(query: Tensor, key: Tensor, value: Tensor, masked: Tensor | None, scale: float) -> Any:
    """Attention of (heads, S, D) to (kv_heads, T, D); masked (..., S, T) is True where hidden."""
    require(query.shape[0] % key.shape[0] == 0, "query heads must be a multiple of key heads")
    group = query.shape[0] // key.shape[0]
    keys, values = (x.repeat_interleave(group, 0).float() for x in (key, value))
    scores = query.float() @ keys.transpose(-1, -2) * scale
    if masked is not None:
        nothing_left = bool(masked.all(-1).any())
        scores = scores.masked_fill(masked, MASKED_OUT if nothing_left else -torch.inf)
    return (scores.softmax(-1) @ values).to(query.dtype)


def _mask_of_mode(mode: int, mask: Tensor | None, rows: int, columns: int) -> Tensor | None:
    """The mask that a sparse mode means for (rows, columns); mode 0 takes it as given."""
    if mode in (0, 1):
        return None if mask is None else mask.bool()
    if mode not in (2, 3):
        raise NotImplementedError(f"sparse_mode {mode}")
    diagonal = 1 if mode == 2 else 1 + columns - rows
    return torch.ones(rows, columns, dtype=torch.bool).triu(diagonal)


def _require_attention_types(query: Tensor, key: Tensor, value: Tensor) -> None:
    require(
        query.dtype == key.dtype == value.dtype and query.dtype in FLOAT_TYPES,
        "query, key and value must share one dtype of fp16, bf16, fp32",
    )


def _require_mask(mask: Tensor | None, mode: int) -> None:
    if mask is not None:
        require(
            mask.dtype in (torch.bool, torch.uint8),
            f"atten_mask must be bool or uint8 (1 = masked out), got {mask.dtype}",
        )
    if mode in (2, 3, 4):
        require(
            mask is not None and tuple(mask.shape[-2:]) == COMPRESSED_MASK,
            "sparse_mode 2, 3 and 4 need the 2048x2048 compressed mask",
        )


def _packed(
    query: Tensor, key: Tensor, value: Tensor, ends: Sequence[int], key_ends: Sequence[int],
    scale: float,
) -> Tensor:  # fmt: skip
    """Sequences one after the other, (tokens, heads, D); their cumulative lengths."""
    require(
        ends[-1] == query.shape[0] and key_ends[-1] == key.shape[0],
        "actual_seq_qlen and actual_seq_kvlen must end at the number of tokens",
    )
    spans = zip(itertools.pairwise((0, *ends)), itertools.pairwise((0, *key_ends)))
    parts = [
        _heads(*(x.transpose(0, 1) for x in (query[a:b], key[c:d], value[c:d])), None, scale)
        for (a, b), (c, d) in spans
    ]
    return torch.cat(parts, dim=1).transpose(0, 1).contiguous()


def fusion_attention(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str,
    pse: Tensor | None = None, padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None, scale: float = 1.0, keep_prob: float = 1.0,
    pre_tockens: int = 0, next_tockens: int = 0, inner_precise: int = 0,
    prefix: Any = None, actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None,
    sparse_mode: int = 0, **unused: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """npu_fusion_attention."""
    _require_attention_types(query, key, value)
    _require_mask(atten_mask, sparse_mode)
    nothing = torch.zeros(1)
    if input_layout == "TND":
        require(head_num == query.shape[1], f"head_num {head_num} is not the query's")
        out = _packed(query, key, value, actual_seq_qlen, actual_seq_kvlen, scale)
        return out, nothing, nothing, nothing, 0, 0, 0
    order = ORDERS[input_layout]
    q, k, v = (x.permute(order) for x in (query, key, value))
    batch, heads, rows, columns = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
    require(head_num == heads, f"head_num {head_num} is not the query's {heads} heads")
    masked = _mask_of_mode(sparse_mode, atten_mask, rows, columns)
    if masked is not None:
        require(
            tuple(masked.shape[-2:]) == (rows, columns),
            f"atten_mask must end in ({rows}, {columns}), got {tuple(masked.shape)}",
        )
        masked = masked.expand(batch, -1, -1, -1) if masked.dim() == 4 else masked[None, None]
        masked = masked.expand(batch, *masked.shape[1:])
    out = torch.stack(
        [_heads(q[i], k[i], v[i], None if masked is None else masked[i], scale)
         for i in range(batch)]
    )  # fmt: skip
    return out.permute(order).contiguous(), nothing, nothing, nothing, 0, 0, 0


def fusion_attention_v3(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """npu_fusion_attention_v3, whose seeds are tensors."""
    return (*fusion_attention(*args, **kwargs)[:4], torch.zeros(1), torch.zeros(1))


def rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """npu_rms_norm, which rounds after the weight."""
    require(
        gamma.dtype in (x.dtype, torch.float32),
        f"npu_rms_norm takes no {x.dtype} input with a {gamma.dtype} gamma",
    )
    wide = x.float()
    rstd = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    return (wide * rstd * gamma.float()).to(x.dtype), rstd


def add_rms_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """npu_add_rms_norm."""
    require(
        x1.dtype == x2.dtype == gamma.dtype and x1.shape == x2.shape,
        f"npu_add_rms_norm takes one dtype, got {x1.dtype}, {x2.dtype}, {gamma.dtype}",
    )
    total = x1 + x2
    return (*rms_norm(total, gamma, epsilon), total)


def rotary_mul(x: Tensor, cos: Tensor, sin: Tensor, *mode: Any, **unused: Any) -> Tensor:
    """npu_rotary_mul in halves."""
    require(
        x.dtype == cos.dtype == sin.dtype,
        f"npu_rotary_mul takes one dtype, got {x.dtype}, {cos.dtype}, {sin.dtype}",
    )
    require(x.dim() == 4 and cos.shape == sin.shape and cos.dim() == 4, "npu_rotary_mul is 4-D")
    first, second = x.float().chunk(2, -1)
    turned = torch.cat((-second, first), -1)
    return (x.float() * cos.float() + turned * sin.float()).to(x.dtype)


def swiglu(x: Tensor, dim: int = -1) -> Tensor:
    """npu_swiglu."""
    gate, up = x.float().chunk(2, dim)
    return (F.silu(gate) * up).to(x.dtype)


def cast(x: Tensor, dtype: torch.dtype, *unused: Any, **rest: Any) -> Tensor:
    """npu_dtype_cast."""
    return x.to(dtype)


def format_cast(x: Tensor, *unused: Any, **rest: Any) -> Tensor:
    """npu_format_cast: another order in memory, the same numbers."""
    return x.clone()


REFERENCE: dict[str, Callable[..., Any]] = {
    "npu::npu_fusion_attention": fusion_attention,
    "npu::npu_fusion_attention_v3": fusion_attention_v3,
    "npu::npu_rms_norm": rms_norm,
    "npu::npu_add_rms_norm": add_rms_norm,
    "npu::npu_rotary_mul": rotary_mul,
    "npu::npu_swiglu": swiglu,
    "npu::npu_dtype_cast": cast,
    "npu::_npu_dtype_cast": cast,
    "npu::npu_format_cast": format_cast,
    "npu::npu_silu": F.silu,
    "npu::npu_fast_gelu": F.gelu,
}
