"""The four pinhole cameras of the synthetic vehicle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alpamayo_ros.types import CAMERA_ROLES

DEFAULT_WIDTH_PX = 576
DEFAULT_HEIGHT_PX = 320


@dataclass(frozen=True)
class Camera:
    """An ideal pinhole camera, level, fixed to the vehicle.

    Vehicle frame: x forward, y left, z up, origin on the ground under the rear axle.
    Pixel centres lie at whole numbers, as in sensor_msgs/CameraInfo, so the image spans
    -0.5 .. width - 0.5 and the principal point is its middle.
    """

    role: str
    hfov_rad: float
    position_m: tuple[float, float, float]
    yaw_rad: float  # of the optical axis; positive looks left
    width_px: int = DEFAULT_WIDTH_PX
    height_px: int = DEFAULT_HEIGHT_PX

    @cached_property
    def focal_px(self) -> float:
        """Focal length of both axes (square pixels)."""
        return self.width_px / 2 / math.tan(self.hfov_rad / 2)

    @cached_property
    def centre_px(self) -> tuple[float, float]:
        """Principal point (column, row)."""
        return (self.width_px - 1) / 2, (self.height_px - 1) / 2

    def matrix(self) -> np.ndarray:
        """K, float64 (3, 3): optical coordinates (right, down, forward) to pixels."""
        cx, cy = self.centre_px
        return np.array([[self.focal_px, 0, cx], [0, self.focal_px, cy], [0, 0, 1]], np.float64)

    def optical(self, points_m: np.ndarray) -> np.ndarray:
        """Points (..., 3) of the vehicle frame as (right, down, forward) of the optical frame."""
        cos, sin = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        turn = np.array([[sin, -cos, 0.0], [0.0, 0.0, -1.0], [cos, sin, 0.0]])
        return (np.asarray(points_m, np.float64) - self.position_m) @ turn.T

    def pixels(self, optical_m: np.ndarray) -> np.ndarray:
        """Pixels (..., 2), column and row, of optical points (..., 3) with forward > 0."""
        return optical_m[..., :2] / optical_m[..., 2:] * self.focal_px + self.centre_px


def default_rig(
    width_px: int = DEFAULT_WIDTH_PX, height_px: int = DEFAULT_HEIGHT_PX
) -> tuple[Camera, ...]:
    """The four cameras in the order of CAMERA_ROLES, at roof height behind the windscreen.

    Raises:
        ValueError: the size is under 16 x 16 pixels.
    """
    if min(width_px, height_px) < 16:
        raise ValueError(f"image size {width_px} x {height_px}: at least 16 x 16 is needed")
    mounts = {  # hfov in degrees, position in metres, yaw in degrees
        "cross_left": (120.0, (1.55, 0.75, 1.48), 57.0),
        "front_wide": (120.0, (1.75, 0.0, 1.50), 0.0),
        "cross_right": (120.0, (1.55, -0.75, 1.48), -57.0),
        "front_tele": (30.0, (1.75, 0.10, 1.50), 0.0),
    }
    cameras = []
    for role in CAMERA_ROLES:
        hfov_deg, position_m, yaw_deg = mounts[role]
        hfov_rad, yaw_rad = math.radians(hfov_deg), math.radians(yaw_deg)
        cameras.append(Camera(role, hfov_rad, position_m, yaw_rad, width_px, height_px))
    return tuple(cameras)
