"""Odometry by stamp: interpolated at given instants, and judged for gaps, jumps and lies."""

from __future__ import annotations

import bisect
import itertools
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.sensing.ring import StampRing
from alpamayo_ros.types import STEP_S, EgoPose

KEEP_NS = 5_000_000_000  # the history's 1.5 s, the age a t0 may have, and room for late messages
PARABOLA_REACH_NS = 300_000_000
MAX_POSES = 2_000  # 5 s at 400 Hz

# The model's origin in child_frame_id: x, y, z in m and yaw in rad.
Origin = tuple[float, float, float, float]
NO_ORIGIN: Origin = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Track:
    """Poses of the vehicle at given instants, in the odometry frame."""

    positions: np.ndarray  # float64 (N, 3) m
    quaternions: np.ndarray  # float64 (N, 4) x, y, z, w
    speeds_m_s: np.ndarray  # float64 (N,) from the twist, signed; nan where it is not filled


class PoseRing(StampRing[EgoPose]):
    """The odometry of the last seconds."""

    def __init__(self) -> None:
        super().__init__(KEEP_NS, MAX_POSES)

    def widest_gap_ns(self, start_ns: int, end_ns: int) -> int | None:
        """The widest gap between the stamps that cover [start, end]; None when they do not."""
        first = bisect.bisect_right(self.stamps_ns, start_ns) - 1
        last = bisect.bisect_left(self.stamps_ns, end_ns)
        if first < 0 or last >= len(self.stamps_ns):
            return None
        used = self.stamps_ns[first : last + 1]
        return max((b - a for a, b in itertools.pairwise(used)), default=0)

    def at(self, instants_ns: list[int]) -> Track:
        """Poses at rising instants: speed linearly, orientation by SLERP, position by a parabola.

        A chord would cut a curve: at 10 Hz and 3 m/s2 across by 4 mm. The parabola goes through the
        two poses before an instant and the one after it, and through none after the last instant is
        covered, so that it does not matter what else has arrived already.

        Raises:
            ValueError: an instant lies outside the stamps (see widest_gap_ns).
        """
        if not self.stamps_ns or not (
            self.stamps_ns[0] <= instants_ns[0] and instants_ns[-1] <= self.stamps_ns[-1]
        ):
            raise ValueError("an instant lies outside the odometry")
        after = [bisect.bisect_left(self.stamps_ns, t) for t in instants_ns]
        a = [self.items[max(i - 1, 0)] for i in after]
        b = [self.items[i] for i in after]
        # Differences are taken in integers: 1.7e18 ns has steps of 256 ns in float64.
        part = np.array(
            [
                (t - p.stamp_ns) / max(q.stamp_ns - p.stamp_ns, 1)
                for t, p, q in zip(instants_ns, a, b)
            ]
        )
        start = np.array([p.position for p in a])
        end = np.array([p.position for p in b])
        bend = np.array([self._bend(i, after[-1], t) for i, t in zip(after, instants_ns)])
        speed_a = np.array([p.speed_m_s for p in a])
        speed_b = np.array([p.speed_m_s for p in b])
        return Track(
            positions=start + part[:, None] * (end - start) + bend,
            quaternions=slerp(
                np.array([p.quaternion for p in a]), np.array([p.quaternion for p in b]), part
            ),
            speeds_m_s=speed_a + part * (speed_b - speed_a),
        )

    def _bend(self, after: int, last: int, instant_ns: int) -> np.ndarray:
        """What the parabola adds to the chord (Newton's second divided difference), (3,) m.

        Its third pose is the one before the chord, or the one behind it (at most `last`) where
        there is none or a gap lies between: across a gap it may have been another motion.
        """
        if after == 0:
            return np.zeros(3)
        reach_ns = PARABOLA_REACH_NS
        if after >= 2 and self.stamps_ns[after - 1] - self.stamps_ns[after - 2] <= reach_ns:
            first = after - 2
        elif after < last and self.stamps_ns[after + 1] - self.stamps_ns[after] <= reach_ns:
            first = after - 1
        else:
            return np.zeros(3)
        poses = self.items[first : first + 3]
        stamps_s = [(pose.stamp_ns - instant_ns) / 1e9 for pose in poses]
        slopes = [
            (poses[k + 1].position - poses[k].position) / (stamps_s[k + 1] - stamps_s[k])
            for k in (0, 1)
        ]
        curve = (slopes[1] - slopes[0]) / (stamps_s[2] - stamps_s[0])
        since_s = (instant_ns - self.stamps_ns[after - 1]) / 1e9
        left_s = (self.stamps_ns[after] - instant_ns) / 1e9
        return -curve * since_s * left_s


def slerp(a: np.ndarray, b: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Unit quaternions (N, 4) at `part` (N,) in [0, 1] of the shorter way from a to b."""
    dot = np.sum(a * b, axis=1, keepdims=True)
    b = np.where(dot < 0, -b, b)
    angle = np.arccos(np.clip(np.abs(dot), 0.0, 1.0))
    part = part[:, None]
    small = angle < 1e-6  # sin(angle) loses its digits; the chord is the arc to 1e-12
    sine = np.where(small, 1.0, np.sin(angle))
    weight_a = np.where(small, 1.0 - part, np.sin((1.0 - part) * angle) / sine)
    weight_b = np.where(small, part, np.sin(part * angle) / sine)
    result = weight_a * a + weight_b * b
    return result / np.linalg.norm(result, axis=1, keepdims=True)


def rotation_matrices(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices (N, 3, 3) of unit quaternions (N, 4) x, y, z, w."""
    x, y, z, w = quaternions.T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
            np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1),
            np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1),
        ],
        axis=-2,
    )


def implied_speeds_m_s(track: Track, step_s: float = STEP_S) -> np.ndarray:
    """Signed speed (N-1,) between the poses of a track, along the heading halfway."""
    motion = np.diff(track.positions, axis=0) / step_s
    forward = rotation_matrices(track.quaternions)[:, :, 0]
    halfway = forward[:-1] + forward[1:]
    norm = np.linalg.norm(halfway, axis=1, keepdims=True)
    halfway = halfway / np.where(norm > 0, norm, 1.0)
    return np.sum(motion * halfway, axis=1)


def implied_acceleration_m_s2(track: Track, step_s: float = STEP_S) -> float:
    """The largest acceleration that the positions of a track imply."""
    velocity = np.diff(track.positions, axis=0) / step_s
    return float(np.linalg.norm(np.diff(velocity, axis=0), axis=1).max(initial=0.0) / step_s)


def ego_history(track: Track, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The model's history: a track seen from its last pose.

    p' = R0^T (p - p0), R' = R0^T R, subtracted in float64: map coordinates in float32 would lose
    up to 25 cm.

    Args:
        track: poses of child_frame_id in the odometry frame, the last one at t0.
        origin: (4,) x, y, z in m and yaw in rad of the model's origin in child_frame_id.

    Returns:
        xyz (N, 3) m, whose last row is zero, and rot (N, 3, 3), whose last one is identity.
    """
    rotations = rotation_matrices(track.quaternions)
    positions = track.positions - track.positions[-1]
    positions = positions + rotations @ origin[:3] - rotations[-1] @ origin[:3]
    rotations = rotations @ yaw_matrix(float(origin[3]))
    xyz = positions @ rotations[-1]
    rot = rotations[-1].T @ rotations
    rot[-1] = np.eye(3)  # exact, not to rounding: the reference's last pose is exactly this
    return xyz, rot


def yaw_matrix(yaw_rad: float) -> np.ndarray:
    """Rotation (3, 3) about z."""
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
