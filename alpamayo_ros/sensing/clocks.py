"""What a stamp far from the clock says of whoever made it."""

from __future__ import annotations

from alpamayo_ros.types import NS_PER_S

DAY_S = 86_400.0
YEAR_S = 365.25 * DAY_S
TAI_S = 37.0  # TAI - UTC since 2017; PTP counts TAI, computers keep UTC
TAI_MARGIN_S = 1.0  # a message's age comes on top


def clock_hint(ahead_ns: int) -> str:
    """The likely cause of stamps that are this far ahead of the clock (negative: behind).

    Empty where there is none to name: a few seconds may be anything.
    """
    ahead_s = ahead_ns / NS_PER_S
    side = "ahead of" if ahead_s > 0 else "behind"
    if abs(ahead_s) >= DAY_S:
        return (
            f"stamps are {_long(abs(ahead_s))} {side} the clock: another epoch; "
            "set use_sim_time or fix the driver"
        )
    if abs(abs(ahead_s) - TAI_S) <= TAI_MARGIN_S:
        late = "stamps are in TAI and the clock in UTC" if ahead_s > 0 else "the clock is in TAI"
        return f"stamps are {abs(ahead_s):.3f} s {side} the clock: TAI is 37 s ahead of UTC; {late}"
    return ""


def _long(seconds: float) -> str:
    """A long time in the unit that fits: "56 years", "12 days"."""
    count, unit = (seconds / DAY_S, "day") if seconds < YEAR_S else (seconds / YEAR_S, "year")
    return f"{count:.0f} {unit}" + "s" * (round(count) != 1)
