"""Our reading of serialised messages against rclpy's, and against bytes that lie."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import CompressedImage, Image

from alpamayo_ros.sensing import messages
from alpamayo_ros.sensing.cdr import (
    MalformedMessageError,
    compressed_frame,
    image_frame,
    odometry_record,
)
from alpamayo_ros.types import UserError

NAMES = ["", "a", "ab", "abc", "map", "base_link", "kamera_vörne", "x" * 300]
TYPES = get_typestore(Stores.ROS2_HUMBLE)


def random_message(kind: type, rng):
    """A message with every field filled, its texts of all lengths so that all paddings occur."""
    message = kind()
    message.header.stamp.sec = int(rng.integers(-(2**31), 2**31))
    message.header.stamp.nanosec = int(rng.integers(0, 2**32))
    message.header.frame_id = str(rng.choice(NAMES))
    if kind is Odometry:
        message.child_frame_id = str(rng.choice(NAMES))
        pose, twist = message.pose.pose, message.twist.twist
        for target in (pose.position, pose.orientation, twist.linear, twist.angular):
            for name in target.get_fields_and_field_types():
                setattr(target, name, random_number(rng))
        return message
    message.data = rng.bytes(int(rng.integers(0, 50)))
    if kind is CompressedImage:
        message.format = str(rng.choice(["jpeg", "png", "bgr8; jpeg compressed bgr8", "h264", ""]))
        return message
    message.encoding = str(rng.choice(NAMES))
    message.height, message.width, message.step = (int(n) for n in rng.integers(0, 2**32, 3))
    message.is_bigendian = int(rng.integers(0, 2))
    return message


def random_number(rng) -> float:
    """A number that an odometry may hold; now and then one that it may not."""
    odd = rng.uniform() < 0.03
    return float(rng.choice([np.nan, np.inf, 1e308]) if odd else rng.choice([0.5, 0.1, -0.7]))


def frame_fields(frame) -> tuple:
    """A frame's fields, its bytes included."""
    return (
        frame.stamp_ns,
        frame.encoding,
        bytes(frame.data),
        frame.height,
        frame.width,
        frame.row_bytes,
        frame.big_endian,
    )


def pose_fields(pose) -> tuple:
    return (pose.stamp_ns, pose.position.tolist(), pose.quaternion.tolist(), pose.speed_m_s)


def ours(kind: type, data: bytes):
    """What our reader makes of bytes, comparable."""
    if kind is Odometry:
        record = odometry_record(data)
        return pose_fields(record.pose), record.frame_id, record.child_frame_id
    return frame_fields(image_frame(data) if kind is Image else compressed_frame(data))


def theirs(kind: type, data: bytes):
    """The same from rclpy's message."""
    message = deserialize_message(data, kind)
    if kind is Odometry:
        pose = messages.pose_of_odometry(message)
        return pose_fields(pose), message.header.frame_id, message.child_frame_id
    if kind is Image:
        return frame_fields(messages.frame_of_image(message))
    return frame_fields(messages.frame_of_compressed_image(message))


def outcome(read, kind: type, data: bytes):
    """What a reader makes of bytes; the kind and text of its complaint about their content."""
    try:
        return read(kind, data)
    except UserError as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", [Image, CompressedImage, Odometry])
def test_whole_messages_are_read_as_rclpy_reads_them(kind):
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(500):
        data = serialize_message(random_message(kind, rng))
        outcomes.append(outcome(ours, kind, data))
        assert outcomes[-1] == outcome(theirs, kind, data)
    read = [o for o in outcomes if not isinstance(o[0], type)]
    assert len(read) > 50


@pytest.mark.parametrize("kind", [Image, CompressedImage, Odometry])
def test_turned_over_bytes_are_read_as_rclpy_reads_them_or_refused(kind):
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(1000):
        data = bytearray(serialize_message(random_message(kind, rng)))
        # Not the byte order's: rclpy reads some that no middleware of ROS 2 writes.
        data[int(rng.integers(4, len(data)))] ^= int(rng.integers(1, 256))
        mine = outcome(ours, kind, bytes(data))
        if mine[0] is MalformedMessageError:
            refused += 1
            continue
        assert mine == outcome(theirs, kind, bytes(data))
    assert refused < 500


@pytest.mark.parametrize("kind", [Image, CompressedImage, Odometry])
def test_messages_cut_off_anywhere_are_refused_in_one_line(kind):
    message = random_message(kind, np.random.default_rng(2))
    message.header.frame_id = "map"
    if kind is CompressedImage:
        message.format = "jpeg"
    if kind is not Odometry:
        message.data = b"12345"
    data = serialize_message(message).rstrip(b"\0")
    for end in range(len(data)):
        with pytest.raises(MalformedMessageError) as error:
            ours(kind, data[:end])
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("length", [6, 2**31, 2**32 - 1])
def test_a_length_beyond_the_message_is_refused(length):
    data = bytearray(serialize_message(CompressedImage(format="jpeg", data=b"12345")))
    at = data.index(b"12345") - 4
    data[at : at + 4] = struct.pack("<I", length)
    with pytest.raises(MalformedMessageError, match="shorter than it says"):
        compressed_frame(bytes(data[: at + 9]))


@pytest.mark.parametrize("little_endian", [True, False])
@pytest.mark.parametrize("frame_id", ["", "a", "ab", "abc", "abcd", "abcde"])
def test_either_byte_order_is_read(little_endian, frame_id):
    """Written by rosbags, which knows both orders; rclpy writes this machine's."""
    make = TYPES.types
    header = make["std_msgs/msg/Header"](
        make["builtin_interfaces/msg/Time"](1_700_000_000, 123_456_789), frame_id
    )
    pixels = np.arange(24, dtype=np.uint8)
    image = make["sensor_msgs/msg/Image"](header, 2, 4, "rgb8", 1, 12, pixels)
    frame = image_frame(
        bytes(TYPES.serialize_cdr(image, image.__msgtype__, little_endian=little_endian))
    )
    assert frame_fields(frame) == (
        1_700_000_000_123_456_789,
        "rgb8",
        pixels.tobytes(),
        2,
        4,
        12,
        True,
    )
    position = make["geometry_msgs/msg/Point"](4e6, -5.5, 0.25)
    turned = make["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.6, 0.8)
    linear = make["geometry_msgs/msg/Vector3"](7.5, 1.0, 2.0)
    odometry = make["nav_msgs/msg/Odometry"](
        make["std_msgs/msg/Header"](header.stamp, frame_id or "map"),
        frame_id + "child",
        make["geometry_msgs/msg/PoseWithCovariance"](
            make["geometry_msgs/msg/Pose"](position, turned), np.ones(36)
        ),
        make["geometry_msgs/msg/TwistWithCovariance"](
            make["geometry_msgs/msg/Twist"](linear, linear), np.ones(36)
        ),
    )
    data = TYPES.serialize_cdr(odometry, odometry.__msgtype__, little_endian=little_endian)
    record = odometry_record(bytes(data))
    assert record.frame_id == (frame_id or "map")
    assert record.child_frame_id == frame_id + "child"
    assert pose_fields(record.pose) == (
        1_700_000_000_123_456_789,
        [4e6, -5.5, 0.25],
        [0.0, 0.0, 0.6, 0.8],
        7.5,
    )


def test_an_images_bytes_are_not_copied():
    data = serialize_message(Image(height=1, width=2, encoding="rgb8", step=6, data=b"abcdef"))
    frame = image_frame(data)
    assert isinstance(frame.data, memoryview)
    assert frame.data.obj is data
