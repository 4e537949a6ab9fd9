"""What is done ahead is what the next plan uses: at any rate, phase and pace of planning."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.sensing.ahead import expected_t0_ns, frames_ahead
from alpamayo_ros.sensing.sampler import Sampler, SamplerSettings
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import CAMERA_ROLES, FRAME_OFFSETS_NS

from .streams import MS, START_NS, Circle, Event, events, feed, rig, stamps

FRAMES = len(CAMERA_ROLES) * len(FRAME_OFFSETS_NS)


def idle_drive(sampler: Sampler, messages: list[Event]) -> list[tuple[Selection, set, set]]:
    """Plan whenever it can be, between the messages look ahead.

    Of each selection but the first its frames as (role, stamp), and those named ahead before it.
    """
    motion, ahead, taken = Circle(), set(), []
    for message in messages:
        feed(sampler, message, motion)
        selection = sampler.take(message.arrival_ns)
        if selection is None:
            frames = frames_ahead(sampler, message.arrival_ns)
            ahead |= {(role, frame.stamp_ns) for role, frame in frames}
            continue
        used = {(role, f.stamp_ns) for role in CAMERA_ROLES for f in selection.frames[role]}
        taken.append((selection, used, ahead))
        ahead = set()
    return taken[1:]


@pytest.mark.parametrize("planning_hz", [1, 2, 5, 10])
@pytest.mark.parametrize("phase_ms", [0, 7, 21, 33])
@pytest.mark.parametrize("rate_hz", [10, 15, 20, 30, 60])
def test_only_frames_that_the_next_plan_uses_are_named(rate_hz, phase_ms, planning_hz):
    cameras = rig(rate_hz, {"cross_left": phase_ms, "front_tele": phase_ms / 2}, duration_s=6.0)
    sampler = Sampler(SamplerSettings(period_ns=1_000_000_000 // planning_hz))
    taken = idle_drive(sampler, events(cameras, stamps(50, duration_s=6.0)))
    assert len(taken) >= 3
    for _, used, ahead in taken:
        assert ahead <= used
        assert ahead


@pytest.mark.parametrize("rate_hz", [10, 20, 30, 60])
def test_all_but_the_frames_at_t0_itself_are_named(rate_hz):
    sampler = Sampler(SamplerSettings(period_ns=500 * MS))
    taken = idle_drive(sampler, events(rig(rate_hz, {}, 6.0), stamps(50, duration_s=6.0)))
    assert {len(ahead) for *_, ahead in taken} == {FRAMES - len(CAMERA_ROLES)}


def test_stamps_that_jitter_name_no_frame_in_vain():
    rng = np.random.default_rng(0)
    cameras = {
        role: [stamp_ns + int(rng.integers(-MS, MS)) for stamp_ns in of_camera]
        for role, of_camera in rig(30, duration_s=20.0).items()
    }
    sampler = Sampler(SamplerSettings(period_ns=500 * MS))
    taken = idle_drive(sampler, events(cameras, stamps(50, duration_s=20.0)))
    assert len(taken) >= 30
    assert not set().union(*(ahead - used for _, used, ahead in taken))


def test_of_fast_cameras_few_frames_are_named():
    sampler = Sampler(SamplerSettings(period_ns=1_000 * MS))
    cameras = rig(60, duration_s=6.0)
    named = sum(
        len(ahead) for *_, ahead in idle_drive(sampler, events(cameras, stamps(50, duration_s=6.0)))
    )
    assert 0 < named < sum(len(of_camera) for of_camera in cameras.values()) / 10


def planned_once(period_ms: int = 500) -> tuple[Sampler, int]:
    """A sampler at 10 Hz right after its first plan, and that plan's t0."""
    sampler = Sampler(SamplerSettings(period_ns=period_ms * MS))
    for message in events(rig(10), stamps(50)):
        feed(sampler, message, Circle())
        selection = sampler.take(message.arrival_ns)
        if selection is not None:
            return sampler, selection.t0_ns
    raise AssertionError("nothing was planned")


def test_the_next_t0_is_expected_a_period_later_on_the_cameras_grid():
    sampler, t0_ns = planned_once(period_ms=430)
    assert expected_t0_ns(sampler) == t0_ns + 500 * MS


def test_nothing_is_named_before_the_first_plan():
    sampler = Sampler()
    for message in events(rig(10, duration_s=1.0), stamps(50, duration_s=1.0)):
        feed(sampler, message, Circle())
        assert frames_ahead(sampler, message.arrival_ns) == []


def test_nothing_is_named_once_the_expected_t0_is_here():
    sampler, t0_ns = planned_once(period_ms=300)
    due_ns = t0_ns + 300 * MS
    assert [f.stamp_ns for _, f in frames_ahead(sampler, due_ns - 1)] == [t0_ns] * 4
    assert frames_ahead(sampler, due_ns) == []


def test_nothing_is_named_while_t0s_are_refused():
    sampler, t0_ns = planned_once(period_ms=300)
    for message in events(rig(10), []):  # odometry has gone
        if message.stamp_ns > t0_ns:
            feed(sampler, message, Circle())
    later_ns = START_NS + 2_900 * MS
    assert sampler.take(later_ns) is None
    assert sampler.refused["odometry_gap"]
    assert sampler.next_wanted_ns() is None
    assert frames_ahead(sampler, later_ns) == []


def test_a_reset_forgets_what_was_expected():
    sampler, t0_ns = planned_once()
    assert frames_ahead(sampler, t0_ns + 450 * MS) or expected_t0_ns(sampler) is not None
    sampler.reset()
    assert expected_t0_ns(sampler) is None
