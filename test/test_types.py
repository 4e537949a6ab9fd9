"""Snapshots: what they refuse, and that a file holds them exactly."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import STEP_NS, InvalidSnapshotError, Snapshot

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
STAMPS_NS, T0_NS = SNAPSHOT.frame_stamps_ns, SNAPSHOT.t0_ns


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
        ({"camera_ids": (0, 1, 2)}, "camera_ids names 3 cameras, there are frames of 4"),
        ({"camera_ids": (1, 0, 2, 6)}, "camera_ids must rise"),
        ({"frames": (np.zeros((4, 8, 8, 4), np.uint8),) * 4}, "frames of camera 0 must be uint8"),
        ({"frame_stamps_ns": np.zeros((4, 4))}, "frame_stamps_ns must be int64"),
        ({"camera_ids": (-1, 1, 2, 6)}, "camera_ids must rise and be >= 0, got (-1,"),
        ({"frames": (np.zeros((4, 0, 8, 3), np.uint8),) * 4}, "frames of camera 0 have no pixels"),
        ({"frames": (np.zeros((4, 8, 0, 3), np.uint8),) * 4}, "frames of camera 0 have no pixels"),
        ({"t0_ns": float(T0_NS)}, "t0_ns must be an int >= 0 (ns), got 1.7e+18"),
        ({"t0_ns": -1, "frame_stamps_ns": STAMPS_NS - T0_NS - 1}, "(ns), got -1"),
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
        ({"t0_ns": np.zeros(2, np.int64)}, "t0_ns must be int64 (), got int64 (2,)"),
        ({"camera_ids": np.array(["0", "1", "2", "6"])}, "camera_ids must be whole numbers"),
        ({"ego_history_xyz": np.zeros((16, 3), complex)}, "must be real numbers, got complex128"),
        ({"ego_history_rot": np.zeros((16, 3, 3), "U4")}, "must be real numbers, got <U4"),
        (
            {"ego_history_xyz": np.full((16, 3), np.longdouble("1e4000"))},
            "ego_history_xyz is not finite",
        ),
        ({"schema": np.float64(np.inf)}, "schema must be whole numbers, got float64"),
        (
            {"frames": np.zeros((4, 4, 64, 96), np.uint8)},
            "frames must be uint8 (any, 4, any, any, 3), got uint8 (4, 4, 64, 96)",
        ),
        ({"t0_quaternion": np.zeros((1, 4))}, "t0_quaternion must be float64 (4,), got float64 (1"),
        (
            {"camera_ids": np.array([0, 1, 2, 2**63], np.uint64)},
            "must be int64, got 92233720368547",
        ),
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


NOT_FINITE = (np.nan, np.inf, -np.inf)
EVERY_KEY = (
    *("schema", "frames", "camera_ids", "frame_stamps_ns", "t0_ns", "ego_history_xyz"),
    *("ego_history_rot", "t0_position", "t0_quaternion", "frame_id", "child_frame_id"),
    "navigation_text",
)
REALS = ("ego_history_xyz", "ego_history_rot", "t0_position", "t0_quaternion")
TEXTS = ("frame_id", "child_frame_id", "navigation_text")


def hostile(name: str, array: np.ndarray) -> list[np.ndarray]:
    """An entry of a snapshot file in forms that are none."""
    kinds = [np.array("far"), np.array(b"far"), np.array(None, dtype="M8[s]"), np.zeros(3, complex)]
    shapes = [np.zeros(0, array.dtype), np.stack([array] * 2), np.stack([array] * 2, axis=-1)]
    if name in TEXTS:
        return [*kinds[1:], *shapes, np.array(5), np.array([np.nan])]
    shapes += [array.reshape(-1)[:1], array[:-1]] if array.ndim else []
    if name in REALS:
        wild = [moved(array, (0,) * array.ndim, value) for value in (*NOT_FINITE, 1e300, -1e300)]
        wild = wild[:3] if name == "t0_position" else wild  # anywhere in the world is allowed
        return [*kinds, *shapes, *wild, np.array(0.0), np.array("1.0"), array > 0]
    floats = [array.astype(np.float64), np.full(array.shape, np.nan), array > 0]
    large = [np.full(array.shape, 2**63, np.uint64)]
    return [*kinds, *shapes, *floats, *(large if name != "frames" else [array.astype(np.int64)])]


@pytest.mark.parametrize("name", EVERY_KEY)
def test_an_entry_of_a_file_that_is_none_is_refused_by_its_name(tmp_path, name):
    path = tmp_path / "s.npz"
    replace(SNAPSHOT, navigation_text="Turn left").save(path)
    arrays = files(path)
    assert set(arrays) == set(EVERY_KEY)
    for value in hostile(name, arrays[name]):
        np.savez(path, **(arrays | {name: value}))
        with pytest.raises(InvalidSnapshotError) as caught:
            Snapshot.load(path)
        message = str(caught.value).removeprefix(f"snapshot {path}: ")
        described = f"{value.dtype} {value.shape} {value.ravel()[:4]}"
        assert re.search(rf"\b{name}\b", message), f"{described}: {message}"
        assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("camera_ids", np.array([-1, 1, 2, 6]), "camera_ids must rise and be >= 0"),
        ("frames", np.zeros((4, 4, 0, 96, 3), np.uint8), "have no pixels"),
        ("t0_ns", np.int64(-1), "t0_ns must be an int >= 0"),
        ("t0_ns", np.int64(0), "t0_ns must be front_wide's newest of frame_stamps_ns"),
        ("t0_ns", np.int64(T0_NS - 1), f"newest of frame_stamps_ns, {T0_NS}, or at most 0.1 s"),
        ("t0_ns", np.int64(T0_NS + STEP_NS + 1), f"0.1 s later, got {T0_NS + STEP_NS + 1}"),
        ("frame_stamps_ns", STAMPS_NS[:, ::-1], "frame_stamps_ns of camera 0 must not fall"),
        (
            "frame_stamps_ns",
            moved(STAMPS_NS, (3, 1), STAMPS_NS[3, 0] - 1),
            r"frame_stamps_ns of camera 6 must not fall, got \[16999",
        ),
    ],
)
def test_a_file_of_another_time_or_camera_is_refused_by_name(tmp_path, name, value, words):
    path = tmp_path / "s.npz"
    SNAPSHOT.save(path)
    np.savez(path, **(files(path) | {name: value}))
    with pytest.raises(InvalidSnapshotError, match=words):
        Snapshot.load(path)


def test_a_clip_may_repeat_a_frame_and_end_a_step_before_t0(tmp_path):
    repeated = moved(STAMPS_NS, (1, 1), STAMPS_NS[1, 0])
    clip = replace(SNAPSHOT, t0_ns=T0_NS + STEP_NS, frame_stamps_ns=repeated)
    clip.save(tmp_path / "s.npz")
    assert equal(Snapshot.load(tmp_path / "s.npz"), clip)


def test_cameras_without_front_wide_have_no_stamp_that_t0_must_be(tmp_path):
    three = replace(
        SNAPSHOT,
        frames=SNAPSHOT.frames[:3],
        camera_ids=(0, 2, 6),
        frame_stamps_ns=STAMPS_NS[:3],
        t0_ns=T0_NS + 5 * STEP_NS,
    )
    three.save(tmp_path / "s.npz")
    assert Snapshot.load(tmp_path / "s.npz").t0_ns == T0_NS + 5 * STEP_NS


@pytest.mark.parametrize("length", [1 - 9e-4, 1 + 9e-4])
def test_a_quaternion_may_be_rounded(length):
    assert replace(SNAPSHOT, t0_quaternion=np.array([0.0, 0.6, 0.0, 0.8]) * length)


@pytest.mark.parametrize("length", [0.0, 1 - 1.1e-3, 1 + 1.1e-3, 1e-300, 1e300])
def test_a_quaternion_of_another_length_is_refused(length):
    with pytest.raises(InvalidSnapshotError, match="t0_quaternion must be of length 1, within"):
        replace(SNAPSHOT, t0_quaternion=np.array([0.0, 0.6, 0.0, 0.8]) * length)


def test_a_reflection_is_no_rotation():
    with pytest.raises(InvalidSnapshotError, match="ego_history_rot holds matrices that are no"):
        replace(SNAPSHOT, ego_history_rot=moved(ROT, 3, np.diag([1.0, 1.0, -1.0])))


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
