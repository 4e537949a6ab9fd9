"""The ego's drive along a course: integrated once, at 100 Hz, from what it has seen so far."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.demo.course import Course
from alpamayo_ros.demo.leaders import IN_LANE_M, Leader, Leading
from alpamayo_ros.demo.pedestrians import STOP_BEFORE_M, Walker
from alpamayo_ros.demo.road import EGO_LANE_M, STEP_M
from alpamayo_ros.demo.signals import SEEN_FROM_M, Phase, Signal
from alpamayo_ros.demo.vehicle import (
    SPEED_PREVIEW_S,
    allowed_speed_m_s,
    following_m_s2,
    jerk_m_s3,
    lane_curvature_1_m,
)

EGO_LENGTH_M = 4.7
EGO_WIDTH_M = 1.9
EGO_REAR_OVERHANG_M = 1.0  # from the rear axle to the rear bumper
FRONT_M = EGO_LENGTH_M - EGO_REAR_OVERHANG_M
START_M = 12.0
FIRST_PART = 0.85  # of the temper's speed at the start
STEP_S = 0.01
RESTART_S = 0.5  # from what lets the ego go to its starting
LINE_GAP_M = 1.2  # between a stop line and the front of who waits there
CREEP_M_S = 0.35  # slower than this behind something that holds it, the ego stops for good
FAR_M_S2 = 99.0  # nothing in the way

FREE, BEND = -1, -2  # beside the indices of hindrances


@dataclass(frozen=True)
class Hindrance:
    """Something that can hold the ego, in the order of the course."""

    thing: Signal | Walker | Leader
    from_m: float  # where it is or begins
    to_m: float  # behind it, the ego is free


@dataclass(frozen=True, eq=False)
class Run:
    """What happened; all arrays have a row for each 0.01 s."""

    s_m: np.ndarray  # (N,) the ego's rear axle along the road's middle
    speed_m_s: np.ndarray
    acceleration_m_s2: np.ndarray
    binding: np.ndarray  # int: FREE, BEND, or index into hindrances of what limits the ego most
    held_m_s2: np.ndarray  # how much less than on a free straight road is wanted
    gap_m: np.ndarray  # from the ego's front to what binds
    hindrances: tuple[Hindrance, ...]  # with the times that were fixed on the way
    leading: tuple[np.ndarray, ...]  # a leader: (N, 3) arc length, speed, acceleration
    leader_starts_s: tuple[float, ...]


def simulate(course: Course, duration_s: float) -> Run:
    """Drive from START_M at the temper's speed, or what the road allows there."""
    return _Driver(course, duration_s).run()


class _Driver:
    def __init__(self, course: Course, duration_s: float) -> None:
        self.road, self.temper_m_s = course.road, course.temper_m_s
        curvature = lane_curvature_1_m(course.road, EGO_LANE_M)
        self.allowed_m_s: list[float] = allowed_speed_m_s(curvature).tolist()
        # The rear axle covers 1 - curvature * lane of its way along the road's middle.
        self.stretch: list[float] = (1 - course.road.curvature_1_m * EGO_LANE_M).tolist()
        self.hindrances = _in_order(course)
        self.leaders = list(course.leaders)
        self.leading = [Leading(leader.start_m) for leader in self.leaders]
        self.steps = math.ceil(duration_s / STEP_S) + 1
        self.first = 0  # hindrances before this one lie behind the ego

    def run(self) -> Run:
        """Step through the drive."""
        s_m, acceleration = START_M, 0.0
        speed = min(FIRST_PART * self.temper_m_s, self._allowed(s_m))
        rows, leading = [], [np.empty((self.steps, 3)) for _ in self.leaders]
        for step in range(self.steps):
            t_s = step * STEP_S
            wanted, binding, held, gap_m = self._wanted(t_s, s_m, speed)
            rows.append((s_m, speed, acceleration, binding, held, gap_m))
            self._move_leaders(step, t_s, leading)
            following = acceleration + jerk_m_s3(acceleration, wanted) * STEP_S
            faster = speed + (acceleration + following) / 2 * STEP_S
            if faster <= 0 or (speed == 0 and wanted <= 0):
                faster, following = 0.0, 0.0
            s_m += (speed + faster) / 2 * STEP_S / self.stretch[int(s_m / STEP_M)]
            speed, acceleration = faster, following
        table = np.array(rows)
        return Run(
            s_m=table[:, 0],
            speed_m_s=table[:, 1],
            acceleration_m_s2=table[:, 2],
            binding=table[:, 3].astype(int),
            held_m_s2=table[:, 4],
            gap_m=table[:, 5],
            hindrances=tuple(self.hindrances),
            leading=tuple(leading),
            leader_starts_s=tuple(state.start_s for state in self.leading),
        )

    def _allowed(self, s_m: float) -> float:
        return self.allowed_m_s[int(s_m / STEP_M)]

    def _wanted(self, t_s: float, s_m: float, speed: float) -> tuple[float, int, float, float]:
        """Wanted acceleration, what binds, how much it holds back, and the gap to it."""
        free = 0.6 * (self.temper_m_s - speed)
        free = min(max(free, -1.5), 1.4)
        bend = (self._allowed(s_m + SPEED_PREVIEW_S * speed) - speed) / 0.8
        wanted, binding, gap_m = min((free, FREE, 0.0), (bend, BEND, 0.0))
        front_m = s_m + FRONT_M
        for i in range(self.first, len(self.hindrances)):
            if self.hindrances[i].from_m - front_m > SEEN_FROM_M:
                break
            if self.hindrances[i].to_m < front_m and i == self.first:
                self.first += 1
                continue
            limit, away_m = self._limit(i, t_s, front_m, speed)
            if limit < wanted:
                wanted, binding, gap_m = limit, i, away_m
        if binding >= 0 and speed < CREEP_M_S and wanted < 0.3:
            wanted = -0.8
        return wanted, binding, free - max(wanted, -3.0), gap_m

    def _limit(self, i: int, t_s: float, front_m: float, speed: float) -> tuple[float, float]:
        """The acceleration a hindrance allows, and the gap to it."""
        hindrance = self.hindrances[i]
        thing = hindrance.thing
        if isinstance(thing, Leader):
            return self._behind(thing, t_s, front_m, speed)
        seen = thing.seen(t_s, front_m)
        if seen is not thing:
            self.hindrances[i] = Hindrance(seen, hindrance.from_m, hindrance.to_m)
        if isinstance(seen, Signal):
            gap_m = seen.line_m - front_m
            held = seen.phase(t_s - RESTART_S) is not Phase.GREEN
        else:
            gap_m = seen.zebra_m - STOP_BEFORE_M - front_m
            held = t_s < seen.clear_s + RESTART_S - 0.2
        if not held or gap_m < 0:
            return FAR_M_S2, gap_m
        return following_m_s2(speed, gap_m, 0.0, LINE_GAP_M), gap_m

    def _behind(
        self, leader: Leader, t_s: float, front_m: float, speed: float
    ) -> tuple[float, float]:
        i = self.leaders.index(leader)
        state = self.leading[i]
        gap_m = state.s_m - leader.length_m / 2 - front_m
        self.leading[i] = state = state.ready(leader, t_s, gap_m, speed)
        parked = math.isinf(state.start_s) and not leader.in_lane
        leaves = state.s_m > leader.start_m + 25 and leader.lateral_m(state.s_m) < IN_LANE_M
        if parked or leaves or gap_m < 0:
            return FAR_M_S2, gap_m
        return following_m_s2(speed, gap_m, state.speed_m_s), gap_m

    def _move_leaders(self, step: int, t_s: float, leading: list[np.ndarray]) -> None:
        for i, (leader, state) in enumerate(zip(self.leaders, self.leading)):
            leading[i][step] = state.s_m, state.speed_m_s, state.acceleration_m_s2
            if state.start_s < t_s and state.s_m < leader.end_m - 0.05:
                bend_m_s = self._allowed(state.s_m)
                self.leading[i] = state.moved(leader, t_s, bend_m_s, STEP_S)


def _in_order(course: Course) -> list[Hindrance]:
    listed = [Hindrance(s, s.line_m, s.line_m) for s in course.signals]
    listed += [Hindrance(w, w.zebra_m, w.zebra_m) for w in course.walkers]
    listed += [Hindrance(leader, leader.start_m, leader.end_m) for leader in course.leaders]
    return sorted(listed, key=lambda hindrance: hindrance.from_m)
