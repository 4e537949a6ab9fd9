"""How fast a device can be at best, measured: no computation on it is faster than its floor."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from alpamayo_ros.devices.device import synchronize
from alpamayo_ros.devices.operators import operators_for

SIDE = 2048  # of the square product: it fills a CPU's vector units, and its operands a CPU's cache
READ_VALUES = 1 << 26  # 268 MB of float32, more than a CPU's caches hold
READ_COLUMNS = 512
REPEATS = 7


@dataclass(frozen=True)
class Rates:
    """What a device reached at best."""

    flop_per_s: float
    bytes_per_s: float

    def floor_s(self, flop: float, read_bytes: float) -> float:
        """The least duration in s of so many operations on so many bytes that must be read."""
        return max(flop / self.flop_per_s, read_bytes / self.bytes_per_s)

    def best_of(self, other: Rates) -> Rates:
        """The higher ones of two measurements."""
        return Rates(
            max(self.flop_per_s, other.flop_per_s), max(self.bytes_per_s, other.bytes_per_s)
        )


def measured_rates(device: str, dtype: torch.dtype) -> Rates:
    """Rates of a resolved device in a type: a square product, and a matrix read for one row."""
    linear = operators_for(device).linear
    options: dict[str, Any] = {"device": device, "dtype": dtype}
    square = torch.full((SIDE, SIDE), 0.5, **options)
    tall = torch.full((READ_VALUES // READ_COLUMNS, READ_COLUMNS), 0.5, **options)
    row = torch.full((1, READ_COLUMNS), 0.5, **options)
    with torch.no_grad():
        product_s = _best_s(lambda: linear(square, square, None), device)
        read_s = _best_s(lambda: linear(row, tall, None), device)
    return Rates(2 * SIDE**3 / product_s, tall.numel() * dtype.itemsize / read_s)


def _best_s(work: Callable[[], Tensor], device: str) -> float:
    work()
    durations = []
    for _ in range(REPEATS):
        synchronize(device)
        start_s = time.perf_counter()
        work()
        synchronize(device)
        durations.append(time.perf_counter() - start_s)
    return min(durations)
