"""A frame in its parent frame, and plans placed in it: float64, free of ROS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alpamayo_ros.sensing.poses import Origin, rotation_matrices


@dataclass(frozen=True, eq=False)
class Placement:
    """A frame in the parent frame: its origin and its unit quaternion x, y, z, w."""

    position: np.ndarray  # float64 (3,) m
    quaternion: np.ndarray  # float64 (4,)

    def then(self, x_y_z_yaw: Origin) -> Placement:
        """The placement of a frame that lies at x, y, z, yaw in this one."""
        x, y, z, yaw = x_y_z_yaw
        return Placement(
            self.position + rotation_matrices(self.quaternion[None])[0] @ np.array([x, y, z]),
            turned(self.quaternion, np.array([yaw]))[0],
        )

    def place(self, waypoints: np.ndarray, z_m: float) -> tuple[np.ndarray, np.ndarray]:
        """Waypoints (N, 3) x, y, yaw of this frame as positions (N, 3) and quaternions (N, 4)."""
        local = np.column_stack([waypoints[:, :2], np.full(len(waypoints), z_m)]).astype(float)
        positions = self.position + local @ rotation_matrices(self.quaternion[None])[0].T
        return positions, turned(self.quaternion, waypoints[:, 2].astype(float))


IDENTITY = Placement(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))


def turned(quaternion: np.ndarray, yaw_rad: np.ndarray) -> np.ndarray:
    """The quaternion (4,) followed by turns about its own z: (N, 4)."""
    x, y, z, w = quaternion
    s, c = np.sin(yaw_rad / 2), np.cos(yaw_rad / 2)
    return np.stack([x * c + y * s, y * c - x * s, z * c + w * s, w * c - z * s], axis=1)
