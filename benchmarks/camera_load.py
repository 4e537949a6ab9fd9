"""What a vehicle's sensors send at full size, as a process of its own: for transport.py.

    python benchmarks/camera_load.py LOAD SECONDS DOMAIN_ID

Bytes are serialised once and only stamped anew, so that sending costs about what a driver in C++
spends. First comes odometry alone, then all of the load; see `publish`.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from dataclasses import dataclass

import cv2
import numpy as np
import rclpy
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage, Image

from alpamayo_ros.ros import qos
from alpamayo_ros.ros.allocator import keep_memory_of_images
from alpamayo_ros.types import CAMERA_ROLES

HEIGHT, WIDTH = 1080, 1920
ODOMETRY_HZ = 100
SPEED_M_S = 10.0
SETTLE_S = 1.0  # after the endpoints have found each other, and after the last frame


@dataclass(frozen=True)
class Load:
    """What the cameras send."""

    name: str  # raw or jpeg
    rate_hz: int

    @property
    def kind(self) -> type:
        """Message type of the images."""
        return CompressedImage if self.name == "jpeg" else Image

    def topic(self, role: str) -> str:
        """Where the node hears a camera."""
        suffix = "/compressed" if self.name == "jpeg" else ""
        return f"/alpamayo/input/{role}/image{suffix}"

    def message(self) -> bytes:
        """A serialised image; its stamp is the eight bytes after the first four."""
        pixels = picture()
        if self.name == "raw":
            message = Image(height=HEIGHT, width=WIDTH, encoding="rgb8", step=3 * WIDTH)
            message.data = pixels.tobytes()
        else:
            message = CompressedImage(format="jpeg", data=jpeg(pixels))
        message.header.frame_id = "camera"
        return serialize_message(message)


LOADS = {"raw": Load("raw", 10), "jpeg": Load("jpeg", 30)}


def picture() -> np.ndarray:
    """Blurred noise over gradients, (1080, 1920, 3) uint8: about 400 kB as JPEG of quality 90."""
    noise = np.random.default_rng(0).normal(0, 70, (HEIGHT, WIDTH, 3))
    shades = np.linspace(60, 190, WIDTH)[None, :, None]
    return np.clip(cv2.GaussianBlur(noise, (0, 0), 2.0) + shades, 0, 255).astype(np.uint8)


def jpeg(pixels: np.ndarray) -> bytes:
    """An image as JPEG."""
    return cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()


def publish(load: Load, seconds: float, domain_id: int) -> None:
    """Send odometry alone for a while, then all of a load, on a fixed schedule.

    A line of JSON begins and ends each of the two: what was sent and spent meanwhile.
    """
    context = rclpy.Context()
    rclpy.init(args=[], context=context, domain_id=domain_id)
    node = Node("publisher", context=context)
    cameras = [
        node.create_publisher(load.kind, load.topic(role), qos.IMAGES) for role in CAMERA_ROLES
    ]
    odometry = node.create_publisher(Odometry, "/alpamayo/input/odometry", qos.ODOMETRY)
    while not all(p.get_subscription_count() for p in (*cameras, odometry)):
        time.sleep(0.02)
    image = load.message()
    time.sleep(SETTLE_S)
    for rate_hz, duration_s in ((0, alone_s(seconds)), (load.rate_hz, seconds)):
        sent = {"images": 0, "odometry": 0}
        print(json.dumps(sent), flush=True)
        begun_s, cpu_s = time.monotonic(), time.process_time()
        ticks = sorted(
            [(k / rate_hz, "images") for k in range(round(duration_s * rate_hz))]
            + [(k / ODOMETRY_HZ, "odometry") for k in range(round(duration_s * ODOMETRY_HZ))]
        )
        for due_s, what in ticks:
            time.sleep(max(0.0, begun_s + due_s - time.monotonic()))
            if what == "odometry":
                odometry.publish(moving(time.time_ns()))
                sent[what] += 1
                continue
            seconds_ns = struct.pack("<iI", *divmod(time.time_ns(), 1_000_000_000))
            stamped = b"".join((image[:4], seconds_ns, memoryview(image)[12:]))
            for camera in cameras:
                camera.publish(stamped)
            sent[what] += len(cameras)
        cpu_s = time.process_time() - cpu_s
        time.sleep(SETTLE_S)
        print(json.dumps({**sent, "cpu_s": cpu_s}), flush=True)
    sys.stdin.read()  # the writers live until the receiver has taken the last messages
    context.try_shutdown()


def alone_s(seconds: float) -> float:
    """How long odometry comes alone."""
    return max(3.0, seconds / 6)


def moving(stamp_ns: int) -> Odometry:
    """Odometry of a straight drive."""
    message = Odometry(child_frame_id="base_link")
    message.header.frame_id = "map"
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 1_000_000_000)
    message.pose.pose.position.x = SPEED_M_S * (stamp_ns % 10**15) / 1e9
    message.twist.twist.linear.x = SPEED_M_S
    return message


if __name__ == "__main__":
    keep_memory_of_images()
    publish(LOADS[sys.argv[1]], float(sys.argv[2]), int(sys.argv[3]))
