"""What stands still beside and on the roads, as surfaces and solids."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.demo.course import Course
from alpamayo_ros.demo.junctions import Junction
from alpamayo_ros.demo.leaders import BAY_M
from alpamayo_ros.demo.pedestrians import ZEBRA_HALF_M
from alpamayo_ros.demo.road import ASPHALT_HALF_M, LANE_WIDTH_M, Road
from alpamayo_ros.demo.scene import Surface
from alpamayo_ros.demo.shapes import Colour, Solid, house, post, tree

MARKING: Colour = (240, 240, 234)
KERB: Colour = (178, 176, 170)
VERGE: Colour = (150, 142, 112)

EDGE_LINE_M = LANE_WIDTH_M - 0.1  # lateral place of its middle
LINE_HALF_WIDTH_M = 0.07
DASH_M, DASH_PERIOD_M = 3.0, 9.0
KERB_WIDTH_M, VERGE_WIDTH_M = 0.18, 1.6
STRIP_STEP_M = 2.0
POST_EVERY_M = 25.0
BAY_HALF_M = 16.0  # along the road
ARMS_FROM_M, ARMS_TO_M = 110.0, 230.0  # behind and ahead: junctions whose arms are drawn
SOLIDS_WITHIN_M = 190.0


@dataclass(frozen=True, eq=False)
class _Stretch:
    """A road without an intersection on it, its markings made once."""

    road: Road
    from_m: float
    to_m: float
    lines: tuple[tuple[float, np.ndarray], ...]  # dashes: arc length and corners (4, 2)


class Scenery:
    """Roads, trees, houses and posts of a course, made once."""

    def __init__(self, course: Course, rng: np.random.Generator) -> None:
        self.course = course
        tone = int(rng.integers(-22, 18))
        self.asphalt: Colour = (98 + tone, 99 + tone, 104 + tone)
        self.repair: Colour = (82 + tone, 83 + tone, 88 + tone)
        self._route = _route_stretches(course)
        self._arms = {
            junction: [_stretch(arm, 0.0, arm.length_m) for arm in junction.arms]
            for junction in course.junctions
        }
        starts = np.cumsum(rng.uniform(8, 40, int(course.road.length_m / 24)))
        sides = rng.choice([-1.0, 1.0], len(starts)) * rng.uniform(0.9, 2.5, len(starts))
        # None on a plaza, where they would give away which way the route goes.
        beside = [all(not j.plan.holds(s, 3.0) for j in course.junctions) for s in starts.tolist()]
        self._repair_starts = starts[beside]
        self._repairs = _quads(course.road, starts[beside], 2.5, sides[beside], 0.7)
        plants = _Planter(course, rng)
        for stretch in self._route + [arm for arms in self._arms.values() for arm in arms]:
            plants.plant(stretch.road, stretch.from_m, stretch.to_m)
        self._solids = plants.solids
        self._places_m = np.array(plants.places_m).reshape(-1, 2)

    def surfaces(self, from_m: float, to_m: float) -> tuple[Surface, ...]:
        """The roads that are seen from the route between two arc lengths, lowest first."""
        stretches = [s for s in self._route if s.from_m < to_m and s.to_m > from_m]
        near = [(max(s.from_m, from_m), min(s.to_m, to_m), s) for s in stretches]
        plazas = self.junctions(from_m - ARMS_FROM_M, to_m)
        for junction in plazas:
            if junction.plan.entry_m < from_m + ARMS_TO_M:
                near += [(s.from_m, s.to_m, s) for s in self._arms[junction]]
        return (*self._flat(near, plazas), self._markings(near, plazas, from_m, to_m))

    def _flat(
        self, near: list[tuple[float, float, _Stretch]], plazas: list[Junction]
    ) -> list[Surface]:
        """Verge, kerb and asphalt. They overlap, and overlaps in one Surface would be holes."""
        layers = []
        for wider_m, colour in (
            (VERGE_WIDTH_M, VERGE),
            (KERB_WIDTH_M, KERB),
            (0.0, self.asphalt),
        ):
            half_m = ASPHALT_HALF_M + wider_m
            for leader in self.course.leaders:
                for middle_m in [leader.end_m] + [leader.start_m] * (not leader.in_lane):
                    low, high = middle_m - BAY_HALF_M - wider_m, middle_m + BAY_HALF_M + wider_m
                    if any(a < high and b > low for a, b, s in near if s.road is self.course.road):
                        layers.append(Surface((self._bay(low, high, wider_m),), colour))
            for from_m, to_m, stretch in near:
                strip = _strip(stretch.road, from_m - 0.1, to_m + 0.1, -half_m, half_m)
                layers.append(Surface((strip,), colour))
            layers += [Surface((junction.plaza_m(wider_m),), colour) for junction in plazas]
        return layers

    def _bay(self, low_m: float, high_m: float, wider_m: float) -> np.ndarray:
        """A place to stand beside the right lane, its ends slanted."""
        outer_m = BAY_M - 1.4 - wider_m
        s_m = np.array([low_m, low_m + 6, high_m - 6, high_m])
        lateral_m = np.array([-ASPHALT_HALF_M, outer_m, outer_m, -ASPHALT_HALF_M])
        along = np.linspace(high_m, low_m, 9)
        inner = self.course.road.points_m(along, 1.0 - ASPHALT_HALF_M)
        return np.vstack([self.course.road.points_m(s_m, lateral_m), inner])

    def _markings(
        self,
        near: list[tuple[float, float, _Stretch]],
        plazas: list[Junction],
        from_m: float,
        to_m: float,
    ) -> Surface:
        outlines: list[np.ndarray] = []
        for first_m, last_m, stretch in near:
            for low in (EDGE_LINE_M - LINE_HALF_WIDTH_M, -EDGE_LINE_M - LINE_HALF_WIDTH_M):
                high = low + 2 * LINE_HALF_WIDTH_M
                outlines.append(_strip(stretch.road, first_m, last_m, low, high))
            outlines += [q for s, q in stretch.lines if first_m - DASH_M < s < last_m]
        for zebra_m in self.course.zebras_m:
            if from_m < zebra_m < to_m:
                outlines += _zebra(self.course.road, zebra_m)
        for signal in self.course.signals:
            if from_m < signal.line_m < to_m:
                across = (0.15, EDGE_LINE_M - LINE_HALF_WIDTH_M - 0.05)
                places = signal.line_m, signal.line_m + 0.5
                outlines.append(_strip(self.course.road, *places, -across[1], -across[0]))
        return Surface(tuple(outlines), MARKING)

    def stretches(self, from_m: float, to_m: float) -> list[tuple[_Stretch, np.ndarray]]:
        """Roads in view between intersections, the route first, and arc lengths (N,) on them."""
        found = []
        for stretch in self._route:
            first_m, last_m = max(stretch.from_m, from_m), min(stretch.to_m, to_m)
            if first_m < last_m:
                found.append((stretch, np.arange(first_m, last_m, STRIP_STEP_M)))
        for junction in self.junctions(from_m, to_m):
            found += [
                (arm, np.arange(arm.from_m, arm.to_m, STRIP_STEP_M)) for arm in self._arms[junction]
            ]
        return found

    def junctions(self, from_m: float, to_m: float) -> list[Junction]:
        """The intersections in view from the route between two arc lengths."""
        return [
            junction
            for junction in self.course.junctions
            if from_m < junction.plan.exit_m and junction.plan.entry_m < to_m
        ]

    def repairs(self, from_m: float, to_m: float) -> Surface:
        """Darker patches of asphalt."""
        kept = (self._repair_starts > from_m) & (self._repair_starts < to_m)
        return Surface(tuple(self._repairs[kept]), self.repair)

    def solids(self, xy_m: tuple[float, float], yaw_rad: float) -> list[Solid]:
        """What stands near and not far behind a place in the map."""
        away = self._places_m - xy_m
        forward = away @ (math.cos(yaw_rad), math.sin(yaw_rad))
        near = np.flatnonzero((forward > -25) & (np.hypot(*away.T) < SOLIDS_WITHIN_M))
        return [self._solids[i] for i in near]


class _Planter:
    """Puts trees, houses and posts beside roads where they stand on no other road."""

    def __init__(self, course: Course, rng: np.random.Generator) -> None:
        self.rng = rng
        self.trees, self.houses = [tree(rng) for _ in range(12)], [house(rng) for _ in range(8)]
        self.post = post()
        # Slow drives lead through villages, fast ones through the country.
        village = np.clip((14.5 - course.temper_m_s) / 6, 0, 1)
        self.house_share = 0.08 + 0.5 * float(village)
        self.trees_a_side = float(rng.uniform(0.6, 3.4))
        roads = [course.road] + [arm for junction in course.junctions for arm in junction.arms]
        self.road_points_m = np.concatenate([road.xy_m[::20] for road in roads])
        self.bays_m = [
            middle_m for leader in course.leaders for middle_m in (leader.start_m, leader.end_m)
        ]
        self.route = course.road
        self.solids: list[Solid] = []
        self.places_m: list[tuple[float, float]] = []

    def plant(self, road: Road, from_m: float, to_m: float) -> None:
        """Both sides of a stretch."""
        for s_m in np.arange(from_m + 3, to_m - 3, POST_EVERY_M).tolist():
            for side in (-1, 1):
                if not (road is self.route and side < 0 and self._at_bay(s_m)):
                    self._stand(self.post, road, s_m, side * (ASPHALT_HALF_M + 0.9), 0.3)
                if self.rng.random() < self.house_share:
                    body = self.houses[self.rng.integers(len(self.houses))]
                    lateral_m = side * self.rng.uniform(17, 27)
                    self._stand(body, road, s_m + self.rng.uniform(6, 19), lateral_m, 8.0)
                for _ in range(self.rng.poisson(self.trees_a_side)):
                    body = self.trees[self.rng.integers(len(self.trees))]
                    lateral_m = side * self.rng.uniform(9.5, 17)
                    self._stand(body, road, s_m + self.rng.uniform(0, 25), lateral_m, 2.5)

    def _at_bay(self, s_m: float) -> bool:
        return any(abs(s_m - bay_m) < BAY_HALF_M + 2 for bay_m in self.bays_m)

    def _stand(self, body: Solid, road: Road, s_m: float, lateral_m: float, reach_m: float) -> None:
        """Put a body down unless it would reach a road, or another large body."""
        point = road.at(s_m)
        x, y = point.ahead(0.0, lateral_m)
        to_road = np.hypot(*(self.road_points_m - (x, y)).T).min()
        if to_road < min(abs(lateral_m), ASPHALT_HALF_M + 2.5 + reach_m) - 0.4:
            return
        if reach_m > 1 and self.places_m:
            recent = np.array(self.places_m[-60:])
            if np.hypot(*(recent - (x, y)).T).min() < reach_m + 2.5:
                return
        self.solids.append(body.at(x, y, point.heading_rad))
        self.places_m.append((x, y))


def _route_stretches(course: Course) -> list[_Stretch]:
    ends = [0.0]
    for junction in course.junctions:
        ends += [junction.plan.entry_m, junction.plan.exit_m]
    ends.append(course.road.length_m)
    pairs = zip(ends[::2], ends[1::2])
    return [_stretch(course.road, a, b, course.zebras_m) for a, b in pairs]


def _stretch(road: Road, from_m: float, to_m: float, gaps_m: tuple[float, ...] = ()) -> _Stretch:
    starts = np.arange(from_m + 1, to_m - DASH_M - 1, DASH_PERIOD_M)
    quads = _quads(road, starts, DASH_M, 0.0, LINE_HALF_WIDTH_M)
    free = [
        (float(s), quad)
        for s, quad in zip(starts, quads)
        if not any(abs(s + DASH_M / 2 - gap) < ZEBRA_HALF_M + DASH_M / 2 + 1 for gap in gaps_m)
    ]
    return _Stretch(road, from_m, to_m, tuple(free))


def _strip(road: Road, from_m: float, to_m: float, low_m: float, high_m: float) -> np.ndarray:
    """The outline (N, 2) of a road's part between two lateral places."""
    s_m = np.linspace(from_m, to_m, max(2, math.ceil((to_m - from_m) / STRIP_STEP_M)))
    return np.vstack([road.points_m(s_m, high_m), road.points_m(s_m, low_m)[::-1]])


def _zebra(road: Road, middle_m: float) -> list[np.ndarray]:
    bars = np.arange(-3.0, 3.1, 1.0)
    ends = (middle_m - ZEBRA_HALF_M, middle_m + ZEBRA_HALF_M)
    return [_strip(road, *ends, bar - 0.28, bar + 0.28) for bar in bars]


def _quads(
    road: Road,
    starts_m: np.ndarray,
    length_m: float,
    lateral_m: np.ndarray | float,
    half_width_m: float,
) -> np.ndarray:
    """Rectangles (N, 4, 2) along a road."""
    ends = [
        road.points_m(starts_m + along, lateral_m + across)
        for along, across in (
            (0.0, half_width_m),
            (length_m, half_width_m),
            (length_m, -half_width_m),
            (0.0, -half_width_m),
        )
    ]
    return np.stack(ends, axis=1)
