"""Unicycle with acceleration and curvature: history to speed and tokens, actions to waypoints.

numpy on the CPU, in float64: the systems have at most 65 unknowns, devices would fall back to the
CPU for a Cholesky solve anyway, and only v0 and the tokens are needed before the network runs.
Everything is in the ego frame at t0. "Smoothness" means the third (second) difference, weighted
with lambda / dt^6 (dt^4) so that it does not depend on the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alpamayo_ros.model.configuration import ActionSpaceConfig, HistoryBins

MAX_RIDGE_RAISES = 12


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Waypoint i = 0..T-1 of each sample lies at t0 + (i + 1) * dt."""

    xy_m: np.ndarray  # (..., T, 2)
    yaw_rad: np.ndarray  # (..., T), not wrapped


def history_bins(xyz_m: np.ndarray, config: HistoryBins) -> np.ndarray:
    """Bins int64 (48,) of a history (16, 3): x, y, z of the first pose, then of each step.

    In float32 and rounded half to even, as the reference does: a zero step is bin 500 of 1000.
    """
    xyz = xyz_m.astype(np.float32)
    steps = np.diff(xyz, axis=0, prepend=np.zeros((1, 3), np.float32))
    low, high = (np.array(v, np.float32) for v in (config.xyz_min_m, config.xyz_max_m))
    scaled = (steps - low) / (high - low) * np.float32(config.bins - 1)
    return np.clip(np.rint(scaled), 0, config.bins - 1).astype(np.int64).reshape(-1)


def yaw_of(rotations: np.ndarray) -> np.ndarray:
    """Unwrapped yaw (T,) in rad of rotations (T, 3, 3)."""
    return np.unwrap(np.arctan2(rotations[:, 1, 0], rotations[:, 0, 0]))


def differences(count: int, order: int) -> np.ndarray:
    """The matrix (count - order, count) of the order-th difference; order 3 has rows -1 3 -3 1."""
    return np.diff(np.eye(count), n=order, axis=0)


def smoothed_solution(
    system: np.ndarray, target: np.ndarray, smoothness: np.ndarray, ridge: float
) -> np.ndarray:
    """x (N,) that minimises |system x - target|^2 + x' smoothness x + ridge |x|^2.

    Where Cholesky fails the ridge is raised tenfold and tried again, as the reference does.
    Numbers that are not finite come out as such.

    Raises:
        numpy.linalg.LinAlgError: it fails still, twelve times tenfold.
    """
    normal = system.T @ system + smoothness
    right = system.T @ target
    for _ in range(MAX_RIDGE_RAISES):
        try:
            factor = np.linalg.cholesky(normal + ridge * np.eye(len(normal)))
        except np.linalg.LinAlgError:
            ridge *= 10
            continue
        return np.linalg.solve(factor.T, np.linalg.solve(factor, right))
    raise np.linalg.LinAlgError("the system is singular at every ridge")


def _displacement_system(
    xy_m: np.ndarray, yaw_rad: np.ndarray, dt_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets of v_t e(th_t) + v_{t+1} e(th_{t+1}) = 2 (p_{t+1} - p_t) / dt, e = cos, sin.

    xy_m (T, 2) and yaw_rad (T,) to (2 (T - 1), T) and (2 (T - 1),).
    """
    steps = len(yaw_rad) - 1
    rows = np.arange(steps)
    system = np.zeros((2, steps, steps + 1))
    for axis, along in enumerate((np.cos(yaw_rad), np.sin(yaw_rad))):
        system[axis, rows, rows] = along[:-1]
        system[axis, rows, rows + 1] = along[1:]
    target = 2 * np.diff(xy_m, axis=0).T / dt_s
    return system.reshape(2 * steps, -1), target.reshape(-1)


def speed_at_t0(
    history_xyz_m: np.ndarray, history_rot: np.ndarray, config: ActionSpaceConfig
) -> float:
    """Signed speed v0 in m/s at the end of a history (T, 3), (T, 3, 3): the last smoothed one."""
    yaw = yaw_of(history_rot.astype(np.float64))
    xy = history_xyz_m[:, :2].astype(np.float64)
    system, target = _displacement_system(xy, yaw, config.dt_s)
    third = differences(len(yaw), 3)
    smoothness = config.v_lambda / config.dt_s**6 * third.T @ third
    return float(smoothed_solution(system, target, smoothness, config.v_ridge)[-1])


def physical_actions(actions: np.ndarray, config: ActionSpaceConfig) -> np.ndarray:
    """Acceleration (m/s2) and curvature (1/m), (..., T, 2), of normalised actions."""
    scale = np.array([config.accel_std, config.curvature_std])
    mean = np.array([config.accel_mean, config.curvature_mean])
    return actions.astype(np.float64) * scale + mean


def drive(actions: np.ndarray, v0_m_s: float, dt_s: float) -> Trajectory:
    """The way of a vehicle at v0 under actions (..., T, 2) in m/s2 and 1/m; nothing is clipped.

    Speed is piecewise linear, heading turns with curvature times way, and a step goes along the
    mean of the velocities at both its ends.
    """
    accel, curvature = actions[..., 0], actions[..., 1]
    zero = np.zeros((*accel.shape[:-1], 1))
    speed = v0_m_s + np.concatenate([zero, np.cumsum(accel * dt_s, axis=-1)], axis=-1)
    turns = curvature * (speed[..., :-1] * dt_s + accel * dt_s**2 / 2)
    yaw = np.concatenate([zero, np.cumsum(turns, axis=-1)], axis=-1)
    velocity = speed[..., None] * np.stack([np.cos(yaw), np.sin(yaw)], axis=-1)
    xy = np.cumsum((velocity[..., :-1, :] + velocity[..., 1:, :]) * dt_s / 2, axis=-2)
    return Trajectory(xy, yaw[..., 1:])


def actions_from_trajectory(
    xy_m: np.ndarray, yaw_rad: np.ndarray, v0_m_s: float, config: ActionSpaceConfig
) -> np.ndarray:
    """Normalised actions (T, 2) whose way is near a trajectory (T, 2), (T,) from the origin at v0.

    Heading, speed, acceleration and curvature are smoothed one after the other. Not an exact
    inverse of `drive`, by design; near standstill the curvature is badly determined.
    """
    dt = config.dt_s
    yaw = _smoothed_yaw(np.unwrap(np.concatenate([[0.0], yaw_rad])), config)
    speed = _smoothed_speed(np.concatenate([np.zeros((1, 2)), xy_m]), yaw, v0_m_s, config)
    count = len(yaw_rad)
    second = differences(count, 2)
    penalty = second.T @ second / dt**4
    accel = smoothed_solution(
        np.eye(count), np.diff(speed) / dt, config.a_lambda * penalty, config.a_ridge
    )
    way = dt * speed[:-1] + dt**2 / 2 * accel
    curvature = smoothed_solution(
        np.diag(way), np.diff(yaw), config.kappa_lambda * penalty, config.kappa_ridge
    )
    return np.stack(
        [
            (accel - config.accel_mean) / config.accel_std,
            (curvature - config.curvature_mean) / config.curvature_std,
        ],
        axis=-1,
    )


def _smoothed_yaw(yaw_rad: np.ndarray, config: ActionSpaceConfig) -> np.ndarray:
    """Smoothed headings (T + 1,) of which the first, at t0, stays zero."""
    third = differences(len(yaw_rad), 3)[:, 1:]  # the first unknown is known: zero
    smoothness = config.theta_lambda / config.dt_s**6 * third.T @ third
    solved = smoothed_solution(
        np.eye(len(yaw_rad) - 1), yaw_rad[1:], smoothness, config.theta_ridge
    )
    return np.concatenate([[0.0], solved])


def _smoothed_speed(
    xy_m: np.ndarray, yaw_rad: np.ndarray, v0_m_s: float, config: ActionSpaceConfig
) -> np.ndarray:
    """Smoothed speeds (T + 1,) of which the first stays v0."""
    system, target = _displacement_system(xy_m, yaw_rad, config.dt_s)
    third = differences(len(yaw_rad), 3)
    weight = config.v_lambda / config.dt_s**6
    # v_0 is known: its columns move to the right-hand sides, the smoothness's as further rows.
    stacked = np.concatenate([system, np.sqrt(weight) * third])
    right = np.concatenate([target, np.zeros(len(third))]) - stacked[:, 0] * v0_m_s
    unknown = stacked[:, 1:]
    solved = smoothed_solution(unknown, right, np.zeros((len(yaw_rad) - 1,) * 2), config.v_ridge)
    return np.concatenate([[v0_m_s], solved])


def wrapped(yaw_rad: np.ndarray) -> np.ndarray:
    """Angles in (-pi, pi]."""
    return np.pi - np.mod(np.pi - yaw_rad, 2 * np.pi)
