"""Small bags of drives whose every pose is a closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from alpamayo_ros.types import CAMERA_ROLES

TYPES = get_typestore(Stores.ROS2_HUMBLE)
START_NS = 1_700_000_000_123_456_789
SIZE_PX = (64, 36)

# x, y, yaw and signed speed at t seconds.
Motion = Callable[[float], tuple[float, float, float, float]]


def straight(speed_m_s: float = 10.0) -> Motion:
    """Along the map's x axis."""
    return lambda t: (speed_m_s * t, 0.0, 0.0, speed_m_s)


def circle(speed_m_s: float = 8.0, rate_rad_s: float = 0.2) -> Motion:
    """A left turn that starts 1 km away, heading half left."""
    radius, first = speed_m_s / rate_rad_s, 0.8

    def at(t: float) -> tuple[float, float, float, float]:
        yaw = first + rate_rad_s * t
        x = 1000 + radius * (np.sin(yaw) - np.sin(first))
        y = -500 - radius * (np.cos(yaw) - np.cos(first))
        return float(x), float(y), float(yaw), speed_m_s

    return at


@dataclass(frozen=True)
class Recipe:
    """What a bag is made of."""

    motion: Motion = field(default_factory=circle)
    duration_s: float = 10.0
    jpeg: bool = True
    storage: StoragePlugin = StoragePlugin.MCAP
    compression: CompressionMode | None = None
    topics: Mapping[str, str] = field(default_factory=dict)  # by role or "odometry"
    leave_out: tuple[str, ...] = ()  # roles or "odometry"
    odometry_end_s: float = 1e9
    odometry_gap_s: tuple[float, float] = (1e9, 1e9)  # nothing strictly between these
    odometry_shift_ns: int = 0  # of stamps alone: another clock
    odometry_period_ns: int = 20_000_000
    jump_at_s: float = 1e9  # odometry is 30 m off from here on
    navigation: str = ""


def write_drive(folder: Path, recipe: Recipe | None = None) -> Path:
    """Write a bag: images at 10 Hz, odometry at 50 Hz, log time = stamp."""
    recipe = recipe or Recipe()
    folder.parent.mkdir(parents=True, exist_ok=True)
    writer = Writer(folder, version=8, storage_plugin=recipe.storage)
    if recipe.compression is not None:
        writer.set_compression(recipe.compression, CompressionFormat.ZSTD)
    with writer:
        _write(writer, recipe)
    return folder


def _write(writer: Writer, recipe: Recipe) -> None:
    connections: dict[str, Any] = {}
    for stamp_ns, topic, message in sorted(_messages(recipe), key=lambda m: m[:2]):
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, message.__msgtype__, typestore=TYPES)
        data = TYPES.serialize_cdr(message, message.__msgtype__)
        writer.write(connections[topic], stamp_ns, data)


def _messages(recipe: Recipe) -> Iterator[tuple[int, str, Any]]:
    end_ns = round(recipe.duration_s * 1e9)
    for role in CAMERA_ROLES:
        if role in recipe.leave_out:
            continue
        suffix = "/compressed" if recipe.jpeg else ""
        topic = recipe.topics.get(role, f"/camera/{role}/image{suffix}")
        for offset_ns in range(0, end_ns, 100_000_000):
            stamp_ns = START_NS + offset_ns
            yield stamp_ns, topic, image(role, stamp_ns, recipe.jpeg)
    if "odometry" not in recipe.leave_out:
        topic = recipe.topics.get("odometry", "/localization/odometry")
        for offset_ns in range(0, end_ns, recipe.odometry_period_ns):
            t_s, (first_s, last_s) = offset_ns / 1e9, recipe.odometry_gap_s
            if t_s <= recipe.odometry_end_s and not first_s < t_s < last_s:
                stamp_ns = START_NS + offset_ns
                yield stamp_ns, topic, odometry(recipe, t_s, stamp_ns)
    if recipe.navigation:
        yield START_NS, "/route", make("std_msgs/msg/String", recipe.navigation)


def image(role: str, stamp_ns: int, jpeg: bool) -> Any:
    """A picture that differs by camera and time."""
    width, height = SIZE_PX
    shade = (CAMERA_ROLES.index(role) * 60 + stamp_ns // 100_000_000 * 7) % 256
    rgb = np.full((height, width, 3), shade, np.uint8)
    rgb[: height // 2, :, 1] = 255 - shade
    if jpeg:
        data = cv2.imencode(".jpg", rgb)[1].ravel()
        return make("sensor_msgs/msg/CompressedImage", header(stamp_ns, role), "jpeg", data)
    size = (height, width, "rgb8", 0, 3 * width)
    return make("sensor_msgs/msg/Image", header(stamp_ns, role), *size, rgb.ravel())


def odometry(recipe: Recipe, t_s: float, stamp_ns: int) -> Any:
    """The motion's pose and speed at t_s."""
    x, y, yaw, speed = recipe.motion(t_s)
    if t_s >= recipe.jump_at_s:
        y += 30.0
    point = make("geometry_msgs/msg/Point", x, y, 41.7)
    turned = make("geometry_msgs/msg/Quaternion", 0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2))
    twist = make(
        "geometry_msgs/msg/Twist",
        make("geometry_msgs/msg/Vector3", speed, 0.0, 0.0),
        make("geometry_msgs/msg/Vector3", 0.0, 0.0, 0.0),
    )
    return make(
        "nav_msgs/msg/Odometry",
        header(stamp_ns + recipe.odometry_shift_ns, "map"),
        "base_link",
        make(
            "geometry_msgs/msg/PoseWithCovariance",
            make("geometry_msgs/msg/Pose", point, turned),
            np.zeros(36),
        ),
        make("geometry_msgs/msg/TwistWithCovariance", twist, np.zeros(36)),
    )


def header(stamp_ns: int, frame_id: str) -> Any:
    """A header."""
    stamp = make("builtin_interfaces/msg/Time", *divmod(stamp_ns, 1_000_000_000))
    return make("std_msgs/msg/Header", stamp, frame_id)


def make(name: str, *values: Any) -> Any:
    """A message with its fields in order."""
    return TYPES.types[name](*values)


def future(motion: Motion, t0_s: float) -> np.ndarray:
    """Where the motion leads: (64, 3) x, y, yaw in the frame at t0_s, from the closed form."""
    x0, y0, yaw0, _ = motion(t0_s)
    poses = np.array([motion(t0_s + 0.1 * k)[:3] for k in range(1, 65)])
    gap = poses[:, :2] - (x0, y0)
    c, s = np.cos(yaw0), np.sin(yaw0)
    yaw = np.angle(np.exp(1j * (poses[:, 2] - yaw0)))
    return np.column_stack([gap @ np.array([[c, -s], [s, c]]), yaw])
