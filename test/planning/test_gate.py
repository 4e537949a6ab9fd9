"""Each verdict of the gate at its limit, plus and minus epsilon, and with NaN."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alpamayo_ros.planning import gate
from alpamayo_ros.planning.gate import GateLimits, judge, segment_speeds_m_s

from .plans import arc_plan

LIMITS = GateLimits()
STEADY = np.zeros((64, 2))  # actions that keep speed and heading
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
    assert (gate.folding(waypoints, STEADY, 8.0, LIMITS) is not None) is rejected


def test_folding_is_not_asked_below_half_a_metre_per_second():
    waypoints = waypoints_of(arc_plan(0.49))
    waypoints[:, 2] = np.pi
    assert gate.folding(waypoints, STEADY, 0.49, LIMITS) is None
    assert gate.folding(waypoints * [1.05, 1, 1], STEADY, 0.51, LIMITS) is not None


@pytest.mark.parametrize(("angle_deg", "rejected"), [(89.9, False), (90.1, True), (180, True)])
def test_folding_of_an_ego_that_backs_up_is_held_against_its_backward_motion(angle_deg, rejected):
    waypoints = waypoints_of(arc_plan(-1.5))
    waypoints[40, 2] = np.radians(angle_deg)
    assert (gate.folding(waypoints, STEADY, -1.5, LIMITS) is not None) is rejected


def test_an_ego_that_backs_up_may_stop_and_drive_on_forward():
    """From -2 m/s with 1 m/s2: back for 2 s, then forward."""
    time_s = np.arange(1, 65) * 0.1
    x = -2.0 * time_s + time_s**2 / 2
    waypoints = np.column_stack([x, 0 * x, 0 * x])
    actions = np.tile([1.0, 0.0], (64, 1))
    assert gate.folding(waypoints, actions, -2.0, LIMITS) is None
    assert gate.reverse(waypoints, -2.0, LIMITS) is None


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


@pytest.mark.parametrize("sign", [1, -1])
def test_a_path_that_turns_without_its_heading_is_lateral_too(sign):
    """A slide: the heading stays, the motion turns by 0.2 rad a step at 8 m/s: 16 m/s2."""
    course = sign * 0.2 * np.arange(1, 65)
    xy = np.cumsum(0.8 * np.column_stack([np.cos(course), np.sin(course)]), axis=0)
    waypoints = np.column_stack([xy, np.zeros(64)])
    assert "lateral: 16.00 m/s2" in (gate.lateral(waypoints, LIMITS) or "")


def test_a_zigzag_is_lateral():
    waypoints = waypoints_of(arc_plan(8.0))
    waypoints[::2, 1] += 0.15
    assert gate.lateral(waypoints, LIMITS) is not None


@pytest.mark.parametrize(("jump_m_s2", "rejected"), [(9.7, False), (10.0, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_acceleration_is_also_that_of_the_path(jump_m_s2, rejected, sign):
    """From one segment to the next the speed changes by jump * 0.1 s, whatever the actions say."""
    waypoints = waypoints_of(arc_plan(8.0))
    waypoints[30:, 0] += sign * jump_m_s2 * 0.1 * 0.1 * np.arange(1, 35)
    assert (gate.acceleration(waypoints, STEADY, LIMITS) is not None) is rejected


def test_a_jump_between_waypoints_and_a_dead_stop_are_rejected():
    jump = arc_plan(8.0)
    jump.samples[0, 20:, 0] += 5.0
    assert names(jump) == ["acceleration"]
    stop = arc_plan(30.0)
    stop.samples[0, 10:] = stop.samples[0, 9]
    assert names(stop) == ["acceleration"]


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


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        (gate.folding, (STEADY, 8.0, LIMITS)),
        (gate.folding, (STEADY, -8.0, LIMITS)),
        (gate.reverse, (8.0, LIMITS)),
        (gate.lateral, (LIMITS,)),
        (gate.speed, (LIMITS,)),
        (gate.acceleration, (STEADY, LIMITS)),
    ],
)
def test_every_check_fails_closed_on_nan(check, arguments):
    waypoints = waypoints_of(arc_plan(8.0))
    waypoints[5] = np.nan
    assert check(waypoints, *arguments) is not None


def test_only_the_chosen_sample_is_judged():
    plan = arc_plan(samples=3)
    plan.samples[2] = np.nan
    assert names(plan) == []
    assert names(replace(plan, chosen=2)) == ["non_finite"]
