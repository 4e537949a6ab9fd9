"""Sensor messages read out of the bytes they travel as, without a copy of the pixels.

rclpy's own reading copies an image twice and takes 36 covariances apart for one pose. ROS 2 writes
CDR version 1 (OMG DDSI-RTPS 2.2, 10.2): four bytes that name the byte order, then the fields in
order, each number at a multiple of its size counted from there; a text is its length with the
closing zero and its bytes, a sequence its length and its items.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.sensing.images import compressed_encoding
from alpamayo_ros.sensing.messages import require_frame_ids, vehicle_pose
from alpamayo_ros.types import NS_PER_S, EgoPose, Frame, UserError

ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}
COVARIANCE_BYTES = 36 * 8


class MalformedMessageError(UserError):
    """Bytes that are no message of the type they came as; one line."""


class _Reader:
    """Reads fields one after the other; never past the end, whatever a length says."""

    def __init__(self, data: bytes) -> None:
        order = ORDERS.get(bytes(data[:2]))
        if order is None or len(data) < 4:
            raise MalformedMessageError(f"a message of {len(data)} bytes is not in CDR")
        self._data = memoryview(data)[4:]
        self._order = order
        self._at = 0

    def numbers(self, kind: str, count: int = 1) -> tuple:
        """`count` numbers of a struct format character."""
        size = struct.calcsize(f"={kind}")
        start = self._at + -self._at % size
        self._at = start + size * count
        if self._at > len(self._data):
            raise MalformedMessageError("a message ends in the middle of its fields")
        return struct.unpack_from(f"{self._order}{count}{kind}", self._data, start)

    def octets(self) -> memoryview:
        """A sequence of bytes, in place."""
        (length,) = self.numbers("I")
        start = self._at
        self.skip(length)
        return self._data[start : self._at]

    def skip(self, count: int) -> None:
        """Leave out bytes."""
        self._at += count
        if self._at > len(self._data):
            raise MalformedMessageError("a message is shorter than it says")

    def text(self) -> str:
        """A text, without its closing zero."""
        return str(self.octets(), "utf-8", "replace").split("\0", 1)[0]

    def header(self) -> tuple[int, str]:
        """Stamp in ns and frame_id of a std_msgs/Header."""
        (seconds,) = self.numbers("i")
        (nanoseconds,) = self.numbers("I")
        return seconds * NS_PER_S + nanoseconds, self.text()


def image_frame(data: bytes) -> Frame:
    """A sensor_msgs/Image as a frame; its pixels stay where they are in `data`.

    Raises:
        MalformedMessageError: the bytes are no such message.
    """
    reader = _Reader(data)
    stamp_ns, _ = reader.header()
    height, width = reader.numbers("I", 2)
    encoding = reader.text()
    (big_endian,) = reader.numbers("B")
    (row_bytes,) = reader.numbers("I")
    return Frame(stamp_ns, encoding, reader.octets(), height, width, row_bytes, bool(big_endian))


def compressed_frame(data: bytes) -> Frame:
    """A sensor_msgs/CompressedImage as a frame; its bytes stay where they are in `data`.

    Raises:
        MalformedMessageError: the bytes are no such message.
        MalformedImageError: its format is neither JPEG nor PNG.
    """
    reader = _Reader(data)
    stamp_ns, _ = reader.header()
    format_field, octets = reader.text(), reader.octets()
    return Frame(stamp_ns, compressed_encoding(format_field), octets)


@dataclass(frozen=True, eq=False)
class OdometryRecord:
    """A nav_msgs/Odometry: the pose, and the frames it is given in."""

    pose: EgoPose
    frame_id: str
    child_frame_id: str


def odometry_record(data: bytes) -> OdometryRecord:
    """A nav_msgs/Odometry, its quaternion normalised.

    Raises:
        MalformedMessageError: the bytes are no such message.
        MalformedOdometryError: the message is no pose of a vehicle.
    """
    reader = _Reader(data)
    stamp_ns, frame_id = reader.header()
    child_frame_id = reader.text()
    numbers = reader.numbers("d", 7)
    reader.skip(COVARIANCE_BYTES)
    speed_m_s = reader.numbers("d", 6)[0]
    reader.skip(COVARIANCE_BYTES)
    pose = vehicle_pose(stamp_ns, np.array(numbers[:3]), np.array(numbers[3:]), speed_m_s)
    require_frame_ids(frame_id, child_frame_id)
    return OdometryRecord(pose, frame_id, child_frame_id)
