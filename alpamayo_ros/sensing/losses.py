"""How many frames of a camera were lost on the way, told from the stamps of those that came."""

from __future__ import annotations

import collections
import itertools
from dataclasses import dataclass

import numpy as np

WINDOW_NS = 10_000_000_000
MOST = 2_000  # stamps, 10 s at 200 Hz
FEWEST = 10  # stamps that a period can be told from


@dataclass(frozen=True)
class Losses:
    """What came and what should have come within the window."""

    received: int
    expected: int

    @property
    def share(self) -> float:
        """The share that was lost, 0 to 1."""
        return 1.0 - self.received / self.expected if self.expected else 0.0


class Arrivals:
    """The stamps of a camera's frames of the last 10 s."""

    def __init__(self) -> None:
        self._stamps_ns: collections.deque[int] = collections.deque(maxlen=MOST)

    def add(self, stamp_ns: int) -> None:
        """A frame has come."""
        self._stamps_ns.append(stamp_ns)

    def clear(self) -> None:
        """Forget all: the clock has jumped."""
        self._stamps_ns.clear()

    def losses(self) -> Losses | None:
        """Losses so far; None while there is too little to tell."""
        stamps_ns = sorted(set(self._stamps_ns))
        while stamps_ns and stamps_ns[0] < stamps_ns[-1] - WINDOW_NS:
            stamps_ns.pop(0)
        if len(stamps_ns) < FEWEST:
            return None
        return Losses(len(stamps_ns), 1 + expected_periods(stamps_ns))


def expected_periods(stamps_ns: list[int]) -> int:
    """Periods of a camera between the first and the last of rising stamps.

    The period is a short gap at first, a tenth of all gaps being shorter, and then the mean of what
    the gaps are multiples of: so it holds with jitter, and while two frames of three are lost.
    """
    gaps = np.array([b - a for a, b in itertools.pairwise(stamps_ns)], float)
    period = float(np.quantile(gaps, 0.1))
    for _ in range(3):
        counts = np.maximum(np.round(gaps / period), 1)
        period = float(gaps.sum() / counts.sum())
    return int(np.maximum(np.round(gaps / period), 1).sum())
