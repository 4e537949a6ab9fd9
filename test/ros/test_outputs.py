"""What goes out on which topic, when: publishers that write down, no middleware."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Pose
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header

from alpamayo_ros.ros.outputs import Outputs
from alpamayo_ros.ros.parameters import OutputSettings
from alpamayo_ros.ros.trajectory import load_trajectory_types
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.sensing.messages import stamp_ns
from alpamayo_ros.sensing.poses import NO_ORIGIN
from alpamayo_ros.types import STEP_NS, UserError, Verdict

from ..planning.plans import T0_NS, arc_plan

SETTINGS = OutputSettings(
    path_remaining=True, autoware=False, overlay=False, overlay_mount=(1.75, 0, 1.5, 0, 0, 0)
)
FAKE_AUTOWARE = '''
"""Stands in for autoware_planning_msgs, which is not installed here: the fields of its messages."""
from test.ros.test_outputs import Trajectory, TrajectoryPoint
'''


@dataclass
class TrajectoryPoint:
    """The fields of autoware_planning_msgs/TrajectoryPoint."""

    time_from_start: Duration = field(default_factory=Duration)
    pose: Pose = field(default_factory=Pose)
    longitudinal_velocity_mps: float = 0.0
    lateral_velocity_mps: float = 0.0
    acceleration_mps2: float = 0.0
    heading_rate_rps: float = 0.0
    front_wheel_angle_rad: float = 0.0
    rear_wheel_angle_rad: float = 0.0


@dataclass
class Trajectory:
    """The fields of autoware_planning_msgs/Trajectory."""

    header: Header = field(default_factory=Header)
    points: list = field(default_factory=list)


class Pen:
    """A publisher that writes down."""

    def __init__(self, topic: str) -> None:
        self.topic_name = topic
        self.sent: list = []
        self.listeners = 1

    def publish(self, message) -> None:
        self.sent.append(message)

    def get_subscription_count(self) -> int:
        return self.listeners

    def wait_for_all_acked(self, timeout) -> bool:
        return True


class Desk:
    """As much of a node as publishers need, with a clock that a test sets."""

    def __init__(self) -> None:
        self.pens: dict[str, Pen] = {}
        self.nanoseconds = T0_NS
        self.warnings: list[str] = []

    def create_publisher(self, kind, topic, profile, event_callbacks=None) -> Pen:
        return self.pens.setdefault(topic.removeprefix("~/output/"), Pen(topic))

    def destroy_publisher(self, pen: Pen) -> None:
        del self.pens[pen.topic_name.removeprefix("~/output/")]

    def resolve_topic_name(self, topic: str) -> str:
        return topic.replace("~", "/alpamayo")

    def get_clock(self):
        return self

    def now(self):
        return self

    def get_logger(self):
        return self

    def warning(self, text: str, **options) -> None:
        self.warnings.append(text)


def outputs(desk: Desk, camera_infos=None, **changes) -> Outputs:
    settings = SimpleNamespace(
        outputs=replace(SETTINGS, **changes), planner=SimpleNamespace(crop=False)
    )
    return Outputs(desk, settings, camera_infos or {}, {})


def decision(**plan):
    """A decision on a plan at 8 m/s, made at 5 m north of the map's origin, heading west."""
    selection = SimpleNamespace(
        frame_id="map",
        child_frame_id="base_link",
        t0_position=np.array([0.0, 5.0, 0.0]),
        t0_quaternion=np.array([0.0, 0.0, 1.0, 0.0]),
    )
    return SimpleNamespace(
        plan=arc_plan(8.0, **plan),
        selection=selection,
        snapshot=fake_snapshot(0),
        verdict=Verdict(),
    )


@pytest.mark.parametrize(
    ("age_ns", "first"),
    [
        (0, 1),
        (STEP_NS - 1, 1),
        (STEP_NS, 2),  # exactly at publication is not ahead
        (250_000_000, 3),
        (64 * STEP_NS - 1, 64),
        (64 * STEP_NS, None),
        (10**12, None),
        (-30_000_000, 1),  # /clock may lag behind the stamps
    ],
)
def test_what_remains_of_a_path_is_stamped_later_than_its_publication(age_ns, first):
    desk = Desk()
    out = outputs(desk)
    desk.nanoseconds = T0_NS + age_ns
    out.publish(decision(), drive=True, origin=NO_ORIGIN)
    path, remaining = (desk.pens[name].sent[-1] for name in ("path", "path_remaining"))
    assert remaining.header == path.header
    assert remaining.poses == ([] if first is None else path.poses[first - 1 :])
    assert all(stamp_ns(pose.header.stamp) > desk.nanoseconds for pose in remaining.poses)


def test_a_plan_that_is_not_driven_is_on_no_path_and_its_markers_are_grey():
    desk = Desk()
    outputs(desk).publish(decision(), drive=False, origin=NO_ORIGIN)
    assert {name for name, pen in desk.pens.items() if pen.sent} == {
        "plan",
        "reasoning",
        "markers",
    }
    colour = desk.pens["markers"].sent[0].markers[0].colors[0]
    assert colour.r == colour.g == colour.b


def test_a_stale_plan_stays_visible_in_grey_while_every_path_is_emptied():
    desk = Desk()
    out = outputs(desk)
    out.publish(decision(), drive=True, origin=NO_ORIGIN)
    driven = desk.pens["markers"].sent[-1].markers[0].colors[0]
    assert driven.r != driven.b
    for _ in range(2):
        out.publish_no_plan(T0_NS + 10**9, stale=True)
        for name in ("path", "path_ego", "path_remaining"):
            assert desk.pens[name].sent[-1].poses == []
            assert stamp_ns(desk.pens[name].sent[-1].header.stamp) == T0_NS + 10**9
        path, _, text = desk.pens["markers"].sent[-1].markers
        assert len(path.points) == len(path.colors) == 64
        assert {(c.r, c.g, c.b) for c in path.colors} == {(0.6, 0.6, 0.6)}
        assert text.text == "STALE\nThe road is clear; keep the speed."
    out.publish_no_plan(T0_NS + 2 * 10**9)
    assert {marker.action for marker in desk.pens["markers"].sent[-1].markers} == {2}


def test_without_its_parameters_nothing_more_than_the_usual_topics_is_offered():
    desk = Desk()
    outputs(desk, path_remaining=False)
    assert set(desk.pens) == {"path", "path_ego", "reasoning", "plan", "markers"}


def test_closing_destroys_every_publisher(fake_autoware):
    desk = Desk()
    outputs(desk, autoware=True, overlay=True).close()
    assert desk.pens == {}


@pytest.fixture
def fake_autoware(tmp_path, monkeypatch):
    """A module of that name on the path, with classes that have Autoware's fields: the real
    messages are in no wheel, so that what is sent is checked here and not over the wire."""
    package = tmp_path / "autoware_planning_msgs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "msg.py").write_text(FAKE_AUTOWARE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("autoware_planning_msgs.msg", "autoware_planning_msgs"):
        sys.modules.pop(name, None)


def test_a_driven_plan_is_a_trajectory_with_the_same_stamp_frame_poses_and_speeds(fake_autoware):
    desk = Desk()
    out = outputs(desk, autoware=True)
    out.publish(decision(curvature=0.02), drive=True, origin=NO_ORIGIN)
    trajectory, path = desk.pens["trajectory"].sent[-1], desk.pens["path"].sent[-1]
    assert trajectory.header == path.header
    assert [point.pose for point in trajectory.points] == [pose.pose for pose in path.poses]
    assert [stamp_ns(p.time_from_start) for p in trajectory.points] == [
        k * STEP_NS for k in range(1, 65)
    ]
    for point in trajectory.points:
        assert point.longitudinal_velocity_mps == pytest.approx(8.0, rel=1e-3)
        assert point.heading_rate_rps == pytest.approx(0.16, rel=1e-3)
        assert point.acceleration_mps2 == 0.0
        assert point.lateral_velocity_mps == 0.0
    out.publish(decision(), drive=False, origin=NO_ORIGIN)
    assert len(desk.pens["trajectory"].sent) == 1
    out.publish_no_plan(T0_NS + 10**9)
    empty = desk.pens["trajectory"].sent[-1]
    assert (empty.points, stamp_ns(empty.header.stamp)) == ([], T0_NS + 10**9)


def test_without_autowares_messages_the_parameter_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "autoware_planning_msgs.msg", None)
    with pytest.raises(UserError, match=r"source the Autoware workspace .* or set output.autoware"):
        load_trajectory_types()


def camera_info() -> CameraInfo:
    info = CameraInfo(width=1920, height=1080, distortion_model="plumb_bob", d=[0.0] * 5)
    info.header.frame_id = "front_wide_optical"
    info.k = np.array([554.0, 0, 959.5, 0, 554.0, 539.5, 0, 0, 1.0])
    return info


def wait_for_drawing(out: Outputs) -> None:
    out._overlay._drawing.result(30.0)


def test_an_overlay_is_the_front_image_of_t0_with_the_plan_in_it():
    desk = Desk()
    out = outputs(desk, {"front_wide": camera_info()}, overlay=True)
    made = decision()
    out.publish(made, drive=True, origin=NO_ORIGIN)
    wait_for_drawing(out)
    (image,) = desk.pens["overlay"].sent
    assert stamp_ns(image.header.stamp) == T0_NS
    assert image.header.frame_id == "front_wide_optical"
    seen = made.snapshot.frames[1][-1]
    pixels = np.frombuffer(image.data, np.uint8).reshape(image.height, image.width, 3)
    assert pixels.shape == seen.shape
    assert image.encoding == "rgb8"
    above = slice(0, seen.shape[0] // 2 - 1)
    assert (pixels[above] == seen[above]).all()
    assert (pixels != seen).any()


def test_nothing_is_drawn_while_nobody_listens_or_the_camera_is_not_calibrated():
    desk = Desk()
    infos: dict[str, CameraInfo] = {}
    out = outputs(desk, infos, overlay=True)
    desk.pens["overlay"].listeners = 0
    out.publish(decision(), drive=True, origin=NO_ORIGIN)
    assert desk.warnings == []
    desk.pens["overlay"].listeners = 1
    for info in (None, CameraInfo(width=1920, height=1080)):
        if info is not None:
            infos["front_wide"] = info
        out.publish(decision(), drive=True, origin=NO_ORIGIN)
        assert "CameraInfo has not come" in desk.warnings.pop()
    assert out._overlay._drawing is None


def test_a_calibration_that_makes_no_sense_is_a_warning_and_no_more():
    desk = Desk()
    info = camera_info()
    info.d = [0.0, 0.0, 0.0]  # OpenCV knows 4, 5, 8, 12 and 14
    out = outputs(desk, {"front_wide": info}, overlay=True)
    out.publish(decision(), drive=True, origin=NO_ORIGIN)
    wait_for_drawing(out)
    assert desk.warnings[0].startswith("output.overlay: ")
    assert desk.pens["overlay"].sent == []
    assert len(desk.pens["path"].sent) == 1
