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

Call = Callable[[], Tensor]

SIDE = 2048  # of the square product: it fills a CPU's vector units, and its operands a CPU's cache
MOST_SIDE = 16384
READ_VALUES = 1 << 26  # 268 MB of float32, more than a CPU's caches hold
MOST_READ_VALUES = 1 << 30
READ_COLUMNS = 512
REPEATS = 7
# An accelerator starts a call in some 10 us and is waited for in as many: a call that is shorter
# than the first says more of these than of the device, and so do calls that are waited for singly.
LONG_CALL_S = 2.5e-4
BATCH_S = 0.01


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
    """Rates of a resolved device in a type: a square product, and a matrix read for one row.

    Both grow until a call is long enough; on a CPU the first sizes are.
    """
    linear = operators_for(device).linear
    options: dict[str, Any] = {"device": device, "dtype": dtype}

    def product(side: int) -> Call:
        square = torch.full((side, side), 0.5, **options)
        return lambda: linear(square, square, None)

    def reading(values: int) -> Call:
        tall = torch.full((values // READ_COLUMNS, READ_COLUMNS), 0.5, **options)
        row = torch.full((1, READ_COLUMNS), 0.5, **options)
        return lambda: linear(row, tall, None)

    with torch.no_grad():
        side, product_s = _grown(product, SIDE, MOST_SIDE, device)
        values, read_s = _grown(reading, READ_VALUES, MOST_READ_VALUES, device)
    return Rates(2 * side**3 / product_s, values * dtype.itemsize / read_s)


def _grown(make: Callable[[int], Call], size: int, most: int, device: str) -> tuple[int, float]:
    """The first of doubling sizes whose work is long enough, or the largest; its duration in s."""
    while True:
        duration_s = best_s(make(size), device)
        if duration_s >= LONG_CALL_S or 2 * size > most:
            return size, duration_s
        size *= 2


def best_s(work: Call, device: str) -> float:
    """The least duration of a call in s: of one that is waited for, or of many in a row."""
    work()
    alone_s = min(_call_s(work, 1, device) for _ in range(REPEATS))
    calls = int(BATCH_S / alone_s)
    if calls < 2:
        return alone_s
    return min(alone_s, *(_call_s(work, calls, device) for _ in range(REPEATS)))


def _call_s(work: Call, calls: int, device: str) -> float:
    """Duration of a call in s, where the device is waited for before and after so many."""
    synchronize(device)
    start_s = time.perf_counter()
    for _ in range(calls):
        work()
    synchronize(device)
    return (time.perf_counter() - start_s) / calls
