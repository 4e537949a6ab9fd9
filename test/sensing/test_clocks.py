"""Clocks that jump, stand still, or count from elsewhere: the sampler says so and goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alpamayo_ros.sensing.clocks import clock_hint
from alpamayo_ros.sensing.sampler import Sampler
from alpamayo_ros.types import Reason

from .streams import MS, START_NS, Circle, Event, drive, events, rgb_frame, rig, stamps

S = 1000 * MS
YEAR_NS = round(365.25 * 86_400 * S)


def second_drive(after_s: float, duration_s: float = 3.0) -> list[Event]:
    """A drive whose stamps and clock begin `after_s` from the usual start."""
    shift_ns = round(after_s * S)
    return [
        Event(e.arrival_ns + shift_ns, e.source, e.stamp_ns + shift_ns)
        for e in events(rig(10, duration_s=duration_s), stamps(50, duration_s=duration_s))
    ]


def with_stamps_off_by(offset_ns: int, *sources: str) -> list[Event]:
    """A drive in which these sources (all when none is named) stamp by another clock."""
    return [
        Event(e.arrival_ns, e.source, e.stamp_ns + offset_ns * (e.source in sources or not sources))
        for e in events(rig(10), stamps(50))
    ]


@pytest.mark.parametrize(
    ("ahead_s", "words"),
    [
        (-56 * 365.25 * 86_400, "stamps are 56 years behind the clock: another epoch; set use_sim"),
        (56 * 365.25 * 86_400, "stamps are 56 years ahead of the clock: another epoch"),
        (-86_400, "stamps are 1 day behind the clock: another epoch"),
        (12 * 86_400, "stamps are 12 days ahead of"),
        (37.0, "37.000 s ahead of the clock: TAI is 37 s ahead of UTC; stamps are in TAI"),
        (36.9, "stamps are in TAI and the clock in UTC"),
        (-37.2, "the clock is in TAI"),
    ],
)
def test_an_offset_names_its_likely_cause(ahead_s, words):
    assert words in clock_hint(round(ahead_s * S))


@pytest.mark.parametrize("ahead_s", [0, 0.2, -0.5, 5, -30, 35.9, 38.1, 3600])
def test_an_offset_that_may_be_anything_names_no_cause(ahead_s):
    assert clock_hint(round(ahead_s * S)) == ""


def test_stamps_of_an_uptime_are_called_another_epoch():
    sampler = Sampler()
    assert drive(sampler, with_stamps_off_by(1000 * S - START_NS)) == []
    assert sampler.last_refusal.reason is Reason.STALE
    assert "54 years behind the clock: another epoch; set use_sim_time" in (
        sampler.last_refusal.detail
    )
    assert sampler.clock_hint("odometry")


@pytest.mark.parametrize("source", ["front_tele", "odometry"])
def test_one_sensor_in_another_epoch_is_named(source):
    sampler = Sampler()
    assert drive(sampler, with_stamps_off_by(-50 * YEAR_NS, source)) == []
    assert sampler.last_refusal.detail.startswith(f"{source}: stamps are 50 years behind")
    assert sampler.clock_hint("front_wide") == ""


def test_stamps_in_tai_are_refused_as_future_and_called_so():
    sampler = Sampler()
    assert drive(sampler, with_stamps_off_by(37 * S)) == []
    assert sampler.last_refusal.reason is Reason.FUTURE_STAMP
    assert "TAI is 37 s ahead of UTC; stamps are in TAI" in sampler.last_refusal.detail
    # Nothing of it is kept: with its clock mended the rig plans at once.
    assert drive(sampler, second_drive(4.0))
    assert sampler.clock_hint("front_wide") == ""


def test_a_clock_in_tai_makes_every_t0_stale_and_is_called_so():
    sampler = Sampler()
    assert drive(sampler, with_stamps_off_by(-37 * S)) == []
    assert sampler.last_refusal.reason is Reason.STALE
    assert "the clock is in TAI" in sampler.last_refusal.detail


def test_a_camera_that_died_37_s_ago_is_not_called_tai():
    sampler = Sampler()
    cameras = rig(10, duration_s=42.0)
    cameras["front_tele"] = [t for t in cameras["front_tele"] if t < START_NS + 2 * S]
    drive(sampler, events(cameras, stamps(20, duration_s=42.0)))
    assert sampler.last_refusal.detail.startswith("front_tele has no frame within")


def test_future_stamps_within_the_clocks_tick_are_planned_on():
    assert drive(Sampler(), with_stamps_off_by(150 * MS))


def test_future_stamps_beyond_it_are_refused_with_their_amount():
    sampler = Sampler()
    assert drive(sampler, with_stamps_off_by(5 * S)) == []
    assert ": stamps are 4.998 s ahead of the clock" in sampler.last_refusal.detail


def test_a_seek_forward_plans_again_without_a_reset():
    """Nobody tells the sampler: the gap is seen by its stamps."""
    sampler = Sampler()
    first = drive(sampler, second_drive(0.0))
    second = drive(sampler, second_drive(100.0))
    assert len(first) == len(second) == 15
    # The first history that is whole begins 1.5 s after the seek.
    assert second[0].t0_ns == START_NS + 100 * S + 1500 * MS


def test_a_seek_back_plans_again_after_the_reset_that_the_clock_brings():
    sampler = Sampler()
    late = drive(sampler, second_drive(100.0))
    sampler.reset()
    early = drive(sampler, second_drive(0.0))
    assert [s.t0_ns + 100 * S for s in early] == [s.t0_ns for s in late]


def test_a_bag_that_loops_plans_the_same_in_every_round():
    sampler = Sampler()
    rounds = []
    for _ in range(3):
        rounds.append([s.t0_ns for s in drive(sampler, second_drive(0.0))])
        sampler.reset()
    assert rounds[0] == rounds[1] == rounds[2]
    assert len(rounds[0]) == 15


def test_a_paused_bag_loses_nothing_and_is_no_fault():
    sampler, whole = Sampler(), Sampler()
    messages = events(rig(10), stamps(50))
    half = len(messages) // 2
    before = drive(sampler, messages[:half])
    counted = dict(sampler.refused)
    for _ in range(100):  # the clock stands still, the planner asks on
        assert sampler.take(messages[half - 1].arrival_ns) is None
    assert dict(sampler.refused) == counted
    after = drive(sampler, messages[half:])
    assert [s.t0_ns for s in before + after] == [s.t0_ns for s in drive(whole, messages)]


def test_a_clock_that_starts_at_zero_plans_once_it_runs():
    sampler = Sampler()
    shift_ns = START_NS - 10 * MS
    motion = Circle()
    taken = []
    for event in events(rig(10), stamps(50)):
        # The first 50 ms no /clock has come: the node's time is 0.
        now_ns = event.arrival_ns - shift_ns if event.arrival_ns - START_NS > 50 * MS else 0
        stamp_ns = event.stamp_ns - shift_ns
        if event.source == "odometry":
            pose = replace(motion.pose(event.stamp_ns), stamp_ns=stamp_ns)
            sampler.add_pose(pose, "map", "base_link", now_ns)
        else:
            sampler.add_frame(event.source, rgb_frame(stamp_ns), now_ns)
        if (selection := sampler.take(now_ns)) is not None:
            taken.append(selection.t0_ns)
    assert sampler.refused["waiting_for_clock"] == 4 + 3  # 4 cameras and 3 poses in 50 ms
    # Frames and poses of t = 10 ms are lost; 1.5 s of odometry are there from 60 ms on.
    assert taken[0] == 1610 * MS
    assert len(taken) == 14
