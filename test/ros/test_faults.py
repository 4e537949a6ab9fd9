"""Faults in a running node process: seen, told, survived without a restart (docs/faults.md)."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rosgraph_msgs.msg import Clock

from alpamayo_ros.msg import DrivingPlan
from alpamayo_ros.planning.watchdog import MIN_HANG_S
from alpamayo_ros.ros import qos
from alpamayo_ros.ros.bag_run import plan_stamp_ns
from alpamayo_ros.ros.messages import time_message
from alpamayo_ros.sensing.messages import stamp_ns

from .conftest import parameters
from .rig import FRAME_NS, Rig

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

WARN, ERROR = DiagnosticStatus.WARN, DiagnosticStatus.ERROR
FOR_TESTS = {"ALPAMAYO_TEST": "1"}
TOKENS = 8
COMPRESSED = {
    f"cameras__{role}__transport": "compressed"
    for role in ("cross_left", "front_wide", "cross_right", "front_tele")
}
LATE_S = 3.0  # for what a free machine does at once


class SimRig(Rig):
    """A rig whose clock is /clock, and can be put back."""

    def __init__(self, context) -> None:
        super().__init__(context)
        self.clock = self.create_publisher(Clock, "/clock", 1)
        self.back_ns = 0

    def _send(self, stamp_ns: int) -> None:
        stamp_ns -= self.back_ns
        self.clock.publish(Clock(clock=time_message(stamp_ns)))
        super()._send(stamp_ns)


class Patient:
    """A node process that plans on a rig, and what it says of itself."""

    def __init__(self, bench, rig) -> None:
        self.bench, self.rig = bench, rig
        self._entries: dict[str, DiagnosticStatus] = {}
        bench.ear.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.DIAGNOSTICS
        )
        bench.wait_for_plans(3)

    def set_fault(self, fault: str) -> None:
        answer = self.bench.set_parameter("test.fault", fault)
        assert answer.successful, answer.reason

    def expect_told(self, entry: str, level: bytes, words: str) -> None:
        """Wait for a diagnostic of this level with these words."""

        def told() -> bool:
            said = self._entries.get(f"alpamayo: {entry}")
            return said is not None and said.level == level and words in said.message

        self.bench.wait(told, f"{words!r} of {entry}")

    def expect_no_path(self) -> None:
        """Wait until the path in force is an empty one, and the status knows."""
        self.bench.wait(lambda: self.bench.ear.paths[-1].poses == [], "an empty path")
        self.bench.wait(lambda: not self.bench.ear.status.plan_valid, "a status without a plan")

    def expect_services(self) -> None:
        """Lifecycle, parameters and our own services answer."""
        assert self.bench.get_state() == "active"
        assert self.bench.set_parameter("planning.paused", False).successful
        assert not self.bench.trigger("save_snapshot").success

    def expect_recovered(self) -> None:
        """Wait until plans and a path come again, from the same process."""
        ear = self.bench.ear
        self.bench.wait_for_plans(3)
        self.bench.wait(lambda: ear.paths[-1].poses != [], "a path again")
        self.bench.wait(lambda: ear.status.last_error == "", "a status without an error")
        assert ear.state == "active"

    def value(self, entry: str, key: str) -> str:
        """A value of the newest diagnostics."""
        said = self._entries[f"alpamayo: {entry}"]
        return {pair.key: pair.value for pair in said.values}[key]

    def _on_diagnostics(self, array: DiagnosticArray) -> None:
        self._entries = {entry.name: entry for entry in array.status}

    def has_entry(self, entry: str) -> bool:
        return f"alpamayo: {entry}" in self._entries


@pytest.fixture(scope="module")
def rig(context):
    with Rig(context) as rig:
        yield rig


@pytest.fixture(scope="module")
def patient(start_node, rig):
    """In report mode: every plan is on the path, whatever the small model's worth."""
    bench = start_node(
        *parameters(
            model__path="demo",
            gate__mode="report",
            sampling__max_new_tokens=TOKENS,
            **COMPRESSED,
        ),
        environment=FOR_TESTS,
    )
    return Patient(bench, rig)


@pytest.fixture(autouse=True)
def healed(request):
    """Whatever a test has done to node and rig, the next one finds both sound."""
    yield
    if "patient" in request.fixturenames:
        patient = request.getfixturevalue("patient")
        patient.rig.silent.clear()
        patient.rig.displaced_m = 0.0
        if patient.bench.process.alive():
            patient.set_fault("none")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("exception", "RuntimeError: test.fault: the device is lost"),
        ("out_of_memory", "MemoryError: test.fault: the device is out of memory"),
    ],
)
def test_a_decision_that_fails_is_told_and_tried_again_with_growing_pauses(patient, fault, error):
    patient.expect_recovered()
    failed = int(patient.value("planner", "failures"))
    patient.set_fault(fault)
    begun_s = time.monotonic()
    patient.expect_told("planner", ERROR, error)
    patient.expect_told("test", ERROR, f"TEST FAULT {fault}")
    patient.expect_no_path()
    assert patient.bench.ear.status.last_error == error
    patient.expect_services()
    assert patient.bench.trigger("plan_once").message == error
    patient.bench.wait(lambda: int(patient.value("planner", "failures")) >= failed + 3, "retries")
    # Pauses of 0.5, 1, 2, 4, 8, 10, 10 ... s; one more try was the plan_once, one is in flight.
    tries = int(patient.value("planner", "failures")) - failed
    assert tries <= 2 + 4 + (time.monotonic() - begun_s) / 4.0
    patient.set_fault("none")
    patient.expect_recovered()
    patient.bench.wait(lambda: not patient.has_entry("test"), "the end of the alarm")


def test_a_decision_that_hangs_is_told_and_when_it_ends_planning_goes_on(patient):
    patient.expect_recovered()
    patient.set_fault("hang")
    patient.expect_no_path()  # long before it counts as a hang
    hang = f"a decision hangs for over {MIN_HANG_S:g} s"
    patient.expect_told("planner", ERROR, "a decision hangs for over")
    assert patient.bench.ear.status.last_error.startswith(hang[:26])
    seen = len(patient.bench.ear.plans)
    patient.expect_services()
    assert patient.bench.trigger("reset").success
    assert len(patient.bench.ear.plans) == seen
    patient.set_fault("none")
    patient.expect_recovered()


def test_a_hanging_node_can_be_deactivated_and_activated_again_once_the_hang_is_over(patient):
    patient.expect_recovered()
    patient.set_fault("hang")
    patient.expect_told("planner", ERROR, "a decision hangs for over")
    begun_s = time.monotonic()
    assert patient.bench.change_state("deactivate")
    assert time.monotonic() - begun_s < LATE_S
    assert patient.bench.get_state() == "inactive"
    patient.expect_no_path()
    assert not patient.bench.change_state("activate")  # its thread still holds the model
    assert not patient.bench.change_state("cleanup")
    assert "does not end" in patient.bench.ear.status.last_error
    patient.set_fault("none")
    patient.bench.wait(lambda: patient.bench.change_state("activate"), "activation")
    patient.expect_recovered()


@pytest.mark.parametrize("role", ["cross_left", "front_wide"])
def test_a_camera_that_falls_silent_is_named_and_planning_goes_on_when_it_is_back(patient, role):
    patient.expect_recovered()
    patient.rig.silent.add(role)
    patient.expect_told(f"camera {role}", ERROR, "nothing new for")
    patient.expect_no_path()
    patient.expect_services()
    patient.rig.silent.clear()
    patient.expect_recovered()


def test_lost_odometry_is_told_and_planning_goes_on_when_it_is_back(patient):
    patient.expect_recovered()
    patient.rig.silent.add("odometry")
    patient.expect_told("odometry", ERROR, "nothing new for")
    patient.expect_no_path()
    patient.expect_services()
    patient.rig.silent.clear()
    patient.expect_recovered()


def test_odometry_that_jumps_is_refused_until_the_jump_is_out_of_the_history(patient):
    patient.expect_recovered()
    ear = patient.bench.ear
    jumped_ns = time.time_ns()
    patient.rig.displaced_m = 5.0
    patient.bench.wait(lambda: ear.status.last_refusal == "odometry_jump", "the refusal")
    counts = dict(zip(ear.status.refusal_reasons, ear.status.refusal_counts))
    assert counts["odometry_jump"] >= 1
    patient.expect_recovered()
    planned_ns = [plan_stamp_ns(plan) for plan in ear.plans]
    in_sight = [t0 for t0 in planned_ns if 50_000_000 < t0 - jumped_ns < 1_450_000_000]
    assert in_sight == []


def test_nothing_that_the_gate_rejects_is_on_the_path_before_in_or_after_a_fault(patient):
    ear = patient.bench.ear
    assert patient.bench.set_parameter("gate.speed_m_s", 0.0).successful
    assert patient.bench.set_parameter("gate.mode", "enforce").successful
    try:
        patient.expect_no_path()
        seen, paths = len(ear.plans), len(ear.paths)
        for fault in ("exception", "out_of_memory", "hang"):
            patient.bench.wait_for_plans(2)
            patient.set_fault(fault)
            patient.bench.wait(
                lambda: ear.status.last_error != "", f"a status that tells of {fault}"
            )
            patient.set_fault("none")
            patient.bench.wait_for_plans(2)
        assert {plan.verdict for plan in ear.plans[seen:]} == {DrivingPlan.REJECTED}
        assert [path for path in ear.paths[paths:] if path.poses] == []
        assert not ear.status.plan_valid
    finally:
        assert patient.bench.set_parameter("gate.mode", "report").successful
        assert patient.bench.set_parameter("gate.speed_m_s", 60.0).successful


def test_a_full_disk_keeps_nobody_from_planning_and_is_over_with_the_next_snapshot(
    start_node, rig, patient, tmp_path
):
    """After the others: a second node would slow them down."""
    assert patient.bench.process.stop(signal.SIGTERM) == 0
    bench = start_node(
        *parameters(
            model__path="demo",
            gate__speed_m_s=0.0,
            sampling__max_new_tokens=TOKENS,
            blackbox__directory=tmp_path,
            test__fault="disk_full",
            **COMPRESSED,
        ),
        environment=FOR_TESTS,
    )
    node = Patient(bench, rig)
    node.expect_told("black box", WARN, "No space left on device")
    answer = bench.trigger("save_snapshot")
    assert not answer.success
    assert "No space left on device" in answer.message
    bench.wait_for_plans(3)
    assert list(tmp_path.glob("*.npz")) == []
    node.set_fault("none")
    bench.wait(lambda: list(tmp_path.glob("*_rejected.npz")), "a snapshot")
    node.expect_told("black box", DiagnosticStatus.OK, "keeps rejected plans")
    assert bench.process.stop(signal.SIGTERM) == 0


def test_a_clock_that_goes_back_discards_the_plan_in_flight(start_node, context):
    bench = start_node(
        *parameters(
            use_sim_time=True,
            model__path="demo",
            gate__mode="report",
            sampling__max_new_tokens=TOKENS,
            **COMPRESSED,
        ),
        environment=FOR_TESTS,
    )
    with SimRig(context) as rig:
        node = Patient(bench, rig)
        node.set_fault("hang")  # keeps a plan in flight while the clock jumps
        node.expect_no_path()
        last_ns = max(plan_stamp_ns(plan) for plan in bench.ear.plans)
        seen, paths = len(bench.ear.plans), len(bench.ear.paths)
        rig.back_ns = 600 * FRAME_NS
        bench.wait(lambda: "the clock went back" in bench.process.output(), "the jump")
        node.set_fault("none")
        node.expect_recovered()
        after_ns = [plan_stamp_ns(plan) for plan in bench.ear.plans[seen:]]
        assert max(after_ns) < last_ns  # what was in flight had a later t0
        driven_ns = [stamp_ns(p.header.stamp) for p in bench.ear.paths[paths:] if p.poses]
        assert max(driven_ns) < last_ns
    assert bench.process.stop(signal.SIGTERM) == 0
    assert "Traceback" not in bench.process.output()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_node_that_hangs_with_code_0(start_node, context, number):
    bench = start_node(
        *parameters(model__path="demo", gate__mode="report", **COMPRESSED), environment=FOR_TESTS
    )
    with Rig(context) as rig:
        node = Patient(bench, rig)
        node.set_fault("hang")
        node.expect_told("planner", ERROR, "a decision hangs for over")
        begun_s = time.monotonic()
        assert bench.process.stop(number) == 0
        assert time.monotonic() - begun_s < 2.0 + LATE_S
    assert bench.ear.paths[-1].poses == []
    assert "Traceback" not in bench.process.output()


def test_a_fault_is_refused_in_a_node_that_is_not_for_tests(start_node):
    bench = start_node(*parameters(model__path="demo", autostart="false"))
    bench.wait_for_state("unconfigured")
    answer = bench.set_parameter("test.fault", "hang")
    assert not answer.successful
    assert "ALPAMAYO_TEST=1" in answer.reason
    assert bench.process.stop(signal.SIGTERM) == 0
    started_with = start_node(*parameters(test__fault="hang"))
    assert started_with.process.process.wait(60) == 2
    assert "test.fault: 'hang' is for tests only" in started_with.process.output()


def test_frames_of_the_next_plan_are_encoded_while_there_is_nothing_to_plan_on(start_node, context):
    bench = start_node(
        *parameters(
            model__path="demo",
            model__encode_ahead=True,
            planning__max_rate_hz=1.0,
            gate__mode="report",
            sampling__max_new_tokens=TOKENS,
            **COMPRESSED,
        )
    )
    with Rig(context) as rig:
        node = Patient(bench, rig)
        ahead = SimpleNamespace(before=int(node.value("planner", "frames encoded ahead")))
        bench.wait(
            lambda: int(node.value("planner", "frames encoded ahead")) >= ahead.before + 4,
            "frames encoded ahead",
        )
    assert bench.process.stop(signal.SIGTERM) == 0
