"""The real node process on a played bag: what the demo shows and what tests look at."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from alpamayo_ros.msg import DrivingPlan, PlannerStatus
from alpamayo_ros.ros import qos
from alpamayo_ros.ros.bag_player import BagPlayer
from alpamayo_ros.ros.node_process import NodeProcess, use_dds_profile, wait_until
from alpamayo_ros.sensing.messages import stamp_ns
from alpamayo_ros.sensing.poses import rotation_matrices

START_S = 120.0  # longest wait for the model to load and warm up
CONNECT_S = 20.0
QUIET_S = 1.0  # no plan for this long, and three decisions, after the bag's end: it is over
END_S = 60.0


class NodeFailedError(RuntimeError):
    """The node did not come up, or did not end well; one line and the log's end."""


@dataclass(frozen=True, eq=False)
class BagRun:
    """What a node made of a bag."""

    plans: tuple[DrivingPlan, ...]
    status: PlannerStatus  # the last one
    exit_code: int


class Listener(Node):
    """Collects a node's plans and its newest status."""

    def __init__(self, context: rclpy.Context, target: str = "/alpamayo") -> None:
        super().__init__(f"alpamayo_listener_{uuid.uuid4().hex[:8]}", context=context)
        self.plans: list[DrivingPlan] = []
        self.status: PlannerStatus | None = None
        self.last_plan_s = time.monotonic()
        self.create_subscription(DrivingPlan, f"{target}/output/plan", self._on_plan, qos.PLANS)
        self.create_subscription(
            PlannerStatus, f"{target}/output/status", self._on_status, qos.LATCHED
        )

    @property
    def state(self) -> str:
        """The node's lifecycle state as last heard."""
        return self.status.state if self.status else ""

    def _on_plan(self, plan: DrivingPlan) -> None:
        self.plans.append(plan)
        self.last_plan_s = time.monotonic()

    def _on_status(self, status: PlannerStatus) -> None:
        self.status = status


class Spinner:
    """Spins nodes in a thread while the block runs."""

    def __init__(self, context: rclpy.Context, *nodes: Node) -> None:
        self._executor = SingleThreadedExecutor(context=context)
        for node in nodes:
            self._executor.add_node(node)
        self._thread = threading.Thread(target=self._spin, name="spinner", daemon=True)

    def __enter__(self) -> Spinner:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._executor.shutdown()
        self._thread.join(5.0)

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()


def run_node_on_bag(
    bag: Path,
    params_file: Path,
    remaps: dict[str, str],
    log: Path,
    domain_id: int,
    rate: float = 1.0,
    loops: int = 1,
    on_progress: Callable[[float, int], None] | None = None,
    executable: list[str] | None = None,
) -> BagRun:
    """Start the node, play a bag to it in real time with /clock, and end it.

    Args:
        remaps: the node's input (such as "~/input/odometry") to the bag's topic.
        domain_id: ROS_DOMAIN_ID of node and player.
        rate: bag seconds per second.
        loops: how often the bag is played; from one to the next the clock jumps back.
        on_progress: gets bag seconds played and plans received.
        executable: the node's program; None is this installation's.

    Raises:
        NodeFailedError: the node does not become active, or dies; its log's end is in the text.
        BagError: the bag cannot be played.
    """
    environment = {"ROS_DOMAIN_ID": str(domain_id)}
    use_dds_profile(os.environ)  # read by this process when its participant is made
    context = rclpy.Context()
    rclpy.init(args=[], context=context, domain_id=domain_id)
    arguments = ["--ros-args", "--params-file", str(params_file)]
    for name, topic in remaps.items():
        arguments += ["-r", f"{name}:={topic}"]
    try:
        return _run(
            NodeProcess(arguments, log, environment, executable),
            context,
            bag,
            list(remaps.values()),
            rate,
            loops,
            on_progress or (lambda played_s, plans: None),
        )
    finally:
        context.try_shutdown()


def _run(
    process: NodeProcess,
    context: rclpy.Context,
    bag: Path,
    topics: list[str],
    rate: float,
    loops: int,
    on_progress: Callable[[float, int], None],
) -> BagRun:
    listener = Listener(context)
    player = BagPlayer(listener, bag, {topic: topic for topic in topics})
    with process, Spinner(context, listener):
        _expect(lambda: listener.state == "active", process, listener, START_S, "become active")
        if not player.wait_for_listeners(CONNECT_S):
            raise NodeFailedError(_story(process, "the node does not listen to all topics"))
        start_ns = player.span.start_ns
        for _ in range(loops):
            player.play(
                rate, lambda log_ns: on_progress((log_ns - start_ns) / 1e9, len(listener.plans))
            )
        wait_until(lambda: _quiet(listener), END_S)
        on_progress(player.span.duration_s, len(listener.plans))
        if not process.alive():
            raise NodeFailedError(_story(process, "the node died while the bag played"))
        # One more status: the counters after the last plan.
        seen = listener.status
        wait_until(lambda: listener.status is not seen, CONNECT_S)
        status = listener.status  # before the node ends and forgets its model
        exit_code = process.stop()
        player.close()
    assert status is not None
    return BagRun(tuple(listener.plans), status, exit_code)


def _quiet(listener: Listener) -> bool:
    median_ms = max(listener.status.decision_time_median_ms, 0.0) if listener.status else 0.0
    quiet_s = max(QUIET_S, 3 * median_ms / 1e3)
    return time.monotonic() - listener.last_plan_s > quiet_s


def _expect(
    condition: Callable[[], bool],
    process: NodeProcess,
    listener: Listener,
    timeout_s: float,
    what: str,
) -> None:
    def ended() -> bool:
        failed = listener.status is not None and bool(listener.status.last_error)
        return condition() or not process.alive() or failed

    wait_until(ended, timeout_s)
    if not condition():
        reason = listener.status.last_error if listener.status else "it says nothing"
        raise NodeFailedError(_story(process, f"the node did not {what}: {reason}"))


def _story(process: NodeProcess, what: str) -> str:
    lines = process.output().strip().splitlines()[-5:]
    return "\n".join([what, f"the end of {process.log}:", *(f"  {line}" for line in lines)])


def waypoints_in_ego_frame(plan: DrivingPlan) -> np.ndarray:
    """x_m, y_m, yaw_rad (64, 3) of a published plan, in child_frame_id at t0."""
    ego = plan.ego_pose
    origin = np.array([ego.position.x, ego.position.y, ego.position.z])
    rotation = rotation_matrices(_quaternions([ego.orientation]))[0]
    poses = [waypoint.pose for waypoint in plan.waypoints]
    positions = np.array([[p.position.x, p.position.y, p.position.z] for p in poses])
    local = (positions - origin) @ rotation
    forward = rotation_matrices(_quaternions([p.orientation for p in poses]))[:, :, 0] @ rotation
    return np.column_stack([local[:, :2], np.arctan2(forward[:, 1], forward[:, 0])])


def _quaternions(orientations: list) -> np.ndarray:
    return np.array([[q.x, q.y, q.z, q.w] for q in orientations])


def plan_stamp_ns(plan: DrivingPlan) -> int:
    """t0 of a published plan."""
    return stamp_ns(plan.header.stamp)
