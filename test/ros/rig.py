"""A car's sensors on the wire: four cameras and odometry from a known motion, in wall time."""

from __future__ import annotations

import math
import threading
import time

import cv2
import numpy as np
from geometry_msgs.msg import Point, Quaternion
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header

from alpamayo_ros.ros.messages import time_message
from alpamayo_ros.types import CAMERA_ROLES

SENSOR = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)
ODOMETRY_NS = 20_000_000
FRAME_NS = 100_000_000
SPEED_M_S = 8.0
CURVATURE = 0.02
ORIGIN = (1000.0, 2000.0, 30.0)
HEADING = 0.7


class Rig(Node):
    """Publishes what the sensors of a car on a circle would, stamped with the wall clock."""

    def __init__(self, context, target: str = "/alpamayo", compressed: bool = True) -> None:
        super().__init__("rig", context=context)
        kind = CompressedImage if compressed else Image
        suffix = "/image/compressed" if compressed else "/image"
        self.cameras = {
            role: self.create_publisher(kind, f"{target}/input/{role}{suffix}", SENSOR)
            for role in CAMERA_ROLES
        }
        self.odometry = self.create_publisher(Odometry, f"{target}/input/odometry", SENSOR)
        self.sent_ns: list[int] = []  # stamps of front_wide
        self.silent: set[str] = set()  # roles, or "odometry", that send nothing
        self.broken: set[str] = set()  # roles that send damaged images
        self.displaced_m = 0.0  # of the odometry, along the map's x
        self._compressed = compressed
        self._image = np.random.default_rng(0).integers(0, 256, (90, 160, 3)).astype(np.uint8)
        self._jpeg = cv2.imencode(".jpg", self._image)[1].tobytes()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._stopping.set()
        self._thread.join()

    def connected(self) -> bool:
        """Whether somebody listens to every sensor."""
        publishers = [*self.cameras.values(), self.odometry]
        return all(publisher.get_subscription_count() for publisher in publishers)

    def _run(self) -> None:
        start_ns = time.time_ns() // FRAME_NS * FRAME_NS
        for tick in range(1_000_000):
            stamp_ns = start_ns + tick * ODOMETRY_NS
            if self._stopping.wait(max(0.0, (stamp_ns - time.time_ns()) / 1e9)):
                return
            self._send(stamp_ns)

    def _send(self, stamp_ns: int) -> None:
        if "odometry" not in self.silent:
            message = odometry_at(stamp_ns)
            message.pose.pose.position.x += self.displaced_m
            self.odometry.publish(message)
        if stamp_ns % FRAME_NS == 0:
            self._send_images(stamp_ns)

    def _send_images(self, stamp_ns: int) -> None:
        for role in CAMERA_ROLES:
            if role in self.silent:
                continue
            if role == "front_wide":
                self.sent_ns.append(stamp_ns)
            self.cameras[role].publish(self._message(role, stamp_ns))

    def _message(self, role: str, stamp_ns: int) -> CompressedImage | Image:
        header = Header(stamp=time_message(stamp_ns), frame_id=role)
        if self._compressed:
            data = b"no jpeg at all" if role in self.broken else self._jpeg
            return CompressedImage(header=header, format="jpeg", data=data)
        height, width, _ = self._image.shape
        data = self._image[: height // 2] if role in self.broken else self._image
        return Image(
            header=header,
            height=height,
            width=width,
            encoding="rgb8",
            step=3 * width,
            data=data.tobytes(),
        )


def pose_at(stamp_ns: int) -> tuple[np.ndarray, float]:
    """Position (3,) m and yaw of the car in the map at a stamp, exact."""
    turn = SPEED_M_S * CURVATURE * (stamp_ns % 100_000_000_000) / 1e9
    r = 1 / CURVATURE
    yaw = HEADING + turn
    x = ORIGIN[0] + r * (math.sin(yaw) - math.sin(HEADING))
    y = ORIGIN[1] - r * (math.cos(yaw) - math.cos(HEADING))
    return np.array([x, y, ORIGIN[2]]), yaw


def odometry_at(stamp_ns: int) -> Odometry:
    """The odometry of the car at a stamp."""
    position, yaw = pose_at(stamp_ns)
    message = Odometry(
        header=Header(stamp=time_message(stamp_ns), frame_id="map"), child_frame_id="base_link"
    )
    message.pose.pose.position = Point(x=position[0], y=position[1], z=position[2])
    message.pose.pose.orientation = Quaternion(z=math.sin(yaw / 2), w=math.cos(yaw / 2))
    message.twist.twist.linear.x = SPEED_M_S
    return message
