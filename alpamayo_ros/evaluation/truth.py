"""Where the vehicle went after t0, from the odometry that came later."""

from __future__ import annotations

import bisect

import numpy as np

from alpamayo_ros.sensing.poses import (
    PARABOLA_REACH_NS,
    Origin,
    PoseRing,
    Track,
    ego_history,
    implied_acceleration_m_s2,
)
from alpamayo_ros.sensing.ring import StampRing
from alpamayo_ros.sensing.sampler import MAX_ACCELERATION_M_S2
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import STEP_NS, WAYPOINTS, EgoPose

WINDOW_NS = 2_000_000_000  # of odometry that is interpolated at a time; a ring keeps 5 s


class DrivenTrack:
    """All odometry of a bag, by frame: poses in two frames are not one track."""

    def __init__(self) -> None:
        self._rings: dict[tuple[str, str], StampRing[EgoPose]] = {}

    def add(self, pose: EgoPose, frame_id: str, child_frame_id: str) -> None:
        """Keep a pose."""
        ring = self._rings.setdefault((frame_id, child_frame_id), StampRing(1 << 62, 1 << 62))
        ring.append(pose)

    def future(self, selection: Selection, max_gap_ns: int, origin: Origin) -> np.ndarray:
        """Truth (64, 3) x_m, y_m, yaw_rad of the model's origin in its frame at t0.

        NaN from where the odometry ends, has a gap over max_gap_ns, or jumps.

        Args:
            origin: x, y, z, yaw of the model's origin in child_frame_id.
        """
        poses = self._rings[selection.frame_id, selection.child_frame_id]
        instants_ns = [selection.t0_ns + k * STEP_NS for k in range(WAYPOINTS + 1)]
        reach = _reach(poses.stamps_ns, instants_ns, max_gap_ns)
        truth = np.full((WAYPOINTS, 3), np.nan)
        if reach < 1:
            return truth
        track = _unjumped(_interpolated(poses, instants_ns[: reach + 1]))
        # ego_history looks back from the last pose; turned round it looks ahead from the first.
        xyz, rot = ego_history(_reversed(track), np.array(origin))
        xyz, rot = xyz[-2::-1], rot[-2::-1]
        yaw = np.arctan2(rot[:, 1, 0], rot[:, 0, 0])
        truth[: len(yaw)] = np.column_stack([xyz[:, :2], yaw])
        return truth


def _reach(stamps_ns: list[int], instants_ns: list[int], max_gap_ns: int) -> int:
    """How many instants after the first lie between poses that are near enough to each other."""
    for k, instant_ns in enumerate(instants_ns):
        after = bisect.bisect_left(stamps_ns, instant_ns)
        if after == len(stamps_ns):
            return k - 1
        exact = stamps_ns[after] == instant_ns
        if not exact and (after == 0 or stamps_ns[after] - stamps_ns[after - 1] > max_gap_ns):
            return k - 1
    return len(instants_ns) - 1


def _interpolated(poses: StampRing[EgoPose], instants_ns: list[int]) -> Track:
    """Poses at the instants, by the rule of the sampler (PoseRing.at), window by window."""
    tracks = []
    window = WINDOW_NS // STEP_NS
    for start in range(0, len(instants_ns), window):
        part_ns = instants_ns[start : start + window]
        first = bisect.bisect_left(poses.stamps_ns, part_ns[0] - 2 * PARABOLA_REACH_NS)
        last = bisect.bisect_left(poses.stamps_ns, part_ns[-1])
        ring = PoseRing()
        for pose in poses.items[max(first - 2, 0) : last + 1]:
            ring.append(pose)
        tracks.append(ring.at(part_ns))
    return Track(
        np.vstack([track.positions for track in tracks]),
        np.vstack([track.quaternions for track in tracks]),
        np.concatenate([track.speeds_m_s for track in tracks]),
    )


def _unjumped(track: Track) -> Track:
    """The track up to where its positions imply an acceleration that no vehicle has."""
    for end in range(3, len(track.positions) + 1):
        three = _part(track, slice(end - 3, end))
        if not implied_acceleration_m_s2(three) <= MAX_ACCELERATION_M_S2:
            return _part(track, slice(end - 1))
    return track


def _reversed(track: Track) -> Track:
    return _part(track, slice(None, None, -1))


def _part(track: Track, rows: slice) -> Track:
    return Track(track.positions[rows], track.quaternions[rows], track.speeds_m_s[rows])
