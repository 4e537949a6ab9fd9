"""People who cross the road on a zebra."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from alpamayo_ros.demo.road import EGO_LANE_M, LANE_WIDTH_M
from alpamayo_ros.demo.shapes import Colour, Rectangle, Solid, block, cuboid, solid

ZEBRA_HALF_M = 2.0  # along the road
STOP_BEFORE_M = ZEBRA_HALF_M + 1.0
KERB_M = 4.6  # lateral place of somebody who waits
GONE_M = 7.5
CLEAR_OF_LANE_M = 0.2  # beside the ego's lane: then the ego may go
CLOTHES: tuple[Colour, ...] = ((214, 60, 48), (48, 84, 190), (238, 206, 60), (240, 240, 240))


@dataclass(frozen=True)
class Walker:
    """Somebody at the kerb of a zebra, who starts when the ego is near."""

    zebra_m: float  # arc length of the zebra's middle
    side: int  # 1 comes from the left, -1 from the right
    pace_m_s: float
    starts_within_m: float  # of the ego's front
    clothes: int
    start_s: float = math.inf

    def lateral_m(self, t_s: float) -> float:
        """Where the walker is across the road, left of its middle."""
        walked_m = max(0.0, t_s - self.start_s) * self.pace_m_s if t_s > self.start_s else 0.0
        return self.side * (KERB_M - min(walked_m, KERB_M + GONE_M))

    @property
    def clear_s(self) -> float:
        """When the walker has left the ego's lane, with a margin."""
        edge_m = EGO_LANE_M - self.side * (LANE_WIDTH_M / 2 + CLEAR_OF_LANE_M)
        return self.start_s + abs(self.side * KERB_M - edge_m) / self.pace_m_s

    @property
    def gone_s(self) -> float:
        """When the walker has left the road."""
        return self.start_s + 2 * KERB_M / self.pace_m_s

    def seen(self, t_s: float, front_m: float) -> Walker:
        """The walker, on the way once the ego's front has come near."""
        near = math.isinf(self.start_s) and self.zebra_m - front_m < self.starts_within_m
        return replace(self, start_s=t_s) if near else self


def person(clothes: Colour, stride_m: float) -> Solid:
    """Somebody 1.8 m tall who faces x, legs stride_m apart; origin between the feet."""
    faces = []
    for side, forward in ((1, stride_m / 2), (-1, -stride_m / 2)):
        foot = Rectangle(forward - 0.09, forward + 0.13, 0.17, 0.0)
        leg = block(foot, Rectangle(-0.09, 0.11, 0.17, 0.9), (40, 42, 58))
        faces += [f.moved(0.0, side * 0.12, 0.0) for f in leg.faces()]
    waist, chest = Rectangle(-0.15, 0.15, 0.46, 0.82), Rectangle(-0.17, 0.19, 0.62, 1.5)
    faces += block(waist, chest, clothes).faces()
    faces += cuboid(-0.13, 0.15, 0.26, 1.5, 1.82, (206, 160, 130)).faces()
    faces += cuboid(-0.15, 0.12, 0.28, 1.72, 1.86, (58, 42, 32)).faces()
    return solid(faces)


STRIDES_M = (-0.6, 0.0, 0.6)
PEOPLE = {(c, s): person(c, s) for c in CLOTHES for s in STRIDES_M}
