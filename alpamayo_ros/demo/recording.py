"""The synthetic drive as a rosbag2, with what sensors of a vehicle would have sent."""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import cv2
import numpy as np
from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from tqdm import tqdm

from alpamayo_ros.demo.cameras import Camera, default_rig
from alpamayo_ros.demo.drive import MAX_DURATION_S, Drive
from alpamayo_ros.demo.render import render
from alpamayo_ros.demo.vehicle import VehicleState
from alpamayo_ros.types import CAMERA_ROLES, NS_PER_S, REFERENCE_ROLE, STEP_NS, UserError

# Not a round number of seconds, nor exact in float64 seconds: so lossy handling of stamps shows.
START_NS = 1_700_000_000_123_456_789
ODOMETRY_STEP_NS = 20_000_000
GROUND_Z_M = 41.7  # height of the whole road in the map
MAP_FRAME, VEHICLE_FRAME = "map", "base_link"
ODOMETRY_TOPIC = "/localization/odometry"
NAVIGATION_TOPIC = "/planning/navigation"
CAMERA_INFO_TOPIC = f"/sensing/camera/{REFERENCE_ROLE}/camera_info"
JPEG_QUALITY = 90

# Standard deviations of pose (m, rad) and twist (m/s, rad/s), as a good localisation states them.
POSE_DEVIATIONS = (0.05, 0.05, 0.1, 0.005, 0.005, 0.005)
TWIST_DEVIATIONS = (0.03, 0.02, 0.02, 0.003, 0.003, 0.003)

FRAMES_WORTH_A_POOL = 30  # a pool of processes takes about a second to start
MAX_PROCESSES = 8

# Bags and messages are written as Humble knows them; later distributions read them too.
BAG_VERSION: Final = 8
TYPES = get_typestore(Stores.ROS2_HUMBLE)


class RecordingError(UserError):
    """A drive cannot be recorded as asked."""


@dataclass(frozen=True)
class DriveRecording:
    """A bag that was written, and how to read its time and topics."""

    path: Path
    seed: int
    duration_s: float
    start_ns: int
    cameras: tuple[Camera, ...]  # in the order of CAMERA_ROLES
    image_topics: Mapping[str, str]  # by role
    compressed: bool
    odometry_topic: str = ODOMETRY_TOPIC
    navigation_topic: str = NAVIGATION_TOPIC
    camera_info_topic: str = CAMERA_INFO_TOPIC

    def t_s(self, stamp_ns: int) -> float:
        """The drive's time of a stamp, as Drive.state_at and its siblings take it."""
        return (stamp_ns - self.start_ns) / 1e9

    def camera(self, role: str) -> Camera:
        """The camera with a role."""
        return self.cameras[CAMERA_ROLES.index(role)]


@dataclass(frozen=True)
class _Settings:
    """What a rendering process has to know."""

    seed: int
    cameras: tuple[Camera, ...]
    jpeg: bool
    phases_ns: tuple[int, ...]  # one a camera


@dataclass(frozen=True, order=True)
class _Message:
    """A message before it is written, in the order of the bag."""

    stamp_ns: int
    topic: str
    value: Any = field(compare=False)


def record_drive(
    folder: str | os.PathLike[str],
    seed: int = 0,
    duration_s: float = 20.0,
    jpeg: bool = True,
    progress: bool = True,
    size_px: tuple[int, int] = (576, 320),
    phases_ms: Mapping[str, float] = MappingProxyType({}),
    processes: int | None = None,
) -> DriveRecording:
    """Record the drive of a seed as a rosbag2 folder (mcap), atomically.

    Images and the navigation's instruction come at 10 Hz, odometry at 50 Hz, from the drive's start
    for duration_s, rounded up to whole frames of 0.1 s. The log time of a message is its header's
    stamp. A longer recording of a seed begins with the same bytes.

    Args:
        folder: the bag's folder; it must not exist.
        seed: fixes road and traffic.
        duration_s: up to drive.MAX_DURATION_S.
        jpeg: sensor_msgs/CompressedImage; otherwise sensor_msgs/Image, rgb8.
        progress: show a bar when standard error is a terminal.
        size_px: width and height of the images.
        phases_ms: by how much a camera's shutter is late, 0 to under 100 ms, by role.
        processes: that render; by default one a core. More than one are spawned, which imports
            the program's main module again, so that needs its `if __name__ == "__main__"`.

    Raises:
        RecordingError: the folder exists, or an argument is out of range; one line.
    """
    target = Path(folder).absolute()
    if target.exists():
        raise RecordingError(f"bag {target} exists already: remove it or choose another folder")
    if not STEP_NS / 1e9 <= duration_s <= MAX_DURATION_S:
        raise RecordingError(f"duration {duration_s} s: allowed are 0.1 to {MAX_DURATION_S} s")
    cameras = default_rig(*size_px)
    settings = _Settings(seed, cameras, jpeg, _phases_ns(phases_ms))
    frames = math.ceil(round(duration_s * 1e9) / STEP_NS)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.draft-", dir=target.parent))
    try:
        # The writer names the mcap file after its folder, so the draft has the final name inside.
        bag = draft / target.name
        images = _all_images(settings, frames, processes or _cores(frames))
        bar = tqdm(images, "recording", frames, unit="frame", disable=None if progress else True)
        _write(bag, settings, bar)
        os.replace(bag, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    topics = {role: _image_topic(role, jpeg) for role in CAMERA_ROLES}
    return DriveRecording(target, seed, duration_s, START_NS, cameras, topics, jpeg)


def _phases_ns(phases_ms: Mapping[str, float]) -> tuple[int, ...]:
    for role, phase_ms in phases_ms.items():
        if role not in CAMERA_ROLES:
            raise RecordingError(f"phase of {role}: the cameras are {', '.join(CAMERA_ROLES)}")
        if not 0 <= phase_ms < STEP_NS / 1e6:
            raise RecordingError(f"phase of {role} {phase_ms} ms: allowed are 0 to under 100 ms")
    return tuple(round(phases_ms.get(role, 0.0) * 1e6) for role in CAMERA_ROLES)


def _cores(frames: int) -> int:
    if frames < FRAMES_WORTH_A_POOL:
        return 1
    return min(len(os.sched_getaffinity(0)), MAX_PROCESSES)


def _image_topic(role: str, jpeg: bool) -> str:
    return f"/sensing/camera/{role}/image" + ("/compressed" if jpeg else "")


def _all_images(settings: _Settings, frames: int, processes: int) -> Iterator[list[np.ndarray]]:
    """The images of all cameras, frame by frame, in order."""
    if processes == 1:
        drive = Drive(settings.seed)
        yield from (_images(settings, drive, frame) for frame in range(frames))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _start_process, (settings.seed,)) as pool:
        yield from pool.map(partial(_images_in_process, settings), range(frames), chunksize=4)


_process_drive: Drive | None = None  # of a rendering process: made once, used for its frames


def _start_process(seed: int) -> None:
    global _process_drive
    cv2.setNumThreads(1)
    _process_drive = Drive(seed)


def _images_in_process(settings: _Settings, frame: int) -> list[np.ndarray]:
    if _process_drive is None:
        raise RuntimeError("a rendering process was not started by _start_process")
    return _images(settings, _process_drive, frame)


def _images(settings: _Settings, drive: Drive, frame: int) -> list[np.ndarray]:
    """One frame of each camera: JPEG bytes (N,) or pixels (H, W, 3), uint8."""
    images = []
    for camera, phase_ns in zip(settings.cameras, settings.phases_ns):
        scene = drive.scene_at((frame * STEP_NS + phase_ns) / 1e9)
        images.append(render(camera, scene))
    return [_jpeg(image) for image in images] if settings.jpeg else images


def _jpeg(image_rgb: np.ndarray) -> np.ndarray:
    bgr = cv2.cvtColor(image_rgb, cv2.COLOR_RGB2BGR)
    written, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not written:
        raise RuntimeError("OpenCV could not encode a JPEG")
    return data.ravel()


def _write(bag: Path, settings: _Settings, images: Iterator[list[np.ndarray]]) -> None:
    """Write all messages in the order of their stamps."""
    drive = Drive(settings.seed)
    with Writer(bag, version=BAG_VERSION, storage_plugin=StoragePlugin.MCAP) as writer:
        connections: dict[str, Connection] = {}
        for frame, frame_images in enumerate(images):
            messages = _odometry(drive, frame) + _camera_messages(settings, frame, frame_images)
            messages.append(_navigation(drive, frame))
            for message in sorted(messages):
                msgtype = message.value.__msgtype__
                if message.topic not in connections:
                    added = writer.add_connection(message.topic, msgtype, typestore=TYPES)
                    connections[message.topic] = added
                data = TYPES.serialize_cdr(message.value, msgtype)
                writer.write(connections[message.topic], message.stamp_ns, data)


def _message(name: str, *values: Any) -> Any:
    """A message of Humble's type store with its fields in order."""
    return TYPES.types[name](*values)


def _header(stamp_ns: int, frame_id: str) -> Any:
    stamp = _message("builtin_interfaces/msg/Time", *divmod(stamp_ns, NS_PER_S))
    return _message("std_msgs/msg/Header", stamp, frame_id)


def _camera_messages(settings: _Settings, frame: int, images: list[np.ndarray]) -> list[_Message]:
    messages = []
    for camera, phase_ns, image in zip(settings.cameras, settings.phases_ns, images):
        stamp_ns = START_NS + frame * STEP_NS + phase_ns
        header = _header(stamp_ns, f"camera_{camera.role}_optical")
        if settings.jpeg:
            value = _message("sensor_msgs/msg/CompressedImage", header, "jpeg", image)
        else:
            height, width, _ = image.shape
            size = (height, width, "rgb8", 0, 3 * width)
            value = _message("sensor_msgs/msg/Image", header, *size, image.ravel())
        messages.append(_Message(stamp_ns, _image_topic(camera.role, settings.jpeg), value))
        if camera.role == REFERENCE_ROLE:
            messages.append(_Message(stamp_ns, CAMERA_INFO_TOPIC, _camera_info(camera, header)))
    return messages


def _camera_info(camera: Camera, header: Any) -> Any:
    matrix = camera.matrix()
    projection = np.hstack([matrix, np.zeros((3, 1))])
    whole = _message("sensor_msgs/msg/RegionOfInterest", 0, 0, 0, 0, False)
    return _message(
        "sensor_msgs/msg/CameraInfo",
        header,
        camera.height_px,
        camera.width_px,
        "plumb_bob",
        np.zeros(5),
        matrix.ravel(),
        np.eye(3).ravel(),
        projection.ravel(),
        0,
        0,
        whole,
    )


def _odometry(drive: Drive, frame: int) -> list[_Message]:
    """The odometry from one frame until before the next."""
    messages = []
    for offset_ns in range(frame * STEP_NS, (frame + 1) * STEP_NS, ODOMETRY_STEP_NS):
        state = drive.state_at(offset_ns / 1e9)
        value = _odometry_message(state, START_NS + offset_ns)
        messages.append(_Message(START_NS + offset_ns, ODOMETRY_TOPIC, value))
    return messages


def _navigation(drive: Drive, frame: int) -> _Message:
    """The instruction at a frame; an empty one ends the last."""
    text = drive.navigation_at(frame * STEP_NS / 1e9)
    value = _message("std_msgs/msg/String", text)
    return _Message(START_NS + frame * STEP_NS, NAVIGATION_TOPIC, value)


def _odometry_message(state: VehicleState, stamp_ns: int) -> Any:
    position = _message("geometry_msgs/msg/Point", state.x_m, state.y_m, GROUND_Z_M)
    half = state.yaw_rad / 2
    turned = _message("geometry_msgs/msg/Quaternion", 0.0, 0.0, math.sin(half), math.cos(half))
    linear = _message("geometry_msgs/msg/Vector3", state.speed_m_s, 0.0, 0.0)
    yaw_rate = state.speed_m_s * state.curvature_1_m
    angular = _message("geometry_msgs/msg/Vector3", 0.0, 0.0, yaw_rate)
    pose = _message("geometry_msgs/msg/Pose", position, turned)
    twist = _message("geometry_msgs/msg/Twist", linear, angular)
    return _message(
        "nav_msgs/msg/Odometry",
        _header(stamp_ns, MAP_FRAME),
        VEHICLE_FRAME,
        _message("geometry_msgs/msg/PoseWithCovariance", pose, _covariance(POSE_DEVIATIONS)),
        _message("geometry_msgs/msg/TwistWithCovariance", twist, _covariance(TWIST_DEVIATIONS)),
    )


def _covariance(deviations: tuple[float, ...]) -> np.ndarray:
    """Row-major covariance (36,) of independent errors."""
    return np.diag(np.square(deviations)).ravel()
