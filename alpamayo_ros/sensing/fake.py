"""A snapshot made from a seed: for tests, warm-up and a first try without any recording."""

from __future__ import annotations

import numpy as np

from alpamayo_ros.sensing.poses import yaw_matrix
from alpamayo_ros.types import (
    CAMERA_IDS,
    FRAME_OFFSETS_NS,
    FRAMES_PER_CAMERA,
    HISTORY_POSES,
    STEP_S,
    Snapshot,
)

T0_NS = 1_700_000_000_000_000_000


def fake_snapshot(seed: int = 0, height: int = 320, width: int = 576) -> Snapshot:
    """Blocks of random colour seen while driving a gentle curve at 4 to 14 m/s.

    Frames are (height, width); the history is exact circular motion, whose speed the seed sets.
    """
    rng = np.random.default_rng(seed)
    blocks = rng.integers(
        0, 256, (len(CAMERA_IDS), FRAMES_PER_CAMERA, -(-height // 8), -(-width // 8), 3)
    ).astype(np.uint8)
    frames = blocks.repeat(8, axis=2).repeat(8, axis=3)[:, :, :height, :width]
    speed_m_s = rng.uniform(4.0, 14.0)
    curvature = rng.uniform(-0.02, 0.02)
    time_s = np.arange(1 - HISTORY_POSES, 1) * STEP_S
    yaw = speed_m_s * curvature * time_s
    xyz = np.stack(
        # sin(k s) / k and (1 - cos(k s)) / k, written so that k = 0 is a straight line
        [
            speed_m_s * time_s * np.sinc(yaw / np.pi),
            speed_m_s * time_s * np.sinc(yaw / 2 / np.pi) * np.sin(yaw / 2),
            np.zeros_like(time_s),
        ],
        axis=1,
    )
    return Snapshot(
        frames=tuple(frames),
        camera_ids=tuple(CAMERA_IDS.values()),
        frame_stamps_ns=np.array([[T0_NS + offset for offset in FRAME_OFFSETS_NS]] * 4, np.int64),
        t0_ns=T0_NS,
        ego_history_xyz=xyz,
        ego_history_rot=np.stack([yaw_matrix(angle) for angle in yaw]),
        t0_position=np.zeros(3),
        t0_quaternion=np.array([0.0, 0.0, 0.0, 1.0]),
        frame_id="odom",
        child_frame_id="base_link",
    )
