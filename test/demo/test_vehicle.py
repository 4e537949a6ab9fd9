"""What makes vehicles brake, against closed forms."""

import math

import numpy as np
import pytest

from alpamayo_ros.demo.road import RoadPlan
from alpamayo_ros.demo.vehicle import (
    COMFORT_BRAKING_M_S2,
    COMFORT_LATERAL_M_S2,
    MAX_ACCELERATION_M_S2,
    MAX_JERK_M_S3,
    STANDSTILL_GAP_M,
    allowed_speed_m_s,
    following_m_s2,
    jerk_m_s3,
    lane_curvature_1_m,
)


def test_a_lane_inside_a_bend_is_more_curved_and_one_outside_less():
    plan = RoadPlan()
    plan.bend(20.0, math.pi, 5.0)
    road = plan.road((0.0, 0.0), 0.0)
    middle = len(road.s_m) // 2
    assert lane_curvature_1_m(road, 2.0)[middle] == pytest.approx(1 / 18)
    assert lane_curvature_1_m(road, -2.0)[middle] == pytest.approx(1 / 22)


def test_speed_before_a_curve_is_what_gentle_braking_allows():
    curvature = np.zeros(4000)
    curvature[2000:] = 1 / 50  # from 200 m on
    allowed = allowed_speed_m_s(curvature, 0.1)
    in_curve = math.sqrt(COMFORT_LATERAL_M_S2 * 50)
    assert allowed[2100] == pytest.approx(in_curve)
    before = math.sqrt(in_curve**2 + 2 * COMFORT_BRAKING_M_S2 * 40)
    assert allowed[1600] == pytest.approx(before, abs=0.01)


def test_allowed_speed_agrees_with_a_slow_backward_pass():
    curvature = np.random.default_rng(3).uniform(-0.1, 0.1, 300)
    slow = np.sqrt(COMFORT_LATERAL_M_S2 / np.abs(curvature))
    for i in range(len(slow) - 2, -1, -1):
        slow[i] = min(slow[i], math.sqrt(slow[i + 1] ** 2 + 2 * COMFORT_BRAKING_M_S2 * 0.5))
    np.testing.assert_allclose(allowed_speed_m_s(curvature, 0.5), slow)


def test_following_brakes_when_close_and_lets_go_when_far():
    assert following_m_s2(10.0, 8.0, 6.0) < -1.0
    assert following_m_s2(10.0, 500.0, 10.0) == pytest.approx(MAX_ACCELERATION_M_S2, abs=0.01)
    assert following_m_s2(10.0, 20.0, 6.0) < following_m_s2(10.0, 20.0, 10.0)
    assert following_m_s2(0.0, STANDSTILL_GAP_M, 0.0) == pytest.approx(0.0)


def test_jerk_is_bounded_and_points_towards_the_wanted_acceleration():
    assert jerk_m_s3(0.0, 20.0) == MAX_JERK_M_S3
    assert jerk_m_s3(0.0, -9.0) == -MAX_JERK_M_S3
    assert jerk_m_s3(0.5, 0.5) == 0.0
    assert 0 < jerk_m_s3(0.0, 0.1) < MAX_JERK_M_S3
