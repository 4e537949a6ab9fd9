"""The planning loop with a planner that does what a test says: failures, requests, clock steps."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rclpy.node import Node

from alpamayo_ros.model import PlanCancelled
from alpamayo_ros.planning.planner import Decision, UnusableFrameError
from alpamayo_ros.ros import parameters
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.loop import PlanningLoop
from alpamayo_ros.ros.node_process import wait_until
from alpamayo_ros.ros.statistics import Statistics
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import CAMERA_ROLES, EgoPose, Frame, Refusal, Verdict

from ..planning.plans import arc_plan

MS = 1_000_000
DEADLINE_S = 20.0


class StubPlanner:
    """Plans as `decide` says; decisions are of the selection's t0."""

    def __init__(self) -> None:
        self.settings = None
        self.verdict = Verdict()
        self.error: Exception | None = None
        self.working = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self.resets = 0
        self.recoveries = 0
        self.ahead: list[tuple[str, int]] = []  # role and stamp of each frame encoded ahead

    def encode_ahead(self, frames):
        for role, frame in frames:
            if (role, frame.stamp_ns) not in self.ahead:
                self.ahead.append((role, frame.stamp_ns))
                return True
        return False

    def decide(self, selection, navigation_text, should_stop):
        self.working.set()
        while not self.go_on.wait(0.005):
            if should_stop():
                raise PlanCancelled
        if self.error is not None:
            raise self.error
        plan = arc_plan(v0_m_s=8.0)
        plan = type(plan)(**{**vars(plan), "t0_ns": selection.t0_ns})
        return Decision(selection, fake_snapshot(), plan, self.verdict)

    def reset(self):
        self.resets += 1

    def recover(self):
        self.recoveries += 1


class StubOutputs:
    """Writes down what would be published."""

    def __init__(self) -> None:
        self.driven: list[int] = []  # t0s on path
        self.planned: list[int] = []
        self.empty = 0

    def publish(self, decision, drive, origin):
        self.planned.append(decision.plan.t0_ns)
        if drive:
            self.driven.append(decision.plan.t0_ns)

    def publish_no_plan(self, now_ns, stale=False):
        self.empty += 1


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ns = 1_700_000_000_000_000_000

    def now(self):
        return self

    @property
    def nanoseconds(self):
        return self.ns


class Lab:
    """A loop on a node whose clock and planner are the test's."""

    def __init__(self, context) -> None:
        self.node = Node("alpamayo", context=context)
        parameters.declare(self.node)
        self.settings = self.node.settings = parameters.NodeSettings.read(self.node)
        self.clock = Clock()
        self.node.get_clock = lambda: self.clock
        self.planner = StubPlanner()
        self.outputs = StubOutputs()
        self.statistics = Statistics()
        self.inputs = Inputs(self.node, lambda: self.loop.wake())
        self.loop = PlanningLoop(
            self.node,
            self.settings,
            self.inputs,
            self.outputs,
            self.planner,
            self.statistics,
            warm_up_s=0.1,
            black_box=None,
            report=lambda: None,
        )
        self.sent_ns = self.clock.ns
        self.loop.start()

    def close(self) -> None:
        self.planner.go_on.set()
        assert self.loop.stop(DEADLINE_S)
        self.node.destroy_node()

    def feed(self, duration_s: float, start_ns: int | None = None) -> int:
        """Sensors at 10 Hz standing still, the clock along with them; the last stamp."""
        if start_ns is not None:
            self.sent_ns = start_ns
        for _ in range(round(duration_s * 10)):
            self.sent_ns += 100 * MS
            self.clock.ns = self.sent_ns
            for role in CAMERA_ROLES:
                self.inputs._store(role, Frame(self.sent_ns, "rgb8", b"\0" * 12, 2, 2, 6))
            pose = EgoPose(self.sent_ns, np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), 0.0)
            with self.inputs._lock:
                self.inputs.sampler.add_pose(pose, "map", "base_link", self.sent_ns)
            self.loop.wake()
        return self.sent_ns

    def plan_to(self, t0_ns: int) -> None:
        assert wait_until(lambda: t0_ns in self.outputs.planned, DEADLINE_S), self.outputs.planned


@pytest.fixture
def lab(context):
    lab = Lab(context)
    yield lab
    lab.close()


def test_the_newest_t0_is_planned_and_driven(lab):
    last_ns = lab.feed(2.0)
    lab.plan_to(last_ns)
    assert lab.outputs.driven == lab.outputs.planned
    assert lab.loop.watchdog.plan_valid


def test_a_wall_clock_that_steps_back_empties_the_path_and_planning_goes_on(lab):
    lab.plan_to(lab.feed(2.0))
    lab.loop.tick()
    empty = lab.outputs.empty
    start_ns = lab.sent_ns - 37_000 * MS
    lab.clock.ns = start_ns
    lab.loop.tick()
    assert lab.outputs.empty == empty + 1
    assert not lab.loop.watchdog.plan_valid
    lab.plan_to(lab.feed(2.0, start_ns))


def test_a_failing_device_is_retried_with_growing_pauses_and_recovers(lab):
    lab.planner.error = RuntimeError("device lost\nand a long trace")
    lab.feed(2.0)
    assert wait_until(lambda: lab.statistics.failures >= 1, DEADLINE_S)
    assert lab.statistics.last_error == "RuntimeError: device lost"
    assert lab.loop._back_off_s == 1.0
    lab.feed(0.1)
    assert wait_until(lambda: lab.statistics.failures >= 2, DEADLINE_S)
    assert lab.loop._back_off_s == 2.0
    assert lab.outputs.planned == []
    lab.planner.error = None
    lab.plan_to(lab.feed(0.1))
    assert lab.statistics.last_error == ""
    assert lab.loop._back_off_s == 0.5


def test_a_frame_that_is_no_image_is_dropped_and_counted_once(lab):
    def decide(selection, navigation_text, should_stop):
        bad = [f for f in selection.frames["front_tele"] if f.stamp_ns == broken_ns]
        if bad:
            raise UnusableFrameError(selection, "front_tele", bad[0], "no jpeg")
        return original(selection, navigation_text, should_stop)

    original, lab.planner.decide = lab.planner.decide, decide
    broken_ns = lab.feed(2.0)
    assert wait_until(lambda: lab.inputs.malformed["front_tele"] == 1, DEADLINE_S)
    assert broken_ns not in lab.outputs.planned
    assert lab.inputs.malformed_detail["front_tele"] == "front_tele: no jpeg"
    assert lab.statistics.failures == 0
    # The hole that it leaves passes out of the window after 0.3 s, and nothing was paused.
    lab.plan_to(lab.feed(0.5))
    assert lab.inputs.malformed == {"front_tele": 1}


def test_plan_once_answers_with_the_plan_of_the_newest_snapshot_not_of_one_in_flight(lab):
    lab.planner.go_on.clear()
    old_ns = lab.feed(2.0)
    assert lab.planner.working.wait(DEADLINE_S)
    new_ns = lab.feed(0.3)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lab.loop.plan_once)
        assert wait_until(lambda: lab.loop._request is not None, DEADLINE_S)
        lab.planner.go_on.set()
        decision = answer.result(DEADLINE_S)
    assert decision.plan.t0_ns == new_ns > old_ns
    assert lab.loop._request is None


def test_plan_once_gives_the_reason_when_there_is_no_snapshot(lab):
    outcome = lab.loop.plan_once()
    assert isinstance(outcome, Refusal)
    assert outcome.detail == "nothing complete was received yet"


def test_plan_once_raises_what_the_decision_raised_and_does_not_come_back(lab):
    lab.plan_to(lab.feed(2.0))
    lab.planner.error = RuntimeError("device lost")
    with pytest.raises(RuntimeError, match="device lost"):
        lab.loop.plan_once()
    failures = lab.statistics.failures
    time.sleep(0.7)  # longer than the first pause
    assert lab.statistics.failures == failures


def test_plan_once_is_answered_when_the_node_is_reset_or_stopped(lab):
    lab.plan_to(lab.feed(2.0))
    for end in (lab.loop.reset, lambda: lab.loop.stop(0.0)):
        lab.feed(2.0)
        lab.planner.go_on.clear()
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(lab.loop.plan_once)
            assert wait_until(lambda: lab.loop._request is not None, DEADLINE_S)
            end()
            outcome = answer.result(DEADLINE_S)
        assert isinstance(outcome, Refusal)
    outcome = lab.loop.plan_once()
    assert isinstance(outcome, Refusal)
    assert outcome.detail == "the node was deactivated"


def test_a_plan_that_took_too_long_is_not_driven(lab):
    lab.planner.go_on.clear()
    last_ns = lab.feed(2.0)
    assert lab.planner.working.wait(DEADLINE_S)
    lab.clock.ns += 1001 * MS  # the automatic time-out is 1 s
    lab.planner.go_on.set()
    lab.plan_to(last_ns)
    assert last_ns not in lab.outputs.driven
    assert not lab.loop.watchdog.plan_valid


def test_the_path_is_emptied_once_when_no_plan_is_accepted_in_time(lab):
    lab.plan_to(lab.feed(2.0))
    lab.loop.tick()
    assert lab.outputs.empty == 0
    lab.clock.ns += 1001 * MS
    for _ in range(3):
        lab.loop.tick()
    assert lab.outputs.empty == 1
    assert not lab.loop.watchdog.plan_valid


def test_frames_of_the_next_plan_are_encoded_ahead_only_when_that_is_asked_for(lab):
    rate = {"planning.max_rate_hz": 2.0}
    lab.loop.apply(parameters.NodeSettings.read(lab.node, rate))
    planned_ns = lab.feed(2.0)
    lab.plan_to(planned_ns)
    lab.feed(0.4)
    assert lab.planner.ahead == []
    lab.loop.apply(parameters.NodeSettings.read(lab.node, rate | {"model.encode_ahead": True}))
    next_ns = planned_ns + 500 * MS
    instants = {next_ns - 300 * MS, next_ns - 200 * MS, next_ns - 100 * MS}
    wanted = {(role, instant_ns) for role in CAMERA_ROLES for instant_ns in instants}
    lab.loop.wake()
    assert wait_until(lambda: set(lab.planner.ahead) == wanted, DEADLINE_S), lab.planner.ahead
    assert lab.loop.watchdog.decision_since_ns is None
    lab.plan_to(lab.feed(0.1))


def test_nothing_is_encoded_ahead_while_paused(lab):
    changes = {"planning.max_rate_hz": 2.0, "model.encode_ahead": True}
    lab.loop.apply(parameters.NodeSettings.read(lab.node, changes))
    lab.plan_to(lab.feed(2.0))
    lab.loop.apply(parameters.NodeSettings.read(lab.node, changes | {"planning.paused": True}))
    lab.planner.ahead.clear()
    lab.feed(0.4)
    assert lab.inputs.frames_ahead(lab.loop._settings, lab.clock.ns) == []
    assert lab.planner.ahead == []


def test_what_was_encoded_is_forgotten_at_reset_and_at_stop(lab):
    lab.plan_to(lab.feed(2.0))
    before = lab.planner.resets
    lab.loop.reset()
    assert wait_until(lambda: lab.planner.resets == before + 1, DEADLINE_S)
    assert lab.loop.stop(DEADLINE_S)
    assert lab.planner.resets == before + 2


def test_navigation_text_does_not_survive_a_reset(lab):
    lab.inputs.set_navigation("turn left")
    assert lab.inputs.navigation_text(lab.settings, lab.clock.ns) == "turn left"
    lab.loop.reset()
    assert lab.inputs.navigation_text(lab.settings, lab.clock.ns) == ""


def test_a_rejected_plan_is_not_driven_and_not_valid(lab):
    lab.planner.verdict = Verdict(("lateral: 7.31 m/s2 over 6 m/s2",))
    lab.plan_to(lab.feed(2.0))
    assert lab.outputs.driven == []
    assert lab.statistics.rejections == {"lateral": len(lab.outputs.planned)}
    assert not lab.loop.watchdog.plan_valid
