"""Subscriptions: each callback stores bytes and stamps, wakes the planner and returns."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from functools import partial

from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import String

from alpamayo_ros.planning.planner import UnusableFrameError
from alpamayo_ros.ros import qos
from alpamayo_ros.ros.parameters import NodeSettings
from alpamayo_ros.ros.side_node import SideNode
from alpamayo_ros.sensing.ahead import frames_ahead
from alpamayo_ros.sensing.cdr import compressed_frame, image_frame, odometry_record
from alpamayo_ros.sensing.losses import Arrivals, Losses
from alpamayo_ros.sensing.navigation import Navigation
from alpamayo_ros.sensing.rig_check import (
    equal_pairs,
    field_problem,
    horizontal_fov_deg,
    skews_ns,
)
from alpamayo_ros.sensing.sampler import Sampler
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import CAMERA_ROLES, Frame, Reason, Refusal, UserError


class Inputs:
    """What the node hears: rings under one lock, and counters for status and diagnostics."""

    def __init__(self, node: Node, wake: Callable[[], None]) -> None:
        self._node = node
        self._wake = wake
        self._lock = threading.Lock()
        self._side: SideNode | None = None
        self._camera_infos: SideNode | None = None
        self._topics: dict[str, str] = {}  # by role and odometry
        self._fields_deg: dict[str, float] = {}  # horizontal, by role, where CameraInfo has come
        self.camera_infos: dict[str, CameraInfo] = {}  # by role, where one has come
        self._arrivals = {role: Arrivals() for role in CAMERA_ROLES}
        self.sampler = Sampler()
        self.navigation = Navigation()
        self.received: collections.Counter[str] = collections.Counter()  # by role and odometry
        self.malformed: collections.Counter[str] = collections.Counter()
        self.malformed_detail: dict[str, str] = {}  # of the last one, by role and odometry

    def subscribe(self, settings: NodeSettings) -> None:
        """Start to listen."""
        side = self._side = SideNode(self._node, "inputs")
        for role in CAMERA_ROLES:
            topic = f"~/input/{role}/image"
            if settings.transports[role] == "compressed":
                on_compressed = partial(self._on_frame, role, compressed_frame)
                self._topics[role] = side.listen(
                    CompressedImage, f"{topic}/compressed", on_compressed, qos.IMAGES, raw=True
                )
            else:
                on_image = partial(self._on_frame, role, image_frame)
                self._topics[role] = side.listen(Image, topic, on_image, qos.IMAGES, raw=True)
        self._topics["odometry"] = side.listen(
            Odometry, "~/input/odometry", self._on_odometry, qos.ODOMETRY, raw=True
        )
        side.listen(
            String,
            "~/input/navigation",
            lambda message: self.set_navigation(message.data),
            qos.NAVIGATION,
        )
        side.start()
        self._listen_to_camera_infos(settings)

    def _listen_to_camera_infos(self, settings: NodeSettings) -> None:
        """Wait for a CameraInfo of each camera; `auto` is beside the image.

        On a node of their own: four subscriptions that nobody serves would cost the images as much
        as four that somebody does.
        """
        side = self._camera_infos = SideNode(self._node, "rig")
        for role, topic in settings.camera_infos.items():
            if topic == "auto":
                camera = self._topics[role].removesuffix("/compressed").rpartition("/")[0]
                topic = f"{camera}/camera_info"
            if topic:
                side.listen_once(CameraInfo, topic, partial(self._on_camera_info, role), qos.IMAGES)
        side.start()

    def unsubscribe(self) -> None:
        """Stop listening and forget what was heard."""
        for side in (self._side, self._camera_infos):
            if side is not None:
                side.close()
        self._side = self._camera_infos = None
        self._fields_deg.clear()
        self.camera_infos.clear()
        self.reset()

    def apply(self, settings: NodeSettings) -> None:
        """Take over changed settings."""
        with self._lock:
            self.sampler.apply(settings.sampler)

    def reset(self) -> None:
        """Forget buffered frames and poses and the navigation text, not the counters."""
        with self._lock:
            self.sampler.reset()
            self.navigation = Navigation()
            for arrivals in self._arrivals.values():
                arrivals.clear()

    def forget_counts(self) -> None:
        """Start counting anew."""
        with self._lock:
            self.sampler.refused.clear()
            self.sampler.last_refusal = None
            self.received.clear()
            self.sampler.unused.clear()
            self.malformed.clear()
            self.malformed_detail.clear()

    def take(self, settings: NodeSettings, now_ns: int) -> Selection | None:
        """The newest selection to plan on; none while paused."""
        with self._lock:
            if settings.paused:
                self.sampler.skip(now_ns, Reason.PAUSED, "planning.paused is true")
                return None
            return self.sampler.take(now_ns)

    def frames_ahead(self, settings: NodeSettings, now_ns: int) -> list[tuple[str, Frame]]:
        """Role and frame of what the next plan will use; none while paused."""
        with self._lock:
            return [] if settings.paused else frames_ahead(self.sampler, now_ns)

    def newest(self, now_ns: int) -> Selection | Refusal:
        """The newest complete selection whatever the rate, or why there is none."""
        with self._lock:
            return self.sampler.newest(now_ns)

    def refusals(self) -> tuple[dict[str, int], Refusal | None]:
        """Counts by reason, and the newest refusal."""
        with self._lock:
            return dict(self.sampler.refused), self.sampler.last_refusal

    def newest_stamps_ns(self) -> dict[str, int | None]:
        """The newest stamp by camera role and of `odometry`."""
        with self._lock:
            rings = {**self.sampler.rings, "odometry": self.sampler.poses}
            return {name: ring.stamps_ns[-1] if len(ring) else None for name, ring in rings.items()}

    def clock_hint(self, name: str) -> str:
        """What is wrong with a sensor's clock, or "" """
        with self._lock:
            return self.sampler.clock_hint(name)

    def losses(self, name: str) -> Losses | None:
        """Frames of a camera that came and that should have, lately; None: not known."""
        with self._lock:
            arrivals = self._arrivals.get(name)
            return arrivals.losses() if arrivals is not None else None

    def skews_ns(self) -> dict[str, int]:
        """By role, how far its frames lie from front_wide's; empty while a camera has none."""
        with self._lock:
            return skews_ns(self.sampler.rings)

    def unheard(self) -> dict[str, str]:
        """Topics that a publisher offers with a quality of service that cannot be heard, and it."""
        side = self._side
        return side.incompatible() if side is not None else {}

    def rig_problems(self) -> list[str]:
        """What is wrong with the rig, each in a line that names roles and topics."""
        topics = self._topics
        if self._side is None:
            return []
        fields = dict(self._fields_deg)
        problems = list(filter(None, (field_problem(role, deg) for role, deg in fields.items())))
        with self._lock:
            rings = self.sampler.rings.items()
            newest = {role: ring.items[-1] for role, ring in rings if len(ring)}
        problems += [
            f"{a} and {b} show the same image: {topics[a]} and {topics[b]}"
            for a, b in equal_pairs(newest)
        ]
        return problems

    def silent(self) -> list[str]:
        """The topics of sensors that nothing was ever received on."""
        return [topic for name, topic in self._topics.items() if not self.received[name]]

    def navigation_text(self, settings: NodeSettings, now_ns: int) -> str:
        """The navigation text in force."""
        with self._lock:
            return self.navigation.current(now_ns, settings.navigation_timeout_ns)

    def set_navigation(self, text: str) -> None:
        """Take a navigation text; an empty one clears it."""
        max_length = self._node.settings.navigation_max_length
        with self._lock:
            self.navigation.set(text, self._now_ns(), max_length)

    def drop_frame(self, error: UnusableFrameError) -> None:
        """Drop a frame that proved to be no image when it was used, and count it once."""
        with self._lock:
            t0_ns = error.selection.t0_ns
            if self.sampler.drop_frame(error.role, error.frame, t0_ns, str(error)):
                self._count_malformed(error.role, str(error))

    def _count_malformed(self, name: str, detail: str) -> None:
        """Count a message that is not what it says; it is dropped, never fatal. Lock held."""
        self.malformed[name] += 1
        self.malformed_detail[name] = detail

    def _on_frame(self, role: str, read: Callable[[bytes], Frame], data: bytes) -> None:
        try:
            frame = read(data)
        except UserError as error:
            with self._lock:
                self._count_malformed(role, f"{role}: {error}")
            return
        self._store(role, frame)

    def _store(self, role: str, frame: Frame) -> None:
        with self._lock:
            self.received[role] += 1
            self._arrivals[role].add(frame.stamp_ns)
            self.sampler.add_frame(role, frame, self._now_ns())
        self._wake()

    def _on_camera_info(self, role: str, info: CameraInfo) -> None:
        self.camera_infos[role] = info
        fov_deg = horizontal_fov_deg(info.width, info.k[0], info.distortion_model)
        if fov_deg is not None:
            self._fields_deg[role] = fov_deg

    def _on_odometry(self, data: bytes) -> None:
        try:
            record = odometry_record(data)
        except UserError as error:
            with self._lock:
                self._count_malformed("odometry", str(error))
            return
        with self._lock:
            self.received["odometry"] += 1
            self.sampler.add_pose(
                record.pose, record.frame_id, record.child_frame_id, self._now_ns()
            )
        self._wake()

    def _now_ns(self) -> int:
        return self._node.get_clock().now().nanoseconds
