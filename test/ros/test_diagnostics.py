"""What /diagnostics says of the inputs: levels, and words that a person can act on."""

from __future__ import annotations

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import String

from alpamayo_ros.ros import parameters, qos
from alpamayo_ros.ros.diagnostics import Reporter
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.statistics import Statistics
from alpamayo_ros.types import CAMERA_ROLES, Frame

from .conftest import parameters as arguments
from .rig import Rig

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
NOW_NS = 1_700_000_000_000_000_000
YEAR_NS = round(365.25 * 86_400 * 1e9)


class Desk:
    """Inputs and a reporter without a node around them, at a clock that a test sets."""

    def __init__(self, node: Node) -> None:
        self.now_ns = NOW_NS
        self.settings = node.settings
        self.inputs = Inputs(node, lambda: None)
        self.inputs._now_ns = lambda: self.now_ns
        self.reporter = Reporter("alpamayo")

    def send(self, count: int, period_ns: int = 100_000_000, lose=(), ahead_ns: int = 0) -> None:
        """Frames of all cameras up to now, each camera's its own, without those numbered `lose`."""
        for k in range(count):
            self.now_ns += period_ns
            for role in CAMERA_ROLES:
                if k not in lose:
                    frame = Frame(self.now_ns + ahead_ns, "rgb8", role.encode() * 12, 2, 2, 6)
                    self.inputs._store(role, frame)

    def entry(self, name: str) -> DiagnosticStatus:
        status = self.reporter.status(
            "active", self.settings, Statistics(), self.inputs, None, "m", "cpu", self.now_ns
        )
        array = self.reporter.diagnostics(status, self.inputs, None, self.now_ns)
        return next(entry for entry in array.status if entry.name == f"alpamayo: {name}")


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


def rig_entry(bench) -> DiagnosticStatus:
    return bench.told.get("alpamayo: rig", DiagnosticStatus(level=OK))


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
    bench.wait(lambda: words in rig_entry(bench).message, "the warning")
    assert rig_entry(bench).level == WARN
    seen = len(bench.ear.plans)
    bench.wait(lambda: len(bench.ear.plans) > seen, "planning that goes on")
