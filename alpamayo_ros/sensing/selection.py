"""What one decision is made from, before its images are decoded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alpamayo_ros.sensing.poses import Origin, Track, ego_history
from alpamayo_ros.types import CAMERA_IDS, CAMERA_ROLES, Frame, Snapshot


@dataclass(frozen=True, eq=False)
class Selection:
    """A t0 that can be planned on: its frames, still encoded, and its poses."""

    t0_ns: int
    frames: dict[str, tuple[Frame, ...]]  # role to four frames, oldest first
    ego_history_xyz: np.ndarray  # float64 (16, 3)
    ego_history_rot: np.ndarray  # float64 (16, 3, 3)
    t0_position: np.ndarray  # float64 (3,) of child_frame_id in frame_id
    t0_quaternion: np.ndarray  # float64 (4,)
    t0_speed_m_s: float  # signed, from the twist; from the positions where it is not filled
    frame_id: str
    child_frame_id: str

    @classmethod
    def of_track(
        cls,
        t0_ns: int,
        frames: dict[str, tuple[Frame, ...]],
        track: Track,
        speed_m_s: float,
        origin: Origin,
        frame_ids: tuple[str, str],
    ) -> Selection:
        """A selection whose history is a track as the model's origin saw it.

        Args:
            track: poses at t0 - 1.5 .. t0, the last one at t0.
            frame_ids: the frame that the poses are in, and the one that they are of.
        """
        xyz, rot = ego_history(track, np.array(origin))
        frame_id, child_frame_id = frame_ids
        return cls(
            t0_ns=t0_ns,
            frames=frames,
            ego_history_xyz=xyz,
            ego_history_rot=rot,
            t0_position=track.positions[-1],
            t0_quaternion=track.quaternions[-1],
            t0_speed_m_s=speed_m_s,
            frame_id=frame_id,
            child_frame_id=child_frame_id,
        )

    def snapshot(
        self, frames: dict[str, tuple[np.ndarray, ...]], navigation_text: str = ""
    ) -> Snapshot:
        """The snapshot, given each role's four decoded frames (H, W, 3)."""
        return Snapshot(
            frames=tuple(np.stack(frames[role]) for role in CAMERA_ROLES),
            camera_ids=tuple(CAMERA_IDS[role] for role in CAMERA_ROLES),
            frame_stamps_ns=np.array(
                [[frame.stamp_ns for frame in self.frames[role]] for role in CAMERA_ROLES],
                np.int64,
            ),
            t0_ns=self.t0_ns,
            ego_history_xyz=self.ego_history_xyz,
            ego_history_rot=self.ego_history_rot,
            t0_position=self.t0_position,
            t0_quaternion=self.t0_quaternion,
            frame_id=self.frame_id,
            child_frame_id=self.child_frame_id,
            navigation_text=navigation_text,
        )
