"""Vehicles ahead in the ego's lane: they stand, drive off or pull out, lead, and pull over."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from alpamayo_ros.demo.road import EGO_LANE_M

BAY_M = -5.8  # lateral middle of a bay beside the lane
PULL_M = 18.0  # along the road, from a bay to the lane and back
IN_LANE_M = -4.3  # beyond it, nothing of the vehicle is in the ego's way
ACCELERATION_M_S2 = 1.2
BRAKING_M_S2 = 1.0
WAVE_S = 9.0  # period of the leader's slow change of speed


@dataclass(frozen=True)
class Leader:
    """How a vehicle ahead behaves. It stands in the lane or in a bay until it starts."""

    model: str
    start_m: float  # arc length of its middle
    end_m: float  # where it stands in a bay for good
    in_lane: bool
    starts_within_m: float  # of the gap to the ego
    waits_s: float  # after the ego stands behind it; inf where only the gap matters
    cruise_m_s: float
    length_m: float

    def lateral_m(self, s_m: float) -> float:
        """Its place across the road while its middle is at s_m."""
        out = 1.0 if self.in_lane else _smooth((s_m - self.start_m) / PULL_M)
        over = _smooth((self.end_m - s_m) / PULL_M)
        return BAY_M + (EGO_LANE_M - BAY_M) * min(out, over)


@dataclass(frozen=True)
class Leading:
    """Where a leader is and how fast."""

    s_m: float
    speed_m_s: float = 0.0
    acceleration_m_s2: float = 0.0
    start_s: float = math.inf
    ego_stands_s: float = math.inf  # since when the ego stands behind it

    def ready(self, leader: Leader, t_s: float, gap_m: float, ego_m_s: float) -> Leading:
        """The same, started once the ego has come near or has waited."""
        if not math.isinf(self.start_s):
            return self
        stands_s = self.ego_stands_s
        if math.isinf(stands_s) and ego_m_s < 0.2 and gap_m < 10:
            stands_s = t_s
        if gap_m < leader.starts_within_m or t_s - stands_s > leader.waits_s:
            return replace(self, start_s=t_s)
        return self if stands_s == self.ego_stands_s else replace(self, ego_stands_s=stands_s)

    def moved(self, leader: Leader, t_s: float, bend_m_s: float, dt_s: float) -> Leading:
        """The leader dt_s later; bend_m_s is what the road allows here."""
        wave = 1 + 0.08 * math.sin(2 * math.pi * (t_s - self.start_s) / WAVE_S)
        left_m = max(leader.end_m - self.s_m, 0.0)
        target = min(leader.cruise_m_s * wave, bend_m_s, math.sqrt(2 * BRAKING_M_S2 * left_m))
        wanted = min(max((target - self.speed_m_s) / 0.8, -2.0), ACCELERATION_M_S2)
        acceleration = self.acceleration_m_s2 + (wanted - self.acceleration_m_s2) * dt_s / 0.35
        speed = max(self.speed_m_s + acceleration * dt_s, 0.0)
        return replace(
            self, s_m=self.s_m + speed * dt_s, speed_m_s=speed, acceleration_m_s2=acceleration
        )


def _smooth(part: float) -> float:
    """From 0 to 1 with no slope at the ends."""
    part = min(max(part, 0.0), 1.0)
    return part * part * (3 - 2 * part)
