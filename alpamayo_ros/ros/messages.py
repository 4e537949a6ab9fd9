"""Plans and statuses as messages: pure functions, no node, no clock."""

from __future__ import annotations

import itertools
import textwrap

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from nav_msgs.msg import Path
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from alpamayo_ros.msg import DrivingPlan, Waypoint
from alpamayo_ros.planning.gate import segment_speeds_m_s
from alpamayo_ros.planning.overlay import speed_colour
from alpamayo_ros.planning.placement import Placement
from alpamayo_ros.types import NS_PER_S, STEP_NS, WAYPOINTS, Plan, Verdict

MARKER_NAMESPACE = "alpamayo"
TEXT_COLUMNS = 48  # of the reasoning above the ego
STALE = "STALE\n"


def placed_poses(placement: Placement, waypoints: np.ndarray, z_m: float) -> list[Pose]:
    """Waypoints (N, 3) x, y, yaw of a frame as poses in its parent frame."""
    return [pose_message(p, q) for p, q in zip(*placement.place(waypoints, z_m))]


def time_message(stamp_ns: int) -> Time:
    """Integer nanoseconds as a Time; never through a float."""
    seconds, nanoseconds = divmod(stamp_ns, NS_PER_S)
    return Time(sec=seconds, nanosec=nanoseconds)


def pose_message(position: np.ndarray, quaternion: np.ndarray) -> Pose:
    """A pose from float64 (3,) and (4,)."""
    x, y, z = map(float, position)
    qx, qy, qz, qw = map(float, quaternion)
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))


def path_message(frame_id: str, t0_ns: int, poses: list[Pose], after_ns: int | None = None) -> Path:
    """A path stamped t0 whose pose k = 1.. is stamped t0 + k * 0.1 s. No poses: no valid plan.

    Args:
        after_ns: only poses with later stamps; None takes all.
    """
    ahead = 0 if after_ns is None else max((after_ns - t0_ns) // STEP_NS, 0)
    return Path(
        header=Header(stamp=time_message(t0_ns), frame_id=frame_id),
        poses=[
            PoseStamped(
                header=Header(stamp=time_message(t0_ns + k * STEP_NS), frame_id=frame_id),
                pose=pose,
            )
            for k, pose in enumerate(poses[ahead:], start=ahead + 1)
        ],
    )


def plan_message(
    plan: Plan,
    verdict: Verdict,
    frame_id: str,
    child_frame_id: str,
    ego_pose: Pose,
    poses: list[Pose],
) -> DrivingPlan:
    """The whole decision; poses are those of the chosen sample in frame_id."""
    speeds = segment_speeds_m_s(plan.waypoints)
    actions = plan.actions[plan.chosen]
    return DrivingPlan(
        header=Header(stamp=time_message(plan.t0_ns), frame_id=frame_id),
        child_frame_id=child_frame_id,
        ego_pose=ego_pose,
        ego_speed=float(plan.v0_m_s),
        waypoints=[
            Waypoint(
                time_from_start=_duration((k + 1) * STEP_NS),
                pose=poses[k],
                speed=float(speeds[k]),
                acceleration=float(actions[k, 0]),
                curvature=float(actions[k, 1]),
            )
            for k in range(WAYPOINTS)
        ],
        reasoning=plan.reasoning,
        truncated=bool(plan.truncated[plan.chosen]),
        navigation_text=plan.navigation_text,
        num_samples=plan.num_samples,
        spread=float(plan.spread_m),
        stage_names=list(plan.timing_ms),
        stage_times_ms=[float(t) for t in plan.timing_ms.values()],
        verdict=DrivingPlan.ACCEPTED if verdict.accepted else DrivingPlan.REJECTED,
        reasons=list(verdict.reasons),
        model_id=plan.model_id,
        seed=plan.seed,
    )


def _duration(duration_ns: int) -> Duration:
    seconds, nanoseconds = divmod(duration_ns, NS_PER_S)
    return Duration(sec=seconds, nanosec=nanoseconds)


def marker_message(frame_id: str, plan: Plan, origin: Placement, driven: bool) -> MarkerArray:
    """The path coloured by speed, the other samples, and the reasoning above the ego.

    Namespace and ids are fixed, so that each array replaces the one before; after fewer samples
    the rest is emptied rather than deleted. What is not driven is grey.
    """
    header = Header(stamp=time_message(plan.t0_ns), frame_id=frame_id)
    poses = placed_poses(origin, plan.waypoints, plan.z_m)
    path = _line(header, 0, [pose.position for pose in poses], width_m=0.4)
    path.colors = [_colour(v, driven) for v in segment_speeds_m_s(plan.waypoints)]
    fan = _line(header, 1, [], width_m=0.08)
    fan.type = Marker.LINE_LIST
    fan.color = ColorRGBA(r=0.5, g=0.5, b=0.6, a=0.6)
    for index, sample in enumerate(plan.samples):
        if index == plan.chosen:
            continue
        points = [pose.position for pose in placed_poses(origin, sample, plan.z_m)]
        for a, b in itertools.pairwise(points):
            fan.points += [a, b]
    text = Marker(header=header, ns=MARKER_NAMESPACE, id=2, type=Marker.TEXT_VIEW_FACING)
    text.text = textwrap.fill(plan.reasoning, TEXT_COLUMNS) or " "
    text.pose = placed_poses(origin, np.zeros((1, 3)), plan.z_m + 3.0)[0]
    text.scale.z = 0.8
    text.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
    return MarkerArray(markers=[path, fan, text])


def stale_markers(markers: MarkerArray) -> MarkerArray:
    """The same plan, grown too old to be driven: grey, and saying so. Changes what it is given."""
    path, _, text = markers.markers
    path.colors = [_colour(0.0, driven=False)] * len(path.points)
    text.text = STALE + text.text.removeprefix(STALE)
    text.color = _colour(0.0, driven=False)
    return markers


def empty_markers(frame_id: str, now_ns: int) -> MarkerArray:
    """The same three markers with nothing in them."""
    header = Header(stamp=time_message(now_ns), frame_id=frame_id)
    text = Marker(header=header, ns=MARKER_NAMESPACE, id=2, type=Marker.TEXT_VIEW_FACING)
    text.action = Marker.DELETE
    path, fan = (_line(header, marker_id, [], width_m=0.1) for marker_id in (0, 1))
    path.action = fan.action = Marker.DELETE
    return MarkerArray(markers=[path, fan, text])


def _line(header: Header, marker_id: int, points: list[Point], width_m: float) -> Marker:
    marker = Marker(header=header, ns=MARKER_NAMESPACE, id=marker_id, type=Marker.LINE_STRIP)
    marker.pose.orientation.w = 1.0
    marker.scale.x = width_m
    marker.points = points
    return marker


def _colour(speed_m_s: float, driven: bool) -> ColorRGBA:
    red, green, blue = speed_colour(speed_m_s, driven)
    return ColorRGBA(r=red, g=green, b=blue, a=0.9)
