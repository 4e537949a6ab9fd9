"""Whether the cameras are those that the model knows: seen by their field of view and their images.

The model's prompt names no camera: two that are mixed up, or one topic for two roles, give plans
that look sound and are not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np

from alpamayo_ros.sensing.ring import StampRing
from alpamayo_ros.types import REFERENCE_ROLE, Frame

# Horizontal fields of view, wide enough for rectified and cropped ones. The model's own cameras
# have 120 degrees, the tele one 30.
FIELDS_DEG = {
    "cross_left": (100.0, 140.0),
    "front_wide": (100.0, 140.0),
    "cross_right": (100.0, 140.0),
    "front_tele": (20.0, 45.0),
}
FISHEYE = ("equidistant", "fisheye")  # sensor_msgs/CameraInfo.distortion_model
TAIL_BYTES = 4096


def horizontal_fov_deg(width_px: float, focal_px: float, distortion_model: str) -> float | None:
    """The horizontal field of view of a calibrated camera; None of one that is not.

    A pinhole's half width is f tan(angle), an equidistant fisheye's f * angle.

    Args:
        width_px: CameraInfo.width.
        focal_px: CameraInfo.k[0].
        distortion_model: CameraInfo.distortion_model.
    """
    if not (width_px > 0 and focal_px > 0 and math.isfinite(focal_px)):
        return None
    half = width_px / 2 / focal_px
    return math.degrees(2 * (half if distortion_model in FISHEYE else math.atan(half)))


def field_problem(role: str, fov_deg: float) -> str:
    """What is wrong with a camera of this horizontal field of view in a role; or "" """
    low, high = FIELDS_DEG[role]
    if low <= fov_deg <= high:
        return ""
    return (
        f"{role} has a horizontal field of view of {fov_deg:.0f} degrees, "
        f"the model wants {low:.0f} to {high:.0f}: is it another camera?"
    )


def skews_ns(rings: Mapping[str, StampRing[Frame]]) -> dict[str, int]:
    """How far each camera's nearest frame lies from a front_wide frame.

    That is the one nearest to where the slowest camera has come: the newest that all could match.
    Positive: the camera's frame is the later one. Empty while a camera has no frame.
    """
    if not all(len(ring) for ring in rings.values()):
        return {}
    reached_ns = min(ring.stamps_ns[-1] for ring in rings.values())
    at_ns = _nearest_ns(rings[REFERENCE_ROLE], reached_ns)
    return {role: _nearest_ns(ring, at_ns) - at_ns for role, ring in rings.items()}


def _nearest_ns(ring: StampRing[Frame], instant_ns: int) -> int:
    frame = ring.nearest(instant_ns)
    assert frame is not None
    return frame.stamp_ns


def equal_pairs(newest: Mapping[str, Frame]) -> list[tuple[str, str]]:
    """Pairs of roles whose newest frames hold the same bytes."""
    pairs = itertools.combinations(newest, 2)
    return [(a, b) for a, b in pairs if _equal(newest[a].data, newest[b].data)]


def _equal(a: bytes | memoryview, b: bytes | memoryview) -> bool:
    # Two cameras differ in their last bytes already; only equal ones are compared as a whole.
    if len(a) != len(b) or bytes(a[-TAIL_BYTES:]) != bytes(b[-TAIL_BYTES:]):
        return False
    return np.array_equal(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8))
