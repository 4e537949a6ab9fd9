"""The operators a device may have fused versions of, in one table; plain PyTorch is the default.

The defaults run everywhere and judge the fused ones. All of them work on one device without a
wait for the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False
) -> Tensor:
    """Scaled dot-product attention with grouped query heads.

    query (B, H, S, D), key and value (B, K, T, D) with H a multiple of K; mask bool (B, 1, 1, T)
    or (B, 1, S, T), True where a key may be seen; causal: query s sees keys 0..s, S = T. Returns
    (B, H, S, D).
    """
    batch, heads, length, width = query.shape
    kv_heads = key.shape[1]
    one_mask = mask is None or mask.shape[2] == 1
    if causal or heads == kv_heads or not one_mask:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=heads != kv_heads
        )
    # The heads and queries of a group see the same keys: they are more rows of one query, so
    # nothing repeats the cache (at 3000 tokens that copy costs more than the attention).
    rows = query.reshape(batch, kv_heads, heads // kv_heads * length, width)
    seen = F.scaled_dot_product_attention(rows, key, value, attn_mask=mask)
    return seen.reshape(batch, heads, length, width)


def packed_attention(query: Tensor, key: Tensor, value: Tensor, lengths: Sequence[int]) -> Tensor:
    """Full attention within each of several sequences that lie one after the other.

    query, key and value (T, H, D), T the sum of the lengths; returns (T, H, D).
    """
    if len(set(lengths)) == 1:  # a batch
        rows = (x.unflatten(0, (len(lengths), -1)).transpose(1, 2) for x in (query, key, value))
        return F.scaled_dot_product_attention(*rows).transpose(1, 2).flatten(0, 1)
    split = zip(*(x.transpose(0, 1).split(list(lengths), dim=1) for x in (query, key, value)))
    seen = [F.scaled_dot_product_attention(*rows) for rows in split]
    return torch.cat(seen, dim=1).transpose(0, 1)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., in) times weight (out, in) transposed, plus bias: (..., out)."""
    return F.linear(x, weight, bias)


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor, approximate: str) -> Tensor:
    """GELU ("none": exact, or "tanh") of a linear layer."""
    return F.gelu(F.linear(x, weight, bias), approximate=approximate)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) * weight over the last axis, in weight's type; computed in float32.

    Rounded once, after the weight, as fused kernels do. The reference rounds before the weight too:
    in bfloat16 that alone moves two devices' waypoints 0.14 m further apart.
    """
    wide = x.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (normed * weight).to(weight.dtype)


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(rms_norm(residual + x), residual + x); the sum keeps the residual's type."""
    total = residual + x
    return rms_norm(total, weight, eps), total


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding in halves: x (..., D), cos and sin broadcast to it; in x's type."""
    first, second = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-second, first), dim=-1) * sin).to(x.dtype)


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate) * up of a projection (..., 2 * N) that holds both halves; returns (..., N)."""
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up


def euler_step(x: Tensor, dt: Tensor, velocity: Tensor) -> Tensor:
    """x + dt * velocity in x's type; dt is a scalar tensor on the same device."""
    return torch.addcmul(x, dt, velocity.to(x.dtype))


@dataclass(frozen=True)
class Operators:
    """One device's table."""

    attention: Callable[..., Tensor] = attention
    packed_attention: Callable[[Tensor, Tensor, Tensor, Sequence[int]], Tensor] = packed_attention
    linear: Callable[[Tensor, Tensor, Tensor | None], Tensor] = linear
    linear_gelu: Callable[[Tensor, Tensor, Tensor, str], Tensor] = linear_gelu
    rms_norm: Callable[[Tensor, Tensor, float], Tensor] = rms_norm
    add_rms_norm: Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]] = add_rms_norm
    rotary: Callable[[Tensor, Tensor, Tensor], Tensor] = rotary
    swiglu: Callable[[Tensor], Tensor] = swiglu
    euler_step: Callable[[Tensor, Tensor, Tensor], Tensor] = euler_step
    # How many numbers of an intermediate result are best made at a time; None: any number.
    values_at_once: int | None = None

    def parts(self, rows: int, width: int) -> int:
        """Into how many parts to split rows of such a width."""
        return 1 if self.values_at_once is None else -(-rows * width // self.values_at_once)


def operators_for(device: str) -> Operators:
    """The table for a resolved device ("cpu", "cuda:0", "npu:0")."""
    if device == "cpu":
        from alpamayo_ros.devices.cpu import cpu_operators

        return cpu_operators()
    if device.startswith("npu"):
        from alpamayo_ros.devices.npu import npu_operators

        return npu_operators()
    return Operators()
