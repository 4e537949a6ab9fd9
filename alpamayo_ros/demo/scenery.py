"""What stands still beside and on the road, as surfaces and solids."""

from __future__ import annotations

import math

import numpy as np

from alpamayo_ros.demo.road import ASPHALT_HALF_M, LANE_WIDTH_M, STEP_M, Road
from alpamayo_ros.demo.scene import Surface
from alpamayo_ros.demo.shapes import Colour, Solid, house, post, tree

ASPHALT: Colour = (98, 99, 104)
REPAIR: Colour = (82, 83, 88)
MARKING: Colour = (240, 240, 234)
KERB: Colour = (178, 176, 170)
VERGE: Colour = (150, 142, 112)
TREE_SHADE: Colour = (72, 100, 50)

EDGE_LINE_M = LANE_WIDTH_M - 0.1  # lateral place of its middle
LINE_HALF_WIDTH_M = 0.07
DASH_M, DASH_PERIOD_M = 3.0, 9.0
STRIP_STEP_M = 2.0
POST_EVERY_M = 25.0
BENDS_WITHIN_M = 200.0  # farther along, the road doesn't come near a body again


class Scenery:
    """Markings, repairs, trees, houses and posts of a road, made once."""

    def __init__(self, road: Road, rng: np.random.Generator) -> None:
        self.road = road
        self._dashes = self._quads(np.arange(0, road.length_m - DASH_M, DASH_PERIOD_M), DASH_M)
        starts = np.cumsum(rng.uniform(6, 30, int(road.length_m / 18)))
        sides = rng.choice([-1.0, 1.0], len(starts)) * rng.uniform(0.9, 2.5, len(starts))
        self._repairs = self._quads(starts, 2.5, sides, 0.7)
        self._repair_starts = starts
        self._solids: list[Solid] = []
        self._places: list[tuple[float, float, float]] = []  # s, x, y
        self._plant(rng)
        self._place_s = np.array([s for s, _, _ in self._places])

    def _quads(
        self,
        starts_m: np.ndarray,
        length_m: float,
        lateral_m: np.ndarray | float = 0.0,
        half_width_m: float = LINE_HALF_WIDTH_M,
    ) -> np.ndarray:
        """Rectangles (N, 4, 2) along the road."""
        ends = [
            self.road.points_m(starts_m + along, lateral_m + across)
            for along, across in (
                (0.0, half_width_m),
                (length_m, half_width_m),
                (length_m, -half_width_m),
                (0.0, -half_width_m),
            )
        ]
        return np.stack(ends, axis=1)

    def _plant(self, rng: np.random.Generator) -> None:
        trees, houses = [tree(rng) for _ in range(12)], [house(rng) for _ in range(8)]
        marker = post()
        for s_m in np.arange(0.0, self.road.length_m - 30, POST_EVERY_M):
            for side in (-1.0, 1.0):
                self._stand(marker, s_m, side * (ASPHALT_HALF_M + 0.9), 0.0)
                if rng.random() < 0.35:
                    body = houses[rng.integers(len(houses))]
                    along_m, lateral_m = rng.uniform(6, 19), rng.uniform(20, 30)
                    self._stand(body, s_m + along_m, side * lateral_m, 0.0)
                for _ in range(rng.integers(0, 4)):
                    body = trees[rng.integers(len(trees))]
                    along_m, lateral_m = rng.uniform(2, 23), rng.uniform(8.5, 16)
                    turn_rad = rng.uniform(0, 2 * math.pi)
                    self._stand(body, s_m + along_m, side * lateral_m, turn_rad)

    def _stand(self, body: Solid, s_m: float, lateral_m: float, turn_rad: float) -> None:
        """Put a body down, unless a bend brings the road close to it or another body is there."""
        ((x, y),) = self.road.points_m(np.array([s_m]), lateral_m)
        near = abs(self.road.s_m - s_m) < BENDS_WITHIN_M
        to_road = np.hypot(*(self.road.xy_m[near][::4] - (x, y)).T).min()
        if to_road < abs(lateral_m) - 0.5:
            return
        reach = np.hypot(*body.corners_m[..., :2].reshape(-1, 2).T).max()
        for other_s, other_x, other_y in reversed(self._places[-24:]):
            close = abs(other_s - s_m) < 40 and math.hypot(x - other_x, y - other_y) < reach + 1
            if close and reach > 0.5:
                return
        heading = self.road.at(s_m).heading_rad
        self._solids.append(body.at(x, y, heading + turn_rad))
        self._places.append((s_m, x, y))

    def surfaces(self, from_m: float, to_m: float) -> tuple[Surface, ...]:
        """The road between two arc lengths, lowest first."""
        road = self.road
        first, last = max(from_m, 0.0), min(to_m, road.length_m)
        s_m = np.arange(math.floor(first / STRIP_STEP_M), math.ceil(last / STRIP_STEP_M) + 1)
        s_m = np.clip(s_m * STRIP_STEP_M, 0, road.length_m - STEP_M)

        def strip(low_m: float, high_m: float) -> np.ndarray:
            return np.vstack([road.points_m(s_m, high_m), road.points_m(s_m, low_m)[::-1]])

        def both(low_m: float, high_m: float) -> tuple[np.ndarray, ...]:
            return strip(low_m, high_m), strip(-high_m, -low_m)

        edge = (EDGE_LINE_M - LINE_HALF_WIDTH_M, EDGE_LINE_M + LINE_HALF_WIDTH_M)
        dashes = self._dashes[int(first / DASH_PERIOD_M) : int(last / DASH_PERIOD_M) + 1]
        repaired = (self._repair_starts > first) & (self._repair_starts < last)
        outer = ASPHALT_HALF_M + 1.6
        return (
            Surface((strip(-outer, outer),), VERGE),
            Surface(both(ASPHALT_HALF_M, ASPHALT_HALF_M + 0.18), KERB),
            Surface((strip(-ASPHALT_HALF_M, ASPHALT_HALF_M),), ASPHALT),
            Surface(tuple(self._repairs[repaired]), REPAIR),
            Surface(both(*edge) + tuple(dashes), MARKING),
        )

    def solids(self, from_m: float, to_m: float) -> list[Solid]:
        """What stands between two arc lengths."""
        near = np.flatnonzero((self._place_s > from_m) & (self._place_s < to_m))
        return [self._solids[i] for i in near]
