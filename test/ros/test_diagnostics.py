"""What /diagnostics says of the inputs: levels, and words that a person can act on."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import String

from alpamayo_ros.msg import DrivingPlan
from alpamayo_ros.planning.watchdog import Watchdog
from alpamayo_ros.ros import parameters, qos
from alpamayo_ros.ros.diagnostics import Reporter
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.statistics import Statistics
from alpamayo_ros.types import CAMERA_ROLES, Frame, Verdict

from .conftest import parameters as arguments
from .rig import Rig

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
ROOT = Path(__file__).parents[2]
NOW_NS = 1_700_000_000_000_000_000
YEAR_NS = round(365.25 * 86_400 * 1e9)


class Desk:
    """Inputs and a reporter without a node around them, at a clock that a test sets."""

    def __init__(self, node: Node) -> None:
        self.now_ns = NOW_NS
        self.settings = node.settings
        self.inputs = Inputs(node, lambda: None)
        self.inputs._now_ns = lambda: self.now_ns
        self.unheard = {}
        self.statistics = Statistics()
        self.watchdog = Watchdog(timeout_ns=10**9, hang_ns=10**10, since_ns=NOW_NS)
        self.reporter = Reporter("alpamayo", self.inputs, self.unheard)

    def send(self, count: int, period_ns: int = 100_000_000, lose=(), ahead_ns: int = 0) -> None:
        """Frames of all cameras up to now, each camera's its own, without those numbered `lose`."""
        for k in range(count):
            self.now_ns += period_ns
            for role in CAMERA_ROLES:
                if k not in lose:
                    frame = Frame(self.now_ns + ahead_ns, "rgb8", role.encode() * 12, 2, 2, 6)
                    self.inputs._store(role, frame)

    def entries(self, state: str = "active") -> dict[str, DiagnosticStatus]:
        """What is reported now, by name."""
        status = self.reporter.status(
            state, self.settings, self.statistics, self.watchdog, "m", "cpu", self.now_ns
        )
        array = self.reporter.diagnostics(
            status, self.settings, self.statistics, self.watchdog, self.now_ns
        )
        return {entry.name: entry for entry in array.status}

    def entry(self, name: str) -> DiagnosticStatus:
        return self.entries()[f"alpamayo: {name}"]

    def decide(self, count: int, total_ms: float) -> None:
        """Decisions at 10 Hz up to now, of that duration."""
        now_s = time.monotonic()
        for k in range(count):
            timing_ms = {"vision": total_ms / 2, "total": total_ms}
            plan = SimpleNamespace(timing_ms=timing_ms)
            decision = SimpleNamespace(verdict=Verdict(), plan=plan)
            self.statistics.count(decision, now_s - 0.1 * (count - 1 - k))


@pytest.fixture
def desk(context):
    node = Node("alpamayo", context=context)
    parameters.declare(node)
    node.settings = parameters.NodeSettings.read(node)
    yield Desk(node)
    node.destroy_node()


def values(entry: DiagnosticStatus) -> dict[str, str]:
    return {value.key: value.value for value in entry.values}


@pytest.mark.parametrize(
    ("lost", "level", "words"),
    [
        ((), OK, "messages/s"),
        ((50,), OK, "messages/s"),  # 1 %
        ((20, 50, 70), WARN, "3% of 100 frames were lost on the way, see docs/transport.md"),
        (tuple(range(10, 29)), WARN, "19% of 100"),
        (tuple(range(10, 31)), ERROR, "21% of 100"),
    ],
)
def test_lost_frames_are_a_warning_from_2_percent_and_an_error_from_20(desk, lost, level, words):
    desk.send(100, lose=lost)
    entry = desk.entry("camera front_wide")
    assert entry.level == level
    assert words in entry.message
    assert values(entry)["received of expected, 10 s"] == f"{100 - len(lost)} of 100"


@pytest.mark.parametrize(
    ("ahead_ns", "words"),
    [
        (-53 * YEAR_NS, "stamps are 53 years behind the clock: another epoch; set use_sim_time"),
        (37_000_000_000, "stamps are 37.000 s ahead of the clock: TAI is 37 s ahead of UTC"),
    ],
)
def test_a_wrong_clock_is_an_error_that_names_it(desk, ahead_ns, words):
    desk.send(20, ahead_ns=ahead_ns)
    entry = desk.entry("camera cross_left")
    assert entry.level == ERROR
    assert words in entry.message


def test_a_camera_that_falls_silent_is_an_error_that_says_how_long(desk):
    desk.send(20)
    desk.now_ns += 3_000_000_000
    entry = desk.entry("camera front_tele")
    assert (entry.level, entry.message) == (ERROR, "nothing new for 3.0 s")


def test_a_camera_that_is_off_by_more_than_the_tolerance_is_a_warning(desk):
    for late_ms, level in ((55, OK), (56, WARN)):
        desk.inputs.reset()
        for k in range(1, 21):
            at_ns = NOW_NS + k * 200_000_000
            for role in CAMERA_ROLES:
                stamp_ns = at_ns + late_ms * 1_000_000 * (role == "front_tele")
                desk.now_ns = at_ns + 100_000_000
                desk.inputs._store(role, Frame(stamp_ns, "rgb8", role.encode() * 12, 2, 2, 6))
        entry = desk.entry("camera front_tele")
        assert values(entry)["skew [s]"] == f"+0.{late_ms:03}"
        assert entry.level == level
        assert values(desk.entry("camera front_wide"))["skew [s]"] == "+0.000"
    assert entry.message == "+0.056 s off front_wide, over sync.tolerance_s 0.055: unsynchronised"


def test_latencies_are_given_by_stage_with_the_rate(desk):
    assert desk.entry("latency").message == "no decision within the last minute"
    desk.decide(41, total_ms=80.0)
    told = values(desk.entry("latency"))
    assert float(told["plans [1/s]"]) == pytest.approx(10.0, abs=0.3)
    assert (told["vision p50 [ms]"], told["vision p99 [ms]"]) == ("40.0", "40.0")
    assert (told["total p50 [ms]"], told["total p99 [ms]"]) == ("80.0", "80.0")


@pytest.mark.parametrize(("total_ms", "level"), [(1000.0, OK), (1000.1, WARN)])
def test_decisions_that_end_after_the_watchdogs_time_are_a_warning(desk, total_ms, level):
    desk.decide(10, total_ms)
    entry = desk.entry("latency")
    assert entry.level == level
    assert ("over watchdog.timeout_s, 1 s, plans are late" in entry.message) == (level == WARN)


def test_free_device_memory_is_that_after_the_newest_decision(desk):
    assert values(desk.entry("model"))["free device memory [MB]"] == ""
    desk.statistics.device_free_bytes = 12_345_600_000
    assert values(desk.entry("model"))["free device memory [MB]"] == "12346"


def test_a_frame_that_is_no_image_is_a_warning_once_and_stays_in_the_values(desk):
    desk.send(20)
    desk.entries()
    desk.inputs._count_malformed("cross_left", "cross_left: no JPEG")
    entry = desk.entry("camera cross_left")
    assert (entry.level, entry.message) == (WARN, "cross_left: no JPEG")
    entry = desk.entry("camera cross_left")
    assert entry.level == OK
    assert (values(entry)["malformed"], values(entry)["last malformed"]) == (
        "1",
        "cross_left: no JPEG",
    )


def test_every_analyzer_of_the_aggregator_takes_what_is_its_own_and_none_takes_it_twice(desk):
    """A GenericAnalyzer takes an entry whose name starts with a text of `startswith`; its other
    rules are not used here."""
    file = yaml.safe_load((ROOT / "config" / "diagnostics_aggregator.yaml").read_text())
    parameters = file["/**"]["ros__parameters"]
    analyzers = {key: value for key, value in parameters.items() if isinstance(value, dict)}
    for analyzer in analyzers.values():
        assert analyzer["type"] == "diagnostic_aggregator/GenericAnalyzer"
        assert set(analyzer) == {"type", "path", "startswith", "timeout", "remove_prefix"}
    taken = {
        name: [
            key
            for key, analyzer in analyzers.items()
            if any(name.startswith(text) for text in analyzer["startswith"])
        ]
        for name in desk.entries()
    }
    assert all(len(keys) == 1 for keys in taken.values()), taken
    assert {keys[0] for keys in taken.values()} == set(analyzers)


def test_the_guide_explains_every_entry_and_value(desk):
    guide = (ROOT / "docs" / "diagnostics.md").read_text()
    desk.send(20)
    desk.decide(2, total_ms=80.0)
    for name, entry in desk.entries().items():
        assert f"| `{re.sub('camera .*', 'camera ROLE', name)}`" in guide
        for key in values(entry):
            key = re.sub(
                "^(vision|total) p", "STAGE p", re.sub("^refused: .*", "refused: REASON", key)
            )
            assert f"`{key}`" in guide


def test_a_failure_is_an_error_until_the_next_decision(desk):
    desk.watchdog.published(NOW_NS, accepted=True)
    desk.statistics.last_error = "RuntimeError: the device is gone"
    entry = desk.entry("planner")
    assert (entry.level, entry.message) == (ERROR, "RuntimeError: the device is gone")
    desk.decide(1, total_ms=80.0)
    entry = desk.entry("planner")
    assert (entry.level, entry.message) == (OK, "planning")


@pytest.fixture(scope="module")
def bench(start_node, context):
    """A node whose cameras all show one picture, and what it says in diagnostics."""
    with Rig(context, compressed=False):
        bench = start_node(
            *arguments(
                model__path="demo",
                sampling__max_new_tokens=2,
                cameras__front_wide__camera_info="/calibration/wide",
                cameras__cross_left__camera_info="''",
            )
        )
        bench.told = {}

        def on_diagnostics(array: DiagnosticArray) -> None:
            bench.told |= {entry.name: entry for entry in array.status}

        bench.ear.create_subscription(
            DiagnosticArray, "/diagnostics", on_diagnostics, qos.DIAGNOSTICS
        )
        bench.wait_for_state("active")
        yield bench


def told(bench, part: str) -> DiagnosticStatus:
    return bench.told.get(f"alpamayo: {part}", DiagnosticStatus(level=OK))


def rig_entry(bench) -> DiagnosticStatus:
    return told(bench, "rig")


@pytest.mark.process
@pytest.mark.timeout(200)
def test_equal_images_are_a_warning_that_names_roles_and_topics(bench):
    words = (
        "cross_left and front_wide show the same image: "
        "/alpamayo/input/cross_left/image and /alpamayo/input/front_wide/image"
    )
    bench.wait(lambda: words in rig_entry(bench).message, "the warning")
    assert rig_entry(bench).level == WARN


@pytest.mark.process
@pytest.mark.timeout(200)
def test_a_camera_info_that_does_not_fit_the_role_is_a_warning(bench):
    """By default beside the image, elsewhere by parameter, and not at all when that is empty."""

    def info(hfov_deg: float) -> CameraInfo:
        message = CameraInfo(width=1920, height=1080, distortion_model="plumb_bob")
        message.k[0] = 960 / math.tan(math.radians(hfov_deg / 2))
        return message

    given = {
        "/alpamayo/input/front_tele/camera_info": info(120.0),
        "/calibration/wide": info(30.0),
        "/alpamayo/input/cross_right/camera_info": info(120.0),
    }
    publishers = [
        (bench.ear.create_publisher(CameraInfo, topic, qos.LATCHED), message)
        for topic, message in given.items()
    ]
    listened = bench.ear.count_subscribers("/alpamayo/input/cross_left/camera_info")
    for publisher, message in publishers:
        bench.wait(publisher.get_subscription_count, "a listener")
        publisher.publish(message)
    for role, degrees in (("front_tele", 120), ("front_wide", 30)):
        words = f"{role} has a horizontal field of view of {degrees} degrees"
        bench.wait(lambda words=words: words in rig_entry(bench).message, words)
    assert "cross_right has" not in rig_entry(bench).message
    assert listened == 0
    # Heard once is enough: CameraInfo at 30 Hz would cost as much as the odometry.
    for publisher, _ in publishers:
        bench.wait(lambda p=publisher: p.get_subscription_count() == 0, "the end of listening")


@pytest.mark.process
@pytest.mark.timeout(200)
def test_a_publisher_that_cannot_be_heard_is_a_warning_that_names_topic_and_policy(bench):
    best_effort = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.BEST_EFFORT)
    bench.ear.create_publisher(String, "/alpamayo/input/navigation", best_effort)
    words = "/alpamayo/input/navigation: a publisher offers an incompatible RELIABILITY"
    bench.wait(lambda: words in told(bench, "qos").message, "the warning")
    assert told(bench, "qos").level == WARN
    seen = len(bench.ear.plans)
    bench.wait(lambda: len(bench.ear.plans) > seen, "planning that goes on")


@pytest.mark.process
@pytest.mark.timeout(200)
def test_a_subscriber_that_hears_nothing_of_ours_is_a_warning_that_names_topic_and_policy(bench):
    """Plans are not latched: who asks for that is not connected, and would wait for ever."""
    bench.ear.create_subscription(DrivingPlan, "/alpamayo/output/plan", print, qos.LATCHED)
    words = "/alpamayo/output/plan: a subscriber asks for an incompatible DURABILITY"
    bench.wait(lambda: words in told(bench, "qos").message, "the warning")
    assert told(bench, "qos").level == WARN


@pytest.mark.process
@pytest.mark.timeout(200)
def test_a_planning_node_tells_its_latency_by_stage_and_the_free_memory(bench):
    bench.wait(lambda: "total p99 [ms]" in values(told(bench, "latency")), "a latency")
    latency = values(told(bench, "latency"))
    stages = {key.removesuffix(" p50 [ms]") for key in latency if key.endswith(" p50 [ms]")}
    assert {"decode", "vision", "prefill", "reasoning", "expert", "total"} <= stages
    assert all(float(latency[f"{s} p99 [ms]"]) >= float(latency[f"{s} p50 [ms]"]) for s in stages)
    free_mb = float(values(told(bench, "model"))["free device memory [MB]"])
    assert 0 < free_mb < 1e8
