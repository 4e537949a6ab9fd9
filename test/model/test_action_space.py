"""History to speed and tokens, actions to waypoints and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alpamayo_ros.model.action_space import (
    actions_from_trajectory,
    differences,
    drive,
    history_bins,
    physical_actions,
    smoothed_solution,
    speed_at_t0,
    wrapped,
    yaw_of,
)
from alpamayo_ros.model.config_file import load_config
from alpamayo_ros.model.configuration import ActionSpaceConfig, HistoryBins

from .golden import ACTION_ATOL, GOLDEN, TINY_CHECKPOINT, TRAJECTORY_ATOL_M, YAW_ATOL_RAD

CONFIG = load_config(TINY_CHECKPOINT)
SPACE, HISTORY = CONFIG.action_space, CONFIG.history
CASES = range(6)


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN / "action_space.npz") as file:
        return {name: file[name] for name in file.files}


def circle(speed_m_s: float, curvature_1_m: float, accel_m_s2: float = 0.0) -> tuple:
    """Exact history on a circle: xyz (16, 3), rotation (16, 3, 3), in the ego frame at t0."""
    time_s = np.arange(-15, 1) * 0.1
    way = speed_m_s * time_s + accel_m_s2 * time_s**2 / 2
    yaw = curvature_1_m * way
    x = way * np.sinc(yaw / np.pi)
    y = way * np.sinc(yaw / 2 / np.pi) * np.sin(yaw / 2)
    cos, sin, zero, one = np.cos(yaw), np.sin(yaw), np.zeros(16), np.ones(16)
    rot = np.array([[cos, -sin, zero], [sin, cos, zero], [zero, zero, one]]).transpose(2, 0, 1)
    return np.stack([x, y, zero], axis=1), rot


@pytest.mark.parametrize("case", CASES)
def test_speed_at_t0_equals_the_reference(golden: dict, case: int) -> None:
    speed = speed_at_t0(golden["history_xyz"][case], golden["history_rot"][case], SPACE)
    assert speed == pytest.approx(golden["v0"][case], abs=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_history_bins_equal_the_reference(golden: dict, case: int) -> None:
    bins = history_bins(golden["history_xyz"][case].astype(np.float64), HISTORY)
    np.testing.assert_array_equal(bins, golden["history_bins"][case])


@pytest.mark.parametrize("case", CASES)
def test_way_of_the_actions_equals_the_reference(golden: dict, case: int) -> None:
    way = drive(physical_actions(golden["action"][case], SPACE), float(golden["v0"][case]), 0.1)
    expected = golden["future_xyz"][case][:, :2]
    np.testing.assert_allclose(way.xy_m, expected, atol=TRAJECTORY_ATOL_M, rtol=0)
    turn = wrapped(way.yaw_rad - yaw_of(golden["future_rot"][case]))
    assert np.abs(turn).max() <= YAW_ATOL_RAD


@pytest.mark.parametrize("case", CASES)
def test_actions_of_a_trajectory_equal_the_reference(golden: dict, case: int) -> None:
    xy = golden["future_xyz"][case][:, :2].astype(np.float64)
    yaw = yaw_of(golden["future_rot"][case])
    actions = actions_from_trajectory(xy, yaw, float(golden["v0"][case]), SPACE)
    np.testing.assert_allclose(actions, golden["action_back"][case], atol=ACTION_ATOL, rtol=0)


def test_known_speed_of_a_known_history() -> None:
    # The figure the specification gives for 8 m/s, 0.5 m/s2, curvature 0.02.
    speed = speed_at_t0(*circle(8.0, 0.02, 0.5), SPACE)
    assert speed == pytest.approx(7.9996943, abs=2e-6)


@pytest.mark.parametrize("speed_m_s", [-3.0, 0.0, 0.4, 12.0, 35.0])
def test_speed_is_signed_and_within_a_centimetre_per_second(speed_m_s: float) -> None:
    assert speed_at_t0(*circle(speed_m_s, 0.01), SPACE) == pytest.approx(speed_m_s, abs=0.01)


def test_standing_still_is_bin_500_at_every_step() -> None:
    np.testing.assert_array_equal(history_bins(np.zeros((16, 3)), HISTORY), np.full(48, 500))


def test_steps_beyond_the_bins_are_clamped() -> None:
    far = np.cumsum(np.tile([[100.0, -100.0, 0.0]], (16, 1)), axis=0)
    bins = history_bins(far, HISTORY).reshape(16, 3)
    np.testing.assert_array_equal(bins, np.tile([999, 0, 500], (16, 1)))


def test_bins_round_halves_to_even() -> None:
    # Bin b lies at min + b * width; halves between 2 and 3, 3 and 4 go to 2 and 4.
    unit = HistoryBins((0.0, 0.0, 0.0), (8.0, 8.0, 8.0), 9, 48, 0)
    first = np.zeros((16, 3))
    first[:] = [2.5, 3.5, 2.25]
    np.testing.assert_array_equal(history_bins(first, unit)[:3], [2, 4, 2])


def test_constant_acceleration_on_a_straight_has_its_closed_form() -> None:
    actions = np.tile([1.5, 0.0], (64, 1))
    way = drive(actions, 4.0, 0.1)
    time_s = np.arange(1, 65) * 0.1
    np.testing.assert_allclose(way.xy_m[:, 0], 4 * time_s + 0.75 * time_s**2, atol=1e-9)
    np.testing.assert_array_equal(way.xy_m[:, 1], 0)


def test_constant_curvature_stays_on_its_circle() -> None:
    way = drive(np.tile([0.0, 0.05], (64, 1)), 10.0, 0.1)
    radius = np.linalg.norm(way.xy_m - [0, 20.0], axis=1)
    # A step of the mean of two unit vectors is shorter than the arc by (0.05 rad)^2 / 12.
    np.testing.assert_allclose(radius, 20.0, atol=20 * 0.05**2 / 12 * 2)
    np.testing.assert_allclose(way.yaw_rad, 0.05 * np.arange(1, 65), atol=1e-12)


def test_the_way_is_stepped_as_a_slow_loop_would() -> None:
    rng = np.random.default_rng(3)
    actions = rng.normal(0, [1.0, 0.02], (5, 64, 2))
    way = drive(actions, 7.0, 0.1)
    for sample in range(5):
        x = y = yaw = 0.0
        speed = 7.0
        for step, (accel, curvature) in enumerate(actions[sample]):
            next_yaw = yaw + curvature * (speed * 0.1 + accel * 0.1**2 / 2)
            next_speed = speed + accel * 0.1
            x += (speed * np.cos(yaw) + next_speed * np.cos(next_yaw)) * 0.05
            y += (speed * np.sin(yaw) + next_speed * np.sin(next_yaw)) * 0.05
            yaw, speed = next_yaw, next_speed
            np.testing.assert_allclose(way.xy_m[sample, step], [x, y], atol=1e-9)
            assert way.yaw_rad[sample, step] == pytest.approx(yaw, abs=1e-9)


@pytest.mark.parametrize(
    ("v0_m_s", "accel", "curvature", "limit_m"),
    # The inverse smooths, so it is not exact; the limit is what its ridge of 1e-4 costs in 6.4 s.
    [(8.0, 0.5, 0.02, 0.02), (20.0, -1.0, 0.005, 0.05), (-2.0, 0.0, 0.05, 0.02), (0.0, 0, 0, 1e-6)],
    ids=["smooth driving", "braking", "reverse", "standstill"],
)
def test_trajectories_survive_the_round_trip(
    v0_m_s: float, accel: float, curvature: float, limit_m: float
) -> None:
    way = drive(np.tile([accel, curvature], (64, 1)), v0_m_s, 0.1)
    actions = actions_from_trajectory(way.xy_m, way.yaw_rad, v0_m_s, SPACE)
    again = drive(physical_actions(actions, SPACE), v0_m_s, 0.1)
    assert np.abs(again.xy_m - way.xy_m).max() <= limit_m


SMOOTH = st.tuples(
    st.floats(-8, 35),  # speed at t0, m/s
    st.floats(-1, 1),  # acceleration, its swing and the swing's phase
    st.floats(0, 1),
    st.floats(0, 6.3),
    st.floats(-1, 1),  # curvature and its swing, as parts of what 2 m/s2 to the side allow
    st.floats(-1, 1),
)


def smooth_actions(v0: float, mean: float, swing: float, phase: float, bend: float,
                   sway: float) -> np.ndarray:  # fmt: skip
    """Actions (64, 2) that swing once in the 6.4 s."""
    turn = np.linspace(0, 2 * np.pi, 64) + phase
    accel = mean + swing * np.sin(turn)
    speed = np.abs(v0 + np.cumsum(accel) * 0.1).max()
    return np.stack([accel, (bend + sway * np.cos(turn)) / max(speed, 5.0) ** 2], axis=1)


@given(SMOOTH)
@settings(max_examples=150, deadline=None)
def test_any_smooth_drive_survives_the_round_trip(parameters: tuple) -> None:
    v0 = parameters[0]
    way = drive(smooth_actions(*parameters), v0, 0.1)
    actions = actions_from_trajectory(way.xy_m, way.yaw_rad, v0, SPACE)
    again = drive(physical_actions(actions, SPACE), v0, 0.1)
    # What ridges and smoothing cost; of 3000 drives the worst was 0.024 m and 0.007 rad off.
    assert np.abs(again.xy_m - way.xy_m).max() <= 0.04
    assert np.abs(again.yaw_rad - way.yaw_rad).max() <= 0.012


@given(SMOOTH)
@settings(max_examples=100, deadline=None)
def test_float32_numbers_of_any_smooth_drive_lead_where_float64_ones_do(parameters: tuple) -> None:
    v0 = parameters[0]
    exact = smooth_actions(*parameters)
    rounded = drive(exact.astype(np.float32), float(np.float32(v0)), 0.1)
    assert np.abs(rounded.xy_m - drive(exact, v0, 0.1).xy_m).max() <= 1e-3
    turned = actions_from_trajectory(rounded.xy_m, rounded.yaw_rad, v0, SPACE)
    narrow = actions_from_trajectory(
        rounded.xy_m.astype(np.float32).astype(np.float64),
        rounded.yaw_rad.astype(np.float32).astype(np.float64), v0, SPACE,
    )  # fmt: skip
    back, narrow_back = (drive(physical_actions(a, SPACE), v0, 0.1) for a in (turned, narrow))
    assert np.abs(back.xy_m - narrow_back.xy_m).max() <= 1e-3


def test_float32_actions_drive_as_float64_ones_do() -> None:
    actions = np.random.default_rng(5).normal(size=(64, 2))
    exact = drive(physical_actions(actions, SPACE), 10.0, 0.1)
    rounded = drive(physical_actions(actions.astype(np.float32), SPACE), 10.0, 0.1)
    assert np.abs(exact.xy_m - rounded.xy_m).max() <= 1e-4


def test_third_differences_have_the_rows_of_the_specification() -> None:
    matrix = differences(16, 3)
    assert matrix.shape == (13, 16)
    np.testing.assert_array_equal(matrix[0, :5], [-1, 3, -3, 1, 0])


def test_a_singular_system_is_solved_with_a_larger_ridge() -> None:
    # -1 + ridge is not positive until the ridge has grown from 0.1 to 10.
    solved = smoothed_solution(np.zeros((1, 1)), np.zeros(1), np.array([[-1.0]]), 0.1)
    np.testing.assert_array_equal(solved, [0.0])


def test_a_system_without_any_solution_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="singular at every ridge"):
        smoothed_solution(np.zeros((1, 1)), np.zeros(1), np.array([[-1e30]]), 1e-4)


def test_numbers_that_are_not_finite_do_not_become_finite() -> None:
    system = np.array([[np.nan]])
    assert np.isnan(smoothed_solution(system, np.zeros(1), np.zeros((1, 1)), 1e-4)).all()


def test_yaw_is_wrapped_to_above_minus_pi_and_up_to_pi() -> None:
    angles = np.array([np.pi, -np.pi, 3 * np.pi, 0.0, -0.5, 2 * np.pi])
    np.testing.assert_allclose(wrapped(angles), [np.pi, np.pi, np.pi, 0, -0.5, 0], atol=1e-12)


def test_the_scale_of_actions_is_the_checkpoints() -> None:
    space = ActionSpaceConfig(1.0, 2.0, 0.1, 0.5, (-9.8, 9.8), (-0.33, 0.33))
    np.testing.assert_allclose(physical_actions(np.array([[1.0, -1.0]]), space), [[3.0, -0.4]])
