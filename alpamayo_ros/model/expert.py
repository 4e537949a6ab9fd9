"""The action expert: noisy actions in, their velocity out, reading the language model's cache."""

from __future__ import annotations

import itertools
import math
from typing import cast

import torch
from torch import Tensor, nn

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model.configuration import ActionInConfig, ModelConfig
from alpamayo_ros.model.language import Decoder, KeyValueCache, Rotary
from alpamayo_ros.model.layers import Linear, RMSNorm

ACTION_SIZE = 2  # acceleration, curvature
TRUNK_EPS = 1e-5


class FourierFrequencies(nn.Module):
    """A buffer of frequencies, which the released checkpoint stores and version 1.5 does not."""

    freqs: Tensor

    def __init__(self, config: ActionInConfig) -> None:
        super().__init__()
        frequencies = torch.logspace(0, math.log10(config.max_frequency), config.frequencies)
        self.register_buffer("freqs", frequencies[None])


def fourier_features(values: Tensor, frequencies: Tensor) -> Tensor:
    """sqrt(2) * [sin a, cos a] with a = value * frequency * 2 * pi: (...) to (..., 2 * F), float32.

    The products are taken in this order: at frequency 100 another one costs 5e-6.
    """
    angles = values[..., None] * frequencies * 2 * math.pi
    return torch.cat((angles.sin(), angles.cos()), dim=-1) * math.sqrt(2)


class Trunk(nn.Module):
    """The layers of the encoder, named as the checkpoint names them."""

    def __init__(self, config: ActionInConfig, out_size: int, operators: Operators) -> None:
        super().__init__()
        sizes = [(ACTION_SIZE + 1) * 2 * config.frequencies] + [config.hidden_size] * config.layers
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(sizes):
            layers += [
                Linear(before, after, operators, bias=True),
                nn.SiLU(),
                RMSNorm(after, TRUNK_EPS, operators),
            ]
        self.trunk = nn.ModuleList([*layers, Linear(sizes[-1], out_size, operators, bias=True)])


class ActionInProjection(nn.Module):
    """Encodes a waypoint's noisy action and the flow time into an embedding of the expert."""

    def __init__(self, config: ActionInConfig, out_size: int, operators: Operators) -> None:
        super().__init__()
        self.sinus = nn.ModuleList(FourierFrequencies(config) for _ in range(ACTION_SIZE))
        self.timestep_fourier_encoder = FourierFrequencies(config)
        self.encoder = Trunk(config, out_size, operators)
        self.norm = nn.LayerNorm(out_size)
        self._merged: Tensor | None = None

    def merge(self) -> None:
        """Join the frequencies of both actions, for inference."""
        self._merged = self._frequencies()

    def _frequencies(self) -> Tensor:
        """(2, F) of acceleration and curvature."""
        encoders = cast("list[FourierFrequencies]", list(self.sinus))
        return torch.cat([encoder.freqs for encoder in encoders])

    def time_features(self, times: Tensor) -> Tensor:
        """Features (N, 2 * F) of flow times (N,) float32: constants of the schedule."""
        return fourier_features(times, self.timestep_fourier_encoder.freqs[0])

    def features(self, actions: Tensor, time_features: Tensor) -> Tensor:
        """What the trunk reads, float32 (B, T, 6 * F): the features of both actions and of time.

        Both actions are encoded in one go: 8 kernels, where one by one they are 24 and, written
        into slices of a preallocated tensor, 25. The numbers are the same bit by bit.
        """
        frequencies = self._frequencies() if self._merged is None else self._merged
        encoded = fourier_features(actions, frequencies).flatten(-2)
        times = time_features.expand(*actions.shape[:2], -1)
        return torch.cat((encoded, times), dim=-1)

    def forward(self, actions: Tensor, time_features: Tensor) -> Tensor:
        """Actions float32 (B, T, 2) and features of one time (2 * F,) to float32 (B, T, hidden)."""
        x = self.features(actions, time_features)
        for layer in self.encoder.trunk:
            x = layer(x.to(layer.weight.dtype) if isinstance(layer, Linear) else x)
        norm = self.norm
        return nn.functional.layer_norm(
            x.float(), norm.normalized_shape, norm.weight.float(), norm.bias.float(), norm.eps
        )


class Expert(Decoder):
    """The decoder that turns action embeddings into velocities; all its tokens see each other."""

    def __init__(self, config: ModelConfig, operators: Operators) -> None:
        super().__init__(config.expert, operators)


def velocity(
    expert: Expert,
    encode: ActionInProjection,
    decode: nn.Linear,
    actions: Tensor,
    time_features: Tensor,
    rotary: Rotary,
    cache: KeyValueCache,
    start: int,
    mask: Tensor | None,
) -> Tensor:
    """Velocity (B, T, 2) of actions float32 (B, T, 2) at one flow time.

    The expert's own keys and values are written behind the `start` tokens of the cache, at the
    same addresses in every step; the residual is float32 whatever the weights are.
    """
    states = expert.run(encode(actions, time_features), rotary, cache, start, mask)
    return decode(states)
