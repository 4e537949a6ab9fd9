"""The image encoder of Qwen3-VL, for images that are encoded each on its own.

Attention stays within an image, so images of one size are a batch, and an image's features do not
depend on its place in the prompt. Parameters are named as transformers 4.57 names them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model.configuration import VisionConfig
from alpamayo_ros.model.language import Rotary
from alpamayo_ros.model.layers import Linear, empty_embedding

LAYER_NORM_EPS = 1e-6
ROPE_THETA = 10000.0


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """What the language model reads of one image or of a batch of them."""

    tokens: Tensor  # (..., N, out_hidden): they stand in for the image's tokens
    deepstack: tuple[Tensor, ...]  # each (..., N, out_hidden), for the first language layers


@dataclass(frozen=True, eq=False)
class _GridTables:
    """What depends on the size of an image alone, uploaded once."""

    position_indices: Tensor  # int64 (4, S) corners in the table of position embeddings
    position_weights: Tensor  # (4, S, 1)
    rotary: Rotary  # float32 (1, 1, S, head_dim)


class PatchEmbed(nn.Module):
    """The checkpoint's Conv3d; over whole patches it is one matrix product."""

    def __init__(self, config: VisionConfig, operators: Operators) -> None:
        super().__init__()
        self.operators = operators
        kernel = (config.temporal_patch_size, config.patch_size, config.patch_size)
        self.proj = nn.Conv3d(config.in_channels, config.hidden_size, kernel, kernel)

    def forward(self, patches: Tensor) -> Tensor:
        """Rows (..., C * T * 16 * 16) to (..., hidden)."""
        weight = self.proj.weight
        return self.operators.linear(patches.to(weight.dtype), weight.flatten(1), self.proj.bias)


class VisionAttention(nn.Module):
    """Full attention within each image."""

    def __init__(self, config: VisionConfig, operators: Operators) -> None:
        super().__init__()
        self.heads = config.num_heads
        self.operators = operators
        self.qkv = Linear(config.hidden_size, 3 * config.hidden_size, operators, bias=True)
        self.proj = Linear(config.hidden_size, config.hidden_size, operators, bias=True)

    def forward(self, x: Tensor, rotary: Rotary) -> Tensor:
        """x (B, S, hidden) to (B, S, hidden)."""
        batch, length, hidden = x.shape
        split = self.qkv(x).view(batch, length, 3, self.heads, hidden // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        query = self.operators.rotary(query, rotary.cos, rotary.sin)
        key = self.operators.rotary(key, rotary.cos, rotary.sin)
        seen = self.operators.attention(query, key, value)
        return self.proj(seen.transpose(1, 2).reshape(batch, length, hidden))


class VisionMLP(nn.Module):
    """Two layers with the tanh form of GELU."""

    def __init__(self, config: VisionConfig, operators: Operators) -> None:
        super().__init__()
        self.operators = operators
        hidden, inner = config.hidden_size, config.intermediate_size
        self.linear_fc1 = Linear(hidden, inner, operators, bias=True)
        self.linear_fc2 = Linear(inner, hidden, operators, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., hidden) to (..., hidden)."""
        inner = self.linear_fc1
        return self.linear_fc2(self.operators.linear_gelu(x, inner.weight, inner.bias, "tanh"))


class VisionBlock(nn.Module):
    """One layer of the encoder."""

    def __init__(self, config: VisionConfig, operators: Operators) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.hidden_size, eps=LAYER_NORM_EPS)
        self.norm2 = nn.LayerNorm(config.hidden_size, eps=LAYER_NORM_EPS)
        self.attn = VisionAttention(config, operators)
        self.mlp = VisionMLP(config, operators)

    def forward(self, x: Tensor, rotary: Rotary) -> Tensor:
        """x (B, S, hidden) to (B, S, hidden)."""
        x = x + self.attn(self.norm1(x), rotary)
        return x + self.mlp(self.norm2(x))


class PatchMerger(nn.Module):
    """Joins 2 x 2 patches into one token; the deepstack ones normalise after joining."""

    def __init__(
        self, config: VisionConfig, norm_after_joining: bool, operators: Operators
    ) -> None:
        super().__init__()
        self.operators = operators
        self.joined = config.hidden_size * config.merge_size**2
        self.norm_after_joining = norm_after_joining
        width = self.joined if norm_after_joining else config.hidden_size
        self.norm = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.linear_fc1 = Linear(self.joined, self.joined, operators, bias=True)
        self.linear_fc2 = Linear(self.joined, config.out_hidden_size, operators, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, S, hidden) to (B, S / 4, out_hidden)."""
        shape = (x.shape[0], -1, self.joined)
        x = self.norm(x.reshape(shape)) if self.norm_after_joining else self.norm(x).reshape(shape)
        inner = self.linear_fc1
        return self.linear_fc2(self.operators.linear_gelu(x, inner.weight, inner.bias, "none"))


class VisionModel(nn.Module):
    """Patches of images of one size to the tokens and deepstack features of each."""

    def __init__(self, config: VisionConfig, operators: Operators) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = PatchEmbed(config, operators)
        self.pos_embed = empty_embedding(config.num_position_embeddings, config.hidden_size)
        self.blocks = nn.ModuleList(VisionBlock(config, operators) for _ in range(config.depth))
        self.merger = PatchMerger(config, False, operators)
        self.deepstack_merger_list = nn.ModuleList(
            PatchMerger(config, True, operators) for _ in config.deepstack_layers
        )
        self.operators = operators
        self._tables = functools.lru_cache(maxsize=8)(self._make_tables)

    def batches(self, images: int, grid: tuple[int, int]) -> int:
        """Into how many batches to split images with this grid of patches."""
        rows = images * grid[0] * grid[1]
        return min(images, self.operators.parts(rows, self.config.intermediate_size))

    def forward(self, patches: Tensor, grid: tuple[int, int]) -> ImageFeatures:
        """Patches (B, rows * columns, patch_values) of images with this grid of patches."""
        tables = self._tables(grid, self.pos_embed.weight.device, self.pos_embed.weight.dtype)
        corners = self.pos_embed(tables.position_indices) * tables.position_weights
        x = self.patch_embed(patches) + corners.sum(0)
        deepstack: list[Tensor] = []
        for index, block in enumerate(self.blocks):
            x = block(x, tables.rotary)
            if index in self.config.deepstack_layers:
                merger = self.deepstack_merger_list[len(deepstack)]
                deepstack.append(merger(x))
        return ImageFeatures(self.merger(x), tuple(deepstack))

    def _make_tables(
        self, grid: tuple[int, int], device: torch.device, dtype: torch.dtype
    ) -> _GridTables:
        indices, weights = position_corners(grid, self.config)
        return _GridTables(
            indices.to(device),
            weights[..., None].to(device, dtype),
            vision_rotary(grid, self.config, device),
        )


def merged_order(grid: tuple[int, int], merge: int) -> Tensor:
    """Row-major index of each patch in the order of the patch rows: the 2 x 2 of a token together.

    int64 (rows * columns,).
    """
    rows, columns = grid
    index = torch.arange(rows * columns).view(rows // merge, merge, columns // merge, merge)
    return index.permute(0, 2, 1, 3).flatten()


def position_corners(grid: tuple[int, int], config: VisionConfig) -> tuple[Tensor, Tensor]:
    """The four table entries and weights of each patch's bilinear position embedding, (4, S) each.

    The table is a square grid; patches are spread over it from corner to corner.
    """
    side = round(config.num_position_embeddings**0.5)
    places = [torch.linspace(0, side - 1, n) for n in grid]
    floors = [place.long() for place in places]
    ceilings = [(floor + 1).clamp(max=side - 1) for floor in floors]
    fractions = [place - floor for place, floor in zip(places, floors)]
    indices, weights = [], []
    for low_row in (True, False):
        for low_column in (True, False):
            row = floors[0] if low_row else ceilings[0]
            column = floors[1] if low_column else ceilings[1]
            row_weight = 1 - fractions[0] if low_row else fractions[0]
            column_weight = 1 - fractions[1] if low_column else fractions[1]
            indices.append((row[:, None] * side + column[None, :]).flatten())
            weights.append((row_weight[:, None] * column_weight[None, :]).flatten())
    order = merged_order(grid, config.merge_size)
    return torch.stack(indices)[:, order], torch.stack(weights)[:, order]


def vision_rotary(grid: tuple[int, int], config: VisionConfig, device: torch.device) -> Rotary:
    """Rotary table of a grid, float32 (1, 1, S, head_dim): half of it for the row, half the column.

    Computed on the CPU, then uploaded.
    """
    width = config.hidden_size // config.num_heads // 2
    frequencies = 1.0 / ROPE_THETA ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    order = merged_order(grid, config.merge_size)
    row, column = order // grid[1], order % grid[1]
    angles = torch.cat([row[:, None] * frequencies, column[:, None] * frequencies], dim=-1)
    both = torch.cat((angles, angles), dim=-1)[None, None]
    return Rotary(both.cos().to(device), both.sin().to(device))
