"""The last seconds of one sensor, found by stamp and never by count."""

from __future__ import annotations

import bisect
from typing import Generic, Protocol, TypeVar


class Stamped(Protocol):
    """Anything with a stamp."""

    @property
    def stamp_ns(self) -> int:
        """Header stamp."""


T = TypeVar("T", bound=Stamped)


class StampRing(Generic[T]):
    """Messages in the order of their stamps, the newest `keep_ns` of them and at most `most`."""

    def __init__(self, keep_ns: int, most: int) -> None:
        self.keep_ns = keep_ns
        self._most = most  # bounds memory when stamps stand still
        self.items: list[T] = []
        self.stamps_ns: list[int] = []  # rising, one an item

    def __len__(self) -> int:
        return len(self.items)

    def append(self, item: T) -> bool:
        """Keep an item; late and out-of-order ones find their place.

        Returns:
            False when it was of no use: its stamp is there already, or older than all we keep.
        """
        at = bisect.bisect_left(self.stamps_ns, item.stamp_ns)
        if at < len(self.stamps_ns) and self.stamps_ns[at] == item.stamp_ns:
            return False
        if self.stamps_ns and item.stamp_ns < self.stamps_ns[-1] - self.keep_ns:
            return False
        self.stamps_ns.insert(at, item.stamp_ns)
        self.items.insert(at, item)
        outdated = bisect.bisect_left(self.stamps_ns, self.stamps_ns[-1] - self.keep_ns)
        self._cut(max(outdated, len(self.stamps_ns) - self._most))
        return True

    def nearest(self, instant_ns: int) -> T | None:
        """The item nearest to an instant, the older one on a tie; None when there is none."""
        at = bisect.bisect_left(self.stamps_ns, instant_ns)
        around = range(max(at - 1, 0), min(at + 1, len(self.stamps_ns)))
        if not around:
            return None
        return self.items[min(around, key=lambda i: abs(self.stamps_ns[i] - instant_ns))]

    def remove(self, item: T) -> bool:
        """Forget an item; whether it was there."""
        at = bisect.bisect_left(self.stamps_ns, item.stamp_ns)
        if at == len(self.items) or self.items[at] is not item:
            return False
        del self.items[at], self.stamps_ns[at]
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._cut(len(self.items))

    def _cut(self, count: int) -> None:
        del self.items[:count], self.stamps_ns[:count]
