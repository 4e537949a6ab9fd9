"""Flow matching: from noise to actions in Euler steps of a learned velocity."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

EulerStep = Callable[[Tensor, Tensor, Tensor], Tensor]


def flow_times(steps: int, device: str = "cpu") -> Tensor:
    """The times 0..1 float32 (steps + 1,) of the schedule."""
    return torch.linspace(0.0, 1.0, steps + 1).to(device)


def integrate(
    noise: Tensor,
    times: Tensor,
    velocity: Callable[[Tensor, int], Tensor],
    euler_step: EulerStep,
    on_step: Callable[[int, Tensor], None] | None = None,
) -> Tensor:
    """Actions from noise, both float32 (B, T, 2): x += (t[k+1] - t[k]) * velocity(x, k).

    times float32 (K + 1,) lies on noise's device, so that no step waits for the host; `on_step`
    sees (k, x) before step k = 0..K-1 and (K, x) at the end.
    """
    x = noise
    durations = times[1:] - times[:-1]
    steps = len(durations)
    for step in range(steps):
        if on_step is not None:
            on_step(step, x)
        x = euler_step(x, durations[step], velocity(x, step))
    if on_step is not None:
        on_step(steps, x)
    return x
