"""A small bag player with /clock, for where `ros2 bag play` is not: real time, rate, loop, remaps.

Messages go out as the serialised bytes they lie in the bag as; nothing is taken apart.
"""

from __future__ import annotations

import heapq
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosbags.highlevel import AnyReader
from rosgraph_msgs.msg import Clock as ClockMessage

from alpamayo_ros.ros import qos
from alpamayo_ros.ros.messages import time_message
from alpamayo_ros.types import UserError

CLOCK_HZ = 40.0  # as `ros2 bag play --clock` does
CLOCK_LEAD_S = 0.2
PEER_POLL_S = 0.02


class BagError(UserError):
    """A bag that cannot be played; one line."""


def message_class(name: str) -> type:
    """The class of a message type such as "sensor_msgs/msg/Image".

    Raises:
        BagError: its package is not installed here.
    """
    package, _, kind = name.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), kind)
    except (ImportError, AttributeError):
        raise BagError(f"message type {name} is not installed here") from None


def bag_topics(folder: str | Path) -> dict[str, str]:
    """Topic to message type, of a bag.

    Raises:
        BagError: the folder is no readable bag.
    """
    reader = _opened(folder)
    topics = {connection.topic: connection.msgtype for connection in reader.connections}
    reader.close()  # it forgets them
    return topics


def _opened(folder: str | Path) -> AnyReader:
    try:
        reader = AnyReader([Path(folder)])
        reader.open()
    except Exception as error:  # each storage has its own kinds
        raise BagError(f"bag {folder} cannot be read: {error}") from None
    return reader


@dataclass(frozen=True)
class BagSpan:
    """The time that a bag covers."""

    start_ns: int
    end_ns: int

    @property
    def duration_s(self) -> float:
        """Seconds from the first message to the last."""
        return (self.end_ns - self.start_ns) / 1e9


class BagPlayer:
    """Publishes a bag's messages on a node at the pace of their log times, and /clock with them.

    Args:
        remaps: topic in the bag to topic to publish on; other topics are not played. None plays
            all topics under their own names.

    Raises:
        BagError: the folder is no readable bag, or lacks a topic of remaps.
    """

    def __init__(
        self, node: Node, folder: str | Path, remaps: dict[str, str] | None = None
    ) -> None:
        self._node = node
        self._reader = _opened(folder)
        names = {connection.topic for connection in self._reader.connections}
        remaps = {name: name for name in names} if remaps is None else remaps
        if missing := sorted(set(remaps) - names):
            raise BagError(f"bag {folder} has no topic {missing[0]}; it has {sorted(names)}")
        self._connections = [c for c in self._reader.connections if c.topic in remaps]
        self._publishers = {
            c.topic: node.create_publisher(
                message_class(c.msgtype), remaps[c.topic], QoSProfile(depth=10)
            )
            for c in self._connections
        }
        self._clock = node.create_publisher(ClockMessage, "/clock", qos.CLOCK)
        self.span = BagSpan(self._reader.start_time, self._reader.end_time)

    def wait_for_listeners(self, timeout_s: float) -> bool:
        """Wait until every topic and /clock has a subscriber."""
        deadline_s = time.monotonic() + timeout_s
        publishers = [*self._publishers.values(), self._clock]
        while time.monotonic() < deadline_s:
            if all(publisher.get_subscription_count() for publisher in publishers):
                return True
            time.sleep(PEER_POLL_S)
        return False

    def play(
        self,
        rate: float = 1.0,
        on_time: Callable[[int], None] | None = None,
        stop: threading.Event | None = None,
        start_offset_s: float = 0.0,
    ) -> None:
        """Play the bag once.

        Args:
            rate: bag seconds per second.
            on_time: called with the bag's time (ns) after each message.
            stop: ends playing early when set.
            start_offset_s: seconds at the bag's start to leave out.
        """
        stop = stop or threading.Event()
        start_ns = self.span.start_ns + round(start_offset_s * 1e9)
        # Before its first /clock a node's time is 0, and what comes then cannot be dated.
        self._clock.publish(ClockMessage(clock=time_message(start_ns)))
        stop.wait(CLOCK_LEAD_S)
        start_s = time.monotonic()
        for log_ns, topic, data in self._messages_and_ticks(start_ns):
            due_s = start_s + (log_ns - start_ns) / 1e9 / rate
            while (wait_s := due_s - time.monotonic()) > 0 and not stop.is_set():
                stop.wait(wait_s)
            if stop.is_set():
                return
            if topic is None:
                self._clock.publish(ClockMessage(clock=time_message(log_ns)))
            else:
                self._publishers[topic].publish(data)
                if on_time is not None:
                    on_time(log_ns)

    def close(self) -> None:
        """Close the bag and the publishers."""
        self._reader.close()
        for publisher in (*self._publishers.values(), self._clock):
            self._node.destroy_publisher(publisher)

    def _messages_and_ticks(self, start_ns: int) -> Iterator[tuple[int, str | None, bytes]]:
        messages = (
            (log_ns, connection.topic, bytes(data))
            for connection, log_ns, data in self._reader.messages(self._connections, start=start_ns)
        )
        step_ns = round(1e9 / CLOCK_HZ)
        # A tick is due before the messages of the same time: stamps are never ahead of the clock.
        ticks = (
            (tick_ns, None, b"") for tick_ns in range(start_ns, self.span.end_ns + step_ns, step_ns)
        )
        yield from heapq.merge(ticks, messages, key=lambda item: item[0])
