"""Clips of the public Physical AI AV dataset: a video a camera, and the vehicle's motion.

What is read of a clip, at any depth below the folder that holds it (the dataset comes in chunks
that people unpack as they like):

    CLIP.camera_front_wide_120fov.mp4                 (and cross_left, cross_right, front_tele)
    CLIP.camera_front_wide_120fov.timestamps.parquet  `timestamp`: us of each frame
    CLIP.egomotion.parquet                            `timestamp` us; x, y, z m; qx, qy, qz, qw

Times count from the clip's start. A decision at t0 follows the rule that the model's publishers
use with this data: of each camera the last frame at or before t0 - 0.3, -0.2, -0.1 and t0, and the
motion interpolated at exactly t0 - 1.5 .. t0; theirs is t0 = 5.1 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np

from alpamayo_ros.evaluation.bags import BagError, files_sha256
from alpamayo_ros.evaluation.truth import DrivenTrack
from alpamayo_ros.sensing.poses import NO_ORIGIN, Origin, PoseRing, implied_speeds_m_s
from alpamayo_ros.sensing.sampler import SamplerSettings
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import (
    CAMERA_ROLES,
    FRAME_OFFSETS_NS,
    NS_PER_S,
    POSE_OFFSETS_NS,
    REFERENCE_ROLE,
    EgoPose,
    Frame,
    Snapshot,
)

VIEWS = {
    "cross_left": "camera_cross_left_120fov",
    "front_wide": "camera_front_wide_120fov",
    "cross_right": "camera_cross_right_120fov",
    "front_tele": "camera_front_tele_30fov",
}
PUBLISHED_T0_S = 5.1
ANCHOR, RIG = "clip", "rig"  # frames: the vehicle's at the clip's start, and the vehicle's
EGOMOTION = ".egomotion.parquet"


@dataclass(frozen=True, eq=False)
class Clip:
    """One clip: where its files are, when its frames were taken, and its motion."""

    clip_id: str
    videos: dict[str, Path]  # by role
    frame_stamps_ns: dict[str, np.ndarray]  # by role: int64 (frames,)
    poses: tuple[EgoPose, ...]
    files: tuple[Path, ...]

    @classmethod
    def load(cls, path: Path) -> Clip:
        """Read the tables of a clip, given its egomotion file or a folder with one clip.

        Raises:
            BagError: a file is missing, damaged or lacks a column; one line.
        """
        egomotion = _egomotion_file(path)
        clip_id = egomotion.name.removesuffix(EGOMOTION)
        root = path if path.is_dir() else _common_root(egomotion, clip_id)
        files = _files_of(clip_id, root)
        videos, tables = (
            {
                role: _required(files, f"{clip_id}.{view}{ending}", root)
                for role, view in VIEWS.items()
            }
            for ending in (".mp4", ".timestamps.parquet")
        )
        return cls(
            clip_id=clip_id,
            videos=videos,
            frame_stamps_ns={role: _frame_stamps_ns(table) for role, table in tables.items()},
            poses=_poses(egomotion),
            files=tuple(sorted([egomotion, *videos.values(), *tables.values()])),
        )

    @property
    def duration_s(self) -> float:
        """Seconds that the motion covers."""
        return (self.poses[-1].stamp_ns - self.poses[0].stamp_ns) / 1e9

    def sha256(self) -> str:
        """sha256 over the clip's files and their names, in order of name."""
        return files_sha256(sorted(self.files, key=lambda file: file.name))

    def selection(self, t0_s: float, origin: Origin = NO_ORIGIN) -> Selection:
        """What a decision at t0_s is made from.

        Args:
            origin: x, y, z, yaw of the model's origin in the frame that the poses are of.

        Raises:
            BagError: the clip does not cover t0; one line.
        """
        t0_ns = round(t0_s * 1e9)
        frames = {role: self._frames(role, t0_ns) for role in CAMERA_ROLES}
        ring = PoseRing()
        window_ns = t0_ns + POSE_OFFSETS_NS[0] - NS_PER_S, t0_ns + NS_PER_S
        for pose in self.poses:
            if window_ns[0] <= pose.stamp_ns <= window_ns[1]:
                ring.append(pose)
        instants_ns = [t0_ns + offset_ns for offset_ns in POSE_OFFSETS_NS]
        gap_ns = ring.widest_gap_ns(instants_ns[0], t0_ns)
        if gap_ns is None or gap_ns > SamplerSettings().max_gap_ns:
            raise BagError(f"clip {self.clip_id}: its motion does not cover t0 = {t0_s:g} s")
        track = ring.at(instants_ns)
        speed_m_s = float(implied_speeds_m_s(track)[-1])
        return Selection.of_track(t0_ns, frames, track, speed_m_s, origin, (ANCHOR, RIG))

    def truth(self, selection: Selection, origin: Origin = NO_ORIGIN) -> np.ndarray:
        """Where the vehicle went, (64, 3) as DrivenTrack.future gives it."""
        return self._driven.future(selection, SamplerSettings().max_gap_ns, origin)

    @cached_property
    def _driven(self) -> DrivenTrack:
        track = DrivenTrack()
        for pose in self.poses:
            track.add(pose, ANCHOR, RIG)
        return track

    def snapshot(self, t0_s: float = PUBLISHED_T0_S) -> Snapshot:
        """The snapshot at t0_s with the cameras' own pixels; `.save` makes a snapshot file.

        Raises:
            BagError: the clip does not cover t0, or a video cannot be read; one line.
        """
        selection = self.selection(t0_s)
        pixels = {
            role: tuple(
                np.frombuffer(frame.data, np.uint8).reshape(frame.height, frame.width, 3)
                for frame in selection.frames[role]
            )
            for role in CAMERA_ROLES
        }
        return selection.snapshot(pixels)

    def _frames(self, role: str, t0_ns: int) -> tuple[Frame, ...]:
        stamps_ns = self.frame_stamps_ns[role]
        instants_ns = np.array([t0_ns + offset_ns for offset_ns in FRAME_OFFSETS_NS])
        indices = np.searchsorted(stamps_ns, instants_ns, side="right") - 1
        if indices[0] < 0 or instants_ns[-1] > stamps_ns[-1]:
            raise BagError(
                f"clip {self.clip_id}: {role} does not cover t0 = {t0_ns / 1e9:g} s, only "
                f"{stamps_ns[0] / 1e9:.2f} to {stamps_ns[-1] / 1e9:.2f} s"
            )
        images = _read_frames(self.videos[role], indices.tolist())
        return tuple(
            Frame(int(stamps_ns[i]), "rgb8", image.data.cast("B"), *image.shape[:2])
            for i, image in zip(indices, images)
        )


def find_clips(path: Path) -> list[Path]:
    """The egomotion files that a path stands for, by name: itself, or all below a folder."""
    if is_clip(path):
        return [path]
    return sorted(path.rglob(f"*{EGOMOTION}"), key=lambda file: file.name)


def is_clip(path: Path) -> bool:
    """Whether a path is named as a clip's egomotion file is; nothing is searched."""
    return path.name.endswith(EGOMOTION)


def _egomotion_file(path: Path) -> Path:
    found = find_clips(path)
    if not found:
        raise BagError(f"{path} holds no clip (no file *{EGOMOTION})")
    if len(found) > 1:
        raise BagError(f"{path} holds {len(found)} clips: give the {EGOMOTION} file of one")
    return found[0]


def _common_root(egomotion: Path, clip_id: str) -> Path:
    """The nearest folder above an egomotion file that holds the clip's front video."""
    name = f"{clip_id}.{VIEWS[REFERENCE_ROLE]}.mp4"
    for folder in list(egomotion.resolve().parents)[:4]:
        if next(folder.rglob(name), None) is not None:
            return folder
    raise BagError(f"clip {clip_id}: {name} is not near {egomotion}")


def _files_of(clip_id: str, root: Path) -> dict[str, Path]:
    """All files of a clip below a folder, by name; of two of a name the first path's."""
    found = sorted(root.rglob(f"{clip_id}.*"), reverse=True)
    return {path.name: path for path in found}


def _required(files: dict[str, Path], name: str, root: Path) -> Path:
    if name not in files:
        raise BagError(f"{root} lacks {name}")
    return files[name]


def _columns(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of a parquet file.

    Raises:
        BagError: pyarrow is not installed, the file is damaged, or a column is missing; one line.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise BagError(
            f'{path.name}: parquet needs pyarrow: pip install "alpamayo_ros[clips]"'
        ) from None
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow's kinds have no class of their own in common with OSError
        raise BagError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    if missing := [name for name in names if name not in table.column_names]:
        raise BagError(f"{path} lacks the column {missing[0]}; it has {table.column_names}")
    return {name: table[name].to_numpy() for name in names}


def _frame_stamps_ns(path: Path) -> np.ndarray:
    stamps_us = _columns(path, ["timestamp"])["timestamp"]
    return _rising_ns(path, stamps_us)


def _rising_ns(path: Path, stamps_us: np.ndarray) -> np.ndarray:
    """Microseconds as int64 nanoseconds.

    Raises:
        BagError: they are none, or do not rise.
    """
    if stamps_us.dtype.kind not in "iu" or len(stamps_us) == 0:
        raise BagError(f"{path}: timestamps must be whole microseconds, got {stamps_us.dtype}")
    stamps_ns = stamps_us.astype(np.int64) * 1000
    if (np.diff(stamps_ns) <= 0).any():
        raise BagError(f"{path}: its timestamps do not rise")
    return stamps_ns


def _poses(path: Path) -> tuple[EgoPose, ...]:
    names = ["timestamp", "x", "y", "z", "qx", "qy", "qz", "qw"]
    columns = _columns(path, names)
    stamps_ns = _rising_ns(path, columns["timestamp"])
    positions = np.column_stack([columns[n] for n in ("x", "y", "z")]).astype(np.float64)
    quaternions = np.column_stack([columns[n] for n in ("qx", "qy", "qz", "qw")]).astype(np.float64)
    norms = np.linalg.norm(quaternions, axis=1, keepdims=True)
    if not (np.isfinite(positions).all() and (np.abs(norms - 1) < 0.01).all()):
        raise BagError(f"{path}: a pose is not finite, or its quaternion of no unit length")
    quaternions = quaternions / norms
    # The speed in the table is a vector of the anchor frame; what we use comes from the positions.
    return tuple(
        EgoPose(int(stamp_ns), position, quaternion, 0.0)
        for stamp_ns, position, quaternion in zip(stamps_ns, positions, quaternions)
    )


def _read_frames(video: Path, indices: list[int]) -> list[np.ndarray]:
    """RGB images (H, W, 3) of rising frame indices, decoded from the start on.

    Seeking in a video lands on other frames with some codecs; counting does not.

    Raises:
        BagError: the video cannot be read, or ends before a frame.
    """
    capture = cv2.VideoCapture(str(video))
    try:
        wanted, images = set(indices), {}
        for index in range(indices[-1] + 1):
            if not capture.grab():
                raise BagError(f"{video} cannot be read, or ends before frame {index}")
            if index in wanted:
                decoded, bgr = capture.retrieve()
                if not decoded:
                    raise BagError(f"{video}: frame {index} cannot be decoded")
                images[index] = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
    finally:
        capture.release()
    return [images[index] for index in indices]
