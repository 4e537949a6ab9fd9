"""The t0 rule: which frames, which poses, which reasons."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from alpamayo_ros.sensing.sampler import Sampler, SamplerSettings
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import CAMERA_ROLES, FRAME_OFFSETS_NS, EgoPose, Reason

from .streams import MS, START_NS, Circle, drive, events, feed, rgb_frame, rig, stamps

TOLERANCE_NS = 55 * MS


def offsets_ns(selection: Selection) -> np.ndarray:
    """How far each frame (4 cameras, 4 frames) lies from its instant."""
    return np.array(
        [
            [
                f.stamp_ns - selection.t0_ns - o
                for f, o in zip(selection.frames[role], FRAME_OFFSETS_NS)
            ]
            for role in CAMERA_ROLES
        ]
    )


@pytest.mark.parametrize("phase_ms", [0, 7, 40, 48, 50])
@pytest.mark.parametrize("rate_hz", [10, 15, 20, 30, 60])
def test_each_history_frame_is_the_nearest_one_to_its_instant(rate_hz, phase_ms):
    cameras = rig(rate_hz, {"cross_left": phase_ms, "front_tele": phase_ms / 2})
    taken = drive(Sampler(), events(cameras, stamps(50)))
    assert len(taken) >= 10
    for selection in taken:
        assert selection.t0_ns in cameras["front_wide"]
        assert np.abs(offsets_ns(selection)).max() <= TOLERANCE_NS
        for role in CAMERA_ROLES:
            for frame, offset in zip(selection.frames[role], FRAME_OFFSETS_NS):
                nearest = min(cameras[role], key=lambda t: (abs(t - selection.t0_ns - offset), t))
                assert frame.stamp_ns == nearest


@pytest.mark.parametrize("rate_hz", [10, 30])
def test_plans_ten_times_a_second_whatever_the_cameras_rate(rate_hz):
    taken = drive(Sampler(), events(rig(rate_hz), stamps(50)))
    t0s = [selection.t0_ns for selection in taken]
    assert set(np.diff(t0s)) <= {100 * MS, 100 * MS - 1, 100 * MS + 1}
    # 1.5 s of odometry are needed before the first, so 1.5 s of 3 s are left
    assert len(t0s) == 15


@pytest.mark.parametrize("odometry_hz", [10, 50, 100, 200])
def test_the_history_is_that_of_the_motion_at_any_odometry_rate(odometry_hz):
    motion = Circle(speed_m_s=8.0, curvature=0.02)
    taken = drive(Sampler(), events(rig(10), stamps(odometry_hz)), motion)
    assert taken
    for selection in taken:
        s = 8.0 * np.arange(-15, 1) * 0.1
        expected = np.column_stack([np.sin(0.02 * s) / 0.02, (1 - np.cos(0.02 * s)) / 0.02, 0 * s])
        np.testing.assert_allclose(selection.ego_history_xyz, expected, atol=2e-3)
        yaw = np.arctan2(selection.ego_history_rot[:, 1, 0], selection.ego_history_rot[:, 0, 0])
        np.testing.assert_allclose(yaw, 0.02 * s, atol=1e-9)
        assert (selection.ego_history_xyz[-1] == 0).all()
        assert (selection.ego_history_rot[-1] == np.eye(3)).all()


def test_arrival_order_does_not_change_what_is_planned():
    cameras = rig(30, {"cross_left": 11, "cross_right": 21, "front_tele": 32})
    in_order = events(cameras, stamps(100), delay_ns=0)
    rng = np.random.default_rng(1)
    # every source keeps its own order and is late by a constant of its own
    late = {name: int(rng.integers(0, 60)) * MS for name in [*cameras, "odometry"]}
    shuffled = sorted(in_order, key=lambda e: e.stamp_ns + late[e.source])
    a = {s.t0_ns: offsets_ns(s).tolist() for s in drive(Sampler(), in_order)}
    b = {s.t0_ns: offsets_ns(s).tolist() for s in drive(Sampler(), shuffled)}
    both = set(a) & set(b)
    assert len(both) >= 5
    assert all(a[t0] == b[t0] for t0 in both)


def test_a_synchronised_rig_waits_for_nothing():
    sampler = Sampler()
    for message in events(rig(10), stamps(50), delay_ns=0):
        feed(sampler, message, Circle())
        if message.stamp_ns == START_NS + 2000 * MS and message.source == "odometry":
            break
    # all messages stamped 2.0 s are in: odometry sorts after the cameras
    selection = sampler.take(START_NS + 2000 * MS)
    assert selection is not None
    assert selection.t0_ns == START_NS + 2000 * MS


def test_t0_never_goes_back_and_is_never_planned_twice():
    cameras = rig(30, {"front_tele": 17})
    messages = events(cameras, stamps(50))
    rng = np.random.default_rng(0)
    messages = sorted(messages, key=lambda e: e.arrival_ns + int(rng.integers(0, 80)) * MS)
    t0s = [s.t0_ns for s in drive(Sampler(), messages)]
    assert len(t0s) >= 5
    assert all(b > a for a, b in itertools.pairwise(t0s))


def test_newest_wins_and_passed_over_ones_count_as_busy():
    sampler = Sampler()
    for message in events(rig(10), stamps(50)):
        feed(sampler, message, Circle())
    selection = sampler.take(START_NS + 2910 * MS)
    assert selection is not None
    assert selection.t0_ns == START_NS + 2900 * MS
    # t0 of 0.0 to 2.8 s: those that are kept (0.955 s) were passed over
    assert sampler.refused == {"busy": 9}
    assert sampler.take(START_NS + 2910 * MS) is None


def expect_reason(sampler: Sampler, reason: Reason, words: str) -> None:
    assert sampler.last_refusal is not None
    assert sampler.last_refusal.reason is reason, sampler.last_refusal
    assert words in sampler.last_refusal.detail
    assert sampler.refused[reason.value] >= 1


def test_a_dead_camera_is_named():
    cameras = rig(10)
    del cameras["cross_right"]
    sampler = Sampler()
    assert drive(sampler, events(cameras, stamps(50))) == []
    expect_reason(sampler, Reason.MISSING_FRAMES, "cross_right has no frame")


def test_a_camera_that_dies_on_the_way_is_named():
    cameras = rig(10)
    cameras["front_tele"] = [t for t in cameras["front_tele"] if t < START_NS + 2000 * MS]
    sampler = Sampler()
    taken = drive(sampler, events(cameras, stamps(50)))
    assert max(s.t0_ns for s in taken) == START_NS + 1900 * MS
    expect_reason(sampler, Reason.MISSING_FRAMES, "front_tele has no frame within 0.055 s")


def test_a_hole_in_a_cameras_history_is_unsynchronised():
    cameras = rig(10)
    cameras["cross_left"].remove(START_NS + 2000 * MS)
    sampler = Sampler()
    t0s = {s.t0_ns for s in drive(sampler, events(cameras, stamps(50)))}
    lost = {START_NS + k * MS for k in (2000, 2100, 2200, 2300)}
    assert not t0s & lost
    assert START_NS + 2400 * MS in t0s
    expect_reason(
        sampler, Reason.UNSYNCHRONISED, "cross_left has no frame within 0.055 s of t0-0.3 s"
    )


def test_an_odometry_gap_is_refused_and_then_forgotten():
    gap = [t for t in stamps(50, duration_s=5) if not 2010 * MS < t - START_NS < 2400 * MS]
    sampler = Sampler()
    t0s = {s.t0_ns for s in drive(sampler, events(rig(10, duration_s=5), gap))}
    assert START_NS + 2000 * MS in t0s
    assert not any(START_NS + 2100 * MS <= t < START_NS + 3500 * MS for t in t0s)
    assert max(t0s) == START_NS + 4900 * MS
    expect_reason(sampler, Reason.ODOMETRY_GAP, "gap of 0.400 s, over odometry.max_gap_s 0.3")


def test_an_odometry_jump_is_refused_and_then_forgotten():
    class Jumping(Circle):
        def at(self, stamp_ns):
            position, yaw = super().at(stamp_ns)
            return position + (1.0 if stamp_ns >= START_NS + 2050 * MS else 0.0), yaw

    sampler = Sampler()
    t0s = {
        s.t0_ns
        for s in drive(sampler, events(rig(10, duration_s=5), stamps(50, duration_s=5)), Jumping())
    }
    assert START_NS + 2000 * MS in t0s
    assert START_NS + 2100 * MS not in t0s
    assert START_NS + 4900 * MS in t0s
    expect_reason(sampler, Reason.ODOMETRY_JUMP, "m/s2, over 15")


@pytest.mark.parametrize(
    ("twist", "refused"), [(8.0, False), (9.7, False), (10.1, True), (-8.0, True)]
)
def test_a_twist_that_does_not_fit_the_motion_is_refused(twist, refused):
    # implied 8 m/s; allowed are 1 m/s + 10 % of the twist: 8 <= 0.9 twist - 1 from 10.0 on
    class Lying(Circle):
        def pose(self, stamp_ns):
            pose = super().pose(stamp_ns)
            return EgoPose(pose.stamp_ns, pose.position, pose.quaternion, twist)

    sampler = Sampler()
    taken = drive(sampler, events(rig(10), stamps(50)), Lying())
    assert (taken == []) is refused
    if refused:
        expect_reason(sampler, Reason.ODOMETRY_INCONSISTENT, "positions imply 8.00 m/s")


def test_a_twist_of_zero_all_along_is_taken_as_not_filled():
    class Unfilled(Circle):
        def pose(self, stamp_ns):
            pose = super().pose(stamp_ns)
            return EgoPose(pose.stamp_ns, pose.position, pose.quaternion, 0.0)

    sampler = Sampler()
    taken = drive(sampler, events(rig(10), stamps(50)), Unfilled())
    assert taken
    assert sampler.twist_not_filled
    assert taken[-1].t0_speed_m_s == pytest.approx(8.0, abs=1e-3)


def test_an_old_t0_is_stale():
    sampler = Sampler()
    for message in events(rig(10), stamps(50)):
        feed(sampler, message, Circle())
    assert sampler.take(START_NS + 5000 * MS) is None
    expect_reason(sampler, Reason.STALE, "t0 is")


def test_stamps_from_the_future_are_not_kept():
    sampler = Sampler()
    refusal = sampler.add_frame("front_wide", rgb_frame(START_NS + 37_000 * MS), START_NS)
    assert refusal is not None
    expect_reason(sampler, Reason.FUTURE_STAMP, "37.000 s ahead of the clock")
    assert drive(sampler, events(rig(10), stamps(50)))


def test_nothing_is_kept_before_the_first_clock_or_without_a_stamp():
    sampler = Sampler()
    sampler.add_frame("front_wide", rgb_frame(START_NS), 0)
    expect_reason(sampler, Reason.WAITING_FOR_CLOCK, "no /clock")
    sampler.add_frame("front_wide", rgb_frame(0), START_NS)
    expect_reason(sampler, Reason.STALE, "front_wide has no stamp")
    assert len(sampler.rings["front_wide"]) == 0


def test_after_reset_the_same_drive_is_planned_again():
    sampler = Sampler()
    messages = events(rig(10), stamps(50))
    first = [s.t0_ns for s in drive(sampler, messages)]
    assert drive(sampler, messages) == []
    sampler.reset()
    assert [s.t0_ns for s in drive(sampler, messages)] == first


def test_skipping_counts_each_t0_once():
    sampler = Sampler()
    for message in events(rig(10), stamps(50)):
        feed(sampler, message, Circle())
        sampler.skip(message.arrival_ns, Reason.PAUSED, "paused")
    assert sampler.refused == {"paused": 30}


def test_newest_answers_again_for_a_planned_t0_but_never_for_an_older_one():
    sampler = Sampler()
    taken = drive(sampler, events(rig(10), stamps(50)))
    again = sampler.newest(START_NS + 2910 * MS)
    assert isinstance(again, Selection)
    assert again.t0_ns == taken[-1].t0_ns


def test_the_models_origin_may_lie_elsewhere_on_the_vehicle():
    """A point 1.4 m behind the odometry's moves on a circle of its own, slower in the same yaw."""
    settings = SamplerSettings(to_rear_axle=(-1.4, 0.0, 0.0, 0.0))
    motion = Circle(speed_m_s=8.0, curvature=0.05)
    selection = drive(Sampler(settings), events(rig(10), stamps(200)), motion)[-1]
    yaw = 8.0 * 0.05 * np.arange(-15, 1) * 0.1
    r = 1 / 0.05
    # relative to the circle's centre, seen from the pose at t0
    x = r * np.sin(yaw) - 1.4 * np.cos(yaw) + 1.4
    y = r * (1 - np.cos(yaw)) - 1.4 * np.sin(yaw)
    np.testing.assert_allclose(selection.ego_history_xyz[:, 0], x, atol=1e-3)
    np.testing.assert_allclose(selection.ego_history_xyz[:, 1], y, atol=1e-3)
