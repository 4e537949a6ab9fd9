"""A plan drawn into the image of a calibrated camera; free of ROS.

Plans come from a model and may hold anything: what is not finite or not in front of the camera is
left out, and nothing here raises for it.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

import cv2
import numpy as np

from alpamayo_ros.planning.gate import segment_speeds_m_s
from alpamayo_ros.planning.placement import Placement
from alpamayo_ros.sensing.images import centre_crop_box
from alpamayo_ros.sensing.poses import rotation_matrices
from alpamayo_ros.sensing.rig_check import FISHEYE

Colour = tuple[float, float, float]  # red, green, blue, 0 to 1

FAST_M_S = 20.0  # the speed at the green end of the colours
GREY: Colour = (0.6, 0.6, 0.6)
RIBBON_M = 1.8  # width of what is drawn of a plan
RIBBON_OPACITY = 0.55
WIDEST_RAD = math.radians(75.0)  # off the axis: a distortion's polynomial means nothing far outside
SHIFT = 4  # fractional bits of the corners given to OpenCV
FARTHEST_PX = 1e4  # corners fit OpenCV's 32-bit integers
FONT, FONT_SCALE, LINE_PX, LETTER_PX = cv2.FONT_HERSHEY_SIMPLEX, 0.4, 14, 7

# Axes of a body that looks along x (x ahead, y left, z up) as the optical frame has them: right,
# down, ahead (REP 103).
OPTICAL = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])


def speed_colour(speed_m_s: float, driven: bool) -> Colour:
    """Red at standstill to green at 20 m/s; grey for a plan that must not be driven."""
    if not driven:
        return GREY
    share = min(abs(float(speed_m_s)) / FAST_M_S, 1.0)
    return 1.0 - share, 0.3 + 0.6 * share, 0.1


@dataclass(frozen=True, eq=False)
class Lens:
    """A calibrated camera, as sensor_msgs/CameraInfo tells it. Pixel centres are whole numbers."""

    width_px: int
    height_px: int
    matrix: np.ndarray  # float64 (3, 3)
    distortion: np.ndarray  # float64 (N,): k1 to k4 of a fisheye, else as OpenCV orders them
    model: str  # CameraInfo.distortion_model

    def pixels(self, optical_m: np.ndarray) -> np.ndarray:
        """Column and row (N, 2) of points (N, 3) right, down, ahead, with ahead > 0."""
        if self.model in FISHEYE:
            return self._fisheye(optical_m)
        none = np.zeros(3)
        pixels, _ = cv2.projectPoints(
            optical_m[:, None].astype(np.float64), none, none, self.matrix, self.distortion
        )
        return pixels[:, 0]

    def _fisheye(self, optical_m: np.ndarray) -> np.ndarray:
        """The equidistant model: r = t (1 + k1 t^2 + k2 t^4 + k3 t^6 + k4 t^8), t off the axis."""
        aside = np.hypot(optical_m[:, 0], optical_m[:, 1])
        angle = np.arctan2(aside, optical_m[:, 2])
        k = np.zeros(4)
        k[: len(self.distortion)] = self.distortion[:4]
        radius = angle * (1 + sum(k[i] * angle ** (2 * i + 2) for i in range(4)))
        scale = np.divide(radius, aside, out=np.ones_like(radius), where=aside > 0)
        plane = np.column_stack([optical_m[:, :2] * scale[:, None], np.ones(len(optical_m))])
        return (plane @ self.matrix.T)[:, :2]

    def seen_at(self, width_px: int, height_px: int, crop_aspect: float | None = None) -> Lens:
        """The lens of its image scaled to this size, after a centred crop to width / height."""
        left, top, width, height = 0, 0, self.width_px, self.height_px
        if crop_aspect is not None:
            left, top, width, height = centre_crop_box(width, height, crop_aspect)
        sx, sy = width_px / width, height_px / height
        # A pixel's middle: column + 0.5 is what scales.
        to_size = np.array(
            [
                [sx, 0.0, (0.5 - left) * sx - 0.5],
                [0.0, sy, (0.5 - top) * sy - 0.5],
                [0.0, 0.0, 1.0],
            ]
        )
        return Lens(width_px, height_px, to_size @ self.matrix, self.distortion, self.model)


def mounted(mount: tuple[float, ...]) -> Placement:
    """A camera's body, which looks along its x, in the vehicle's frame: x, y, z, roll, pitch, yaw.

    Turned as tf's static_transform_publisher does: roll about x, then pitch about the old y, then
    yaw about the old z.
    """
    x, y, z, roll, pitch, yaw = mount
    (sr, cr), (sp, cp), (sy, cy) = ((math.sin(a / 2), math.cos(a / 2)) for a in (roll, pitch, yaw))
    quaternion = [
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    ]
    return Placement(np.array([x, y, z]), np.array(quaternion))


def optical_points_m(points_m: np.ndarray, camera: Placement) -> np.ndarray:
    """Points (N, 3) of the vehicle's frame as right, down, ahead of a camera's body in it."""
    body = (points_m - camera.position) @ rotation_matrices(camera.quaternion[None])[0]
    return body @ OPTICAL.T


def draw_plan(
    image_rgb: np.ndarray,
    lens: Lens,
    camera: Placement,
    origin: Placement,
    waypoints: np.ndarray,
    z_m: float,
    driven: bool,
    text: str,
) -> np.ndarray:
    """The image with the plan as a ribbon coloured by speed, and words below.

    Args:
        image_rgb: uint8 (H, W, 3), taken at the plan's t0.
        lens: of this image, at its size.
        camera: its body in the vehicle's frame at t0.
        origin: the model's origin in the same frame.
        waypoints: (N, 3) x_m, y_m, yaw_rad in the frame of `origin`.
        z_m: their height there.
        driven: grey when it is not.
        text: wrapped to the width; what a simple font does not have shows as ?.

    Returns:
        A new uint8 (H, W, 3) RGB image.
    """
    painted, covered = image_rgb.copy(), np.zeros(image_rgb.shape[:2], np.uint8)
    waypoints = np.where(np.isfinite(waypoints), waypoints, np.nan).astype(np.float64)
    edges = _edges(waypoints, z_m, origin)
    # The farthest first: nearer parts cover them.
    for k in reversed(range(1, len(edges))):
        corners = _corners(np.vstack([edges[k - 1], edges[k][::-1]]), lens, camera)
        if corners is None:
            continue
        speed = segment_speeds_m_s(waypoints[k - 1 : k + 1] - waypoints[k - 1])[-1]
        colour = tuple(255 * part for part in speed_colour(speed, driven))
        cv2.fillPoly(painted, [corners], colour, cv2.LINE_8, SHIFT)
        cv2.fillPoly(covered, [corners], (255,), cv2.LINE_8, SHIFT)
    part = (covered / 255.0 * RIBBON_OPACITY)[..., None]
    blended = np.round(image_rgb * (1 - part) + painted * part).astype(np.uint8)
    _write(blended, text)
    return blended


def _edges(waypoints: np.ndarray, z_m: float, origin: Placement) -> np.ndarray:
    """Left and right end (N, 2, 3) of the ribbon at each waypoint, in the vehicle's frame."""
    across = np.column_stack([-np.sin(waypoints[:, 2]), np.cos(waypoints[:, 2])]) * RIBBON_M / 2
    ends = []
    for side in (1, -1):
        shifted = waypoints.copy()
        shifted[:, :2] += side * across
        ends.append(origin.place(shifted, z_m)[0])
    return np.stack(ends, axis=1)


def _corners(points_m: np.ndarray, lens: Lens, camera: Placement) -> np.ndarray | None:
    """Points (4, 3) as OpenCV's fixed-point pixels; None unless the camera could see all."""
    if not np.isfinite(points_m).all():
        return None
    optical = optical_points_m(points_m, camera)
    aside = np.hypot(optical[:, 0], optical[:, 1])
    if not (np.arctan2(aside, optical[:, 2]) < WIDEST_RAD).all():
        return None
    pixels = lens.pixels(optical)
    if not (np.abs(pixels) < FARTHEST_PX).all():
        return None
    return np.round(pixels * (1 << SHIFT)).astype(np.int32)


def _write(image: np.ndarray, text: str) -> None:
    """Lines at the lower edge, white on dark."""
    height, width = image.shape[:2]
    plain = text.encode("ascii", "replace").decode()
    lines = textwrap.wrap(plain, max(width // LETTER_PX, 8))
    top = max(height - LINE_PX * len(lines) - 4, 0)
    if lines:
        image[top:] //= 3
    for index, line in enumerate(lines):
        at = (4, top + LINE_PX * (index + 1) - 2)
        cv2.putText(image, line, at, FONT, FONT_SCALE, (255, 255, 255), 1, cv2.LINE_AA)
