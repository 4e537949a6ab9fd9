"""What a plan has to beat: the ego simply goes on as it does at t0. Pure numpy, no settings.

Every baseline takes the history that the model sees and returns float64 (64, 3) x_m, y_m, yaw_rad
in the ego frame at t0, waypoint k = 1..64 at t0 + k * 0.1 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from alpamayo_ros.types import STEP_S, WAYPOINTS

RECENT_STEPS = 5  # 0.5 s: long enough against noise, short enough to be about now
TIMES_S = np.arange(1, WAYPOINTS + 1) * STEP_S

Baseline = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def constant_velocity(
    history_xyz: np.ndarray, history_rot: np.ndarray, v0_m_s: float
) -> np.ndarray:
    """Straight ahead at v0: x = v0 t.

    Args:
        history_xyz: (16, 3) m, ego frame at t0, 0.1 s apart, the last row zero.
        history_rot: (16, 3, 3), the last one identity.
        v0_m_s: signed speed at t0.
    """
    return np.column_stack([v0_m_s * TIMES_S, np.zeros((WAYPOINTS, 2))])


def constant_turn_rate_and_velocity(
    history_xyz: np.ndarray, history_rot: np.ndarray, v0_m_s: float
) -> np.ndarray:
    """An arc at v0 with the yaw rate w of the last 0.5 s; arguments as of constant_velocity.

    The chord of an arc of length v0 t has length v0 t sin(a) / a and direction a = w t / 2.
    """
    half_turn = turn_rate_rad_s(history_rot) * TIMES_S / 2
    chord = v0_m_s * TIMES_S * np.sinc(half_turn / np.pi)
    return np.column_stack(
        [chord * np.cos(half_turn), chord * np.sin(half_turn), _wrap(2 * half_turn)]
    )


def constant_acceleration(
    history_xyz: np.ndarray, history_rot: np.ndarray, v0_m_s: float
) -> np.ndarray:
    """Straight ahead with the acceleration a of the last 0.5 s: x = v0 t + a t^2 / 2.

    A vehicle that brakes to a standstill stays there. Arguments as of constant_velocity.
    """
    acceleration = acceleration_m_s2(history_xyz, history_rot)
    stops = acceleration * v0_m_s < 0
    moving_s = np.minimum(TIMES_S, -v0_m_s / acceleration) if stops else TIMES_S
    way = v0_m_s * moving_s + acceleration * moving_s**2 / 2
    return np.column_stack([way, np.zeros((WAYPOINTS, 2))])


def turn_rate_rad_s(history_rot: np.ndarray) -> float:
    """Yaw rate over the last 0.5 s of a history (16, 3, 3): the least-squares slope of its yaw."""
    yaw = np.unwrap(np.arctan2(history_rot[:, 1, 0], history_rot[:, 0, 0]))
    return _slope(yaw[-RECENT_STEPS - 1 :])


def acceleration_m_s2(history_xyz: np.ndarray, history_rot: np.ndarray) -> float:
    """Acceleration along the vehicle over the last 0.5 s: the slope of the signed speeds.

    A step's speed is its length by 0.1 s, negative where it runs against the mean of the headings
    at its ends.
    """
    xy = history_xyz[-RECENT_STEPS - 1 :, :2]
    forward = history_rot[-RECENT_STEPS - 1 :, :2, 0]
    motion = np.diff(xy, axis=0)
    along = np.sum(motion * (forward[:-1] + forward[1:]), axis=1)
    return _slope(np.copysign(np.linalg.norm(motion, axis=1), along) / STEP_S)


def _slope(values: np.ndarray) -> float:
    """Slope per second of the least-squares line through values 0.1 s apart."""
    times_s = np.arange(len(values)) * STEP_S
    times_s = times_s - times_s.mean()
    return float(times_s @ values / (times_s @ times_s))


def _wrap(angle_rad: np.ndarray) -> np.ndarray:
    return -(np.remainder(np.pi - angle_rad, 2 * np.pi) - np.pi)


BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {
        "constant_velocity": constant_velocity,
        "constant_turn_rate_and_velocity": constant_turn_rate_and_velocity,
        "constant_acceleration": constant_acceleration,
    }
)
