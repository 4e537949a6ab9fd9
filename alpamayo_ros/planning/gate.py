"""Is this plan sane? One function a verdict, each failing closed: NaN is over every limit.

Whoever drives a plan follows its positions, so speeds and accelerations are judged by what the
positions imply, and the model's own actions beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.types import STEP_S, Plan, Verdict

LATERAL_WINDOW = 5  # waypoints: 0.5 s
LATERAL_MIN_SPEED_M_S = 2.0
FOLDING_MIN_SPEED_M_S = 0.5
BACKING_SPEED_M_S = -0.3  # an ego that already backs up may go on
ROUNDING_M_S2 = 0.1  # float32 positions 400 m away, differentiated twice


@dataclass(frozen=True)
class GateLimits:
    """Limits of the gate; the parameters `gate.*`, and the checkpoint's bounds of its actions."""

    start_along_m: float = 0.3
    start_across_m: float = 0.2
    start_speed_m_s: float = 2.0
    folding_rad: float = math.pi / 2
    reverse_m: float = 0.5
    lateral_m_s2: float = 6.0
    speed_m_s: float = 60.0
    acceleration_m_s2: tuple[float, float] = (-9.8, 9.8)
    curvature_1_m: tuple[float, float] = (-0.33, 0.33)


def segment_speeds_m_s(waypoints: np.ndarray) -> np.ndarray:
    """Signed speed (N,) of the segment that ends at each waypoint (N, 3) x, y, yaw.

    The first segment starts at the ego (0, 0, 0). Negative where the motion runs against the
    heading halfway along the segment.
    """
    motion = _motion(waypoints)
    speed = np.linalg.norm(motion, axis=1) / STEP_S
    yaw = np.concatenate([[0.0], waypoints[:, 2].astype(np.float64)])
    halfway = yaw[:-1] + _wrap(np.diff(yaw)) / 2
    along = motion[:, 0] * np.cos(halfway) + motion[:, 1] * np.sin(halfway)
    return np.where(along < 0, -speed, speed)


def judge(plan: Plan, limits: GateLimits, odometry_speed_m_s: float) -> Verdict:
    """Every reason against driving the chosen sample.

    Args:
        odometry_speed_m_s: the vehicle's signed speed at t0 as its odometry says.
    """
    waypoints = plan.waypoints.astype(np.float64)
    if reason := non_finite(plan):
        return Verdict((reason,))  # nothing else can be said of it
    actions = plan.actions[plan.chosen].astype(np.float64)
    checks: tuple[Callable[[], str | None], ...] = (
        lambda: start(waypoints, plan.v0_m_s, odometry_speed_m_s, limits),
        lambda: folding(waypoints, actions, plan.v0_m_s, limits),
        lambda: reverse(waypoints, plan.v0_m_s, limits),
        lambda: lateral(waypoints, limits),
        lambda: acceleration(waypoints, actions, limits),
        lambda: curvature(actions, limits),
        lambda: speed(waypoints, limits),
        lambda: truncated(plan),
    )
    return Verdict(tuple(reason for check in checks if (reason := check())))


def non_finite(plan: Plan) -> str | None:
    """The chosen sample, its actions and v0 are numbers."""
    chosen = plan.waypoints, plan.actions[plan.chosen], np.array(plan.v0_m_s)
    if all(np.isfinite(array).all() for array in chosen):
        return None
    return "non_finite: the plan holds NaN or infinity"


def start(
    waypoints: np.ndarray, v0_m_s: float, odometry_speed_m_s: float, limits: GateLimits
) -> str | None:
    """The plan starts where the ego is and as fast as it goes."""
    along = float(waypoints[0, 0]) - v0_m_s * STEP_S
    across = float(waypoints[0, 1])
    first = float(segment_speeds_m_s(waypoints)[0]) - odometry_speed_m_s
    if not abs(along) <= limits.start_along_m:
        return f"start: waypoint 1 is {along:+.2f} m off along, limit {limits.start_along_m:g} m"
    if not abs(across) <= limits.start_across_m:
        return f"start: waypoint 1 is {across:+.2f} m off across, limit {limits.start_across_m:g} m"
    if not abs(first) <= limits.start_speed_m_s:
        return (
            f"start: the first speed is {first:+.2f} m/s off the odometry, "
            f"limit {limits.start_speed_m_s:g} m/s"
        )
    return None


def folding(
    waypoints: np.ndarray, actions: np.ndarray, v0_m_s: float, limits: GateLimits
) -> str | None:
    """Heading and motion agree: the path does not fold over itself.

    An ego that backs up moves against its heading for as long as its actions keep it backing.
    """
    motion = _motion(waypoints)
    slow = np.linalg.norm(motion, axis=1) <= FOLDING_MIN_SPEED_M_S * STEP_S  # NaN is not slow
    direction = np.arctan2(motion[:, 1], motion[:, 0])
    if v0_m_s <= BACKING_SPEED_M_S:
        speed_m_s = v0_m_s + (np.cumsum(actions[:, 0]) - actions[:, 0] / 2) * STEP_S
        direction = np.where(speed_m_s < 0, direction + np.pi, direction)
    angle = np.abs(_wrap(waypoints[:, 2] - direction))
    worst = float(np.max(np.where(slow, 0.0, angle)))
    if worst <= limits.folding_rad:
        return None
    return (
        f"folding: heading and motion are {math.degrees(worst):.0f} deg apart, "
        f"limit {math.degrees(limits.folding_rad):.0f} deg"
    )


def reverse(waypoints: np.ndarray, v0_m_s: float, limits: GateLimits) -> str | None:
    """A vehicle that does not back up already is not sent back."""
    if v0_m_s <= BACKING_SPEED_M_S:
        return None
    back_m = -float(np.minimum(segment_speeds_m_s(waypoints), 0.0).sum()) * STEP_S
    if back_m <= limits.reverse_m:
        return None
    return f"reverse: the plan backs up {back_m:.2f} m, limit {limits.reverse_m:g} m"


def lateral(waypoints: np.ndarray, limits: GateLimits) -> str | None:
    """Lateral acceleration, as a mean over 0.5 s, where the plan moves faster than 2 m/s.

    Both of the turning heading and of the turning motion.
    """
    speed_m_s = np.abs(segment_speeds_m_s(waypoints))
    motion = np.vstack([[speed_m_s[0], 0.0], _motion(waypoints)])
    course = np.arctan2(motion[:, 1], motion[:, 0])
    yaw = np.concatenate([[0.0], waypoints[:, 2]])
    worst = max(_worst_lateral(speed_m_s, angle) for angle in (yaw, course))
    if worst <= limits.lateral_m_s2:
        return None
    return f"lateral: {worst:.2f} m/s2 across over 0.5 s, limit {limits.lateral_m_s2:g} m/s2"


def _worst_lateral(speed_m_s: np.ndarray, angle_rad: np.ndarray) -> float:
    """The largest mean over 0.5 s of speed (N,) times turn rate, of angles (N+1,)."""
    across = speed_m_s * _wrap(np.diff(angle_rad)) / STEP_S
    across = np.where(speed_m_s <= LATERAL_MIN_SPEED_M_S, 0.0, across)
    mean = np.convolve(across, np.ones(LATERAL_WINDOW) / LATERAL_WINDOW, mode="valid")
    return float(np.abs(mean).max())


def acceleration(waypoints: np.ndarray, actions: np.ndarray, limits: GateLimits) -> str | None:
    """The model's accelerations, and those between the waypoints, lie in the checkpoint's bounds.

    The first segment is held against the ego's speed by `start`.
    """
    implied = np.diff(segment_speeds_m_s(waypoints)) / STEP_S
    low, high = limits.acceleration_m_s2
    return _within("acceleration", actions[:, 0], (low, high), "m/s2") or _within(
        "acceleration: of the path", implied, (low - ROUNDING_M_S2, high + ROUNDING_M_S2), "m/s2"
    )


def curvature(actions: np.ndarray, limits: GateLimits) -> str | None:
    """The model's curvatures lie in the checkpoint's own bounds."""
    return _within("curvature", actions[:, 1], limits.curvature_1_m, "1/m")


def speed(waypoints: np.ndarray, limits: GateLimits) -> str | None:
    """No segment is faster than any road vehicle."""
    worst = float(np.abs(segment_speeds_m_s(waypoints)).max())
    if worst <= limits.speed_m_s:
        return None
    return f"speed: {worst:.1f} m/s, limit {limits.speed_m_s:g} m/s"


def truncated(plan: Plan) -> str | None:
    """The reasoning came to its own end: it has its end mark, and was not closed at its limit."""
    if not plan.truncated[plan.chosen]:
        return None
    return "truncated: the reasoning has no end mark, or reached sampling.max_new_tokens"


def _within(name: str, values: np.ndarray, bounds: tuple[float, float], unit: str) -> str | None:
    low, high = bounds
    if low <= values.min() and values.max() <= high:
        return None
    worst = float(values[np.argmax(np.maximum(low - values, values - high))])
    label = name if ":" in name else f"{name}:"
    return f"{label} {worst:.3f} {unit}, bounds {low:g} to {high:g} {unit}"


def _motion(waypoints: np.ndarray) -> np.ndarray:
    return np.diff(waypoints[:, :2].astype(np.float64), axis=0, prepend=np.zeros((1, 2)))


def _wrap(angle: np.ndarray) -> np.ndarray:
    return np.remainder(angle + np.pi, 2 * np.pi) - np.pi
