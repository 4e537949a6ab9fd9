"""The decoder layers of Qwen3-VL's language model, with a key/value cache of fixed addresses.

Parameters are named as transformers 4.57 names them. The expert is the same stack at another
width (expert.py). Positions, rotary tables and lengths are host numbers: nothing here waits for
the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model.configuration import DecoderConfig
from alpamayo_ros.model.layers import Linear, RMSNorm, StackedLinear, empty_embedding


@dataclass(frozen=True, eq=False)
class Rotary:
    """Cosine and sine of each position, (B|1, 1, S, head_dim), broadcast over the heads."""

    cos: Tensor
    sin: Tensor

    def span(self, start: int, stop: int) -> Rotary:
        """The positions start..stop-1 of this table."""
        return Rotary(self.cos[:, :, start:stop], self.sin[:, :, start:stop])


def rotary_table(
    positions: Tensor, config: DecoderConfig, device: str, dtype: torch.dtype
) -> Rotary:
    """Rotary table for positions int64 (3, B, S) on the CPU: time, height and width of each.

    Interleaved multimodal rotary embedding: of the head_dim / 2 frequencies those at 1, 4, 7, ...
    below 3 * section[1] turn with the height, those at 2, 5, 8, ... below 3 * section[2] with the
    width, the others with time. Computed in float32 on the CPU, then uploaded.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    angles = positions[..., None].float() * (1.0 / config.rope_theta**exponents)
    mixed = angles[0].clone()
    for axis in (1, 2):
        chosen = slice(axis, 3 * config.mrope_section[axis], 3)
        mixed[..., chosen] = angles[axis][..., chosen]
    both = torch.cat((mixed, mixed), dim=-1)[:, None]
    return Rotary(both.cos().to(device, dtype), both.sin().to(device, dtype))


class KeyValueCache:
    """Keys and values of all layers in one preallocated tensor, (L, 2, B, K, capacity, D)."""

    def __init__(
        self, config: DecoderConfig, batch: int, capacity: int, device: str, dtype: torch.dtype
    ) -> None:
        heads, width = config.num_kv_heads, config.head_dim
        shape = (config.num_layers, 2, batch, heads, capacity, width)
        self.data = torch.empty(shape, device=device, dtype=dtype)

    @property
    def batch(self) -> int:
        """How many samples it holds."""
        return self.data.shape[2]

    @property
    def capacity(self) -> int:
        """How many tokens of each sample it holds."""
        return self.data.shape[4]

    def first_row(self) -> KeyValueCache:
        """The cache of sample 0 alone, at the same addresses."""
        row = object.__new__(KeyValueCache)
        row.data = self.data[:, :, :1]
        return row

    def copy_first_row(self, length: int) -> None:
        """Give every sample the first `length` tokens of sample 0."""
        if self.batch > 1:
            self.data[:, :, 1:, :, :length] = self.data[:, :, :1, :, :length]

    def write(self, layer: int, start: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store key and value (B, K, S, D) from token `start` on; all keys and values up to them.

        The returned views are (B, K, start + S, D).
        """
        stop = start + key.shape[2]
        keys, values = self.data[layer, 0], self.data[layer, 1]
        keys[:, :, start:stop] = key
        values[:, :, start:stop] = value
        return keys[:, :, :stop], values[:, :, :stop]


class SelfAttention(nn.Module):
    """Grouped-query attention with normalised queries and keys."""

    def __init__(self, config: DecoderConfig, operators: Operators) -> None:
        super().__init__()
        self.config = config
        self.operators = operators
        query, key = (n * config.head_dim for n in (config.num_heads, config.num_kv_heads))
        self.q_proj = Linear(config.hidden_size, query, operators)
        self.k_proj = Linear(config.hidden_size, key, operators)
        self.v_proj = Linear(config.hidden_size, key, operators)
        self.o_proj = Linear(query, config.hidden_size, operators)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps, operators)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps, operators)
        self.stacked = StackedLinear(self.q_proj, self.k_proj, self.v_proj)

    def forward(
        self,
        x: Tensor,
        rotary: Rotary,
        cache: KeyValueCache,
        layer: int,
        start: int,
        mask: Tensor | None,
        causal: bool,
    ) -> Tensor:
        """x (B, S, hidden) at tokens start..start+S-1 of the cache; returns (B, S, hidden)."""
        config = self.config
        split = self._heads(self.stacked(x))
        query, key, value = split.split(
            (config.num_heads, config.num_kv_heads, config.num_kv_heads), dim=1
        )
        keys, values = cache.write(layer, start, self._turn(self.k_norm(key), rotary), value)
        query = self._turn(self.q_norm(query), rotary)
        return self._join(self.operators.attention(query, keys, values, mask=mask, causal=causal))

    def last(
        self, x: Tensor, rotary: Rotary, cache: KeyValueCache, layer: int, start: int
    ) -> Tensor:
        """As forward, but (B, 1, hidden) of the last token alone, which sees all others."""
        key, value = self._heads(self.k_proj(x)), self._heads(self.v_proj(x))
        keys, values = cache.write(layer, start, self._turn(self.k_norm(key), rotary), value)
        length = x.shape[1]
        query = self.q_norm(self._heads(self.q_proj(x[:, -1:])))
        query = self._turn(query, rotary.span(length - 1, length))
        return self._join(self.operators.attention(query, keys, values))

    def _heads(self, x: Tensor) -> Tensor:
        """(B, S, heads * D) to (B, heads, S, D)."""
        return x.view(*x.shape[:2], -1, self.config.head_dim).transpose(1, 2)

    def _turn(self, x: Tensor, rotary: Rotary) -> Tensor:
        """Turn (B, heads, S, D) to its positions."""
        return self.operators.rotary(x, rotary.cos, rotary.sin)

    def _join(self, seen: Tensor) -> Tensor:
        """Project what the heads saw, (B, heads, S, D), to (B, S, hidden)."""
        batch, _, length, _ = seen.shape
        return self.o_proj(seen.transpose(1, 2).reshape(batch, length, -1))


class GatedMLP(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, config: DecoderConfig, operators: Operators) -> None:
        super().__init__()
        self.operators = operators
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size, operators)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size, operators)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, operators)
        self.stacked = StackedLinear(self.gate_proj, self.up_proj)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, S, hidden) to (B, S, hidden)."""
        rows = x.shape[0] * x.shape[1]
        parts = self.operators.parts(rows, 2 * self.gate_proj.out_features)
        if parts == 1:
            return self._rows(x)
        return torch.cat([self._rows(part) for part in x.tensor_split(parts, dim=1)], dim=1)

    def _rows(self, x: Tensor) -> Tensor:
        return self.down_proj(self.operators.swiglu(self.stacked(x)))


class DecoderLayer(nn.Module):
    """The parameters of one layer; Decoder.run joins them."""

    def __init__(self, config: DecoderConfig, operators: Operators) -> None:
        super().__init__()
        self.self_attn = SelfAttention(config, operators)
        self.mlp = GatedMLP(config, operators)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, operators)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, operators)


@dataclass(frozen=True, eq=False)
class Additions:
    """What the vision part adds to the first layers' outputs (deepstack)."""

    indices: Tensor  # int64 (N,) places in the sequence
    features: tuple[Tensor, ...]  # one a layer, (N, hidden)

    def of_layer(self, index: int) -> Tensor | None:
        """What is added to a layer's output, (N, hidden), if anything is."""
        return self.features[index] if index < len(self.features) else None


class Decoder(nn.Module):
    """Decoder layers and the norm after them."""

    def __init__(self, config: DecoderConfig, operators: Operators) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(
            DecoderLayer(config, operators) for _ in range(config.num_layers)
        )
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, operators)

    def run(
        self,
        embeddings: Tensor,
        rotary: Rotary,
        cache: KeyValueCache,
        start: int,
        mask: Tensor | None = None,
        causal: bool = False,
        additions: Additions | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Embeddings (B, S, hidden) at tokens start..start+S-1 to normalised states (B, S, hidden).

        Every token sees the cache before `start`; among themselves they see all, or with `causal`
        (start 0 only) those before them. mask bool (B, 1, 1, start + S), True where a key is seen.
        The residual keeps the type of `embeddings`, the result has that of the weights.

        With `last_only` the result is (B, 1, hidden), of the last token, which no addition may
        concern: of the others the last layer then computes keys and values only.
        """
        layers = self._layers()
        norms = [layer.input_layernorm for layer in layers] + [self.norm]
        residual = embeddings
        normed = norms[0](residual)
        for index, layer in enumerate(layers):
            added = None if additions is None else additions.of_layer(index)
            if last_only and index == len(layers) - 1:
                seen = layer.self_attn.last(normed, rotary, cache, index, start)
                residual, added = residual[:, -1:], None
            else:
                seen = layer.self_attn(normed, rotary, cache, index, start, mask, causal)
            normed, residual = layer.post_attention_layernorm.after_adding(seen, residual)
            update, after = layer.mlp(normed), norms[index + 1]
            if additions is not None and added is not None:
                residual = (residual + update).index_add_(1, additions.indices, added[None])
                normed = after(residual)
            else:
                normed, residual = after.after_adding(update, residual)
        return normed

    def merge(self) -> None:
        """Merge the projections of every layer, for inference."""
        for layer in self._layers():
            layer.self_attn.stacked.merge()
            layer.mlp.stacked.merge()

    def _layers(self) -> list[DecoderLayer]:
        return cast("list[DecoderLayer]", list(self.layers))


class LanguageModel(Decoder):
    """The decoder with its table of embeddings."""

    def __init__(self, config: DecoderConfig, vocab_size: int, operators: Operators) -> None:
        super().__init__(config, operators)
        self.embed_tokens = empty_embedding(vocab_size, config.hidden_size)
