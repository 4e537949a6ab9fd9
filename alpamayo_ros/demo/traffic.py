"""The vehicles of the drive: the ego, a slower one ahead of it, and oncoming ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.demo.road import EGO_LANE_M, ONCOMING_LANE_M, Road
from alpamayo_ros.demo.vehicle import (
    VehicleState,
    advance,
    curve_speed_m_s,
    following_m_s2,
    lane_curvature_rate_1_ms,
    speed_jerk_m_s3,
)

EGO_LENGTH_M = 4.7
EGO_WIDTH_M = 1.9
EGO_REAR_OVERHANG_M = 1.0  # from the rear axle to the rear bumper
ONCOMING_SPEED_M_S = 9.0  # with it the sharpest curve asks for 1.9 m/s2
BRAKE_LIGHT_M_S2 = -0.25


@dataclass(frozen=True)
class Driven:
    """A vehicle that drives by itself, and where it is along the road."""

    state: VehicleState
    s_m: float
    lateral_m: float


@dataclass(frozen=True)
class World:
    """All that moves by its own decisions at one instant."""

    t_s: float
    ego: Driven
    lead: Driven


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
class Traffic:
    """The temper of the drivers, fixed by the seed."""

    ego_desired_m_s: float
    lead_desired_m_s: float
    lead_wave_rad: float  # phase of the lead's slow change of speed
    lead_model: str
    first_gap_m: float
    oncoming_start_m: tuple[float, ...]  # arc lengths at t = 0
    oncoming_models: tuple[str, ...]

    @classmethod
    def random(cls, rng: np.random.Generator, road: Road) -> Traffic:
        """Drivers for a road."""
        starts = 40 + np.cumsum(rng.uniform(60, 190, int(road.length_m / 125)))
        models = rng.choice(["red", "blue", "white", "grey", "van"], len(starts) + 1)
        return cls(
            ego_desired_m_s=float(rng.uniform(12, 14)),
            lead_desired_m_s=float(rng.uniform(7.5, 9.0)),
            lead_wave_rad=float(rng.uniform(0, 2 * math.pi)),
            lead_model=str(models[0]),
            first_gap_m=float(rng.uniform(35, 50)),
            oncoming_start_m=tuple(float(s) for s in starts),
            oncoming_models=tuple(str(model) for model in models[1:]),
        )

    def first(self, road: Road) -> World:
        """The world at t = 0: everybody rolls in the ego lane."""
        ego_s_m = 12.0
        ego = _placed(road, ego_s_m, min(self.ego_desired_m_s, 10.5))
        bumpers_m = EGO_LENGTH_M + self.first_gap_m
        lead = _placed(road, ego_s_m + bumpers_m, self.lead_desired_m_s)
        return World(0.0, ego, lead)

    def step(self, world: World, road: Road, dt_s: float) -> World:
        """The world dt_s later; every decision is made from `world` alone."""
        wave = 1 + 0.2 * math.sin(2 * math.pi * world.t_s / 16 + self.lead_wave_rad)
        lead_target = curve_speed_m_s(road, world.lead.s_m, self.lead_desired_m_s * wave)
        lead_jerk = speed_jerk_m_s3(world.lead.state, lead_target)
        gap_m = world.lead.s_m - world.ego.s_m - EGO_LENGTH_M
        limit = following_m_s2(world.ego.state.speed_m_s, gap_m, world.lead.state.speed_m_s)
        ego_target = curve_speed_m_s(road, world.ego.s_m, self.ego_desired_m_s)
        ego_jerk = speed_jerk_m_s3(world.ego.state, ego_target, limit)
        return World(
            world.t_s + dt_s,
            _moved(world.ego, road, ego_jerk, dt_s),
            _moved(world.lead, road, lead_jerk, dt_s),
        )

    def actors(self, world: World, road: Road, behind_m: float, ahead_m: float) -> list[Actor]:
        """The other vehicles from behind_m to ahead_m along the road from the ego."""
        lead = world.lead.state
        model = self.lead_model
        actors = [_actor(model, lead, lead.acceleration_m_s2 < BRAKE_LIGHT_M_S2)]
        for start_m, model in zip(self.oncoming_start_m, self.oncoming_models):
            s_m = start_m - ONCOMING_SPEED_M_S * world.t_s
            if -behind_m < s_m - world.ego.s_m < ahead_m and s_m > 0:
                point = road.at(s_m)
                (xy,) = road.points_m(np.array([s_m]), ONCOMING_LANE_M)
                yaw = math.remainder(point.heading_rad + math.pi, 2 * math.pi)
                length_m, width_m = vehicle_size_m(model)
                actors.append(Actor(model, float(xy[0]), float(xy[1]), yaw, length_m, width_m))
        return actors


def vehicle_size_m(model: str) -> tuple[float, float]:
    """Length and width of a vehicle by its model."""
    return (5.6, 2.05) if model == "van" else (4.5, 1.84)


def _placed(road: Road, s_m: float, speed_m_s: float) -> Driven:
    point = road.at(s_m)
    ((x, y),) = road.points_m(np.array([s_m]), EGO_LANE_M)
    state = VehicleState(float(x), float(y), point.heading_rad, speed_m_s, 0.0, 0.0)
    return Driven(state, s_m, EGO_LANE_M)


def _moved(driven: Driven, road: Road, jerk_m_s3: float, dt_s: float) -> Driven:
    rate = lane_curvature_rate_1_ms(driven.state, road, driven.s_m, driven.lateral_m, EGO_LANE_M)
    state = advance(driven.state, jerk_m_s3, rate, dt_s)
    s_m, lateral_m = road.locate(state.x_m, state.y_m, driven.s_m)
    return Driven(state, s_m, lateral_m)


def _actor(model: str, state: VehicleState, braking: bool) -> Actor:
    length_m, width_m = vehicle_size_m(model)
    to_middle = length_m / 2 - EGO_REAR_OVERHANG_M
    x = state.x_m + to_middle * math.cos(state.yaw_rad)
    y = state.y_m + to_middle * math.sin(state.yaw_rad)
    return Actor(model, x, y, state.yaw_rad, length_m, width_m, braking)
