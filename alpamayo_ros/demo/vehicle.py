"""How vehicles move: a kinematic bicycle, a lane keeper and a speed keeper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.demo.road import Road

MAX_CURVATURE_1_M = 0.2  # 5 m turning radius
MAX_CURVATURE_RATE_1_MS = 0.06
MAX_JERK_M_S3 = 1.6
REACTION_S = 0.3  # lag of pedals and steering
MAX_ACCELERATION_M_S2 = 1.2
MAX_BRAKING_M_S2 = 2.2
COMFORT_BRAKING_M_S2 = 1.0  # before curves
COMFORT_LATERAL_M_S2 = 1.8
PREVIEW_M = np.arange(0.0, 84.0, 4.0)

# Lane keeping as a spring and a damper over distance: critically damped, 1/e within about 7 m.
PER_OFFSET_1_M2 = 0.02
PER_HEADING_1_M = 0.28

# Intelligent Driver Model (Treiber, Hennecke, Helbing 2000): standstill gap and time headway.
STANDSTILL_GAP_M = 5.0
HEADWAY_S = 1.4


@dataclass(frozen=True)
class VehicleState:
    """A kinematic bicycle at its rear axle, map frame."""

    x_m: float
    y_m: float
    yaw_rad: float
    speed_m_s: float
    acceleration_m_s2: float
    curvature_1_m: float


def advance(
    state: VehicleState, jerk_m_s3: float, curvature_rate_1_ms: float, dt_s: float
) -> VehicleState:
    """The state dt_s later with jerk and curvature rate held, by the midpoint rule.

    x' = v cos(yaw), y' = v sin(yaw), yaw' = v * curvature, curvature = tan(steering) / wheelbase.
    A vehicle at rest doesn't begin to reverse.
    """
    acceleration = state.acceleration_m_s2 + jerk_m_s3 * dt_s
    speed = state.speed_m_s + (state.acceleration_m_s2 + acceleration) / 2 * dt_s
    if speed <= 0:
        speed, acceleration = 0.0, max(acceleration, 0.0)
    curvature = state.curvature_1_m + curvature_rate_1_ms * dt_s
    distance = (state.speed_m_s + speed) / 2 * dt_s
    turn = distance * (state.curvature_1_m + curvature) / 2
    course = state.yaw_rad + turn / 2
    return VehicleState(
        state.x_m + distance * math.cos(course),
        state.y_m + distance * math.sin(course),
        state.yaw_rad + turn,
        speed,
        acceleration,
        curvature,
    )


def curve_speed_m_s(road: Road, s_m: float, desired_m_s: float) -> float:
    """The speed at s_m from which every curve ahead is reached by comfortable braking."""
    bends = np.interp(s_m + PREVIEW_M, road.s_m, np.abs(road.curvature_1_m))
    squared = COMFORT_LATERAL_M_S2 / np.maximum(bends, 1e-6) + 2 * COMFORT_BRAKING_M_S2 * PREVIEW_M
    return min(desired_m_s, math.sqrt(squared.min()))


def following_m_s2(speed_m_s: float, gap_m: float, leader_m_s: float) -> float:
    """Acceleration that keeps the distance to a leader: the interaction part of the IDM."""
    braking = 2 * math.sqrt(MAX_ACCELERATION_M_S2 * COMFORT_BRAKING_M_S2)
    closing = speed_m_s * (speed_m_s - leader_m_s) / braking
    wanted_m = STANDSTILL_GAP_M + max(0.0, speed_m_s * HEADWAY_S + closing)
    return MAX_ACCELERATION_M_S2 * (1 - (wanted_m / max(gap_m, 0.5)) ** 2)


def speed_jerk_m_s3(state: VehicleState, target_m_s: float, limit_m_s2: float = math.inf) -> float:
    """Jerk towards target_m_s with an acceleration of at most limit_m_s2."""
    wanted = min(0.8 * (target_m_s - state.speed_m_s), limit_m_s2)
    wanted = min(max(wanted, -MAX_BRAKING_M_S2), MAX_ACCELERATION_M_S2)
    jerk = (wanted - state.acceleration_m_s2) / REACTION_S
    return min(max(jerk, -MAX_JERK_M_S3), MAX_JERK_M_S3)


def lane_curvature_rate_1_ms(
    state: VehicleState, road: Road, s_m: float, offset_m: float, lane_m: float
) -> float:
    """Change of curvature that brings a vehicle at (s_m, offset_m) to the lateral place lane_m."""
    here, ahead = road.at(s_m), road.at(s_m + state.speed_m_s * REACTION_S)
    along_lane = ahead.curvature_1_m / (1 - ahead.curvature_1_m * lane_m)
    heading = math.remainder(state.yaw_rad - here.heading_rad, 2 * math.pi)
    wanted = along_lane - PER_OFFSET_1_M2 * (offset_m - lane_m) - PER_HEADING_1_M * heading
    wanted = min(max(wanted, -MAX_CURVATURE_1_M), MAX_CURVATURE_1_M)
    rate = (wanted - state.curvature_1_m) / REACTION_S
    return min(max(rate, -MAX_CURVATURE_RATE_1_MS), MAX_CURVATURE_RATE_1_MS)
