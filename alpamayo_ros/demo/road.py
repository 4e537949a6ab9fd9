"""A two-lane road: a smooth centre line, and points beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LANE_WIDTH_M = 3.5
EGO_LANE_M = -LANE_WIDTH_M / 2  # lateral place of the right lane's middle; left is positive
ONCOMING_LANE_M = LANE_WIDTH_M / 2
ASPHALT_HALF_M = LANE_WIDTH_M + 0.35

# Of the sampled centre line. At 9 m radius a chord is 0.14 mm off the arc, which positions 0.1 s
# apart turn into 0.03 m/s2.
STEP_M = 0.1


@dataclass(frozen=True)
class RoadPoint:
    """A place on the centre line in map coordinates."""

    x_m: float
    y_m: float
    heading_rad: float
    curvature_1_m: float  # positive bends left

    def ahead(self, forward_m: float, left_m: float = 0.0) -> tuple[float, float]:
        """The map point forward_m along the heading and left_m beside it."""
        cos, sin = math.cos(self.heading_rad), math.sin(self.heading_rad)
        return self.x_m + cos * forward_m - sin * left_m, self.y_m + sin * forward_m + cos * left_m


class Road:
    """A centre line with piecewise linear curvature (straights, clothoids, arcs)."""

    def __init__(
        self,
        knots_m: np.ndarray,
        curvatures_1_m: np.ndarray,
        start_xy_m: tuple[float, float] = (0.0, 0.0),
        start_heading_rad: float = 0.0,
    ) -> None:
        """Integrate curvatures (K,) given at arc lengths (K,), rising from 0."""
        count = int(knots_m[-1] / STEP_M) + 1
        self.s_m = np.arange(count) * STEP_M
        self.curvature_1_m = np.interp(self.s_m, knots_m, curvatures_1_m)
        turned = np.cumsum((self.curvature_1_m[1:] + self.curvature_1_m[:-1]) / 2 * STEP_M)
        self.heading_rad = start_heading_rad + np.concatenate([[0.0], turned])
        middle = (self.heading_rad[1:] + self.heading_rad[:-1]) / 2
        steps = np.column_stack([np.cos(middle), np.sin(middle)]) * STEP_M
        self.xy_m = np.vstack([[start_xy_m], np.asarray(start_xy_m) + np.cumsum(steps, axis=0)])

    @classmethod
    def straight(cls, length_m: float) -> Road:
        """A straight road along x from the origin."""
        return cls(np.array([0.0, length_m]), np.zeros(2))

    @property
    def length_m(self) -> float:
        """Arc length of the centre line."""
        return float(self.s_m[-1])

    def at(self, s_m: float) -> RoadPoint:
        """The centre line at arc length s_m, held at its ends."""
        place = min(max(s_m / STEP_M, 0.0), len(self.s_m) - 1.000001)
        i = int(place)
        part = place - i
        x, y = self.xy_m[i] + part * (self.xy_m[i + 1] - self.xy_m[i])
        heading = self.heading_rad[i] + part * (self.heading_rad[i + 1] - self.heading_rad[i])
        bend = self.curvature_1_m
        return RoadPoint(
            float(x), float(y), float(heading), float(bend[i] + part * (bend[i + 1] - bend[i]))
        )

    def points_m(self, s_m: np.ndarray, lateral_m: np.ndarray | float) -> np.ndarray:
        """Map points (N, 2) beside arc lengths (N,), lateral_m to the left."""
        heading = np.interp(s_m, self.s_m, self.heading_rad)
        x = np.interp(s_m, self.s_m, self.xy_m[:, 0]) - np.sin(heading) * lateral_m
        y = np.interp(s_m, self.s_m, self.xy_m[:, 1]) + np.cos(heading) * lateral_m
        return np.column_stack([x, y])


class RoadPlan:
    """A road in the making: pieces are put one behind the other."""

    def __init__(self, heading_rad: float = 0.0) -> None:
        self.heading_rad = heading_rad  # where the last piece ends
        self._knots_m, self._curvatures_1_m = [0.0], [0.0]

    @property
    def length_m(self) -> float:
        """Arc length of all pieces so far."""
        return self._knots_m[-1]

    def straight(self, length_m: float) -> None:
        """A straight piece."""
        self._add(length_m, 0.0)

    def bend(self, radius_m: float, turn_rad: float, transition_m: float) -> None:
        """Clothoid, arc, clothoid, turning left by turn_rad in all (right if negative).

        Two transitions of length L turn by L / R together; sharp short bends get shorter ones.
        """
        transition_m = min(transition_m, 0.6 * abs(turn_rad) * radius_m)
        curvature = math.copysign(1 / radius_m, turn_rad)
        self._add(transition_m, curvature)
        self._add(abs(turn_rad) * radius_m - transition_m, curvature)
        self._add(transition_m, 0.0)
        self.heading_rad += turn_rad

    def road(self, start_xy_m: tuple[float, float], start_heading_rad: float) -> Road:
        """The road of all pieces, from a place in the map."""
        knots, curvatures = np.array(self._knots_m), np.array(self._curvatures_1_m)
        return Road(knots, curvatures, start_xy_m, start_heading_rad)

    def _add(self, length_m: float, curvature_1_m: float) -> None:
        self._knots_m.append(self._knots_m[-1] + length_m)
        self._curvatures_1_m.append(curvature_1_m)
