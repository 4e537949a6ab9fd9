"""Synthetic sensor streams with known stamps and a known motion, for tests of the sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.sensing.sampler import Sampler
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import CAMERA_ROLES, EgoPose, Frame

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000


@dataclass(frozen=True)
class Circle:
    """Exact motion on a circle: position, yaw and speed at any time."""

    speed_m_s: float = 8.0
    curvature: float = 0.02
    x0_m: float = 500.0
    y0_m: float = -200.0

    def at(self, stamp_ns: int) -> tuple[np.ndarray, float]:
        yaw = self.speed_m_s * self.curvature * (stamp_ns - START_NS) / 1e9
        r = 1 / self.curvature
        return np.array(
            [self.x0_m + r * math.sin(yaw), self.y0_m + r * (1 - math.cos(yaw)), 1.5]
        ), yaw

    def pose(self, stamp_ns: int) -> EgoPose:
        position, yaw = self.at(stamp_ns)
        quaternion = np.array([0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)])
        return EgoPose(stamp_ns, position, quaternion, self.speed_m_s)


def stamps(rate_hz: float, phase_ms: float = 0.0, duration_s: float = 3.0) -> list[int]:
    """Stamps of a source with a constant rate and phase."""
    count = int(duration_s * rate_hz)
    return [START_NS + round(phase_ms * MS) + round(k * 1e9 / rate_hz) for k in range(count)]


def rgb_frame(stamp_ns: int, value: int = 0) -> Frame:
    """A frame of 4x2 pixels of one value."""
    return Frame(stamp_ns, "rgb8", bytes([value]) * 24, height=2, width=4, row_bytes=12)


@dataclass(frozen=True)
class Event:
    """A message on its way to the sampler."""

    arrival_ns: int
    source: str  # a camera role, or "odometry"
    stamp_ns: int


def events(
    cameras: dict[str, list[int]], odometry: list[int], delay_ns: int = 2 * MS
) -> list[Event]:
    """All messages in the order of their arrival, each `delay_ns` after its stamp."""
    sources = {**cameras, "odometry": odometry}
    return sorted(
        (Event(t + delay_ns, name, t) for name, times in sources.items() for t in times),
        key=lambda e: (e.arrival_ns, e.source),
    )


def rig(rate_hz: float, phases_ms: dict[str, float] | None = None, duration_s: float = 3.0):
    """Stamps by role of four cameras of one rate, each with its phase."""
    phases_ms = phases_ms or {}
    return {role: stamps(rate_hz, phases_ms.get(role, 0.0), duration_s) for role in CAMERA_ROLES}


def drive(sampler: Sampler, messages: list[Event], motion: Circle | None = None) -> list[Selection]:
    """Feed messages to a sampler and take a selection after each, as an idle planner would."""
    motion = motion or Circle()
    taken = []
    for message in messages:
        feed(sampler, message, motion)
        selection = sampler.take(message.arrival_ns)
        if selection is not None:
            taken.append(selection)
    return taken


def feed(sampler: Sampler, message: Event, motion: Circle) -> None:
    """Hand one message to a sampler."""
    if message.source == "odometry":
        sampler.add_pose(motion.pose(message.stamp_ns), "map", "base_link", message.arrival_ns)
    else:
        sampler.add_frame(message.source, rgb_frame(message.stamp_ns), message.arrival_ns)
