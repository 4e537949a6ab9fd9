"""A camera's recent frames, found by stamp and never by count."""

from __future__ import annotations

import bisect

from alpamayo_ros.types import Frame

# A t0 may be 0.5 s old (sync.max_age_s) and reaches 0.3 s + tolerance further back.
KEEP_NS = 1_000_000_000
MAX_FRAMES = 128  # 0.9 s of a 140 Hz camera: bounds memory when stamps stand still


class FrameRing:
    """The frames of the last second of one camera, in order of their stamps."""

    def __init__(self, keep_ns: int = KEEP_NS, max_frames: int = MAX_FRAMES) -> None:
        self._keep_ns = keep_ns
        self._max_frames = max_frames
        self._frames: list[Frame] = []
        self.stamps_ns: list[int] = []  # rising, one a frame

    def __len__(self) -> int:
        return len(self._frames)

    def append(self, frame: Frame) -> bool:
        """Keep a frame; late and out-of-order ones find their place.

        Returns:
            False when it was of no use: its stamp is there already, or older than all we keep.
        """
        at = bisect.bisect_left(self.stamps_ns, frame.stamp_ns)
        if at < len(self.stamps_ns) and self.stamps_ns[at] == frame.stamp_ns:
            return False
        if self.stamps_ns and frame.stamp_ns < self.stamps_ns[-1] - self._keep_ns:
            return False
        self.stamps_ns.insert(at, frame.stamp_ns)
        self._frames.insert(at, frame)
        self._forget()
        return True

    def nearest(self, instant_ns: int) -> Frame | None:
        """The frame nearest to an instant, the older one on a tie; None when the ring is empty."""
        at = bisect.bisect_left(self.stamps_ns, instant_ns)
        around = range(max(at - 1, 0), min(at + 1, len(self.stamps_ns)))
        if not around:
            return None
        return self._frames[min(around, key=lambda i: abs(self.stamps_ns[i] - instant_ns))]

    def clear(self) -> None:
        """Forget every frame."""
        self._frames.clear()
        self.stamps_ns.clear()

    def _forget(self) -> None:
        outdated = bisect.bisect_left(self.stamps_ns, self.stamps_ns[-1] - self._keep_ns)
        outdated = max(outdated, len(self.stamps_ns) - self._max_frames)
        del self._frames[:outdated], self.stamps_ns[:outdated]
