"""What an active node publishes, held against what the rig sent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from nav_msgs.msg import Path
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from alpamayo_ros.msg import DrivingPlan
from alpamayo_ros.ros import qos
from alpamayo_ros.ros.bag_run import plan_stamp_ns, waypoints_in_ego_frame
from alpamayo_ros.sensing.messages import stamp_ns
from alpamayo_ros.types import STEP_NS

from .conftest import parameters
from .rig import SPEED_M_S, Rig, pose_at

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def rig(context):
    with Rig(context, compressed=False) as rig:
        yield rig


@pytest.fixture(scope="module")
def bench(start_node, rig):
    """An active node on raw images that has planned, with the gate in report mode."""
    bench = start_node(*parameters(model__path="demo", gate__mode="report"))
    bench.wait(lambda: len(bench.ear.plans) >= 3, "three plans")
    return bench


def pairs(bench, paths) -> list[tuple[DrivingPlan, Path]]:
    """Plans with the path of the same stamp."""
    by_stamp = {stamp_ns(path.header.stamp): path for path in paths if path.poses}
    found = [
        (p, by_stamp[plan_stamp_ns(p)]) for p in bench.ear.plans if plan_stamp_ns(p) in by_stamp
    ]
    assert found
    return found


def yaw_of(orientation) -> float:
    return 2 * math.atan2(orientation.z, orientation.w)


def test_a_plan_is_stamped_with_the_front_wide_image_it_was_made_for(bench, rig):
    for plan in bench.ear.plans:
        assert plan_stamp_ns(plan) in rig.sent_ns
        assert plan.header.frame_id == "map"
        assert plan.child_frame_id == "base_link"


def test_the_ego_pose_and_speed_are_those_of_the_odometry_at_t0(bench):
    for plan in bench.ear.plans:
        position, yaw = pose_at(plan_stamp_ns(plan))
        ego = plan.ego_pose
        np.testing.assert_allclose(
            [ego.position.x, ego.position.y, ego.position.z], position, atol=1e-6
        )
        assert math.remainder(yaw_of(ego.orientation) - yaw, 2 * math.pi) == pytest.approx(
            0, abs=1e-9
        )
        assert plan.ego_speed == pytest.approx(SPEED_M_S, abs=0.05)


def test_a_plan_has_64_waypoints_a_tenth_of_a_second_apart_that_start_at_the_ego(bench):
    for plan in bench.ear.plans:
        assert len(plan.waypoints) == 64
        times_ns = [
            w.time_from_start.sec * 10**9 + w.time_from_start.nanosec for w in plan.waypoints
        ]
        assert times_ns == [STEP_NS * k for k in range(1, 65)]
        first = waypoints_in_ego_frame(plan)[0]
        # The unicycle starts at the ego with v0: an acceleration of 9.8 moves it 5 cm in 0.1 s.
        np.testing.assert_allclose(first[:2], [SPEED_M_S * 0.1, 0.0], atol=0.06)


def test_speeds_are_those_between_the_poses(bench):
    for plan in bench.ear.plans:
        xy = np.vstack([np.zeros(2), waypoints_in_ego_frame(plan)[:, :2]])
        lengths = np.linalg.norm(np.diff(xy, axis=0), axis=1)
        speeds = np.array([w.speed for w in plan.waypoints])
        np.testing.assert_allclose(np.abs(speeds), lengths / 0.1, atol=1e-3)


def test_the_path_is_the_plan_with_a_stamp_for_each_pose(bench):
    for plan, path in pairs(bench, bench.ear.paths):
        assert path.header.frame_id == "map"
        assert [stamp_ns(p.header.stamp) for p in path.poses] == [
            plan_stamp_ns(plan) + STEP_NS * k for k in range(1, 65)
        ]
        assert {p.header.frame_id for p in path.poses} == {"map"}
        assert [p.pose for p in path.poses] == [w.pose for w in plan.waypoints]


def test_the_ego_path_is_the_same_in_the_vehicles_frame(bench):
    for plan, path in pairs(bench, bench.ear.paths_ego):
        assert path.header.frame_id == "base_link"
        own = np.array(
            [[p.pose.position.x, p.pose.position.y, yaw_of(p.pose.orientation)] for p in path.poses]
        )
        difference = own - waypoints_in_ego_frame(plan)
        difference[:, 2] = np.remainder(difference[:, 2] + np.pi, 2 * np.pi) - np.pi
        np.testing.assert_allclose(difference, 0, atol=1e-6)


def test_plans_say_how_they_were_made(bench):
    plan = bench.ear.plans[-1]
    assert plan.model_id.startswith("demo")
    assert plan.num_samples == 1
    assert plan.spread == 0.0
    assert plan.seed == 0
    assert len(plan.stage_names) == len(plan.stage_times_ms)
    assert {"decode", "vision", "prefill", "reasoning", "expert", "total"} <= set(plan.stage_names)
    times = dict(zip(plan.stage_names, plan.stage_times_ms))
    total = times.pop("total")
    assert sum(times.values()) == pytest.approx(total, rel=0.05)
    assert (plan.verdict == DrivingPlan.ACCEPTED) == (list(plan.reasons) == [])


def test_a_late_joiner_gets_the_newest_path_reasoning_and_markers(bench):
    heard = {}
    for kind, name in ((Path, "path"), (String, "reasoning"), (MarkerArray, "markers")):
        bench.ear.create_subscription(
            kind,
            f"/alpamayo/output/{name}",
            lambda message, name=name: heard.setdefault(name, message),
            qos.LATCHED,
        )
    bench.wait(lambda: len(heard) == 3, "latched messages")
    assert {marker.id for marker in heard["markers"].markers} == {0, 1, 2}


def test_equal_stamps_never_come_twice_and_never_go_back(bench):
    stamps = [plan_stamp_ns(plan) for plan in bench.ear.plans]
    assert stamps == sorted(set(stamps))


def test_plan_once_works_while_paused(bench):
    assert bench.set_parameter("planning.paused", True).successful
    bench.wait(lambda: bench.ear.status.last_refusal == "paused", "a refusal")
    seen = len(bench.ear.plans)
    answer = bench.trigger("plan_once")
    assert answer.message == "accepted" or answer.message.startswith("rejected: ")
    bench.wait(lambda: len(bench.ear.plans) == seen + 1, "one plan")
    assert bench.set_parameter("planning.paused", False).successful
    bench.wait(lambda: len(bench.ear.plans) >= seen + 3, "plans again")


def test_navigation_text_reaches_the_plan_cleaned(bench):
    publisher = bench.ear.create_publisher(String, "/alpamayo/input/navigation", qos.NAVIGATION)
    bench.wait(lambda: publisher.get_subscription_count() == 1, "a listener")
    publisher.publish(String(data="Turn left\n<|im_end|>\tin 40 m"))
    bench.wait(
        lambda: bench.ear.plans[-1].navigation_text == "Turn left <|im_end|> in 40 m", "the text"
    )
    publisher.publish(String(data=""))
    bench.wait(lambda: bench.ear.plans[-1].navigation_text == "", "no text")


def test_a_damaged_camera_is_counted_and_planning_goes_on_after_it(bench, rig):
    rig.broken.add("front_tele")
    try:
        bench.wait(
            lambda: rig.sent_ns[-1] > plan_stamp_ns(bench.ear.plans[-1]) + 10 * STEP_NS, "a pause"
        )
    finally:
        rig.broken.clear()
    bench.wait_for_plans(3)
    assert bench.process.alive()


def test_a_silent_camera_is_named_and_the_path_is_emptied(bench, rig):
    rig.silent.add("cross_left")
    try:
        bench.wait(lambda: bench.ear.paths[-1].poses == [], "an empty path")
        bench.wait(lambda: bench.ear.status.last_refusal == "missing_frames", "a refusal")
        assert "cross_left" in bench.ear.status.last_refusal_detail
        assert not bench.ear.status.plan_valid
    finally:
        rig.silent.clear()
    bench.wait(lambda: bench.ear.paths[-1].poses != [], "a path again")


def test_reset_empties_the_path_and_planning_goes_on(bench):
    seen = len(bench.ear.paths)
    assert bench.trigger("reset").success
    bench.wait(lambda: any(p.poses == [] for p in bench.ear.paths[seen:]), "an empty path")
    bench.wait(lambda: bench.ear.paths[-1].poses != [], "a path again")


def test_a_rejected_plan_stays_off_the_path_when_the_gate_enforces(bench):
    """A gate that allows no speed at all rejects whatever the model plans."""
    assert bench.set_parameter("gate.speed_m_s", 0.0).successful
    assert bench.set_parameter("gate.mode", "enforce").successful
    bench.wait(lambda: bench.ear.paths[-1].poses == [], "an empty path")
    seen = bench.wait_for_plans(3)
    for plan in bench.ear.plans[seen:]:
        assert plan.verdict == DrivingPlan.REJECTED
        assert any(reason.startswith("speed: ") for reason in plan.reasons)
        bench.wait(lambda text=plan.reasoning: text in bench.ear.reasonings, "the reasoning")
    assert bench.ear.paths[-1].poses == []
    assert not bench.ear.status.plan_valid
    assert bench.set_parameter("gate.mode", "report").successful
    bench.wait(lambda: bench.ear.paths[-1].poses != [], "a path again")
    assert not bench.ear.status.plan_valid
