"""How a vehicle at its rear axle moves along its lane, and what makes it brake."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.demo.road import STEP_M, Road

MAX_JERK_M_S3 = 1.8
REACTION_S = 0.3  # lag of the pedals
MAX_ACCELERATION_M_S2 = 1.4
MAX_BRAKING_M_S2 = 2.6
COMFORT_BRAKING_M_S2 = 1.4
COMFORT_LATERAL_M_S2 = 1.9
SPEED_PREVIEW_S = 0.5  # makes up for the lags while the allowed speed falls

# Intelligent Driver Model (Treiber, Hennecke, Helbing 2000).
STANDSTILL_GAP_M = 4.0
HEADWAY_S = 1.2


@dataclass(frozen=True)
class VehicleState:
    """A kinematic bicycle at its rear axle, map frame."""

    x_m: float
    y_m: float
    yaw_rad: float
    speed_m_s: float
    acceleration_m_s2: float
    curvature_1_m: float


def lane_curvature_1_m(road: Road, lane_m: float) -> np.ndarray:
    """Curvature of the line lane_m beside the road's middle, at each of the road's samples."""
    return road.curvature_1_m / (1 - road.curvature_1_m * lane_m)


def allowed_speed_m_s(curvature_1_m: np.ndarray, step_m: float = STEP_M) -> np.ndarray:
    """Per sample of a lane, the speed from which every bend ahead is reached by gentle braking.

    v(s)^2 = min over s' >= s of a_lateral / |curvature(s')| + 2 a_braking (s' - s).
    """
    ahead_m2_s2 = 2 * COMFORT_BRAKING_M_S2 * step_m * np.arange(len(curvature_1_m))
    squared = COMFORT_LATERAL_M_S2 / np.maximum(np.abs(curvature_1_m), 1e-6) + ahead_m2_s2
    lowest = np.minimum.accumulate(squared[::-1])[::-1]
    return np.sqrt(lowest - ahead_m2_s2)


def following_m_s2(
    speed_m_s: float,
    gap_m: float,
    leader_m_s: float,
    standstill_gap_m: float = STANDSTILL_GAP_M,
) -> float:
    """Acceleration that keeps the distance to a leader: the interaction part of the IDM."""
    braking = 2 * math.sqrt(MAX_ACCELERATION_M_S2 * COMFORT_BRAKING_M_S2)
    closing = speed_m_s * (speed_m_s - leader_m_s) / braking
    wanted_m = standstill_gap_m + max(0.0, speed_m_s * HEADWAY_S + closing)
    return MAX_ACCELERATION_M_S2 * (1 - (wanted_m / max(gap_m, 0.5)) ** 2)


def jerk_m_s3(acceleration_m_s2: float, wanted_m_s2: float) -> float:
    """Jerk towards a wanted acceleration."""
    bounded = min(max(wanted_m_s2, -MAX_BRAKING_M_S2), MAX_ACCELERATION_M_S2)
    jerk = (bounded - acceleration_m_s2) / REACTION_S
    return min(max(jerk, -MAX_JERK_M_S3), MAX_JERK_M_S3)
