"""Ten thousand malformed messages: none raises, each is counted, memory stays."""

from __future__ import annotations

import resource

import cv2
import numpy as np
import pytest
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage, Image

from alpamayo_ros.planning.planner import Planner, PlannerSettings, UnusableFrameError
from alpamayo_ros.ros import parameters
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.messages import time_message
from alpamayo_ros.sensing.cdr import compressed_frame, image_frame
from alpamayo_ros.sensing.messages import stamp_ns
from alpamayo_ros.types import CAMERA_ROLES, Frame

from .rig import odometry_at

MESSAGES = 10_000
NOW_NS = 1_700_000_000_000_000_000
ENCODINGS = ["rgb8", "bgr8", "mono8", "bayer_rggb8", "nv12", "uyvy", "16UC1", "", "jpeg", "ÿ\0"]
NUMBERS = [0.0, 1e300, -1e300, float("nan"), float("inf"), float("-inf"), 1e-320]
SIDES = [0, 1, 2, 3, 5, 64, 65_535, 2**31, 2**32 - 1]


class StandInModel:
    """The parts of a model that `Planner.prepare` uses."""

    pixel_limits = (5120, 7680)


@pytest.fixture
def inputs(context):
    node = Node("alpamayo", context=context)
    parameters.declare(node)
    node.settings = parameters.NodeSettings.read(node)
    inputs = Inputs(node, lambda: None)
    inputs._now_ns = lambda: NOW_NS
    yield inputs
    node.destroy_node()


def random_image(rng) -> Image:
    message = Image(
        encoding=str(rng.choice(ENCODINGS)),
        height=int(rng.choice(SIDES)),
        width=int(rng.choice(SIDES)),
        step=int(rng.choice(SIDES)),
        is_bigendian=int(rng.integers(0, 2)),
        data=rng.bytes(int(rng.integers(0, 300))),
    )
    message.header.stamp = random_stamp(rng)
    return message


def random_compressed(rng) -> CompressedImage:
    whole = cv2.imencode(".jpg", np.zeros((40, 60, 3), np.uint8))[1].tobytes()
    data = bytearray(whole[: int(rng.integers(0, len(whole)))])
    for _ in range(int(rng.integers(0, 4))):
        if data:
            data[int(rng.integers(0, len(data)))] = int(rng.integers(0, 256))
    formats = ["jpeg", "png", "h264", "", "bgr8; jpeg compressed bgr8"]
    message = CompressedImage(format=str(rng.choice(formats)), data=bytes(data))
    message.header.stamp = random_stamp(rng)
    return message


def random_odometry(rng) -> Odometry:
    message = odometry_at(NOW_NS - 1)
    message.header.stamp = random_stamp(rng)
    pose, twist = message.pose.pose, message.twist.twist
    for target in (pose.position, pose.orientation, twist.linear):
        for name in ("x", "y", "z"):
            if rng.uniform() < 0.3:
                setattr(target, name, float(rng.choice(NUMBERS)))
    if rng.uniform() < 0.2:
        message.header.frame_id = str(rng.choice(["", "other", "x" * 1000]))
    return message


def random_stamp(rng) -> Time:
    offset_ns = int(rng.choice([-(10**18), -(10**9), -1, 0, 10**8, 10**12]))
    return time_message(max(NOW_NS + offset_ns + int(rng.integers(0, 10**9)) - 10**9, 0))


def bytes_of(message, rng) -> bytes:
    """A message as it travels; one in ten is cut off or has bytes turned over."""
    data = bytearray(serialize_message(message))
    if rng.uniform() < 0.05:
        data = data[: int(rng.integers(0, len(data)))]
    if data and rng.uniform() < 0.05:
        data[int(rng.integers(0, len(data)))] ^= int(rng.integers(1, 256))
    return bytes(data)


def test_ten_thousand_malformed_messages_are_counted_and_never_fatal(inputs):
    rng = np.random.default_rng(11)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(MESSAGES):
        role = CAMERA_ROLES[int(rng.integers(0, 4))]
        kind = int(rng.integers(0, 3))
        if kind == 0:
            inputs._on_frame(role, image_frame, bytes_of(random_image(rng), rng))
        elif kind == 1:
            inputs._on_frame(role, compressed_frame, bytes_of(random_compressed(rng), rng))
        else:
            inputs._on_odometry(bytes_of(random_odometry(rng), rng))
        inputs.take(inputs._node.settings, NOW_NS)
    heard = sum(inputs.received.values()) + sum(
        n for name, n in inputs.malformed.items() if name in (*CAMERA_ROLES, "odometry")
    )
    assert heard == MESSAGES
    assert sum(len(ring) for ring in inputs.sampler.rings.values()) <= 4 * 256
    assert len(inputs.sampler.poses) <= 2000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 100_000


def outcome(planner: Planner, frame: Frame) -> str:
    """What becomes of a frame; any other exception fails the test."""
    try:
        planner._pixels_of(None, "front_wide", frame)
    except UnusableFrameError as error:
        return "unusable" if "\n" not in str(error) else "two lines"
    return "decoded"


def test_frames_of_damaged_bytes_are_unusable_or_decoded_and_nothing_else(inputs):
    """What the callbacks have kept is decoded only here, in a selection of its own."""
    rng = np.random.default_rng(12)
    planner = Planner(StandInModel(), PlannerSettings())
    outcomes = {"decoded": 0, "unusable": 0}
    for _ in range(MESSAGES // 10):
        message = random_image(rng) if rng.uniform() < 0.5 else random_compressed(rng)
        inputs.reset()
        message.header.stamp = time_message(NOW_NS)
        read = image_frame if isinstance(message, Image) else compressed_frame
        inputs._on_frame("front_wide", read, serialize_message(message))
        for frame in inputs.sampler.rings["front_wide"].items:
            assert frame.stamp_ns == stamp_ns(message.header.stamp)
            outcomes[outcome(planner, frame)] += 1
    planner._pool.shutdown()
    assert outcomes["unusable"] > 500
