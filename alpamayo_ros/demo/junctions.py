"""Intersections of two roads at a right angle, alike for whoever goes straight, left or right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from alpamayo_ros.demo.road import ASPHALT_HALF_M, Road, RoadPlan, RoadPoint

TURN_TRANSITION_M = 5.0
APPROACH_MARGIN_M = 3.5  # the plaza reaches so far beyond its rounded corners
CORNER_STEPS = 7
ARMS_APART_M = 14.0


class Turn(str, Enum):
    """Which way the route goes on."""

    LEFT = "left"
    STRAIGHT = "straight"
    RIGHT = "right"

    @property
    def angle_rad(self) -> float:
        """How far the route turns, left is positive."""
        return {"left": math.pi / 2, "straight": 0.0, "right": -math.pi / 2}[self.value]


@dataclass(frozen=True)
class JunctionPlan:
    """An intersection on the route before the map is known."""

    turn: Turn
    entry_m: float  # arc length of the route where the plaza begins
    exit_m: float
    corner_radius_m: float  # of the asphalt's four corners

    @property
    def reach_m(self) -> float:
        """From the middle of the plaza to each of its four mouths."""
        return reach_m(self.corner_radius_m)

    def holds(self, s_m: float, margin_m: float = 0.0) -> bool:
        """Whether the arc length lies on the plaza, or within a margin of it."""
        return self.entry_m - margin_m < s_m < self.exit_m + margin_m


@dataclass(frozen=True, eq=False)
class Junction:
    """An intersection in the map."""

    plan: JunctionPlan
    middle: RoadPoint  # heading of those who come in
    arms: tuple[Road, ...]  # those the route doesn't take, from the plaza's mouths outwards

    def plaza_m(self, wider_m: float = 0.0) -> np.ndarray:
        """The asphalt's outline (N, 2) with four rounded corners, or one wider_m outside it."""
        return np.vstack(self.corners_m(wider_m))

    def corners_m(self, wider_m: float = 0.0) -> tuple[np.ndarray, ...]:
        """The rounded corners (N, 2) of the outline, from mouth to mouth, counter-clockwise."""
        half, reach = ASPHALT_HALF_M + wider_m, self.plan.reach_m
        radius = self.plan.corner_radius_m - wider_m
        angles = np.linspace(0, math.pi / 2, CORNER_STEPS)
        from_corner = half + radius
        corner = from_corner - radius * np.column_stack([np.cos(angles), np.sin(angles)])
        quarter = np.vstack([[half, reach], corner, [reach, half]])
        middle = np.array([self.middle.x_m, self.middle.y_m])
        angles = self.middle.heading_rad + np.arange(4) * math.pi / 2
        turns = [
            np.array([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]) for a in angles
        ]
        return tuple(quarter[::-1] @ turn + middle for turn in turns)


def reach_m(corner_radius_m: float) -> float:
    """From the middle of a plaza to its mouths."""
    return ASPHALT_HALF_M + corner_radius_m + APPROACH_MARGIN_M


def add_junction(
    plan: RoadPlan, turn: Turn, corner_radius_m: float, left_radius_m: float
) -> JunctionPlan:
    """Lead a route over an intersection.

    A right turn's centre line is concentric with the rounded corner, a left turn's has
    left_radius_m. The turn's tangents are integrated.
    """
    entry_m, reach = plan.length_m, reach_m(corner_radius_m)
    if turn is Turn.STRAIGHT:
        plan.straight(2 * reach)
    else:
        radius_m = corner_radius_m + ASPHALT_HALF_M if turn is Turn.RIGHT else left_radius_m
        alone = RoadPlan()
        alone.bend(radius_m, turn.angle_rad, TURN_TRANSITION_M)
        tangent_m = float(alone.road((0.0, 0.0), 0.0).xy_m[-1, 0])
        plan.straight(reach - tangent_m)
        plan.bend(radius_m, turn.angle_rad, TURN_TRANSITION_M)
        plan.straight(reach - tangent_m)
    return JunctionPlan(turn, entry_m, plan.length_m, corner_radius_m)


def place_junctions(
    plans: list[JunctionPlan], route: Road, rng: np.random.Generator
) -> tuple[Junction, ...]:
    """The intersections in the map, with the arms that the route doesn't take."""
    junctions: list[Junction] = []
    placed: list[Road] = []
    for plan in plans:
        entry = route.at(plan.entry_m)
        middle = RoadPoint(*entry.ahead(plan.reach_m), entry.heading_rad, 0.0)
        others = [turn for turn in Turn if turn is not plan.turn]
        arms = tuple(_free_arm(middle, turn, plan.reach_m, placed, rng) for turn in others)
        placed += arms
        junctions.append(Junction(plan, middle, arms))
    return tuple(junctions)


def _free_arm(
    middle: RoadPoint, turn: Turn, reach: float, placed: list[Road], rng: np.random.Generator
) -> Road:
    """An arm that keeps away from those already placed, shortened at each failure."""
    for length_m in (30.0, 20.0, 10.0, 5.0):
        arm = _arm(middle, turn, reach, length_m, rng)
        points = arm.xy_m[::20]
        gaps = (np.abs(points[:, None] - other.xy_m[None, ::20]).max(axis=2) for other in placed)
        if all(gap_m.min() > ARMS_APART_M for gap_m in gaps):
            break
    return arm


def _arm(
    middle: RoadPoint, turn: Turn, reach: float, length_m: float, rng: np.random.Generator
) -> Road:
    """A side road that goes on like the route: straight, a bend, straight."""
    heading = middle.heading_rad + turn.angle_rad
    mouth = RoadPoint(middle.x_m, middle.y_m, heading, 0.0).ahead(reach)
    plan = RoadPlan()
    plan.straight(float(rng.uniform(1.2, 2.3)) * length_m)
    radius_m = float(rng.uniform(40, 150))
    plan.bend(radius_m, float(rng.choice([-1, 1]) * rng.uniform(15, 40)) / radius_m, 12.0)
    plan.straight(length_m)
    return plan.road(mouth, heading)
