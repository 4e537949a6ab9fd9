"""`~/output/overlay`: plans drawn into the front_wide images that they were made for."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from alpamayo_ros.planning.overlay import Lens, draw_plan, mounted
from alpamayo_ros.planning.placement import IDENTITY
from alpamayo_ros.planning.planner import CROP_ASPECT, Decision
from alpamayo_ros.ros.evidence import one_line
from alpamayo_ros.ros.messages import time_message
from alpamayo_ros.sensing.poses import Origin
from alpamayo_ros.types import CAMERA_ROLES, REFERENCE_ROLE

WARN_EVERY_S = 30.0


class Overlay:
    """Draws and publishes in a thread of its own, one plan at a time; none while it is busy.

    Args:
        publisher: of Image; while nobody listens nothing is drawn.
        camera_infos: by role; front_wide's may come later.
        mount: x, y, z, roll, pitch, yaw of front_wide in child_frame_id.
        cropped: whether the model's images are centred crops of the camera's.
    """

    def __init__(
        self,
        node: Node,
        publisher: Publisher,
        camera_infos: Mapping[str, CameraInfo],
        mount: tuple[float, ...],
        cropped: bool,
    ) -> None:
        self._node = node
        self._publisher = publisher
        self._camera_infos = camera_infos
        self._camera = mounted(mount)
        self._aspect = CROP_ASPECT if cropped else None
        self._pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="overlay")
        self._drawing: concurrent.futures.Future[None] | None = None

    def offer(self, decision: Decision, driven: bool, origin: Origin) -> None:
        """Draw a decision, unless nobody listens or the last one is still being drawn.

        Args:
            driven: whether it goes out on `path`.
            origin: x, y, z, yaw of the model's origin in child_frame_id.
        """
        busy = self._drawing is not None and not self._drawing.done()
        if busy or not self._publisher.get_subscription_count():
            return
        info = self._camera_infos.get(REFERENCE_ROLE)
        if info is None or not info.k[0] > 0:
            self._warn("front_wide's calibrated CameraInfo has not come: nothing can be drawn")
            return
        self._drawing = self._pool.submit(self._draw, decision, info, driven, origin)

    def close(self) -> None:
        """Finish drawing."""
        self._pool.shutdown(wait=True)

    def _draw(self, decision: Decision, info: CameraInfo, driven: bool, origin: Origin) -> None:
        try:
            self._publisher.publish(self._message(decision, info, driven, origin))
        except Exception as error:  # of a calibration that OpenCV does not take, for one
            self._warn(one_line(error))

    def _message(self, decision: Decision, info: CameraInfo, driven: bool, origin: Origin) -> Image:
        plan = decision.plan
        image = decision.snapshot.frames[CAMERA_ROLES.index(REFERENCE_ROLE)][-1]
        height, width = image.shape[:2]
        lens = Lens(
            info.width,
            info.height,
            np.array(info.k, np.float64).reshape(3, 3),
            np.array(info.d, np.float64),
            info.distortion_model,
        ).seen_at(width, height, self._aspect)
        drawn = draw_plan(
            image,
            lens,
            self._camera,
            IDENTITY.then(origin),
            plan.waypoints,
            plan.z_m,
            driven,
            plan.reasoning if driven else f"NOT DRIVEN. {plan.reasoning}",
        )
        return Image(
            header=Header(stamp=time_message(plan.t0_ns), frame_id=info.header.frame_id),
            height=height,
            width=width,
            encoding="rgb8",
            step=3 * width,
            data=drawn.tobytes(),
        )

    def _warn(self, text: str) -> None:
        self._node.get_logger().warning(
            f"output.overlay: {text}", throttle_duration_sec=WARN_EVERY_S
        )
