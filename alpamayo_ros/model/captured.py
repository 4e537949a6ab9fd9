"""A step of the flow as one recording: 700 kernels that the host launches with one call.

A recording works on fixed addresses and shapes. Between decisions only the length of what the
expert reads changes, so here its own tokens lie at the cache's end, and a mask hides what lies
between: one recording serves all decisions with one cache, whose capacity the prompt and the limit
of the reasoning give. The mask costs reading the unused rest of the cache.
"""

from __future__ import annotations

import torch
from torch import Tensor

from alpamayo_ros.devices.graphs import Capture
from alpamayo_ros.model.expert import ACTION_SIZE, velocity
from alpamayo_ros.model.language import KeyValueCache, Rotary
from alpamayo_ros.model.network import Network


class CapturedVelocity:
    """`expert.velocity` for one cache, with its inputs copied to where the recording reads them."""

    def __init__(
        self, network: Network, cache: KeyValueCache, waypoints: int, capture: Capture
    ) -> None:
        """Record it; of the cache only the last `waypoints` tokens are overwritten.

        Raises:
            CaptureError: the device refuses.
        """
        self.cache = cache
        self.start = cache.capacity - waypoints  # where the expert's own tokens lie
        self._network = network
        device, width = cache.data.device, cache.data.shape[-1]
        table = torch.zeros(cache.batch, 1, waypoints, width, device=device)
        self._rotary = Rotary(table, table.clone())
        self._seen = torch.ones(cache.batch, 1, 1, cache.capacity, dtype=torch.bool, device=device)
        self._actions = torch.zeros(cache.batch, waypoints, ACTION_SIZE, device=device)
        frequencies = network.action_in_proj.timestep_fourier_encoder.freqs
        self._time_features = torch.zeros(2 * frequencies.numel(), device=device)
        self._recording = capture(self._velocity)

    def begin(self, rotary: Rotary, seen: Tensor | None, length: int) -> None:
        """Start a decision whose longest sample has `length` tokens in the cache.

        rotary is the expert's, seen bool (S, 1, 1, capacity) or None, where nothing is hidden.
        """
        # What is hidden has no weight, but no weight times infinity is not zero.
        self.cache.data[..., length : self.start, :].zero_()
        self._rotary.cos.copy_(rotary.cos)
        self._rotary.sin.copy_(rotary.sin)
        if seen is None:
            self._seen.fill_(True)
        else:
            self._seen.copy_(seen)

    def __call__(self, actions: Tensor, time_features: Tensor) -> Tensor:
        """Velocity (S, T, 2), valid until the next call; arguments as `expert.velocity` has."""
        self._actions.copy_(actions)
        self._time_features.copy_(time_features)
        self._recording.replay()
        return self._recording.result

    def _velocity(self) -> Tensor:
        network, rotary = self._network, self._rotary
        # As new tensors, since a device keeps what it makes of a constant one, and these are none.
        table = Rotary(rotary.cos.view_as(rotary.cos), rotary.sin.view_as(rotary.sin))
        return velocity(
            network.expert,
            network.action_in_proj,
            network.action_out_proj,
            self._actions,
            self._time_features,
            table,
            self.cache,
            self.start,
            self._seen.view_as(self._seen),
        )
