"""A sampler on a damaged drive: which t0s are lost, why, and that nothing else changes."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from alpamayo_ros.sensing.sampler import Sampler
from alpamayo_ros.sensing.selection import Selection

from ..damage import DURATION_S, PLANNED_S, TABLE, S, Sent, Stream
from .streams import START_NS, Circle, events, rgb_frame, rig, stamps

MOTION = Circle()


def whole_drive() -> Stream:
    """What the table is written for."""
    sent = events(rig(10, duration_s=DURATION_S), stamps(50, duration_s=DURATION_S))
    return [
        Sent(
            event.arrival_ns - START_NS,
            event.source,
            event.stamp_ns - START_NS,
            MOTION.pose(event.stamp_ns)
            if event.source == "odometry"
            else rgb_frame(event.stamp_ns, value=event.stamp_ns // 10**8 % 251),
        )
        for event in sent
    ]


class Listener:
    """A sampler fed as a node feeds it, its selections and refusals kept."""

    def __init__(self) -> None:
        self.sampler = Sampler()
        self.taken: list[Selection] = []
        self.refusals = collections.defaultdict(set)  # t0 in s to reasons
        self._time_ns = 0
        refuse = self.sampler._refuse

        def note(refusal, consume=True):
            refuse(refusal, consume)
            if consume:
                self.refusals[round((refusal.t0_ns - START_NS) / S, 3)].add(refusal.reason)

        self.sampler._refuse = note

    def hear(self, stream: Stream) -> None:
        for sent in stream:
            if sent.arrival_ns < self._time_ns:
                self.sampler.reset()  # as the node does when its clock jumps back
            self._time_ns = sent.arrival_ns
            now_ns = START_NS + sent.arrival_ns
            if sent.source == "odometry":
                self.sampler.add_pose(sent.value, "map", "base_link", now_ns)
            else:
                self.sampler.add_frame(sent.source, sent.value, now_ns)
            if (selection := self.sampler.take(now_ns)) is not None:
                self.taken.append(selection)


def seconds(selection: Selection) -> float:
    return round((selection.t0_ns - START_NS) / S, 3)


@pytest.fixture(scope="module")
def whole() -> dict[float, Selection]:
    """The selections of the drive without damage, by t0."""
    listener = Listener()
    listener.hear(whole_drive())
    return {seconds(selection): selection for selection in listener.taken}


def test_without_damage_every_t0_is_planned(whole):
    assert tuple(whole) == PLANNED_S


@pytest.mark.parametrize("damage", TABLE, ids=lambda damage: damage.name)
def test_only_the_t0s_that_a_damage_touches_are_lost_and_the_others_are_as_before(damage, whole):
    listener = Listener()
    listener.hear(damage.apply(whole_drive()))
    planned = [t for t in PLANNED_S if not damage.is_lost(t)]
    assert [seconds(selection) for selection in listener.taken] == planned * damage.rounds
    for selection in listener.taken:
        expected = whole[seconds(selection)]
        for role, frames in expected.frames.items():
            assert [f.stamp_ns for f in selection.frames[role]] == [f.stamp_ns for f in frames]
            assert [f.data for f in selection.frames[role]] == [f.data for f in frames]
        np.testing.assert_array_equal(selection.ego_history_xyz, expected.ego_history_xyz)
        np.testing.assert_array_equal(selection.ego_history_rot, expected.ego_history_rot)


@pytest.mark.parametrize("damage", TABLE, ids=lambda damage: damage.name)
def test_every_lost_t0_is_refused_with_the_reason_of_the_damage(damage):
    listener = Listener()
    listener.hear(damage.apply(whole_drive()))
    lost = [t for t in PLANNED_S if damage.is_lost(t)]
    for t0_s in lost:
        assert listener.refusals[t0_s], t0_s
        assert listener.refusals[t0_s] <= set(damage.reasons), (t0_s, listener.refusals[t0_s])
    after = [t for t in listener.refusals if t >= PLANNED_S[0] and t not in lost]
    assert after == []
