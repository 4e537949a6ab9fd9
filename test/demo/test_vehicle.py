"""Dynamics against closed forms."""

import math

import pytest

from alpamayo_ros.demo.road import Road
from alpamayo_ros.demo.vehicle import (
    COMFORT_BRAKING_M_S2,
    COMFORT_LATERAL_M_S2,
    MAX_JERK_M_S3,
    VehicleState,
    advance,
    curve_speed_m_s,
    following_m_s2,
    lane_curvature_rate_1_ms,
    speed_jerk_m_s3,
)

REST = VehicleState(3.0, -2.0, 0.7, 0.0, 0.0, 0.0)


def run(state: VehicleState, seconds: float, jerk: float = 0.0) -> VehicleState:
    for _ in range(round(seconds * 100)):
        state = advance(state, jerk, 0.0, 0.01)
    return state


def test_constant_speed_and_curvature_drive_a_circle():
    start = VehicleState(0.0, 0.0, 0.0, 10.0, 0.0, 1 / 40)
    end = run(start, 3.0)
    angle = 10.0 * 3.0 / 40
    assert end.yaw_rad == pytest.approx(angle)
    assert (end.x_m, end.y_m) == pytest.approx(
        (40 * math.sin(angle), 40 * (1 - math.cos(angle))), abs=1e-4
    )


def test_constant_acceleration_gives_half_a_t_squared():
    start = VehicleState(0.0, 0.0, math.pi / 2, 4.0, 1.5, 0.0)
    end = run(start, 2.0)
    assert end.speed_m_s == pytest.approx(4.0 + 1.5 * 2)
    assert (end.x_m, end.y_m) == pytest.approx((0.0, 4.0 * 2 + 1.5 * 4 / 2))


def test_a_braking_vehicle_stops_and_does_not_reverse():
    end = run(VehicleState(0.0, 0.0, 0.0, 1.0, -2.0, 0.0), 3.0)
    assert end.speed_m_s == 0.0
    assert end.x_m == pytest.approx(0.25, abs=0.01)


def test_a_short_step_is_part_of_a_long_one():
    start = VehicleState(0.0, 0.0, 0.2, 8.0, 0.5, 0.01)
    halves = advance(advance(start, 0.6, 0.02, 0.005), 0.6, 0.02, 0.005)
    whole = advance(start, 0.6, 0.02, 0.01)
    assert vars(halves) == pytest.approx(vars(whole), abs=1e-6)


def test_speed_before_a_curve_is_what_comfortable_braking_allows():
    road = Road.straight(400.0)
    road.curvature_1_m[400:] = 1 / 50  # from 200 m on
    in_curve = math.sqrt(COMFORT_LATERAL_M_S2 * 50)
    assert curve_speed_m_s(road, 210.0, 30.0) == pytest.approx(in_curve)
    before = math.sqrt(in_curve**2 + 2 * COMFORT_BRAKING_M_S2 * 40)
    assert curve_speed_m_s(road, 160.0, 30.0) == pytest.approx(before)
    assert curve_speed_m_s(road, 160.0, 5.0) == 5.0


def test_following_brakes_when_close_and_lets_go_when_far():
    assert following_m_s2(10.0, 8.0, 6.0) < -1.0
    assert following_m_s2(10.0, 500.0, 10.0) == pytest.approx(1.2, abs=0.01)
    assert following_m_s2(10.0, 20.0, 6.0) < following_m_s2(10.0, 20.0, 10.0)


def test_jerk_is_bounded_and_points_towards_the_target():
    assert speed_jerk_m_s3(REST, 20.0) == MAX_JERK_M_S3
    assert speed_jerk_m_s3(REST, 20.0, limit_m_s2=-9.0) == -MAX_JERK_M_S3
    assert speed_jerk_m_s3(REST, 0.0) == 0.0


@pytest.mark.parametrize("offset_m", [-1.0, 1.0])
def test_a_vehicle_beside_its_lane_comes_back_to_its_middle(offset_m):
    road = Road.straight(300.0)
    state = VehicleState(10.0, offset_m - 1.75, 0.0, 10.0, 0.0, 0.0)
    for _ in range(600):
        s_m, lateral_m = road.locate(state.x_m, state.y_m, state.x_m)
        rate = lane_curvature_rate_1_ms(state, road, s_m, lateral_m, -1.75)
        state = advance(state, 0.0, rate, 0.01)
    assert state.y_m == pytest.approx(-1.75, abs=0.05)
    assert state.yaw_rad == pytest.approx(0.0, abs=0.01)
