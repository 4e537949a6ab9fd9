"""A two-lane road: a smooth centre line, and points beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LANE_WIDTH_M = 3.5
EGO_LANE_M = -LANE_WIDTH_M / 2  # lateral place of the right lane's middle; left is positive
ONCOMING_LANE_M = LANE_WIDTH_M / 2
ASPHALT_HALF_M = LANE_WIDTH_M + 0.35

STEP_M = 0.5  # of the sampled centre line; at 45 m radius a chord is 0.7 mm off the arc
RADIUS_RANGE_M = (45.0, 140.0)
TURN_RANGE_RAD = (math.radians(20), math.radians(70))
STRAIGHT_RANGE_M = (25.0, 90.0)
TRANSITION_M = 30.0
# Below a right angle to the first heading, the road never comes back and cannot cross itself.
MAX_TURNED_RAD = math.radians(80)


@dataclass(frozen=True)
class RoadPoint:
    """A place on the centre line in map coordinates."""

    x_m: float
    y_m: float
    heading_rad: float
    curvature_1_m: float  # positive bends left


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

    @classmethod
    def random(cls, rng: np.random.Generator, length_m: float) -> Road:
        """A winding road of at least length_m, away from the map's origin."""
        start_xy_m = (float(rng.uniform(200, 900)), float(rng.uniform(-900, -200)))
        start_heading_rad = float(rng.uniform(-math.pi, math.pi))
        knots, curvatures = [0.0, float(rng.uniform(60, 90))], [0.0, 0.0]
        turned_rad = 0.0
        while knots[-1] < length_m:
            radius_m = float(rng.uniform(*RADIUS_RANGE_M))
            turn_rad = float(rng.uniform(*TURN_RANGE_RAD)) * float(rng.choice([-1, 1]))
            if abs(turned_rad + turn_rad) > MAX_TURNED_RAD:
                turn_rad = -turn_rad
            turned_rad += turn_rad
            # Two transitions of length L turn by L / R together.
            transition_m = min(TRANSITION_M, 0.6 * abs(turn_rad) * radius_m)
            arc_m = abs(turn_rad) * radius_m - transition_m
            bend = math.copysign(1 / radius_m, turn_rad)
            lengths = (transition_m, arc_m, transition_m, float(rng.uniform(*STRAIGHT_RANGE_M)))
            knots.extend(knots[-1] + np.cumsum(lengths))
            curvatures.extend([bend, bend, 0.0, 0.0])
        return cls(np.array(knots), np.array(curvatures), start_xy_m, start_heading_rad)

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

    def locate(self, x_m: float, y_m: float, near_s_m: float) -> tuple[float, float]:
        """Arc length and lateral place of a map point, by Newton's method from near_s_m."""
        s_m = near_s_m
        lateral_m = 0.0
        for _ in range(3):
            point = self.at(s_m)
            cos, sin = math.cos(point.heading_rad), math.sin(point.heading_rad)
            dx, dy = x_m - point.x_m, y_m - point.y_m
            lateral_m = cos * dy - sin * dx
            s_m += (cos * dx + sin * dy) / max(1 - point.curvature_1_m * lateral_m, 0.2)
        return s_m, lateral_m
