"""Traffic lights: when they are red, and what they look like."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from alpamayo_ros.demo.road import EGO_LANE_M
from alpamayo_ros.demo.shapes import Face, Solid, cuboid, solid

RED_AMBER_S = 1.5  # before green: tells those who wait that they will soon go
SEEN_FROM_M = 62.0  # the ego reacts to what is nearer
MID_BLOCK_HEAD_M = 18.0  # from the stop line: nearer, the tele camera of who waits looks below it
POST_HEAD_M = 3.0
POST_LATERAL_M = -4.7


class Phase(Enum):
    """What lamps are lit."""

    RED = "red"
    RED_AMBER = "red_amber"
    GREEN = "green"


@dataclass(frozen=True)
class Signal:
    """A traffic light on the route, in front of a stop line."""

    line_m: float  # arc length of the stop line
    gantry_m: float  # the second head hangs so far behind the line, straight on
    red_for_s: float  # after the ego has come near; 0: green all the time
    green_s: float = math.inf  # when it turns green; inf until the ego has come near

    def phase(self, t_s: float) -> Phase:
        """What is lit at t_s."""
        if self.red_for_s == 0 or t_s >= self.green_s:
            return Phase.GREEN
        return Phase.RED if t_s < self.green_s - RED_AMBER_S else Phase.RED_AMBER

    def seen(self, t_s: float, front_m: float) -> Signal:
        """The light, its time fixed once the ego's front has come near."""
        near = math.isinf(self.green_s) and self.line_m - front_m < SEEN_FROM_M
        return replace(self, green_s=t_s + self.red_for_s) if near else self


def _head(phase: Phase, lateral_m: float, low_m: float) -> list[Face]:
    """A dark box with three big lamps towards those who come; large, as images are small."""
    box = cuboid(0.0, 0.3, 1.0, low_m, low_m + 2.4, (22, 23, 25))
    faces = [Face(face.corners_m + (0.0, lateral_m, 0.0), face.colour) for face in box.faces()]
    rear = Face(box.rear.corners_m + (-0.01, lateral_m, 0.0), box.rear.colour)
    lamps = (
        ((255, 26, 20), phase is not Phase.GREEN, 0.69),
        ((255, 176, 20), phase is Phase.RED_AMBER, 0.375),
        ((30, 255, 120), phase is Phase.GREEN, 0.06),
    )
    for (red, green, blue), lit, low in lamps:
        dark = (36 + red // 24, 36 + green // 24, 38 + blue // 24)
        faces.append(rear.patch(0.14, 0.86, low, low + 0.25, (red, green, blue) if lit else dark))
        faces[-1] = replace(faces[-1], glows=lit)
    return faces


def _pole(lateral_m: float, height_m: float) -> list[Face]:
    pole = cuboid(0.02, 0.2, 0.18, 0.0, height_m, (120, 124, 128))
    return [Face(face.corners_m + (0.0, lateral_m, 0.0), face.colour) for face in pole.faces()]


def _post(phase: Phase) -> Solid:
    return solid(_pole(POST_LATERAL_M, 2.5) + _head(phase, POST_LATERAL_M, 2.3))


def _gantry(phase: Phase) -> Solid:
    outer_m = POST_LATERAL_M - 0.3
    arm = cuboid(0.05, 0.2, EGO_LANE_M - outer_m, 5.0, 5.2, (120, 124, 128))
    across = (0.0, (EGO_LANE_M + outer_m) / 2, 0.0)
    beam = [Face(face.corners_m + across, face.colour) for face in arm.faces()]
    return solid(_pole(outer_m, 5.2) + beam + _head(phase, EGO_LANE_M, 2.75))


# Both stand beside or over the right lane; their origin is on the road's middle.
POSTS = {phase: _post(phase) for phase in Phase}
GANTRIES = {phase: _gantry(phase) for phase in Phase}
