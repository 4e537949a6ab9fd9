"""The bag of the drive, read back: stamps, rates, physics, and nothing from the future."""

import math
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.recording import START_NS, DriveRecording, RecordingError, record_drive
from alpamayo_ros.demo.render import render
from alpamayo_ros.types import CAMERA_ROLES

SIZE = (160, 96)
SEED = 5


@dataclass(frozen=True)
class Record:
    """A message of a bag."""

    topic: str
    log_ns: int
    raw: bytes
    value: object

    @property
    def stamp_ns(self) -> int:
        stamp = self.value.header.stamp
        return stamp.sec * 1_000_000_000 + stamp.nanosec


def read(bag: Path) -> list[Record]:
    with AnyReader([bag]) as reader:
        return [
            Record(c.topic, log_ns, bytes(raw), reader.deserialize(raw, c.msgtype))
            for c, log_ns, raw in reader.messages()
        ]


def record(folder: Path, duration_s: float, **options) -> DriveRecording:
    chosen = {"seed": SEED, "progress": False, "size_px": SIZE, "processes": 1, **options}
    return record_drive(folder, duration_s=duration_s, **chosen)


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> DriveRecording:
    return record(tmp_path_factory.mktemp("drive") / "bag", 8.0)


@pytest.fixture(scope="module")
def records(recording) -> list[Record]:
    return read(recording.path)


@pytest.fixture(scope="module")
def odometry(recording, records) -> list[Record]:
    return [message for message in records if message.topic == recording.odometry_topic]


def rgb(message: Record) -> np.ndarray:
    """The pixels of a compressed image."""
    return cv2.imdecode(message.value.data, cv2.IMREAD_COLOR)[..., ::-1]


def column(odometry: list[Record], pick) -> np.ndarray:
    return np.array([pick(message.value) for message in odometry])


def yaw_of(value) -> float:
    q = value.pose.pose.orientation
    return 2 * math.atan2(q.z, q.w)


def test_every_topic_has_its_type_rate_and_stamps(recording, records):
    images = {recording.image_topics[role] for role in CAMERA_ROLES}
    for topic in images | {recording.camera_info_topic}:
        stamps = [message.stamp_ns for message in records if message.topic == topic]
        assert stamps == [START_NS + k * 100_000_000 for k in range(80)], topic
    stamps = [m.stamp_ns for m in records if m.topic == recording.odometry_topic]
    assert stamps == [START_NS + k * 20_000_000 for k in range(400)]
    stamps = [m.log_ns for m in records if m.topic == recording.navigation_topic]
    assert stamps == [START_NS + k * 100_000_000 for k in range(80)]
    assert len({message.topic for message in records}) == 7


def test_the_instruction_is_the_drives_and_ends_with_the_intersection(recording, records):
    texts = [m.value.data for m in records if m.topic == recording.navigation_topic]
    assert texts == [Drive(SEED).navigation_at(k / 10) for k in range(80)]


def test_log_time_is_the_stamp_and_never_goes_back(records):
    stamped = [m for m in records if m.topic != "/planning/navigation"]
    assert [m.log_ns for m in stamped] == [m.stamp_ns for m in stamped]
    log_ns = [message.log_ns for message in records]
    assert log_ns == sorted(log_ns)


def test_the_stamps_are_not_exact_in_floating_seconds():
    assert round(START_NS / 1e9 * 1e9) != START_NS


def test_images_are_jpeg_of_the_asked_size_and_show_the_drive(recording, records):
    drive = Drive(SEED)
    for role in CAMERA_ROLES:
        topic = recording.image_topics[role]
        assert topic == f"/sensing/camera/{role}/image/compressed"
        message = next(
            m for m in records if m.topic == topic and m.stamp_ns == START_NS + 3 * 10**9
        )
        assert message.value.format == "jpeg"
        shown = rgb(message)
        drawn = render(recording.camera(role), drive.scene_at(3.0))
        assert shown.shape == (SIZE[1], SIZE[0], 3)
        assert np.abs(shown.astype(int) - drawn).mean() < 6


def test_camera_info_holds_the_pinhole_matrix(recording, records):
    info = next(m for m in records if m.topic == recording.camera_info_topic).value
    focal = SIZE[0] / 2 / math.tan(math.radians(60))
    expected = [[focal, 0, (SIZE[0] - 1) / 2], [0, focal, (SIZE[1] - 1) / 2], [0, 0, 1]]
    assert info.k.reshape(3, 3) == pytest.approx(np.array(expected))
    assert info.p.reshape(3, 4)[:, :3] == pytest.approx(np.array(expected))
    assert (info.width, info.height) == SIZE
    assert not info.d.any()


def test_odometry_is_far_from_the_origin_and_in_its_frames(odometry):
    first = odometry[0].value
    assert (first.header.frame_id, first.child_frame_id) == ("map", "base_link")
    position = first.pose.pose.position
    assert min(abs(position.x), abs(position.y)) > 100
    assert position.z > 10
    assert abs(yaw_of(first)) > 0.05
    assert 0 < first.pose.covariance[0] < 0.1
    assert 0 < first.twist.covariance[0] < 0.1


def test_the_bag_alone_is_physically_plausible(odometry):
    dt_s = 0.02
    x = column(odometry, lambda value: value.pose.pose.position.x)
    y = column(odometry, lambda value: value.pose.pose.position.y)
    yaw = np.unwrap(column(odometry, yaw_of))
    speed = column(odometry, lambda value: value.twist.twist.linear.x)
    yaw_rate = column(odometry, lambda value: value.twist.twist.angular.z)
    middle = (speed[1:] + speed[:-1]) / 2

    assert np.abs(np.hypot(np.diff(x), np.diff(y)) / dt_s - middle).max() < 0.01
    course = np.arctan2(np.diff(y), np.diff(x))
    slip = np.angle(np.exp(1j * (course - (yaw[1:] + yaw[:-1]) / 2)))
    assert np.abs(slip).max() < 1e-3, "the rear axle moves where it points"
    assert np.abs(np.diff(yaw) / dt_s - (yaw_rate[1:] + yaw_rate[:-1]) / 2).max() < 1e-3

    acceleration = np.diff(speed) / dt_s
    assert np.abs(acceleration).max() < 2.5
    assert np.abs(np.diff(acceleration) / dt_s).max() < 2.0
    lateral = speed * yaw_rate
    assert np.abs(lateral).max() < 3.0
    assert np.abs(np.diff(lateral) / dt_s).max() < 3.0
    assert speed.min() > 2
    assert np.abs(yaw_rate).max() > 0.05, "there is a curve"
    assert np.abs(acceleration).max() > 0.1, "and it speeds up or brakes"


def test_a_longer_recording_begins_with_the_same_bytes(records, tmp_path):
    short = read(record(tmp_path / "short", 4.0).path)
    assert len(short) == len(records) / 2

    def beginning(messages):
        return [(m.topic, m.log_ns, m.raw) for m in messages if m.log_ns < START_NS + 4 * 10**9]

    assert beginning(short) == beginning(records)


def test_several_processes_write_the_same_bag(records, tmp_path):
    pooled = read(record(tmp_path / "bag", 1.0, processes=2).path)
    alone = [m for m in records if m.log_ns < START_NS + 10**9]
    assert [(m.topic, m.raw) for m in pooled] == [(m.topic, m.raw) for m in alone]


def test_a_phase_moves_stamps_and_pictures_of_its_camera_only(records, tmp_path):
    phased = record(tmp_path / "bag", 0.5, phases_ms={"cross_left": 7.5})
    messages = read(phased.path)
    assert [m.log_ns for m in messages] == sorted(m.log_ns for m in messages)
    late = [m for m in messages if m.topic == phased.image_topics["cross_left"]]
    assert [m.stamp_ns - START_NS for m in late] == [k * 10**8 + 7_500_000 for k in range(5)]
    shown = rgb(late[2]).astype(int)
    drive, camera = Drive(SEED), phased.camera("cross_left")
    at_shutter = np.abs(shown - render(camera, drive.scene_at(0.2075))).mean()
    at_frame = np.abs(shown - render(camera, drive.scene_at(0.2))).mean()
    assert at_shutter < at_frame
    topic = phased.image_topics["front_wide"]
    on_time = [m.raw for m in messages if m.topic == topic]
    assert on_time == [m.raw for m in records if m.topic == topic][:5]


def test_raw_images_are_the_rendered_pixels(tmp_path):
    raw = record(tmp_path / "bag", 0.2, jpeg=False)
    topic = "/sensing/camera/front_tele/image"
    message = [m for m in read(raw.path) if m.topic == topic][1].value
    assert (message.encoding, message.step, message.is_bigendian) == ("rgb8", 3 * SIZE[0], 0)
    pixels = message.data.reshape(message.height, message.width, 3)
    expected = render(raw.camera("front_tele"), Drive(SEED).scene_at(0.1))
    np.testing.assert_array_equal(pixels, expected)


def test_a_recording_that_fails_leaves_nothing_that_looks_like_a_bag(tmp_path, monkeypatch):
    calls = []

    def breaks_late(camera, scene):
        calls.append(camera)
        if len(calls) > 10:
            raise RuntimeError("no more")
        return render(camera, scene)

    monkeypatch.setattr("alpamayo_ros.demo.recording.render", breaks_late)
    with pytest.raises(RuntimeError, match="no more"):
        record(tmp_path / "bag", 1.0)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_not_overwritten(recording):
    with pytest.raises(RecordingError, match="exists already: remove it or choose another folder"):
        record(recording.path, 1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"duration_s": 0.0}, r"duration 0\.0 s: allowed are 0\.1 to"),
        ({"duration_s": math.nan}, "duration nan s"),
        ({"phases_ms": {"rear": 1.0}}, "phase of rear: the cameras are cross_left, front_wide"),
        ({"phases_ms": {"front_tele": 100.0}}, r"front_tele 100\.0 ms: allowed are 0 to under"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(options, words, tmp_path):
    arguments = {"duration_s": 1.0, **options}
    with pytest.raises(RecordingError, match=words) as refused:
        record(tmp_path / "bag", **arguments)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "bag").exists()
