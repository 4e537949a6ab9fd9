"""Some moments of a run, with the pictures that a person wants to see of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader

from alpamayo_ros.demo.drive import Drive, in_ego_frame
from alpamayo_ros.demo.pictures import Surroundings, draw_from_above, draw_plan_in_front
from alpamayo_ros.demo.recording import TYPES, DriveRecording
from alpamayo_ros.demo.summary import Decision, Moment
from alpamayo_ros.sensing.images import decode
from alpamayo_ros.types import CAMERA_ROLES, REFERENCE_ROLE, Frame

HISTORY_S = np.arange(-1.5, 0.05, 0.1)


@dataclass(frozen=True, eq=False)
class ShownPlan:
    """A published plan as pictures need it."""

    t0_ns: int
    decision: Decision
    waypoints: np.ndarray  # float64 (64, 3) x_m, y_m, yaw_rad in the ego frame at t0
    reasoning: str
    ego_speed_m_s: float
    navigation_text: str = ""
    truncated: bool = False


def make_moments(recording: DriveRecording, plans: Sequence[ShownPlan], count: int) -> list[Moment]:
    """Moments spread evenly over a run, with pictures from the bag and the drive's truth."""
    if not plans:
        return []
    picks = np.unique(np.linspace(0, len(plans) - 1, min(count, len(plans))).round().astype(int))
    chosen = [plans[i] for i in picks]
    images = _images(recording, [plan.t0_ns for plan in chosen])
    drive = Drive(recording.seed)
    return [_moment(recording, drive, plan, images[plan.t0_ns]) for plan in chosen]


def _moment(
    recording: DriveRecording, drive: Drive, plan: ShownPlan, images: dict[str, np.ndarray]
) -> Moment:
    t_s = recording.t_s(plan.t0_ns)
    accepted = plan.decision.accepted
    surroundings = Surroundings(
        lane_lines=drive.lane_lines(t_s),
        outlines=drive.actor_outlines(t_s),
        truth=drive.future_xyyaw(t_s),
    )
    return Moment(
        decision=plan.decision,
        cameras=images,
        plan_in_front=draw_plan_in_front(
            images[REFERENCE_ROLE], recording.camera(REFERENCE_ROLE), plan.waypoints, accepted
        ),
        plan_from_above=draw_from_above(
            plan.waypoints,
            plan.waypoints[None],
            _history(drive, t_s),
            surroundings,
            accepted,
        ),
        reasoning=plan.reasoning,
        ego_speed_m_s=plan.ego_speed_m_s,
        navigation_text=plan.navigation_text,
        truncated=plan.truncated,
    )


def _history(drive: Drive, t_s: float) -> np.ndarray:
    """Where the ego was, (K, 2) in its frame at t_s."""
    now = drive.state_at(t_s)
    past = [drive.state_at(t_s + offset_s) for offset_s in HISTORY_S if t_s + offset_s >= 0]
    return in_ego_frame(now, np.array([[state.x_m, state.y_m] for state in past]))


def _images(recording: DriveRecording, t0s_ns: Sequence[int]) -> dict[int, dict[str, np.ndarray]]:
    """RGB images by t0 and role: of each camera the frame nearest to t0."""
    topics = {recording.image_topics[role]: role for role in CAMERA_ROLES}
    nearest: dict[tuple[int, str], tuple[int, bytes]] = {}
    with AnyReader([Path(recording.path)], default_typestore=TYPES) as reader:
        connections = [c for c in reader.connections if c.topic in topics]
        for connection, log_ns, data in reader.messages(connections):
            role = topics[connection.topic]
            for t0_ns in t0s_ns:
                distance_ns = abs(log_ns - t0_ns)
                if distance_ns < nearest.get((t0_ns, role), (60_000_000, b""))[0]:
                    nearest[t0_ns, role] = distance_ns, bytes(data)
        kinds = {topics[c.topic]: c.msgtype for c in connections}
        return {
            t0_ns: {
                role: _rgb(reader.deserialize(nearest[t0_ns, role][1], kinds[role]))
                for role in CAMERA_ROLES
            }
            for t0_ns in t0s_ns
        }


def _rgb(message: Any) -> np.ndarray:
    """The pixels of an Image or CompressedImage of record_drive."""
    if hasattr(message, "format"):
        frame = Frame(0, "jpeg", message.data)
    else:
        frame = Frame(0, "rgb8", message.data, message.height, message.width, message.step)
    return decode(frame)
