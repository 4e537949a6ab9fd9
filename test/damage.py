"""What goes wrong between sensors and planner, as one table: each damage with its outcome.

A damage is a pure function over what was sent, in the order of arrival. It is written for a drive
of 6 s that begins at t = 0 with four cameras at 10 Hz without phase and odometry at 50 Hz, so that
t0s of 1.5, 1.6, ... 5.9 s are planned when nothing is wrong; it strikes at t = 3 s. The same table
serves lists that go to a sampler and bag files that are played to a node or evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from alpamayo_ros.types import EgoPose, Frame, Reason

TYPES = get_typestore(Stores.ROS2_HUMBLE)
S = 1_000_000_000
DURATION_S = 6.0
STRIKE_S, END_S = 3.0, 4.0  # of a damage that lasts
PLANNED_S = tuple(round(1.5 + 0.1 * k, 1) for k in range(45))  # t0s when nothing is wrong


@dataclass(frozen=True)
class Sent:
    """A message on its way: a Frame, an EgoPose, or a message as rosbags reads it."""

    arrival_ns: int  # since the drive's start; of a bag: log time
    source: str  # a camera role, or "odometry"
    stamp_ns: int  # since the drive's start
    value: Any

    @property
    def stamp_s(self) -> float:
        """The header's stamp in seconds since the drive's start."""
        return self.stamp_ns / S

    def restamped(self, stamp_ns: int) -> Sent:
        """The same with another stamp in its header."""
        value, moved_ns = self.value, stamp_ns - self.stamp_ns
        if isinstance(value, Frame | EgoPose):
            value = replace(value, stamp_ns=value.stamp_ns + moved_ns)
        else:
            stamp = value.header.stamp
            seconds, nanoseconds = divmod(stamp.sec * S + stamp.nanosec + moved_ns, S)
            stamp = replace(stamp, sec=seconds, nanosec=nanoseconds)
            value = replace(value, header=replace(value.header, stamp=stamp))
        return replace(self, stamp_ns=stamp_ns, value=value)

    def displaced(self, metres: float) -> Sent:
        """The same odometry, this far along the map's x."""
        value = self.value
        if isinstance(value, EgoPose):
            value = replace(value, position=value.position + np.array([metres, 0.0, 0.0]))
        else:
            pose = value.pose.pose
            position = replace(pose.position, x=pose.position.x + metres)
            pose = replace(value.pose, pose=replace(pose, position=position))
            value = replace(value, pose=pose)
        return replace(self, value=value)


Stream = list[Sent]  # in the order of arrival; where that goes back, the clock jumps back


@dataclass(frozen=True)
class Damage:
    """A damage, and what becomes of the t0s."""

    name: str
    apply: Callable[[Stream], Stream]
    lost_s: tuple[float, float] | None = None  # first and last t0 that cannot be planned on
    reasons: tuple[Reason, ...] = ()  # at least one of them is given for a lost t0
    rounds: int = 1  # how often every other t0 is planned

    def is_lost(self, t0_s: float) -> bool:
        """Whether a t0 (s since the start) cannot be planned on."""
        return self.lost_s is not None and self.lost_s[0] - 1e-6 <= t0_s <= self.lost_s[1] + 1e-6


def _strikes(sent: Sent, source: str) -> bool:
    return sent.source == source and STRIKE_S <= sent.stamp_s < END_S


def _in_order(stream: Stream) -> Stream:
    return sorted(stream, key=lambda sent: sent.arrival_ns)


def drop_camera(stream: Stream) -> Stream:
    """cross_right sends nothing for a second."""
    return [sent for sent in stream if not _strikes(sent, "cross_right")]


def delay_little(stream: Stream) -> Stream:
    """Every message of front_tele comes 80 ms late."""
    late_ns = 80_000_000
    return _in_order(
        [
            replace(sent, arrival_ns=sent.arrival_ns + late_ns * (sent.source == "front_tele"))
            for sent in stream
        ]
    )


def delay_long(stream: Stream) -> Stream:
    """For a second front_tele's messages come 0.6 s late, after the age at which t0s expire."""
    late_ns = 600_000_000
    return _in_order(
        [
            replace(sent, arrival_ns=sent.arrival_ns + late_ns * _strikes(sent, "front_tele"))
            for sent in stream
        ]
    )


def duplicate(stream: Stream) -> Stream:
    """Every message comes twice."""
    return [sent for sent in stream for _ in range(2)]


def reorder(stream: Stream) -> Stream:
    """One frame of cross_left comes just after the next one."""
    late_ns = 101_000_000
    struck = [s.source == "cross_left" and s.stamp_ns == round(STRIKE_S * S) for s in stream]
    return _in_order(
        [replace(s, arrival_ns=s.arrival_ns + late_ns * hit) for s, hit in zip(stream, struck)]
    )


def spike_odometry(stream: Stream) -> Stream:
    """One pose lies 5 m beside the others."""
    at_ns = round(STRIKE_S * S)
    return [
        sent.displaced(5.0) if sent.source == "odometry" and sent.stamp_ns == at_ns else sent
        for sent in stream
    ]


def gap_in_odometry(stream: Stream) -> Stream:
    """No odometry for half a second, strictly between 3.0 and 3.5 s."""
    return [
        sent
        for sent in stream
        if not (sent.source == "odometry" and STRIKE_S < sent.stamp_s < STRIKE_S + 0.5)
    ]


def freeze_stamp(stream: Stream) -> Stream:
    """cross_left goes on sending, with the stamp of 3.0 s for a second."""
    return [
        sent.restamped(round(STRIKE_S * S)) if _strikes(sent, "cross_left") else sent
        for sent in stream
    ]


def loop(stream: Stream) -> Stream:
    """The drive begins anew when it has ended."""
    return stream + stream


TABLE = (
    Damage("nothing", list),
    Damage(
        "drop_camera",
        drop_camera,
        lost_s=(3.0, 4.2),  # 4.2 s still looks back to 3.9 s
        reasons=(Reason.MISSING_FRAMES, Reason.UNSYNCHRONISED),
    ),
    Damage("delay_little", delay_little),
    Damage(
        "delay_long",
        delay_long,
        lost_s=(3.0, 4.2),  # what comes late is not there when 4.0 to 4.2 s are decided
        reasons=(Reason.MISSING_FRAMES, Reason.UNSYNCHRONISED),
    ),
    Damage("duplicate", duplicate),
    Damage("reorder", reorder, lost_s=(3.0, 3.1), reasons=(Reason.UNSYNCHRONISED,)),
    Damage(
        "spike_odometry",
        spike_odometry,
        lost_s=(3.0, 4.5),  # 1.5 s of history
        reasons=(Reason.ODOMETRY_JUMP,),
    ),
    Damage(
        "gap_in_odometry",
        gap_in_odometry,
        lost_s=(3.1, 4.9),  # until 1.5 s of history lie behind the gap's end
        reasons=(Reason.ODOMETRY_GAP,),
    ),
    Damage(
        "freeze_stamp",
        freeze_stamp,
        lost_s=(3.1, 4.2),
        # 3.5 s is decided by the frame of 4.0 s, a transport delay after it has expired.
        reasons=(Reason.MISSING_FRAMES, Reason.UNSYNCHRONISED, Reason.STALE),
    ),
    Damage("loop", loop, rounds=2),
)
BY_NAME = {damage.name: damage for damage in TABLE}


# Bag files


def read_stream(bag: Path, sources: Mapping[str, str], start_ns: int) -> Stream:
    """The messages of a bag.

    Args:
        sources: topic to camera role or "odometry"; other topics are left out.
        start_ns: log time and stamp of the drive's start.
    """
    with AnyReader([bag]) as reader:
        connections = [c for c in reader.connections if c.topic in sources]
        stream = []
        for connection, log_ns, data in reader.messages(connections):
            message = reader.deserialize(data, connection.msgtype)
            stamp = message.header.stamp
            stamp_ns = stamp.sec * S + stamp.nanosec
            source = sources[connection.topic]
            stream.append(Sent(log_ns - start_ns, source, stamp_ns - start_ns, message))
    return stream


def write_stream(bag: Path, stream: Stream, topics: Mapping[str, str], start_ns: int) -> Path:
    """Write a bag (mcap) of messages, each logged when it arrives."""
    with Writer(bag, version=8, storage_plugin=StoragePlugin.MCAP) as writer:
        connections: dict[str, Any] = {}
        for sent in stream:
            kind = sent.value.__msgtype__
            if sent.source not in connections:
                topic = topics[sent.source]
                connections[sent.source] = writer.add_connection(topic, kind, typestore=TYPES)
            data = TYPES.serialize_cdr(sent.value, kind)
            writer.write(connections[sent.source], start_ns + sent.arrival_ns, data)
    return bag


def damaged_bag(
    bag: Path, target: Path, damage: Damage, topics: Mapping[str, str], start_ns: int
) -> Path:
    """A damaged copy of a bag.

    Args:
        topics: camera roles and "odometry" to topics.
    """
    sources = {topic: source for source, topic in topics.items()}
    stream = damage.apply(read_stream(bag, sources, start_ns))
    return write_stream(target, stream, topics, start_ns)


def truncate_file(path: Path, share: float = 0.6) -> None:
    """Cut a file off: what a full disk or a pulled plug leaves of a recording."""
    data = path.read_bytes()
    path.write_bytes(data[: round(share * len(data))])
