"""Durations of the stages of a decision, with the device waited for at each border."""

from __future__ import annotations

import time

from alpamayo_ros.devices.device import synchronize


class StageClock:
    """Call `mark(stage)` when a stage has ended; the first one began with the clock."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._durations_ms: dict[str, float] = {}
        self._start_s = self._last_s = time.perf_counter()

    def mark(self, stage: str, wait: bool = True) -> None:
        """End a stage here; without `wait` where the device has nothing left to do."""
        if wait:
            synchronize(self._device)
        now_s = time.perf_counter()
        self._durations_ms[stage] = (now_s - self._last_s) * 1e3
        self._last_s = now_s

    def durations_ms(self) -> dict[str, float]:
        """Stage to duration in order, and last the `total` from the clock's start."""
        return {**self._durations_ms, "total": (self._last_s - self._start_s) * 1e3}
