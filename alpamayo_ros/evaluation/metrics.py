"""How far plans are from what was driven. Pure numpy, one function a figure.

Plans and truth are (64, 2) or (64, 3) arrays x_m, y_m, yaw_rad in the ego frame at t0, waypoint
k = 1..64 at t0 + k * 0.1 s; leading axes of a plan are samples. Where the recording ends before the
horizon, truth holds NaN from there on, and a figure that would need it is NaN: it says nothing,
rather than something about a shorter horizon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alpamayo_ros.planning.gate import segment_speeds_m_s
from alpamayo_ros.types import STEP_S, WAYPOINTS

HORIZONS_S = (1.0, 3.0, 5.0, 6.4)
MISS_M = 2.0
MEAN_STEPS = 5  # comfort is judged on speeds and turn rates averaged over 0.5 s


def steps_of(horizon_s: float) -> int:
    """How many waypoints a horizon takes.

    Raises:
        ValueError: the horizon is not a positive multiple of 0.1 s up to 6.4 s.
    """
    steps = round(horizon_s / STEP_S) if np.isfinite(horizon_s) else 0
    if not (1 <= steps <= WAYPOINTS and abs(steps * STEP_S - horizon_s) < 1e-9):
        raise ValueError(f"horizon {horizon_s} s: allowed are 0.1, 0.2, ... {WAYPOINTS * STEP_S}")
    return steps


def distances_m(plan_xy: np.ndarray, truth_xy: np.ndarray) -> np.ndarray:
    """Distance (..., 64) of each waypoint from the truth."""
    gap = np.asarray(plan_xy, np.float64)[..., :2] - np.asarray(truth_xy, np.float64)[..., :2]
    return np.hypot(gap[..., 0], gap[..., 1])


def ade_m(plan_xy: np.ndarray, truth_xy: np.ndarray, horizon_s: float) -> float:
    """Average displacement: the mean distance of the waypoints up to the horizon, of one plan."""
    return float(distances_m(plan_xy, truth_xy)[: steps_of(horizon_s)].mean())


def fde_m(plan_xy: np.ndarray, truth_xy: np.ndarray, horizon_s: float) -> float:
    """Final displacement: the distance of the waypoint at the horizon, of one plan."""
    return float(distances_m(plan_xy, truth_xy)[steps_of(horizon_s) - 1])


def min_ade_m(samples_xy: np.ndarray, truth_xy: np.ndarray, horizon_s: float) -> float:
    """minADE_k: the average displacement of the best of k samples (k, 64, 2 or 3)."""
    return float(distances_m(samples_xy, truth_xy)[:, : steps_of(horizon_s)].mean(axis=1).min())


def min_fde_m(samples_xy: np.ndarray, truth_xy: np.ndarray, horizon_s: float) -> float:
    """minFDE_k: the final displacement of the best of k samples (k, 64, 2 or 3)."""
    return float(distances_m(samples_xy, truth_xy)[:, steps_of(horizon_s) - 1].min())


def missed(final_displacement_m: float) -> float:
    """1 when a final displacement is over 2 m, 0 when not; NaN when it is not known."""
    if np.isnan(final_displacement_m):
        return float("nan")
    return float(final_displacement_m > MISS_M)


def split_m(plan_xy: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Error (64, 2) along and across the driven heading; positive: too far ahead, too far left.

    truth (64, 3) gives the heading at each waypoint.
    """
    gap = np.asarray(plan_xy, np.float64)[:, :2] - truth[:, :2]
    cos, sin = np.cos(truth[:, 2]), np.sin(truth[:, 2])
    along = gap[:, 0] * cos + gap[:, 1] * sin
    across = gap[:, 1] * cos - gap[:, 0] * sin
    return np.column_stack([along, across])


def longitudinal_m(plan_xy: np.ndarray, truth: np.ndarray, horizon_s: float) -> float:
    """Mean distance along the driven heading up to the horizon."""
    return float(np.abs(split_m(plan_xy, truth)[: steps_of(horizon_s), 0]).mean())


def lateral_m(plan_xy: np.ndarray, truth: np.ndarray, horizon_s: float) -> float:
    """Mean distance across the driven heading up to the horizon."""
    return float(np.abs(split_m(plan_xy, truth)[: steps_of(horizon_s), 1]).mean())


def heading_error_rad(plan: np.ndarray, truth: np.ndarray, horizon_s: float) -> float:
    """Mean absolute difference of the headings, modulo 2 pi, up to the horizon."""
    difference = np.asarray(plan, np.float64)[:, 2] - truth[:, 2]
    wrapped = np.remainder(difference + np.pi, 2 * np.pi) - np.pi
    return float(np.abs(wrapped)[: steps_of(horizon_s)].mean())


def speed_error_m_s(plan: np.ndarray, truth: np.ndarray, horizon_s: float) -> float:
    """Mean absolute difference of the segments' signed speeds up to the horizon."""
    difference = segment_speeds_m_s(np.asarray(plan, np.float64)) - segment_speeds_m_s(truth)
    return float(np.abs(difference)[: steps_of(horizon_s)].mean())


@dataclass(frozen=True)
class ComfortLimits:
    """What passengers call comfortable: the limits of nuPlan's comfort metric."""

    forward_m_s2: float = 2.40
    braking_m_s2: float = 4.05
    lateral_m_s2: float = 4.89
    jerk_m_s3: float = 4.13


@dataclass(frozen=True)
class Comfort:
    """The extremes of a plan, of speeds and turn rates averaged over 0.5 s."""

    forward_m_s2: float
    braking_m_s2: float  # positive
    lateral_m_s2: float
    jerk_m_s3: float

    def exceeded(self, limits: ComfortLimits) -> tuple[str, ...]:
        """Which limits are exceeded: of acceleration, braking, lateral, jerk."""
        pairs = {
            "acceleration": (self.forward_m_s2, limits.forward_m_s2),
            "braking": (self.braking_m_s2, limits.braking_m_s2),
            "lateral": (self.lateral_m_s2, limits.lateral_m_s2),
            "jerk": (self.jerk_m_s3, limits.jerk_m_s3),
        }
        return tuple(name for name, (value, limit) in pairs.items() if not value <= limit)


def comfort(plan: np.ndarray) -> Comfort:
    """Extremes of acceleration, lateral acceleration and jerk of a plan (N, 3), N over 6.

    Speeds and turn rates are those of the segments, averaged over 0.5 s; acceleration is their
    difference, jerk the difference of accelerations.
    """
    waypoints = np.asarray(plan, np.float64)
    yaw = np.concatenate([[0.0], waypoints[:, 2]])
    turns = np.remainder(np.diff(yaw) + np.pi, 2 * np.pi) - np.pi
    speed = _mean(segment_speeds_m_s(waypoints))
    acceleration = np.diff(speed) / STEP_S
    return Comfort(
        forward_m_s2=float(acceleration.max(initial=0.0)),
        braking_m_s2=float((-acceleration).max(initial=0.0)),
        lateral_m_s2=float(np.abs(speed * _mean(turns / STEP_S)).max()),
        jerk_m_s3=float(np.abs(np.diff(acceleration)).max() / STEP_S),
    )


def _mean(values: np.ndarray) -> np.ndarray:
    return np.convolve(values, np.full(MEAN_STEPS, 1 / MEAN_STEPS), mode="valid")


def inconsistency_m(before: np.ndarray, after: np.ndarray, gap_s: float, pose: np.ndarray) -> float:
    """Mean distance of two plans of one drive where they speak of the same instants.

    The earlier plan is interpolated linearly at the later one's instants.

    Args:
        before, after: (64, 2 or 3), each in the ego frame at its own t0.
        gap_s: from the earlier t0 to the later one; NaN comes back when it is over 6.3 s.
        pose: (3,) x_m, y_m, yaw_rad of the ego at the later t0, in the earlier one's frame.
    """
    times_s = np.arange(WAYPOINTS + 1) * STEP_S
    own_s = times_s[1:]
    overlap = own_s + gap_s <= times_s[-1] + 1e-6
    if not overlap.any():
        return float("nan")
    earlier = np.vstack([np.zeros(2), np.asarray(before, np.float64)[:, :2]])
    at_s = own_s[overlap] + gap_s
    expected = np.column_stack([np.interp(at_s, times_s, earlier[:, i]) for i in (0, 1)])
    cos, sin = np.cos(pose[2]), np.sin(pose[2])
    moved = np.asarray(after, np.float64)[overlap, :2] @ np.array([[cos, sin], [-sin, cos]])
    return float(distances_m(moved + pose[:2], expected).mean())
