"""What a navigation device says on the way to an intersection."""

from __future__ import annotations

from alpamayo_ros.demo.junctions import JunctionPlan, Turn

FROM_M = 60.0  # before the intersection, or
FROM_S = 6.0  # before it, whichever is earlier
DONE_M = 3.0  # before the mouth of the road taken: the ego has turned
PHRASES = (
    "{Turn}",
    "{Turn} at the intersection",
    "{Turn} at the next intersection",
    "In {d} m, {turn}",
    "{Turn} in {d} m",
    "{Turn} at the intersection in {d} m",
)
TURNS = {Turn.LEFT: "turn left", Turn.RIGHT: "turn right", Turn.STRAIGHT: "go straight"}


def navigation_text(junction: JunctionPlan, phrase: str, front_m: float, speed_m_s: float) -> str:
    """The instruction for an intersection from where the ego's front is, or ""."""
    away_m = junction.entry_m - front_m
    if away_m > max(FROM_M, FROM_S * speed_m_s) or front_m > junction.exit_m + 3.7 - DONE_M:
        return ""
    turn = TURNS[junction.turn]
    rounded = max(10 * round(away_m / 10), 10)
    return phrase.format(Turn=turn.capitalize(), turn=turn, d=rounded)
