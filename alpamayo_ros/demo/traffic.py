"""The other vehicles as they are seen: leaders in the ego's lane and oncoming ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.demo.course import MODELS, Course
from alpamayo_ros.demo.ego import EGO_LENGTH_M, EGO_REAR_OVERHANG_M, EGO_WIDTH_M, Run
from alpamayo_ros.demo.ego import STEP_S as RUN_STEP_S
from alpamayo_ros.demo.pedestrians import Walker
from alpamayo_ros.demo.road import ONCOMING_LANE_M, STEP_M, Road
from alpamayo_ros.demo.signals import SEEN_FROM_M, Signal
from alpamayo_ros.demo.vehicle import allowed_speed_m_s, lane_curvature_1_m

__all__ = ["EGO_LENGTH_M", "EGO_REAR_OVERHANG_M", "EGO_WIDTH_M", "Actor", "Traffic"]

BRAKE_LIGHT_M_S2 = -0.25
ONCOMING_M_S = (8.0, 11.0)
ONCOMING_EVERY_S = (5.0, 20.0)
BESIDE_M = 9.0  # an oncoming vehicle within this of a walker's zebra is too near


@dataclass(frozen=True)
class Actor:
    """A vehicle as others see it; the pose is that of its middle, map frame."""

    model: str  # a key of shapes.VEHICLE_SHAPES
    x_m: float
    y_m: float
    yaw_rad: float
    length_m: float
    width_m: float
    braking: bool = False


@dataclass(frozen=True)
class _Oncoming:
    model: str
    enters_s: float  # when it passes the far end of the route


class Traffic:
    """All other vehicles of a drive at any time."""

    def __init__(self, course: Course, run: Run, rng: np.random.Generator) -> None:
        self.course, self.run = course, run
        self.times_s = _times_from_the_end_s(course.road, float(rng.uniform(*ONCOMING_M_S)))
        enters_s = np.cumsum(rng.uniform(*ONCOMING_EVERY_S, 60)) - self.times_s[0] - 10
        models = rng.choice(MODELS, len(enters_s))
        listed = [_Oncoming(str(m), float(t)) for m, t in zip(models, enters_s)]
        self.oncoming = [vehicle for vehicle in listed if self._waits_for_nobody(vehicle)]

    def actors(self, t_s: float, behind_m: float, ahead_m: float) -> list[Actor]:
        """The vehicles from behind_m to ahead_m along the route from the ego, leaders first."""
        step = min(round(t_s / RUN_STEP_S), len(self.run.s_m) - 1)
        from_m, to_m = self.run.s_m[step] - behind_m, self.run.s_m[step] + ahead_m
        actors = []
        for i in range(len(self.course.leaders)):
            s_m, _, acceleration = self._leading(i, t_s)
            if from_m < s_m < to_m:
                actors.append(self._leader(i, s_m, acceleration, t_s))
        for vehicle in self.oncoming:
            s_m = self._oncoming_m(vehicle, t_s)
            if from_m < s_m < to_m:
                point = self.course.road.at(s_m)
                x_m, y_m = point.ahead(0.0, ONCOMING_LANE_M)
                yaw = math.remainder(point.heading_rad + math.pi, 2 * math.pi)
                actors.append(Actor(vehicle.model, x_m, y_m, yaw, *vehicle_size_m(vehicle.model)))
        return actors

    def _leading(self, i: int, t_s: float) -> np.ndarray:
        """Arc length, speed and acceleration of a leader."""
        rows = self.run.leading[i]
        place = min(t_s / RUN_STEP_S, len(rows) - 1.000001)
        step = int(place)
        return rows[step] + (place - step) * (rows[step + 1] - rows[step])

    def _leader(self, i: int, s_m: float, acceleration: float, t_s: float) -> Actor:
        leader = self.course.leaders[i]
        lateral_m = leader.lateral_m(s_m)
        slope = (leader.lateral_m(s_m + 0.1) - leader.lateral_m(s_m - 0.1)) / 0.2
        point = self.course.road.at(s_m)
        x_m, y_m = point.ahead(0.0, lateral_m)
        stands = leader.in_lane and t_s < self.run.leader_starts_s[i]
        braking = stands or acceleration < BRAKE_LIGHT_M_S2
        yaw = point.heading_rad + math.atan(slope)
        return Actor(leader.model, x_m, y_m, yaw, *vehicle_size_m(leader.model), braking)

    def _oncoming_m(self, vehicle: _Oncoming, t_s: float) -> float:
        """Arc length of the route; behind its start once the vehicle has left it."""
        since_s = t_s - vehicle.enters_s
        if not 0 <= since_s < self.times_s[0]:
            return -math.inf
        return float(np.interp(since_s, self.times_s[::-1], self._places_m[::-1]))

    @property
    def _places_m(self) -> np.ndarray:
        return self.course.road.s_m[:: round(1 / STEP_M)][: len(self.times_s)]

    def _waits_for_nobody(self, vehicle: _Oncoming) -> bool:
        """Whether it meets no walker on a zebra and no light that is red.

        Oncoming vehicles know nothing of either, so one that should wait isn't there at all.
        """
        for hindrance in self.run.hindrances:
            thing = hindrance.thing
            if isinstance(thing, Walker) and not math.isinf(thing.start_s):
                times = (thing.start_s - 1, thing.gone_s + 1)
                places = (thing.zebra_m - BESIDE_M, thing.zebra_m + BESIDE_M)
            elif isinstance(thing, Signal) and not math.isinf(thing.green_s):
                times = (thing.green_s - thing.red_for_s, thing.green_s)
                places = (thing.line_m, thing.line_m + thing.gantry_m + SEEN_FROM_M / 4)
            else:
                continue
            at = [self._oncoming_m(vehicle, t) for t in np.arange(times[0], times[1] + 0.5, 0.5)]
            if any(places[0] < s_m < places[1] for s_m in at):
                return False
        return True


def vehicle_size_m(model: str) -> tuple[float, float]:
    """Length and width of a vehicle by its model."""
    return (5.6, 2.05) if model == "van" else (4.5, 1.84)


def _times_from_the_end_s(road: Road, cruise_m_s: float) -> np.ndarray:
    """When an oncoming vehicle is at each whole metre of the route, from its far end on: (N,)."""
    bends = lane_curvature_1_m(road, ONCOMING_LANE_M)[:: round(1 / STEP_M)]
    both = np.minimum(allowed_speed_m_s(bends, 1.0), allowed_speed_m_s(bends[::-1], 1.0)[::-1])
    slowness = 1 / np.minimum(both, cruise_m_s)
    steps_s = (slowness[1:] + slowness[:-1]) / 2
    return np.concatenate([np.cumsum(steps_s[::-1])[::-1], [0.0]])
