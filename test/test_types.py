"""Snapshots: what they refuse, and that a file holds them exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import InvalidSnapshotError, Snapshot

SNAPSHOT = fake_snapshot(3, 64, 96)


def files(path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def equal(a: Snapshot, b: Snapshot) -> bool:
    frames = all(np.array_equal(f, g) for f, g in zip(a.frames, b.frames))
    names = set(vars(a)) - {"frames"}
    return frames and all(np.array_equal(getattr(a, n), getattr(b, n)) for n in names)


def test_a_file_holds_a_snapshot_exactly(tmp_path):
    path = tmp_path / "s.npz"
    replace(SNAPSHOT, navigation_text="Turn left → now").save(path)
    loaded = Snapshot.load(path)
    assert loaded.navigation_text == "Turn left → now"
    assert equal(replace(loaded, navigation_text=""), SNAPSHOT)
    assert files(path)["frames"].shape == (4, 4, 64, 96, 3)
    assert list(tmp_path.iterdir()) == [path]  # no draft is left


def test_cameras_of_unequal_size_are_kept_apart_by_their_index(tmp_path):
    wide = np.zeros((4, 32, 32, 3), np.uint8)
    snapshot = replace(SNAPSHOT, frames=(*SNAPSHOT.frames[:3], wide))
    snapshot.save(tmp_path / "s.npz")
    assert {"frames_0", "frames_1", "frames_2", "frames_6"} <= set(files(tmp_path / "s.npz"))
    assert equal(Snapshot.load(tmp_path / "s.npz"), snapshot)
    with pytest.raises(InvalidSnapshotError, match="unequal size"):
        snapshot.images()


def test_images_and_history_have_the_models_order():
    images = SNAPSHOT.images()
    assert images.shape == (16, 3, 64, 96)
    np.testing.assert_array_equal(images[6], SNAPSHOT.frames[1][2].transpose(2, 0, 1))
    history = SNAPSHOT.ego_history()
    assert history.shape == (16, 12)
    np.testing.assert_array_equal(history[:, :3], SNAPSHOT.ego_history_xyz)
    np.testing.assert_array_equal(history[4, 3:].reshape(3, 3), SNAPSHOT.ego_history_rot[4])


def moved(array: np.ndarray, where, value) -> np.ndarray:
    copy = array.copy()
    copy[where] = value
    return copy


XYZ, ROT = SNAPSHOT.ego_history_xyz, SNAPSHOT.ego_history_rot


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ego_history_xyz": XYZ + 100.0}, "seen from its last pose"),
        ({"ego_history_xyz": moved(XYZ, (3, 1), np.nan)}, "not finite"),
        ({"ego_history_xyz": XYZ.astype(np.float32)}, "must be float64 (16, 3)"),
        ({"ego_history_xyz": XYZ[1:]}, "got float64 (15, 3)"),
        ({"ego_history_rot": moved(ROT, 2, 3 * np.eye(3))}, "no rotations"),
        ({"ego_history_rot": moved(ROT, 15, ROT[0])}, "seen from its last pose"),
        ({"t0_position": np.array([0.0, np.nan, 0.0])}, "t0_position is not finite"),
        ({"t0_quaternion": np.zeros(3)}, "t0_quaternion must be float64 (4,)"),
        ({"camera_ids": (0, 1, 2)}, "4 cameras of frames for 3 camera ids"),
        ({"camera_ids": (1, 0, 2, 6)}, "camera_ids must rise"),
        ({"frames": (np.zeros((4, 8, 8, 4), np.uint8),) * 4}, "frames of camera 0 must be uint8"),
        ({"frame_stamps_ns": np.zeros((4, 4))}, "frame_stamps_ns must be int64"),
        ({"ego_history_xyz": np.full((16, 3), 1e308)}, "reaches 1e+308 m from the ego, at most"),
        (
            {"ego_history_rot": moved(ROT, (0, 0), 1e308)},
            "ego_history_rot holds matrices that are no rotations",
        ),
    ],
)
def test_what_is_no_snapshot_is_refused_by_name(change, words):
    with pytest.raises(InvalidSnapshotError) as caught:
        replace(SNAPSHOT, **change)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"frames": None}, "lacks frames_0"),
        ({"t0_ns": None}, "lacks t0_ns"),
        ({"schema": np.int64(2)}, "schema 2 is not known"),
        ({"frame_stamps_ns": np.zeros((4, 4))}, "frame_stamps_ns must be whole numbers, got float"),
        ({"t0_ns": np.float64(np.inf)}, "t0_ns must be whole numbers, got float64"),
        ({"t0_ns": np.zeros(2, np.int64)}, "can only convert an array of size 1"),
        ({"camera_ids": np.array(["0", "1", "2", "6"])}, "camera_ids must be whole numbers"),
        ({"ego_history_xyz": np.zeros((16, 3), complex)}, "must be real numbers, got complex128"),
        ({"ego_history_rot": np.zeros((16, 3, 3), "U4")}, "must be real numbers, got <U4"),
        ({"ego_history_xyz": np.full((16, 3), np.longdouble("1e4000"))}, "that are not finite"),
        ({"schema": np.float64(np.inf)}, "cannot convert float infinity"),
    ],
)
def test_a_file_that_lacks_something_says_so(tmp_path, change, words):
    path = tmp_path / "s.npz"
    SNAPSHOT.save(path)
    arrays = {k: v for k, v in {**files(path), **change}.items() if v is not None}
    np.savez(path, **arrays)
    with pytest.raises(InvalidSnapshotError) as caught:
        Snapshot.load(path)
    assert words in str(caught.value)


def test_damaged_and_foreign_files_are_one_line(tmp_path):
    path = tmp_path / "s.npz"
    SNAPSHOT.save(path)
    whole = path.read_bytes()
    np.savez(tmp_path / "objects.npz", frames=np.array([{}, None], dtype=object))
    for name, data in (("cut", whole[: len(whole) // 2]), ("text", b"frames: 1"), ("empty", b"")):
        (tmp_path / name).write_bytes(data)
    for name in ("cut", "text", "empty", "objects.npz", "missing", "."):
        with pytest.raises(InvalidSnapshotError) as caught:
            Snapshot.load(tmp_path / name)
        assert "\n" not in str(caught.value)
        assert "pickle" not in str(caught.value)
