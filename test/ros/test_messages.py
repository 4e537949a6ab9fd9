"""Plans as messages: stamps in integers, poses by quaternion, colours for the eye."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from alpamayo_ros.planning.placement import IDENTITY, Placement
from alpamayo_ros.ros.messages import (
    empty_markers,
    marker_message,
    path_message,
    placed_poses,
    time_message,
)
from alpamayo_ros.sensing.messages import stamp_ns

from ..planning.plans import T0_NS, arc_plan


@pytest.mark.parametrize("value_ns", [0, 1, 999_999_999, 10**9, 1_700_000_000_123_456_789])
def test_times_survive_in_integer_nanoseconds(value_ns):
    assert stamp_ns(time_message(value_ns)) == value_ns


def quaternion(roll, pitch, yaw):
    cr, sr, cp, sp = (
        math.cos(roll / 2),
        math.sin(roll / 2),
        math.cos(pitch / 2),
        math.sin(pitch / 2),
    )
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return np.array(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ]
    )


def test_waypoints_are_placed_with_position_and_full_attitude():
    """On a 10 % slope a point 20 m ahead lies 2 m higher; yaw turns about the vehicle's own z."""
    slope = math.atan(0.1)
    at = Placement(np.array([4e6, 5e5, 100.0]), quaternion(0.0, -slope, 0.3))
    pose = placed_poses(at, np.array([[20.0, 0.0, 0.4]]), 0.0)[0]
    along = 20.0 * math.cos(slope)
    assert pose.position.x == pytest.approx(4e6 + along * math.cos(0.3), abs=1e-6)
    assert pose.position.y == pytest.approx(5e5 + along * math.sin(0.3), abs=1e-6)
    assert pose.position.z == pytest.approx(100.0 + 20.0 * math.sin(slope), abs=1e-9)
    # q_slope then yaw 0.4 about the tilted z: compare with the product written out
    qx, qy, qz, qw = quaternion(0.0, -slope, 0.3)
    s, c = math.sin(0.2), math.cos(0.2)
    expected = np.array([qx * c + qy * s, qy * c - qx * s, qz * c + qw * s, qw * c - qz * s])
    o = pose.orientation
    np.testing.assert_allclose([o.x, o.y, o.z, o.w], expected, atol=1e-12)
    assert np.linalg.norm([o.x, o.y, o.z, o.w]) == pytest.approx(1.0, abs=1e-12)


def test_the_origin_of_the_model_may_lie_behind_the_vehicles_frame():
    origin = IDENTITY.then((-1.4, 0.2, 0.5, math.pi / 2))
    pose = placed_poses(origin, np.array([[10.0, 0.0, 0.0]]), 0.0)[0]
    assert pose.position.x == pytest.approx(-1.4)
    assert pose.position.y == pytest.approx(10.2)
    assert pose.position.z == pytest.approx(0.5)
    assert pose.orientation.z == pytest.approx(math.sin(math.pi / 4))


def test_a_path_without_poses_says_that_there_is_no_plan():
    path = path_message("map", T0_NS, [])
    assert path.poses == []
    assert stamp_ns(path.header.stamp) == T0_NS
    assert path.header.frame_id == "map"


def test_markers_are_the_same_three_with_fixed_names_and_no_deleteall():
    plan = arc_plan(samples=3)
    arrays = [
        marker_message("map", plan, IDENTITY, driven=True),
        marker_message("map", arc_plan(), IDENTITY, driven=False),
        empty_markers("map", T0_NS),
    ]
    for array in arrays:
        assert [(m.ns, m.id) for m in array.markers] == [("alpamayo", i) for i in range(3)]
        assert all(m.action != 3 for m in array.markers)
    path, fan, text = arrays[0].markers
    assert len(path.points) == len(path.colors) == 64
    assert len(fan.points) == 2 * 63 * 2  # two other samples, each of 63 segments
    assert text.text == plan.reasoning


def test_long_reasoning_has_line_breaks_above_the_ego():
    plan = replace(arc_plan(), reasoning="slow down for the bend " * 10)
    text = marker_message("map", plan, IDENTITY, driven=True).markers[2].text
    assert text.split() == plan.reasoning.split()
    lines = text.splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 48


def test_a_plan_that_is_not_driven_is_grey_and_a_driven_one_greener_the_faster():
    slow = marker_message("map", arc_plan(2.0), IDENTITY, driven=True).markers[0].colors[0]
    fast = marker_message("map", arc_plan(18.0), IDENTITY, driven=True).markers[0].colors[0]
    grey = marker_message("map", arc_plan(18.0), IDENTITY, driven=False).markers[0].colors[0]
    assert fast.g > slow.g
    assert fast.r < slow.r
    assert grey.r == grey.g == grey.b
