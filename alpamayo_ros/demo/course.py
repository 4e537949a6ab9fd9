"""What a drive leads past: the road, and where on it something happens, all from the seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from alpamayo_ros.demo.junctions import Junction, JunctionPlan, Turn, add_junction, place_junctions
from alpamayo_ros.demo.leaders import PULL_M, Leader
from alpamayo_ros.demo.pedestrians import CLOTHES, ZEBRA_HALF_M, Walker
from alpamayo_ros.demo.road import Road, RoadPlan
from alpamayo_ros.demo.signals import MID_BLOCK_HEAD_M, Signal

RADIUS_RANGE_M = (25.0, 240.0)
LONGEST_BEND_M = 110.0
MAX_BEND_RAD = math.radians(95)
TRANSITION_M = 22.0
# The heading never leaves a right angle to either side of the way east, and intersections turn it
# alternately to the other side: so the route never comes back and cannot cross itself.
MAX_HEADING_RAD = math.radians(78)
TURNS_FROM_RAD = math.radians(14)
MODELS = ("red", "blue", "white", "grey", "van")


class Kind(Enum):
    """A piece of the route."""

    BEND = "bend"
    TURN = "turn"
    STRAIGHT_ON = "straight_on"
    WALKER = "walker"
    EMPTY_ZEBRA = "empty_zebra"
    RED_LIGHT = "red_light"
    GREEN_LIGHT = "green_light"
    STANDING = "standing"
    LEADER = "leader"


# A drive deals this deck over and over, shuffled anew each time.
DECK = (
    *[Kind.BEND] * 12,
    *[Kind.TURN] * 8,
    *[Kind.STRAIGHT_ON] * 2,
    *[Kind.WALKER] * 5,
    Kind.EMPTY_ZEBRA,
    *[Kind.RED_LIGHT] * 2,
    Kind.GREEN_LIGHT,
    *[Kind.STANDING] * 3,
    *[Kind.LEADER] * 2,
)


@dataclass(frozen=True, eq=False)
class Course:
    """Everything about a drive that is fixed before anybody moves."""

    road: Road
    junctions: tuple[Junction, ...]
    zebras_m: tuple[float, ...]  # arc lengths of their middles
    walkers: tuple[Walker, ...]
    signals: tuple[Signal, ...]
    leaders: tuple[Leader, ...]
    temper_m_s: float  # the ego's speed on a free straight road


def random_course(rng: np.random.Generator, duration_s: float, view_m: float) -> Course:
    """A course that the ego cannot leave within duration_s, and view_m more."""
    temper_m_s = float(rng.uniform(7.5, 14.5))
    course = _CoursePlan(rng, temper_m_s)
    course.road.straight(float(rng.uniform(30, 60)))
    cards: list[Kind] = []
    while course.road.length_m < temper_m_s * duration_s + view_m:
        if not cards:
            cards = [DECK[i] for i in rng.permutation(len(DECK))]
        course.add(cards.pop())
    start_xy_m = (float(rng.uniform(200, 900)), float(rng.uniform(-900, -200)))
    turned_rad = float(rng.uniform(-math.pi, math.pi))
    road = course.road.road(start_xy_m, course.first_heading_rad + turned_rad)
    return Course(
        road,
        place_junctions(course.junctions, road, rng),
        tuple(course.zebras_m),
        tuple(course.walkers),
        tuple(course.signals),
        tuple(course.leaders),
        temper_m_s,
    )


@dataclass
class _CoursePlan:
    """A course in the making; headings are relative to the way east."""

    rng: np.random.Generator
    temper_m_s: float
    first_heading_rad: float = 0.0
    road: RoadPlan = field(init=False)
    junctions: list[JunctionPlan] = field(default_factory=list)
    zebras_m: list[float] = field(default_factory=list)
    walkers: list[Walker] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first_heading_rad = self._sign() * self._uniform(0.5, 1.1)
        self.road = RoadPlan(self.first_heading_rad)

    def add(self, kind: Kind) -> None:
        """Put a piece at the end; every piece ends with some metres straight."""
        if kind is Kind.BEND:
            self._bend(RADIUS_RANGE_M)
        elif kind is Kind.TURN:
            self._junction(turns=True)
        elif kind is Kind.STRAIGHT_ON:
            self._junction(turns=False)
        elif kind in (Kind.WALKER, Kind.EMPTY_ZEBRA):
            self._zebra(kind is Kind.WALKER)
        elif kind in (Kind.RED_LIGHT, Kind.GREEN_LIGHT):
            self._light(kind is Kind.RED_LIGHT)
        else:
            self._leader(kind is Kind.STANDING)

    def _uniform(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def _sign(self) -> int:
        return int(self.rng.choice([-1, 1]))

    def _bend(self, radii_m: tuple[float, float], longest_m: float = LONGEST_BEND_M) -> None:
        radius_m = math.exp(self._uniform(math.log(radii_m[0]), math.log(radii_m[1])))
        most_rad = min(longest_m / radius_m, MAX_BEND_RAD)
        turn_rad = self._sign() * self._uniform(0.5, 1.0) * most_rad
        if abs(self.road.heading_rad + turn_rad) > MAX_HEADING_RAD:
            turn_rad = -turn_rad
        room_rad = MAX_HEADING_RAD - math.copysign(1, turn_rad) * self.road.heading_rad
        turn_rad = math.copysign(min(abs(turn_rad), room_rad), turn_rad)
        self.road.bend(radius_m, turn_rad, TRANSITION_M)
        self.road.straight(self._uniform(4, 18))

    def _junction(self, turns: bool) -> None:
        if turns and abs(self.road.heading_rad) < TURNS_FROM_RAD:
            away_rad = math.copysign(math.radians(30), self.road.heading_rad)
            self.road.bend(self._uniform(40, 90), away_rad, TRANSITION_M)
        self.road.straight(self._uniform(48, 64))
        turn = Turn.STRAIGHT
        if turns:
            turn = Turn.LEFT if self.road.heading_rad < 0 else Turn.RIGHT
        corner_m, left_m = self._uniform(7.0, 10.5), self._uniform(8.5, 12.0)
        junction = add_junction(self.road, turn, corner_m, left_m)
        self.junctions.append(junction)
        lot = self.rng.random()
        if lot < 0.55:
            line_m = junction.entry_m - 1.0
            self._signal(line_m, 2 * junction.reach_m + 2.5, red=lot < 0.2)
        self.road.straight(self._uniform(8, 18))

    def _zebra(self, walked: bool) -> None:
        self.road.straight(self._uniform(45, 62))
        zebra_m = self.road.length_m
        self.zebras_m.append(zebra_m)
        if walked:
            late = self.rng.random() < 0.5
            within_m = self._uniform(6, 16) if late else self._uniform(34, 55)
            pace_m_s, clothes = self._uniform(1.1, 1.6), int(self.rng.integers(len(CLOTHES)))
            self.walkers.append(Walker(zebra_m, self._sign(), pace_m_s, within_m, clothes))
        self.road.straight(self._uniform(6, 14))

    def _light(self, red: bool) -> None:
        """A light in the middle of a block, in front of a zebra."""
        self.road.straight(self._uniform(60, 80))
        zebra_m = self.road.length_m
        self.zebras_m.append(zebra_m)
        self._signal(zebra_m - ZEBRA_HALF_M - 1.5, MID_BLOCK_HEAD_M, red)
        self.road.straight(self._uniform(22, 35))

    def _signal(self, line_m: float, gantry_m: float, red: bool) -> None:
        self.signals.append(Signal(line_m, gantry_m, self._uniform(10, 17) if red else 0.0))

    def _leader(self, standing: bool) -> None:
        """Somebody stands in the lane, or pulls out of a bay; leads for a while; pulls over."""
        self.road.straight(self._uniform(60, 80))
        start_m = self.road.length_m
        self.road.straight(self._uniform(10, 20))
        self._bend((45.0, 300.0), longest_m=45.0)
        self.road.straight(PULL_M + 6)
        waits = standing and self.rng.random() < 0.7
        model = str(self.rng.choice(MODELS))
        near_m = (12, 30) if standing else (36, 52)
        within_m = 0.0 if waits else self._uniform(*near_m)
        self.leaders.append(
            Leader(
                model=model,
                start_m=start_m,
                end_m=self.road.length_m,
                in_lane=standing,
                starts_within_m=within_m,
                waits_s=self._uniform(2.0, 6.0) if waits else math.inf,
                cruise_m_s=min(8.0, self.temper_m_s * self._uniform(0.5, 0.75)),
                length_m=5.6 if model == "van" else 4.5,
            )
        )
        self.road.straight(self._uniform(15, 25))
