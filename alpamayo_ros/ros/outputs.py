"""Publishers: a decision goes out on every topic of the contract, or an empty path does."""

from __future__ import annotations

import time
from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Pose
from nav_msgs.msg import Path
from rclpy.duration import Duration

try:
    from rclpy.event_handler import PublisherEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, qos_policy_name_from_kind
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from alpamayo_ros.msg import DrivingPlan, PlannerStatus
from alpamayo_ros.planning.placement import IDENTITY, Placement
from alpamayo_ros.planning.planner import Decision
from alpamayo_ros.ros import qos
from alpamayo_ros.ros.messages import (
    empty_markers,
    marker_message,
    path_message,
    placed_poses,
    plan_message,
    pose_message,
    stale_markers,
)
from alpamayo_ros.ros.overlay import Overlay
from alpamayo_ros.ros.parameters import NodeSettings
from alpamayo_ros.ros.trajectory import load_trajectory_types, trajectory_message
from alpamayo_ros.sensing.messages import stamp_ns
from alpamayo_ros.sensing.poses import Origin

HEARD_S = 1.0
UNKNOWN_FRAME = "map"  # of an empty path, before the first odometry: RViz refuses an empty name
UNKNOWN_CHILD_FRAME = "base_link"


def wait_until_heard(*publishers: Publisher) -> None:
    """Wait, for a second at most, until every subscriber has what was published last.

    A writer that is destroyed sooner takes it along: on a busy machine three of four last empty
    paths were lost that way, and a path of 64 poses stayed in force.
    """
    deadline_s = time.monotonic() + HEARD_S
    for publisher in publishers:
        left_s = max(deadline_s - time.monotonic(), 0.01)
        publisher.wait_for_all_acked(Duration(seconds=left_s))


def create_publisher(
    node: Node, kind: type, topic: str, profile: QoSProfile, unheard: dict[str, str]
) -> Publisher:
    """A publisher that enters its topic into `unheard` when a subscriber's wishes do not fit."""
    name = node.resolve_topic_name(topic)

    def on_incompatible(event: object) -> None:
        policy = unheard[name] = qos_policy_name_from_kind(event.last_policy_kind)
        node.get_logger().warning(
            f"a subscriber of {name} asks for an incompatible {policy}: it hears nothing"
        )

    events = PublisherEventCallbacks(incompatible_qos=on_incompatible)
    return node.create_publisher(kind, topic, profile, event_callbacks=events)


class Outputs:
    """What the node says of its plans. Made by configure, closed by cleanup.

    Args:
        camera_infos: by role, for the overlay; it may be filled later.
        unheard: gets the topics that a subscriber cannot hear, and the policy.

    Raises:
        UserError: output.autoware is true and Autoware's messages are not installed.
    """

    def __init__(
        self,
        node: Node,
        settings: NodeSettings,
        camera_infos: Mapping[str, CameraInfo],
        unheard: dict[str, str],
    ) -> None:
        self._node = node
        self._unheard = unheard
        self._publishers: list[Publisher] = []
        self._autoware = load_trajectory_types() if settings.outputs.autoware else None
        self._path = self._publisher(Path, "path", qos.LATCHED)
        self._path_ego = self._publisher(Path, "path_ego", qos.LATCHED)
        self._reasoning = self._publisher(String, "reasoning", qos.LATCHED)
        self._plan = self._publisher(DrivingPlan, "plan", qos.PLANS)
        self._markers = self._publisher(MarkerArray, "markers", qos.LATCHED)
        self._remaining: Publisher | None = None
        if settings.outputs.path_remaining:
            self._remaining = self._publisher(Path, "path_remaining", qos.LATCHED)
        self._trajectory: Publisher | None = None
        if self._autoware is not None:
            kind = self._autoware.trajectory
            self._trajectory = self._publisher(kind, "trajectory", qos.LATCHED)
        self._overlay: Overlay | None = None
        if settings.outputs.overlay:
            picture = self._publisher(Image, "overlay", qos.PICTURES)
            mount, crop = settings.outputs.overlay_mount, settings.planner.crop
            self._overlay = Overlay(node, picture, camera_infos, mount, crop)
        self._frame_ids = (UNKNOWN_FRAME, UNKNOWN_CHILD_FRAME)
        self._shown: MarkerArray | None = None  # the markers of the plan on path

    def publish(self, decision: Decision, drive: bool, origin: Origin) -> None:
        """Publish a decision.

        Args:
            drive: whether it goes out on `path` too.
            origin: x, y, z, yaw of the model's origin in child_frame_id.
        """
        plan, selection = decision.plan, decision.selection
        frame_id, child_frame_id = selection.frame_id, selection.child_frame_id
        self._frame_ids = (frame_id, child_frame_id)
        ego = Placement(selection.t0_position, selection.t0_quaternion)
        model_origin = ego.then(origin)
        poses = placed_poses(model_origin, plan.waypoints, plan.z_m)
        message = plan_message(
            plan,
            decision.verdict,
            frame_id,
            child_frame_id,
            pose_message(ego.position, ego.quaternion),
            poses,
        )
        self._plan.publish(message)
        self._reasoning.publish(String(data=plan.reasoning))
        if drive:
            self._publish_path(message, poses)
            in_ego = placed_poses(IDENTITY.then(origin), plan.waypoints, plan.z_m)
            self._path_ego.publish(path_message(child_frame_id, plan.t0_ns, in_ego))
        if plan.finite:
            self._shown = marker_message(frame_id, plan, model_origin, drive)
            self._markers.publish(self._shown)
        if self._overlay is not None:
            self._overlay.offer(decision, drive, origin)

    def _publish_path(self, plan: DrivingPlan, poses: list[Pose]) -> None:
        frame_id, t0_ns = plan.header.frame_id, stamp_ns(plan.header.stamp)
        self._path.publish(path_message(frame_id, t0_ns, poses))
        if self._remaining is not None:
            now_ns = self._node.get_clock().now().nanoseconds
            self._remaining.publish(path_message(frame_id, t0_ns, poses, after_ns=now_ns))
        if self._trajectory is not None:
            self._trajectory.publish(trajectory_message(self._autoware, plan))

    def publish_no_plan(self, now_ns: int, stale: bool = False) -> None:
        """Say that there is no valid plan: a latched path is never taken for a fresh one.

        Args:
            stale: the last plan has grown too old; its markers stay, in grey.
        """
        frame_id, child_frame_id = self._frame_ids
        empty = path_message(frame_id, now_ns, [])
        self._path.publish(empty)
        self._path_ego.publish(path_message(child_frame_id, now_ns, []))
        if self._remaining is not None:
            self._remaining.publish(empty)
        if self._trajectory is not None:
            self._trajectory.publish(
                trajectory_message(self._autoware, DrivingPlan(header=empty.header))
            )
        if stale and self._shown is not None:
            self._markers.publish(stale_markers(self._shown))
        else:
            self._shown = None
            self._markers.publish(empty_markers(frame_id, now_ns))

    def close(self) -> None:
        """Destroy the publishers, once the last path, an empty one, is with everybody."""
        if self._overlay is not None:
            self._overlay.close()
        paths = (self._path, self._path_ego, self._remaining, self._trajectory)
        wait_until_heard(*filter(None, paths))
        for publisher in self._publishers:
            self._unheard.pop(publisher.topic_name, None)
            self._node.destroy_publisher(publisher)

    def _publisher(self, kind: type, name: str, profile: QoSProfile) -> Publisher:
        topic = f"~/output/{name}"
        publisher = create_publisher(self._node, kind, topic, profile, self._unheard)
        self._publishers.append(publisher)
        return publisher


class Reports:
    """Status and diagnostics: published in every lifecycle state, so as old as the node."""

    def __init__(self, node: Node) -> None:
        self.unheard: dict[str, str] = {}  # our topics that a subscriber cannot hear, and why
        self._status = create_publisher(
            node, PlannerStatus, "~/output/status", qos.LATCHED, self.unheard
        )
        self._diagnostics = create_publisher(
            node, DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS, self.unheard
        )

    def publish(self, status: PlannerStatus, diagnostics: DiagnosticArray | None = None) -> None:
        """Publish a status and, once a second, diagnostics."""
        self._status.publish(status)
        if diagnostics is not None:
            self._diagnostics.publish(diagnostics)

    def flush(self) -> None:
        """Wait until the last status is with everybody."""
        wait_until_heard(self._status)
