"""Each verdict of the gate at its limit, plus and minus epsilon, and with NaN."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alpamayo_ros.planning import gate
from alpamayo_ros.planning.gate import GateLimits, judge, segment_speeds_m_s

from .plans import arc_plan

LIMITS = GateLimits()
EPSILON = 1e-3


def names(plan, odometry_speed_m_s=None) -> list[str]:
    speed = plan.v0_m_s if odometry_speed_m_s is None else odometry_speed_m_s
    return [reason.split(":")[0] for reason in judge(plan, LIMITS, speed).reasons]


def waypoints_of(plan) -> np.ndarray:
    return plan.waypoints.astype(np.float64)


def test_ordinary_driving_is_accepted():
    for speed in (0.0, 0.3, 8.0, 30.0):
        for curvature in (0.0, 0.005, -0.005):
            assert names(arc_plan(speed, curvature)) == []


def test_true_reverse_driving_is_accepted():
    assert names(arc_plan(-1.5, 0.05)) == []


def test_segment_speeds_start_at_the_ego_and_are_signed():
    np.testing.assert_allclose(segment_speeds_m_s(waypoints_of(arc_plan(8.0))), 8.0, atol=1e-4)
    np.testing.assert_allclose(segment_speeds_m_s(waypoints_of(arc_plan(-2.0))), -2.0, atol=1e-4)
    first = waypoints_of(arc_plan(8.0))
    first[:, 0] += 1.0
    assert segment_speeds_m_s(first)[0] == pytest.approx(18.0, abs=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["samples", "actions"])
def test_anything_that_is_no_number_is_non_finite_and_nothing_else(where, value):
    plan = arc_plan()
    getattr(plan, where)[0, 63, 1] = value
    assert names(plan) == ["non_finite"]
    assert names(replace(arc_plan(), v0_m_s=value)) == ["non_finite"]


@pytest.mark.parametrize(("off_m", "rejected"), [(0.3 - EPSILON, False), (0.3 + EPSILON, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_start_along(off_m, sign, rejected):
    v0 = 8.0 + sign * off_m * 10  # waypoint 1 lies at 0.8 m
    assert (gate.start(waypoints_of(arc_plan(8.0)), v0, 8.0, LIMITS) is not None) is rejected


@pytest.mark.parametrize(("off_m", "rejected"), [(0.2 - EPSILON, False), (0.2 + EPSILON, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_start_across(off_m, sign, rejected):
    waypoints = waypoints_of(arc_plan(8.0))
    waypoints[:, 1] += sign * off_m
    reason = gate.start(waypoints, 8.0, segment_speeds_m_s(waypoints)[0], LIMITS)
    assert (reason is not None and "across" in reason) is rejected


@pytest.mark.parametrize(("off", "rejected"), [(2.0 - EPSILON, False), (2.0 + EPSILON, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_start_speed_is_held_against_the_odometry(off, sign, rejected):
    plan = arc_plan(8.0)
    assert ("start" in names(plan, 8.0 + sign * off)) is rejected


def test_a_nan_of_the_odometry_is_over_every_limit():
    assert names(arc_plan(8.0), float("nan")) == ["start"]


@pytest.mark.parametrize(("angle_deg", "rejected"), [(89.9, False), (90.1, True)])
def test_folding(angle_deg, rejected):
    waypoints = waypoints_of(arc_plan(8.0))
    waypoints[40, 2] = np.radians(angle_deg)
    assert (gate.folding(waypoints, 8.0, LIMITS) is not None) is rejected


def test_folding_is_not_asked_below_half_a_metre_per_second():
    waypoints = waypoints_of(arc_plan(0.49))
    waypoints[:, 2] = np.pi
    assert gate.folding(waypoints, 0.49, LIMITS) is None
    assert gate.folding(waypoints * [1.05, 1, 1], 0.51, LIMITS) is not None


@pytest.mark.parametrize(("back_m", "rejected"), [(0.5 - EPSILON, False), (0.5 + EPSILON, True)])
def test_reverse(back_m, rejected):
    waypoints = np.zeros((64, 3))
    waypoints[20:, 0] = -back_m
    assert (gate.reverse(waypoints, 0.0, LIMITS) is not None) is rejected
    assert gate.reverse(waypoints, -0.29, LIMITS) is None or rejected
    assert gate.reverse(waypoints, -0.31, LIMITS) is None


@pytest.mark.parametrize(("lateral", "rejected"), [(6.0 - EPSILON, False), (6.0 + EPSILON, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_lateral(lateral, sign, rejected):
    # On an arc, chord speed times turn rate: v sinc(k v dt / 2) * k v
    speed, curvature = 10.0, lateral / 100.0
    for _ in range(5):
        curvature = lateral / (speed * speed * np.sinc(curvature * speed * 0.05 / np.pi))
    waypoints = waypoints_of(arc_plan(speed, sign * curvature))
    assert (gate.lateral(waypoints, LIMITS) is not None) is rejected


def test_lateral_is_a_mean_over_half_a_second():
    waypoints = waypoints_of(arc_plan(10.0))
    waypoints[30:, 2] += 0.25  # 25 m/s2 in one step, 5 in the mean
    assert gate.lateral(waypoints, LIMITS) is None
    waypoints[31:, 2] += 0.06  # 6.2 in the mean
    assert gate.lateral(waypoints, LIMITS) is not None


def test_lateral_is_not_asked_below_two_metres_per_second():
    waypoints = waypoints_of(arc_plan(1.9))
    waypoints[:, 2] = np.arange(64) * 1.0
    assert gate.lateral(waypoints, LIMITS) is None


@pytest.mark.parametrize("value", [-9.8, 9.8])
def test_acceleration_keeps_the_checkpoints_bounds(value):
    inside, outside = arc_plan(acceleration=value * 0.999), arc_plan(acceleration=value * 1.001)
    assert names(inside) == []
    assert names(outside) == ["acceleration"]


@pytest.mark.parametrize("value", [-0.33, 0.33])
def test_curvature_keeps_the_checkpoints_bounds(value):
    inside, outside = arc_plan(1.0, value * 0.999), arc_plan(1.0, value * 1.001)
    assert names(inside) == []
    assert names(outside) == ["curvature"]


@pytest.mark.parametrize(("speed", "rejected"), [(59.99, False), (60.01, True)])
def test_speed(speed, rejected):
    assert ("speed" in names(arc_plan(speed))) is rejected


def test_truncated_reasoning_is_rejected():
    assert names(arc_plan(truncated=True)) == ["truncated"]


@pytest.mark.parametrize("check", [gate.folding, gate.lateral, gate.speed, gate.reverse])
def test_every_check_fails_closed_on_nan(check):
    waypoints = waypoints_of(arc_plan(8.0))
    waypoints[5] = np.nan
    arguments = (8.0, LIMITS) if check in (gate.folding, gate.reverse) else (LIMITS,)
    assert check(waypoints, *arguments) is not None


def test_only_the_chosen_sample_is_judged():
    plan = arc_plan(samples=3)
    plan.samples[2] = np.nan
    assert names(plan) == []
    assert names(replace(plan, chosen=2)) == ["non_finite"]
