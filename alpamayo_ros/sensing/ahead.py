"""Which frames the next t0 will use, while it lies ahead: work that an idle device can do now.

The sampler plans a period after the last t0, at the first front_wide stamp from then on. Where that
stamp is to be expected follows from the camera's rate, and with it the instants of all sixteen
frames. Of a camera of 30 Hz most frames are at none of them and are not named here.
"""

from __future__ import annotations

import bisect
import statistics
from itertools import pairwise

from alpamayo_ros.sensing.sampler import SETTLED_NS, Sampler
from alpamayo_ros.types import CAMERA_ROLES, FRAME_OFFSETS_NS, REFERENCE_ROLE, Frame

JITTER_NS = 2_000_000  # of front_wide's stamps


def frames_ahead(sampler: Sampler, now_ns: int) -> list[tuple[str, Frame]]:
    """Role and frame of what the next t0 will use, as far as it has come, the oldest first.

    A frame is named when no nearer one to its instant can come, and when it stays the nearest if
    t0 comes a little earlier or later (at 15 Hz two are equally near at t0 - 0.1 s: neither is).
    There are none before the first plan, while t0s are refused, and when the expected t0 is here:
    then planning comes first.
    """
    t0_ns = expected_t0_ns(sampler)
    if t0_ns is None or t0_ns <= now_ns:
        return []
    frames = []
    for instant_ns in (t0_ns + offset_ns for offset_ns in FRAME_OFFSETS_NS):
        for role in CAMERA_ROLES:
            ring = sampler.rings[role]
            frame = ring.nearest(instant_ns - JITTER_NS)
            if frame is None or frame is not ring.nearest(instant_ns + JITTER_NS):
                continue
            settled = ring.stamps_ns[-1] >= instant_ns - SETTLED_NS
            if settled and abs(frame.stamp_ns - instant_ns) <= sampler.settings.tolerance_ns:
                frames.append((role, frame))
    return frames


def expected_t0_ns(sampler: Sampler) -> int | None:
    """The next t0 if front_wide keeps its rate; None where nothing speaks for one."""
    wanted_ns = sampler.next_wanted_ns()
    stamps_ns = sampler.rings[REFERENCE_ROLE].stamps_ns
    if wanted_ns is None or len(stamps_ns) < 2:
        return None
    at = bisect.bisect_left(stamps_ns, wanted_ns)
    if at < len(stamps_ns):
        return stamps_ns[at]
    period_ns = round(statistics.median(b - a for a, b in pairwise(stamps_ns)))
    periods = -((stamps_ns[-1] - wanted_ns) // period_ns)  # rounded up
    return stamps_ns[-1] + periods * period_ns
