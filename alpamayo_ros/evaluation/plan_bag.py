"""The plans of a run as a rosbag2, under the topics of the node: play it beside the drive's own.

`path`, `path_ego`, `plan` and `reasoning` hold what the node would publish; a rejected plan is on
`plan` only. `~/evaluation/truth` holds what was driven. Log times are t0, so RViz and Foxglove show
plan and cameras together when both bags are played.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from os import replace
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from alpamayo_ros.demo.recording import BAG_VERSION
from alpamayo_ros.evaluation.records import BagRecords, Record
from alpamayo_ros.planning.gate import segment_speeds_m_s
from alpamayo_ros.planning.placement import IDENTITY, Placement
from alpamayo_ros.sensing.poses import Origin
from alpamayo_ros.types import NS_PER_S, STEP_NS, WAYPOINTS, UserError

NODE = "/alpamayo"
OWN_MESSAGES = ("Waypoint", "DrivingPlan")


class InterfacesError(UserError):
    """The package's own message definitions are not installed."""


def interface_folder() -> Path:
    """The folder of this package's .msg files: of the source, or of the installation.

    Raises:
        InterfacesError: there is none; one line.
    """
    for parent in Path(__file__).resolve().parents:
        for folder in (parent / "share" / "alpamayo_ros" / "msg", parent / "msg"):
            if (folder / "DrivingPlan.msg").is_file():
                return folder
    raise InterfacesError("DrivingPlan.msg is not installed: install alpamayo_ros once more")


@cache
def typestore() -> Typestore:
    """Humble's interfaces and the plan messages of this package."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    for name in OWN_MESSAGES:
        text = (interface_folder() / f"{name}.msg").read_text(encoding="utf-8")
        store.register(get_types_from_msg(text, f"alpamayo_ros/msg/{name}"))
    return store


def write_plan_bag(folder: Path, bag: BagRecords, origin: Origin, seed: int) -> None:
    """Write the plans of one bag as an mcap bag, replacing an earlier one.

    Args:
        origin: x, y, z, yaw of the model's origin in child_frame_id.
        seed: that the run was made with.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.draft-", dir=folder.parent))
    try:
        _write(draft / folder.name, bag, origin, seed)
        shutil.rmtree(folder, ignore_errors=True)
        replace(draft / folder.name, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(folder: Path, bag: BagRecords, origin: Origin, seed: int) -> None:
    store = typestore()
    connections: dict[str, Any] = {}
    with Writer(folder, version=BAG_VERSION, storage_plugin=StoragePlugin.MCAP) as writer:
        for record in bag.records:
            for topic, message in _messages(record, bag, origin, seed):
                if topic not in connections:
                    connections[topic] = writer.add_connection(
                        f"{NODE}/{topic}", message.__msgtype__, typestore=store
                    )
                data = store.serialize_cdr(message, message.__msgtype__)
                writer.write(connections[topic], record.t0_ns, data)


def _messages(
    record: Record, bag: BagRecords, origin: Origin, seed: int
) -> Iterator[tuple[str, Any]]:
    """Topic below the node, and message."""
    placement = Placement(record.position, record.quaternion).then(origin)
    yield "output/plan", _plan(record, bag, placement, seed)
    yield "output/reasoning", _make("std_msgs/msg/String", record.reasoning)
    if not record.reasons:
        yield "output/path", _path(bag.frame_id, record, placement, record.plan)
        in_ego = IDENTITY.then(origin)
        yield "output/path_ego", _path(bag.child_frame_id, record, in_ego, record.plan)
    yield "evaluation/truth", _path(bag.frame_id, record, placement, record.known_truth)


def _path(frame_id: str, record: Record, placement: Placement, waypoints: np.ndarray) -> Any:
    """A nav_msgs/Path stamped t0 whose pose k = 1.. is stamped t0 + k * 0.1 s."""
    poses = [
        _make("geometry_msgs/msg/PoseStamped", _header(record.t0_ns + k * STEP_NS, frame_id), pose)
        for k, pose in enumerate(_poses(placement, waypoints, record.z_m), start=1)
    ]
    return _make("nav_msgs/msg/Path", _header(record.t0_ns, frame_id), poses)


def _plan(record: Record, bag: BagRecords, placement: Placement, seed: int) -> Any:
    """The alpamayo_ros/DrivingPlan of the node."""
    speeds = segment_speeds_m_s(record.plan)
    poses = _poses(placement, record.plan, record.z_m)
    waypoints = [
        _make(
            "alpamayo_ros/msg/Waypoint",
            _make("builtin_interfaces/msg/Duration", *divmod((k + 1) * STEP_NS, NS_PER_S)),
            poses[k],
            float(speeds[k]),
            float(record.actions[k, 0]),
            float(record.actions[k, 1]),
        )
        for k in range(WAYPOINTS)
    ]
    return _make(
        "alpamayo_ros/msg/DrivingPlan",
        _header(record.t0_ns, bag.frame_id),
        bag.child_frame_id,
        _pose(record.position, record.quaternion),
        record.v0_m_s,
        waypoints,
        record.reasoning,
        record.truncated,
        record.navigation_text,
        len(record.samples),
        record.spread_m,
        list(record.timing_ms),
        np.array(list(record.timing_ms.values()), np.float32),
        int(bool(record.reasons)),  # ACCEPTED = 0, REJECTED = 1
        list(record.reasons),
        bag.model_id,
        seed,
    )


def _poses(placement: Placement, waypoints: np.ndarray, z_m: float) -> list[Any]:
    return [_pose(p, q) for p, q in zip(*placement.place(waypoints, z_m))]


def _pose(position: np.ndarray, quaternion: np.ndarray) -> Any:
    return _make(
        "geometry_msgs/msg/Pose",
        _make("geometry_msgs/msg/Point", *map(float, position)),
        _make("geometry_msgs/msg/Quaternion", *map(float, quaternion)),
    )


def _header(stamp_ns: int, frame_id: str) -> Any:
    stamp = _make("builtin_interfaces/msg/Time", *divmod(stamp_ns, NS_PER_S))
    return _make("std_msgs/msg/Header", stamp, frame_id)


def _make(name: str, *values: Any) -> Any:
    """A message with its fields in order."""
    return typestore().types[name](*values)
