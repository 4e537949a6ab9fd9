"""What an evaluation keeps of each decision, and of each bag: enough to compute every figure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from alpamayo_ros.types import UserError

RECORD_SCHEMA = 1
# Fields of Record that are arrays of one shape in all records of a bag.
ARRAYS = (
    "samples",
    "actions",
    "truth",
    "history_xyz",
    "history_rot",
    "position",
    "quaternion",
    "frame_stamps_ns",
)


class RecordsError(UserError):
    """A file of records is missing, damaged or of another schema."""


@dataclass(frozen=True, eq=False)
class Record:
    """One decision with what happened afterwards."""

    t0_ns: int
    t_s: float  # of t0 since the bag's first message
    samples: np.ndarray  # float32 (S, 64, 3) x_m, y_m, yaw_rad in the ego frame at t0
    actions: np.ndarray  # float32 or float64 (64, 2) of the chosen sample: m/s2, 1/m
    chosen: int
    truth: np.ndarray  # float64 (64, 3), NaN from where it is not known
    history_xyz: np.ndarray  # float64 (16, 3), ego frame at t0
    history_rot: np.ndarray  # float64 (16, 3, 3)
    speed_m_s: float  # signed, at t0, as odometry says
    v0_m_s: float  # signed, at t0, as the model has it from the history
    spread_m: float  # mean distance of the samples to the chosen one
    position: np.ndarray  # float64 (3,) m of child_frame_id in frame_id at t0
    quaternion: np.ndarray  # float64 (4,) x, y, z, w
    frame_stamps_ns: np.ndarray  # int64 (4,): each camera's newest frame that was used
    z_m: float  # height of the waypoints, ego frame at t0
    reasoning: str
    tokens: int  # of the reasoning of the chosen sample
    truncated: bool
    reasons: tuple[str, ...]  # the gate's against the plan
    navigation_text: str
    timing_ms: Mapping[str, float]  # by stage; empty for plans that were given

    @property
    def plan(self) -> np.ndarray:
        """The chosen sample (64, 3)."""
        return self.samples[self.chosen]

    @property
    def known_truth(self) -> np.ndarray:
        """The truth (N, 3) as far as it is known."""
        return self.truth[np.isfinite(self.truth[:, 0])]


@dataclass(frozen=True, eq=False)
class BagRecords:
    """All decisions on one bag."""

    name: str  # unique among the bags of a run
    path: str
    sha256: str
    duration_s: float
    frame_id: str
    child_frame_id: str
    model_id: str
    device: str
    dtype: str
    refused: Mapping[str, int]  # t0s that were not planned on, by reason
    unusable_messages: int  # that were no image, or no pose
    records: tuple[Record, ...]
    wall_s: float
    topics: Mapping[str, str] = field(default_factory=dict)

    def save(self, path: Path, key: str) -> None:
        """Write all records to one .npz, atomically, under the key of what they depend on."""
        arrays = {name: np.stack([getattr(r, name) for r in self.records]) for name in ARRAYS}
        rest = [
            {f.name: getattr(r, f.name) for f in fields(r) if f.name not in ARRAYS}
            for r in self.records
        ]
        about = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "records"}
        text = json.dumps(
            {"schema": RECORD_SCHEMA, "key": key, "about": about, "records": rest}, default=dict
        )
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        try:
            with open(draft, "wb") as file:
                np.savez_compressed(file, text=np.array(text), **arrays)  # type: ignore[arg-type]
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)


def kept_file(output: Path, name: str) -> Path:
    """Where a run keeps the records of the bag of this name."""
    return output / "bags" / f"{name}.npz"


def load_records(path: Path, key: str | None = None) -> BagRecords:
    """Records of a file, if they were written under this key (None: under any).

    Raises:
        RecordsError: the file is missing, damaged, or has another key; one line.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in (*ARRAYS, "text")}
        document = json.loads(str(arrays["text"]))
        schema, found_key = document["schema"], document["key"]
    except FileNotFoundError:
        raise RecordsError(f"{path}: there is no such file") from None
    except Exception:  # zipfile, zlib, json and numpy raise a dozen kinds on damage
        raise RecordsError(_damaged(path)) from None
    if schema != RECORD_SCHEMA:
        raise RecordsError(f"{path} has schema {schema}, known is {RECORD_SCHEMA}")
    if key is not None and found_key != key:
        raise RecordsError(f"{path} comes from other settings, another model or another bag")
    try:
        records = tuple(
            _record(entry, {name: arrays[name][i] for name in ARRAYS})
            for i, entry in enumerate(document["records"])
        )
        return BagRecords(**document["about"], records=records)
    except (LookupError, TypeError):  # a field is missing, or one too many
        raise RecordsError(_damaged(path)) from None


def _damaged(path: Path) -> str:
    return f"{path} is damaged, or no records of alpamayo_evaluate"


def _record(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> Record:
    values: dict[str, Any] = {**entry, **arrays, "reasons": tuple(entry["reasons"])}
    return Record(**values)


def settings_json(settings: Any) -> str:
    """A data class of settings as canonical JSON, for hashes and for metrics.json."""
    return json.dumps(asdict(settings), sort_keys=True, default=dict)
