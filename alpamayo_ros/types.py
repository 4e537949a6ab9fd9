"""The records that travel from the sensors to the messages. numpy only: every room may import it.

Time is integer nanoseconds, lengths are metres, angles radians. "Ego frame" is x forward, y left,
z up, with its origin at the model's origin (about the rear axle) at t0.
"""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

FRAMES_PER_CAMERA = 4
HISTORY_POSES = 16
WAYPOINTS = 64
NS_PER_S = 1_000_000_000
STEP_NS = 100_000_000  # frames, poses and waypoints all lie 0.1 s apart
STEP_S = 0.1

# Stamps relative to t0 of a camera's four frames and of the sixteen poses, oldest first.
FRAME_OFFSETS_NS = tuple(STEP_NS * k for k in range(1 - FRAMES_PER_CAMERA, 1))
POSE_OFFSETS_NS = tuple(STEP_NS * k for k in range(1 - HISTORY_POSES, 1))

# Role to the model's camera index. The order of this table is the order of the prompt, which names
# no camera: a wrong order is silent and fatal, so everything iterates over CAMERA_ROLES.
CAMERA_IDS = {"cross_left": 0, "front_wide": 1, "cross_right": 2, "front_tele": 6}
CAMERA_ROLES = tuple(CAMERA_IDS)
REFERENCE_ROLE = "front_wide"  # its stamps are the candidates for t0

SNAPSHOT_SCHEMA = 1
MAX_HISTORY_M = 1e4  # from the ego: no vehicle comes farther in 1.5 s
EXACT = 1e-6  # the last pose of a history is zero and identity, but for rounding
ORTHOGONAL = 1e-3  # of rotations that went through float32, and of a unit quaternion's length


class UserError(ValueError):
    """Something that whoever runs the program can mend. One line: what is wrong and what to do."""


class InvalidSnapshotError(UserError):
    """A snapshot, or the file of one, does not hold what the model needs."""


def require(name: str, array: np.ndarray, dtype: type, shape: tuple[int | None, ...]) -> None:
    """Raise InvalidSnapshotError unless array has this dtype and shape (None: any length)."""
    fits = len(array.shape) == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape)
    )
    if array.dtype != dtype or not fits:
        wanted = str(shape).replace("None", "any")
        raise InvalidSnapshotError(
            f"{name} must be {np.dtype(dtype).name} {wanted}, got {array.dtype.name} {array.shape}"
        )


@dataclass(frozen=True, eq=False)
class Frame:
    """One camera image as it came: encoded bytes and the header's stamp, decoded only when used."""

    stamp_ns: int
    encoding: str  # a sensor_msgs encoding such as "rgb8", or "jpeg" and "png" for compressed ones
    data: bytes | memoryview
    height: int = 0  # 0: known only after decoding
    width: int = 0
    row_bytes: int = 0  # step of a raw image, padding included
    big_endian: bool = False


@dataclass(frozen=True, eq=False)
class EgoPose:
    """Pose and twist of the vehicle in the odometry frame at one stamp."""

    stamp_ns: int
    position: np.ndarray  # float64 (3,) m
    quaternion: np.ndarray  # float64 (4,) x, y, z, w, unit length
    speed_m_s: float  # signed, along x of the child frame; 0 all along: the twist is not filled


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that one decision sees: four frames of each camera and sixteen poses up to t0."""

    frames: tuple[np.ndarray, ...]  # one a camera: uint8 (4, H, W, 3) RGB, oldest first
    camera_ids: tuple[int, ...]  # the model's camera indices, rising
    frame_stamps_ns: np.ndarray  # int64 (cameras, 4)
    t0_ns: int  # stamp of the newest front_wide frame used
    ego_history_xyz: np.ndarray  # float64 (16, 3) m, ego frame at t0; the last row is zero
    ego_history_rot: np.ndarray  # float64 (16, 3, 3), ego frame at t0; the last one is identity
    t0_position: np.ndarray | None = None  # float64 (3,) m, pose at t0 in frame_id
    t0_quaternion: np.ndarray | None = None  # float64 (4,) x, y, z, w
    frame_id: str = ""
    child_frame_id: str = ""
    navigation_text: str = ""

    def __post_init__(self) -> None:
        cameras = len(self.camera_ids)
        if cameras == 0 or len(self.frames) != cameras:
            raise InvalidSnapshotError(
                f"camera_ids names {cameras} cameras, there are frames of {len(self.frames)}"
            )
        ids = tuple(self.camera_ids)
        if list(ids) != sorted(set(ids)) or ids[0] < 0:
            raise InvalidSnapshotError(f"camera_ids must rise and be >= 0, got {ids}")
        for camera_id, frames in zip(self.camera_ids, self.frames):
            require(
                f"frames of camera {camera_id}",
                frames,
                np.uint8,
                (FRAMES_PER_CAMERA, None, None, 3),
            )
            if frames.size == 0:
                raise InvalidSnapshotError(f"frames of camera {camera_id} have no pixels")
        require("frame_stamps_ns", self.frame_stamps_ns, np.int64, (cameras, FRAMES_PER_CAMERA))
        if not isinstance(self.t0_ns, (int, np.integer)) or self.t0_ns < 0:
            raise InvalidSnapshotError(f"t0_ns must be an int >= 0 (ns), got {self.t0_ns!r}")
        require("ego_history_xyz", self.ego_history_xyz, np.float64, (HISTORY_POSES, 3))
        require("ego_history_rot", self.ego_history_rot, np.float64, (HISTORY_POSES, 3, 3))
        self._check_history()
        for name, shape in (("t0_position", (3,)), ("t0_quaternion", (4,))):
            value = getattr(self, name)
            if value is not None:
                require(name, value, np.float64, shape)
                _require_finite(name, value)
        self._check_quaternion()

    def _check_stamps(self) -> None:
        """No stamps fall, and t0 is front_wide's newest; of a clip it may lie a step later."""
        for camera_id, stamps_ns in zip(self.camera_ids, self.frame_stamps_ns.tolist()):
            if stamps_ns != sorted(stamps_ns):
                raise InvalidSnapshotError(
                    f"frame_stamps_ns of camera {camera_id} must not fall, got {stamps_ns}"
                )
            is_reference = camera_id == CAMERA_IDS[REFERENCE_ROLE]
            if is_reference and not 0 <= self.t0_ns - stamps_ns[-1] <= STEP_NS:
                raise InvalidSnapshotError(
                    f"t0_ns must be {REFERENCE_ROLE}'s newest of frame_stamps_ns, {stamps_ns[-1]}, "
                    f"or at most {STEP_S} s later, got {self.t0_ns}"
                )

    def _check_quaternion(self) -> None:
        """The orientation at t0, where there is one, is a unit quaternion."""
        if self.t0_quaternion is None:
            return
        length = math.hypot(*self.t0_quaternion)
        if not abs(length - 1.0) <= ORTHOGONAL:
            raise InvalidSnapshotError(
                f"t0_quaternion must be of length 1, within {ORTHOGONAL:g}, got {length:.6g}"
            )

    def _check_history(self) -> None:
        """The history is one of a rigid vehicle, seen from its last pose."""
        xyz, rot = self.ego_history_xyz, self.ego_history_rot
        _require_finite("ego_history_xyz", xyz)
        _require_finite("ego_history_rot", rot)
        if np.abs(xyz).max() > MAX_HISTORY_M:
            raise InvalidSnapshotError(
                f"ego_history_xyz reaches {np.abs(xyz).max():.3g} m from the ego, at most "
                f"{MAX_HISTORY_M:g} m are allowed"
            )
        for name, last, own in (
            ("ego_history_xyz", xyz[-1], np.zeros(3)),
            ("ego_history_rot", rot[-1], np.eye(3)),
        ):
            if np.abs(last - own).max() > EXACT:
                raise InvalidSnapshotError(
                    f"{name} must be seen from its last pose, whose row is zero and identity"
                )
        small = np.clip(rot, -2, 2)  # huge numbers are no rotation either, and would overflow
        skew = np.abs(small @ small.transpose(0, 2, 1) - np.eye(3)).max()
        if skew > ORTHOGONAL or np.linalg.det(small).min() < 0:
            raise InvalidSnapshotError("ego_history_rot holds matrices that are no rotations")

    def images(self) -> np.ndarray:
        """The frames as uint8 (cameras * 4, 3, H, W), camera-major, oldest first.

        Raises:
            InvalidSnapshotError: the cameras differ in size; use `frames` then.
        """
        if len({frames.shape for frames in self.frames}) != 1:
            raise InvalidSnapshotError("cameras of unequal size have no common array of images")
        return np.concatenate(self.frames).transpose(0, 3, 1, 2)

    def ego_history(self) -> np.ndarray:
        """The history as float64 (16, 12): x, y, z and the rotation row by row."""
        return np.hstack([self.ego_history_xyz, self.ego_history_rot.reshape(HISTORY_POSES, 9)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot file (.npz, schema 1), atomically."""
        arrays: dict[str, np.ndarray] = {
            "schema": np.int64(SNAPSHOT_SCHEMA),
            "camera_ids": np.array(self.camera_ids, np.int64),
            "frame_stamps_ns": self.frame_stamps_ns,
            "t0_ns": np.int64(self.t0_ns),
            "ego_history_xyz": self.ego_history_xyz,
            "ego_history_rot": self.ego_history_rot,
        }
        if len({frames.shape for frames in self.frames}) == 1:
            arrays["frames"] = np.stack(self.frames)
        else:
            for camera_id, frames in zip(self.camera_ids, self.frames):
                arrays[f"frames_{camera_id}"] = frames
        for name in ("t0_position", "t0_quaternion"):
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        for name in ("frame_id", "child_frame_id", "navigation_text"):
            arrays[name] = np.array(getattr(self, name))
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
        try:
            with open(draft, "wb") as file:
                np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Snapshot:
        """Read a snapshot file.

        Raises:
            InvalidSnapshotError: the file is missing, damaged or of another schema; one line.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except FileNotFoundError:
            raise InvalidSnapshotError(f"snapshot {path}: there is no such file") from None
        except OSError as error:
            raise InvalidSnapshotError(f"snapshot {path}: {error.strerror or error}") from None
        except Exception:  # zipfile, zlib and numpy raise a dozen kinds on damage
            raise InvalidSnapshotError(
                f"snapshot {path} is damaged, or no snapshot file (.npz of plain arrays)"
            ) from None
        try:
            return cls._from_arrays(arrays)
        except KeyError as error:
            raise InvalidSnapshotError(f"snapshot {path} lacks {error.args[0]}") from None
        except InvalidSnapshotError as error:
            raise InvalidSnapshotError(f"snapshot {path}: {error}") from None

    @classmethod
    def _from_arrays(cls, arrays: dict[str, np.ndarray]) -> Snapshot:
        schema = _integers(arrays, "schema", ()).item() if "schema" in arrays else SNAPSHOT_SCHEMA
        if schema != SNAPSHOT_SCHEMA:
            raise InvalidSnapshotError(f"schema {schema} is not known, only {SNAPSHOT_SCHEMA}")
        camera_ids = tuple(_integers(arrays, "camera_ids", (None,)).tolist())
        if "frames" in arrays:
            require("frames", arrays["frames"], np.uint8, (None, FRAMES_PER_CAMERA, None, None, 3))
            frames = tuple(arrays["frames"])
        else:
            frames = tuple(arrays[f"frames_{camera_id}"] for camera_id in camera_ids)

        def optional(name: str) -> np.ndarray | None:
            return _reals(arrays, name) if name in arrays else None

        def text(name: str) -> str:
            return _text(arrays, name) if name in arrays else ""

        snapshot = cls(
            frames=frames,
            camera_ids=camera_ids,
            frame_stamps_ns=_integers(arrays, "frame_stamps_ns", (None, None)),
            t0_ns=_integers(arrays, "t0_ns", ()).item(),
            ego_history_xyz=_reals(arrays, "ego_history_xyz"),
            ego_history_rot=_reals(arrays, "ego_history_rot"),
            t0_position=optional("t0_position"),
            t0_quaternion=optional("t0_quaternion"),
            frame_id=text("frame_id"),
            child_frame_id=text("child_frame_id"),
            navigation_text=text("navigation_text"),
        )
        snapshot._check_stamps()
        return snapshot


def _require_finite(name: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise InvalidSnapshotError(f"{name} is not finite")


def _integers(
    arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int | None, ...]
) -> np.ndarray:
    """Whole numbers as int64; of stamps float64 has lost the last 256 ns already."""
    values = arrays[name]
    if values.dtype.kind not in "iu":
        raise InvalidSnapshotError(f"{name} must be whole numbers, got {values.dtype}")
    if values.size and values.max() > np.iinfo(np.int64).max:
        raise InvalidSnapshotError(f"{name} must be int64, got {values.max()}")
    integers = values.astype(np.int64)
    require(name, integers, np.int64, shape)
    return integers


def _reals(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Real numbers as float64; what is too large for it becomes infinite."""
    values = arrays[name]
    if values.dtype.kind not in "fiu":
        raise InvalidSnapshotError(f"{name} must be real numbers, got {values.dtype}")
    with np.errstate(over="ignore"):
        return values.astype(np.float64)


def _text(arrays: Mapping[str, np.ndarray], name: str) -> str:
    values = arrays[name]
    if values.dtype.kind != "U" or values.shape != ():
        raise InvalidSnapshotError(f"{name} must be one text, got {values.dtype} {values.shape}")
    return str(values)


@dataclass(frozen=True)
class Waypoint:
    """One point of a plan, in the ego frame at t0."""

    time_from_start_ns: int  # waypoint k = 1..64 lies at t0 + k * 0.1 s
    x_m: float
    y_m: float
    z_m: float
    yaw_rad: float  # in (-pi, pi]
    speed_m_s: float  # over the segment that ends here; negative where the vehicle backs up
    acceleration_m_s2: float  # of the action that leads here
    curvature_1_m: float


@dataclass(frozen=True, eq=False)
class Plan:
    """What the model decided for one snapshot."""

    t0_ns: int
    samples: np.ndarray  # float32 (S, 64, 3): x_m, y_m, yaw_rad in the ego frame at t0
    actions: np.ndarray  # float32 (S, 64, 2): acceleration m/s2, curvature 1/m
    chosen: int  # index of the sample to drive
    z_m: float  # height of every waypoint, ego frame at t0
    v0_m_s: float  # signed ego speed at t0 that the model started from
    reasoning: str  # chain of causation of the chosen sample
    token_ids: tuple[tuple[int, ...], ...]  # a tuple a sample, with the end token
    truncated: tuple[bool, ...]  # a sample's reasoning has no end mark or had to be closed
    spread_m: float  # mean distance of the samples to the chosen one
    seed: int
    model_id: str
    device: str
    dtype: str
    navigation_text: str = ""
    timing_ms: dict[str, float] = field(default_factory=dict)  # stage to duration, in order

    @property
    def waypoints(self) -> np.ndarray:
        """The chosen sample, float32 (64, 3): x_m, y_m, yaw_rad."""
        return self.samples[self.chosen]

    @property
    def finite(self) -> bool:
        """Whether every number of every sample is finite."""
        return bool(np.isfinite(self.samples).all() and np.isfinite(self.actions).all())

    @property
    def num_samples(self) -> int:
        """How many samples were drawn."""
        return len(self.samples)


class Reason(str, enum.Enum):
    """Why a snapshot was not planned on. The fixed list that status and summary count by."""

    MISSING_FRAMES = "missing_frames"
    UNSYNCHRONISED = "unsynchronised"
    ODOMETRY_GAP = "odometry_gap"
    ODOMETRY_JUMP = "odometry_jump"
    ODOMETRY_INCONSISTENT = "odometry_inconsistent"
    STALE = "stale"
    FUTURE_STAMP = "future_stamp"
    WAITING_FOR_CLOCK = "waiting_for_clock"
    BUSY = "busy"
    PAUSED = "paused"


@dataclass(frozen=True)
class Refusal:
    """A t0 that was not planned on, with one line a person can act on."""

    reason: Reason
    t0_ns: int
    detail: str


@dataclass(frozen=True)
class Verdict:
    """What the gate says of a plan: accepted, or the reasons against it."""

    reasons: tuple[str, ...] = ()  # e.g. "lateral: 7.31 m/s2 over 6 m/s2"

    @property
    def accepted(self) -> bool:
        """Whether the plan may be driven."""
        return not self.reasons
