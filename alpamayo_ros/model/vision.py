"""The image encoder of Qwen3-VL, for images that are encoded each on its own.

Attention stays within an image, so an image's features do not depend on its place in the prompt.
Images of any sizes lie one after the other in one sequence, whose lengths are host numbers: a block
attends in one call. Parameters are named as transformers 4.57 names them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model.configuration import VisionConfig
from alpamayo_ros.model.language import Rotary
from alpamayo_ros.model.layers import Linear, empty_embedding

LAYER_NORM_EPS = 1e-6
ROPE_THETA = 10000.0

Grid = tuple[int, int]  # rows and columns of an image's patches


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """What the language model reads of one image or of several, one after the other."""

    tokens: Tensor  # (N, out_hidden): they stand in for the image's tokens
    deepstack: tuple[Tensor, ...]  # each (N, out_hidden), for the first language layers

    def split(self, tokens: Sequence[int]) -> list[ImageFeatures]:
        """The features of each image, which has so many tokens."""
        counts = list(tokens)
        levels = zip(*(level.split(counts) for level in self.deepstack))
        return [ImageFeatures(*image) for image in zip(self.tokens.split(counts), levels)]


@dataclass(frozen=True, eq=False)
class _GridTables:
    """What depends on the size of an image alone, uploaded once."""

    position_indices: Tensor  # int64 (4, S) corners in the table of position embeddings
    position_weights: Tensor  # (4, S, 1)


class PatchEmbed(nn.Module):
    """The checkpoint's Conv3d; over whole patches it is one matrix product.

    Which of both forms is faster on an NPU is not known: `as_convolution` takes the other one.
    """

    def __init__(self, config: VisionConfig, operators: Operators) -> None:
        super().__init__()
        self.operators = operators
        kernel = (config.temporal_patch_size, config.patch_size, config.patch_size)
        self.proj = nn.Conv3d(config.in_channels, config.hidden_size, kernel, kernel)
        self.as_convolution = False

    def forward(self, patches: Tensor) -> Tensor:
        """Rows (N, C * T * 16 * 16) to (N, hidden)."""
        weight = self.proj.weight
        if self.as_convolution:
            volumes = patches.to(weight.dtype).view(-1, *weight.shape[1:])
            return self.proj(volumes).flatten(1)
        return self.operators.linear(patches.to(weight.dtype), weight.flatten(1), self.proj.bias)


class VisionAttention(nn.Module):
    """Full attention within each image, in one call for all."""

    def __init__(self, config: VisionConfig, operators: Operators) -> None:
        super().__init__()
        self.heads = config.num_heads
        self.operators = operators
        self.qkv = Linear(config.hidden_size, 3 * config.hidden_size, operators, bias=True)
        self.proj = Linear(config.hidden_size, config.hidden_size, operators, bias=True)

    def forward(self, x: Tensor, rotary: Rotary, lengths: Sequence[int]) -> Tensor:
        """x (T, hidden) of images with so many patches to (T, hidden)."""
        heads = self.heads
        qkv = self.qkv(x).view(len(x), 3 * heads, -1)
        # Turned in float32, as the reference does: in bfloat16 it moves waypoints by 0.1 m.
        turned = self.operators.rotary(qkv[:, : 2 * heads].float(), rotary.cos, rotary.sin)
        query, key = turned.to(x.dtype).split(heads, dim=1)
        seen = self.operators.packed_attention(query, key, qkv[:, 2 * heads :], lengths)
        return self.proj(seen.flatten(1))


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

    def forward(self, x: Tensor, rotary: Rotary, lengths: Sequence[int]) -> Tensor:
        """x (T, hidden) of images with so many patches to (T, hidden)."""
        x = x + self.attn(self.norm1(x), rotary, lengths)
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
        """x (T, hidden) to (T / 4, out_hidden)."""
        shape = (-1, self.joined)
        x = self.norm(x.reshape(shape)) if self.norm_after_joining else self.norm(x).reshape(shape)
        inner = self.linear_fc1
        return self.linear_fc2(self.operators.linear_gelu(x, inner.weight, inner.bias, "none"))


class VisionModel(nn.Module):
    """Patches of images to their tokens and deepstack features."""

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
        self._rotary = functools.lru_cache(maxsize=8)(self._make_rotary)

    def parts(self, grids: Sequence[Grid]) -> int:
        """Into how many parts to split images with these grids."""
        patches = sum(rows * columns for rows, columns in grids)
        return min(len(grids), self.operators.parts(patches, self.config.intermediate_size))

    def tokens(self, grid: Grid) -> int:
        """How many tokens an image with this grid becomes."""
        return grid[0] * grid[1] // self.config.merge_size**2

    def forward(self, patches: Tensor, grids: Sequence[Grid]) -> ImageFeatures:
        """Patches (T, patch_values) of images with these grids, one image after the other."""
        lengths = [rows * columns for rows, columns in grids]
        rotary = self._rotary(tuple(grids), self.pos_embed.weight.device)
        x = self.patch_embed(patches) + self._positions(grids)
        deepstack: list[Tensor] = []
        for index, block in enumerate(self.blocks):
            x = block(x, rotary, lengths)
            if index in self.config.deepstack_layers:
                merger = self.deepstack_merger_list[len(deepstack)]
                deepstack.append(merger(x))
        return ImageFeatures(self.merger(x), tuple(deepstack))

    def _positions(self, grids: Sequence[Grid]) -> Tensor:
        """Position embeddings (T, hidden) of the patches."""
        weight = self.pos_embed.weight
        of_grid = {}
        for grid in dict.fromkeys(grids):
            tables = self._tables(grid, weight.device, weight.dtype)
            corners = self.pos_embed(tables.position_indices) * tables.position_weights
            of_grid[grid] = corners.sum(0)
        return torch.cat([of_grid[grid] for grid in grids])

    def _make_tables(self, grid: Grid, device: torch.device, dtype: torch.dtype) -> _GridTables:
        indices, weights = position_corners(grid, self.config)
        return _GridTables(indices.to(device), weights[..., None].to(device, dtype))

    def _make_rotary(self, grids: tuple[Grid, ...], device: torch.device) -> Rotary:
        tables = [vision_rotary(grid, self.config) for grid in grids]
        cos, sin = (torch.cat(parts) for parts in zip(*((t.cos, t.sin) for t in tables)))
        return Rotary(cos.to(device), sin.to(device))


def merged_order(grid: Grid, merge: int) -> Tensor:
    """Row-major index of each patch in the order of the patch rows: the 2 x 2 of a token together.

    int64 (rows * columns,).
    """
    rows, columns = grid
    index = torch.arange(rows * columns).view(rows // merge, merge, columns // merge, merge)
    return index.permute(0, 2, 1, 3).flatten()


def position_corners(grid: Grid, config: VisionConfig) -> tuple[Tensor, Tensor]:
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


def vision_rotary(grid: Grid, config: VisionConfig) -> Rotary:
    """Rotary table of a grid, float32 (S, 1, head_dim): half of it for the row, half the column."""
    width = config.hidden_size // config.num_heads // 2
    frequencies = 1.0 / ROPE_THETA ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    order = merged_order(grid, config.merge_size)
    row, column = order // grid[1], order % grid[1]
    angles = torch.cat([row[:, None] * frequencies, column[:, None] * frequencies], dim=-1)
    both = torch.cat((angles, angles), dim=-1)[:, None]
    return Rotary(both.cos(), both.sin())
