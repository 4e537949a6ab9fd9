"""The bag of plans, read back with rosbags: what the node would have published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from alpamayo_ros.evaluation.plan_bag import write_plan_bag
from alpamayo_ros.types import STEP_NS

from .drives import START_NS, circle
from .runs import NO_ORIGIN, bag_records, record, steady


def read(folder):
    """Messages by topic, with their log times."""
    with AnyReader([folder]) as reader:
        found = {}
        for connection, log_ns, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            found.setdefault(connection.topic, []).append((log_ns, message))
        return found


@pytest.fixture
def rejected_second(tmp_path):
    """Three decisions, the second one rejected."""
    records = steady(3)
    records[1] = replace(records[1], reasons=("lateral: 7 m/s2",))
    write_plan_bag(tmp_path / "plans", bag_records(records), NO_ORIGIN, seed=7)
    return records, read(tmp_path / "plans")


def stamp_ns(header) -> int:
    return header.stamp.sec * 10**9 + header.stamp.nanosec


def test_every_plan_is_there_and_accepted_ones_are_paths(rejected_second):
    records, topics = rejected_second
    assert [log_ns for log_ns, _ in topics["/alpamayo/output/plan"]] == [r.t0_ns for r in records]
    assert len(topics["/alpamayo/output/path"]) == 2
    assert len(topics["/alpamayo/output/path_ego"]) == 2
    assert len(topics["/alpamayo/output/reasoning"]) == 3
    _, plan = topics["/alpamayo/output/plan"][1]
    assert (plan.verdict, plan.reasons, plan.seed) == (plan.REJECTED, ["lateral: 7 m/s2"], 7)


def test_a_true_plan_lies_where_the_vehicle_went(rejected_second):
    """In the map, waypoint k is the pose of the motion k * 0.1 s later, and stamped so."""
    _records, topics = rejected_second
    for topic in ("/alpamayo/output/path", "/alpamayo/evaluation/truth"):
        log_ns, path = topics[topic][0]
        assert path.header.frame_id == "map"
        for k, pose in enumerate(path.poses, start=1):
            assert stamp_ns(pose.header) == log_ns + k * STEP_NS
            x, y, yaw, _ = circle()((log_ns - START_NS) / 1e9 + 0.1 * k)
            position, turned = pose.pose.position, pose.pose.orientation
            np.testing.assert_allclose([position.x, position.y, position.z], [x, y, 41.7])
            assert 2 * np.arctan2(turned.z, turned.w) == pytest.approx(yaw)


def test_the_ego_path_is_the_plan_itself(rejected_second):
    records, topics = rejected_second
    _, path = topics["/alpamayo/output/path_ego"][0]
    assert path.header.frame_id == "base_link"
    xy = np.array([[p.pose.position.x, p.pose.position.y] for p in path.poses])
    np.testing.assert_allclose(xy, records[0].plan[:, :2])


def test_the_plan_message_is_complete(rejected_second):
    _records, topics = rejected_second
    _, plan = topics["/alpamayo/output/plan"][0]
    assert len(plan.waypoints) == 64
    assert plan.ego_speed == 8.0
    assert plan.waypoints[9].time_from_start.sec == 1
    np.testing.assert_allclose([w.speed for w in plan.waypoints], 8.0, rtol=1e-4)
    np.testing.assert_allclose([w.curvature for w in plan.waypoints], 0.2 / 8.0, rtol=1e-3)
    assert dict(zip(plan.stage_names, plan.stage_times_ms)) == {"decode": 3.0, "total": 41.5}
    assert plan.model_id == "model@0123456789ab"
    assert plan.num_samples == 2


def test_an_origin_ahead_of_the_odometry_moves_the_path_ahead(tmp_path):
    """The plan is the truth of the origin, so in the map it is 1.5 m ahead of the vehicle."""
    write_plan_bag(
        tmp_path / "p", bag_records([record(circle(), 2.0)]), (1.5, 0.0, 0.0, 0.0), seed=0
    )
    topics = read(tmp_path / "p")
    (_, plain), *_ = topics["/alpamayo/output/path"]
    x, y, yaw, _ = circle()(2.0)
    first = plain.poses[0].pose.position
    _, _, _, speed = circle()(0)
    assert first.x == pytest.approx(x + (1.5 + speed * 0.1) * np.cos(yaw), abs=0.02)
    assert first.y == pytest.approx(y + (1.5 + speed * 0.1) * np.sin(yaw), abs=0.02)


def test_an_earlier_bag_is_replaced(tmp_path):
    for count in (4, 2):
        write_plan_bag(tmp_path / "p", bag_records(steady(count)), NO_ORIGIN, seed=0)
    assert len(read(tmp_path / "p")["/alpamayo/output/plan"]) == 2
