"""From sensor messages to the records that travel, whoever decoded them: rclpy or a bag reader.

Both give objects with the fields of the ROS interfaces, so nothing here imports ROS.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from alpamayo_ros.sensing.images import compressed_encoding
from alpamayo_ros.types import NS_PER_S, EgoPose, Frame, UserError


class MalformedOdometryError(UserError):
    """An odometry message is no pose of a vehicle."""


def stamp_ns(stamp: Any) -> int:
    """A Time, such as a header's stamp, or a Duration as integer nanoseconds."""
    return stamp.sec * NS_PER_S + stamp.nanosec


def frame_of_image(message: Any) -> Frame:
    """A sensor_msgs/Image as a frame; its bytes are shared, not copied."""
    return Frame(
        stamp_ns=stamp_ns(message.header.stamp),
        encoding=message.encoding,
        data=memoryview(message.data),
        height=message.height,
        width=message.width,
        row_bytes=message.step,
        big_endian=bool(message.is_bigendian),
    )


def frame_of_compressed_image(message: Any) -> Frame:
    """A sensor_msgs/CompressedImage as a frame; its bytes are shared, not copied.

    Raises:
        MalformedImageError: its format is neither JPEG nor PNG.
    """
    encoding = compressed_encoding(message.format)
    return Frame(stamp_ns(message.header.stamp), encoding, memoryview(message.data))


def pose_of_odometry(message: Any) -> EgoPose:
    """A nav_msgs/Odometry as a pose with unit quaternion.

    Raises:
        MalformedOdometryError: a number is not finite, the orientation no rotation, or a frame id
            is empty; one line.
    """
    pose = message.pose.pose
    position = np.array([pose.position.x, pose.position.y, pose.position.z])
    turned = pose.orientation
    quaternion = np.array([turned.x, turned.y, turned.z, turned.w])
    speed_m_s = float(message.twist.twist.linear.x)
    ego_pose = vehicle_pose(stamp_ns(message.header.stamp), position, quaternion, speed_m_s)
    require_frame_ids(message.header.frame_id, message.child_frame_id)
    return ego_pose


def vehicle_pose(
    stamp: int, position: np.ndarray, quaternion: np.ndarray, speed_m_s: float
) -> EgoPose:
    """A pose from what an odometry message says, its quaternion normalised.

    Args:
        stamp: ns.
        position: float64 (3,) m.
        quaternion: float64 (4,) x, y, z, w of about unit length.
        speed_m_s: along x of the child frame.

    Raises:
        MalformedOdometryError: a number is not finite, or the orientation no rotation; one line.
    """
    norm = math.hypot(*quaternion)
    if not np.isfinite(position).all():
        raise MalformedOdometryError("odometry: the position is not finite")
    # Some drivers leave the orientation at zero; others round it. The first is no rotation.
    if not 0.5 < norm < 2.0:
        raise MalformedOdometryError("odometry: the orientation is no rotation")
    if not math.isfinite(speed_m_s):
        raise MalformedOdometryError(
            "odometry: the twist is not finite; leave it at zero where it is not known"
        )
    return EgoPose(stamp, position, quaternion / norm, speed_m_s)


def require_frame_ids(frame_id: str, child_frame_id: str) -> None:
    """Raise MalformedOdometryError when a frame of an odometry message has no name."""
    if not (frame_id and child_frame_id):
        raise MalformedOdometryError("odometry: header.frame_id or child_frame_id is empty")
