"""Clips of the public layout, made here: frames that name themselves, motion on a circle."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from alpamayo_ros.cli.evaluate import main
from alpamayo_ros.evaluation.bags import BagError
from alpamayo_ros.evaluation.clips import VIEWS, Clip, find_clips, is_clip
from alpamayo_ros.evaluation.fleet import name_bags
from alpamayo_ros.types import CAMERA_ROLES, Snapshot

from .drives import circle, future

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

CLIP = "0a948f59-0a06-41a2-8e20-ac3a39ff4d61"
MOTION = circle(9.0, 0.15)
T0_S = 2.6
FRAMES = 30 * 4  # 4 s at 30 Hz
FIRST_US = {role: 1_000 + 7_000 * k for k, role in enumerate(CAMERA_ROLES)}  # unlike phases
LEVELS = 16  # of brightness: frame i of a camera has level i % 16


def stamps_us(role: str) -> np.ndarray:
    return FIRST_US[role] + np.arange(FRAMES) * 33_333


def write_table(path: Path, columns: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(columns), path)


def motion_table(end_s: float) -> dict[str, np.ndarray]:
    """100 Hz of the motion."""
    times_us = np.arange(0, round(end_s * 1e6), 10_000)
    poses = np.array([MOTION(t / 1e6) for t in times_us])
    zero = np.zeros(len(times_us))
    return {
        "timestamp": times_us,
        "x": poses[:, 0],
        "y": poses[:, 1],
        "z": zero + 3.0,
        "qx": zero,
        "qy": zero,
        "qz": np.sin(poses[:, 2] / 2),
        "qw": np.cos(poses[:, 2] / 2),
    }


def write_clip(root: Path, clip: str = CLIP, end_s: float = 10.0) -> Path:
    """A clip in the folders that the dataset's chunks unpack to."""
    for k, (role, view) in enumerate(VIEWS.items()):
        folder = root / "camera" / view
        stem = f"{clip}.{view}"
        write_table(
            folder / f"{stem}.timestamps.parquet",
            {"frame_index": np.arange(FRAMES), "timestamp": stamps_us(role)},
        )
        fourcc = cv2.VideoWriter.fourcc(*"mp4v")
        video = cv2.VideoWriter(str(folder / f"{stem}.mp4"), fourcc, 30, (96, 64))
        for i in range(FRAMES):
            image = np.full((64, 96, 3), 8 + 16 * (i % LEVELS), np.uint8)
            image[:32] = 255 - 40 * k  # which camera
            video.write(image)
        video.release()
    table = root / "labels" / "egomotion" / f"{clip}.egomotion.parquet"
    write_table(table, motion_table(end_s))
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return write_clip(tmp_path_factory.mktemp("dataset"))


def test_each_frame_is_the_last_one_before_its_instant(root):
    snapshot = Clip.load(root).snapshot(T0_S)
    for role, images, stamps_ns in zip(
        CAMERA_ROLES, snapshot.frames, snapshot.frame_stamps_ns, strict=True
    ):
        for image, stamp_ns, before_s in zip(images, stamps_ns, (0.3, 0.2, 0.1, 0.0), strict=True):
            wanted_us = round((T0_S - before_s) * 1e6)
            index = max(i for i, t in enumerate(stamps_us(role)) if t <= wanted_us)
            assert stamp_ns == stamps_us(role)[index] * 1000
            assert round((image[40:].mean() - 8) / 16) == index % LEVELS
            shown = (255 - image[:24].mean()) / 40
            assert round(float(shown)) == CAMERA_ROLES.index(role)


def test_the_history_is_the_motion_before_t0(root):
    snapshot = Clip.load(root).snapshot(T0_S)
    x0, y0, yaw0, _ = MOTION(T0_S)
    past = np.array([MOTION(T0_S + 0.1 * k) for k in range(-15, 1)])
    c, s = np.cos(yaw0), np.sin(yaw0)
    want = (past[:, :2] - (x0, y0)) @ np.array([[c, -s], [s, c]])
    np.testing.assert_allclose(snapshot.ego_history_xyz[:, :2], want, atol=1e-9)
    yaw = np.arctan2(snapshot.ego_history_rot[:, 1, 0], snapshot.ego_history_rot[:, 0, 0])
    np.testing.assert_allclose(yaw, past[:, 2] - yaw0, atol=1e-9)


def test_between_poses_the_motion_is_interpolated(root):
    """t0 halfway between two poses of the table."""
    snapshot = Clip.load(root).snapshot(T0_S + 0.005)
    past = np.array([MOTION(T0_S + 0.005 + 0.1 * k)[:2] for k in (-15, 0)])
    length = np.linalg.norm(snapshot.ego_history_xyz[0])
    assert length == pytest.approx(np.linalg.norm(past[0] - past[1]), abs=1e-6)


def test_a_snapshot_goes_through_its_file(root, tmp_path):
    snapshot = Clip.load(root).snapshot(T0_S)
    snapshot.save(tmp_path / "s.npz")
    again = Snapshot.load(tmp_path / "s.npz")
    assert again.t0_ns == 2_600_000_000
    for a, b in zip(snapshot.frames, again.frames, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_folder_is_searched_once_for_clips_and_a_clip_once_for_its_files(
    root, tmp_path, monkeypatch
):
    searched = []
    rglob = Path.rglob
    monkeypatch.setattr(Path, "rglob", lambda p, name: searched.append(name) or rglob(p, name))
    (tmp_path / "bag").mkdir()
    named = name_bags([root, tmp_path / "bag"])
    assert searched == ["*.egomotion.parquet"] * 2
    assert not is_clip(named[0].path)
    searched.clear()
    clip = Clip.load(named[1].path)
    assert searched[-1] == f"{clip.clip_id}.*"
    assert len(set(searched)) == 2  # for the front video, from folder to folder above, and this


def test_the_truth_is_the_motion_after_t0(root):
    clip = Clip.load(root)
    truth = clip.truth(clip.selection(T0_S))
    np.testing.assert_allclose(truth, future(MOTION, T0_S), atol=1e-9)


def test_a_folder_of_clips_stands_for_all_of_them(tmp_path):
    write_clip(write_clip(tmp_path, "clip-b"), "clip-a")
    named = name_bags([tmp_path])
    assert [bag.name for bag in named] == ["clip-a", "clip-b"]
    assert [bag.path for bag in named] == find_clips(tmp_path)
    assert all(is_clip(bag.path) for bag in named)
    assert Clip.load(named[0].path).clip_id == "clip-a"
    with pytest.raises(BagError, match="holds 2 clips"):
        Clip.load(tmp_path)


def test_true_futures_of_a_clip_score_zero_and_the_report_has_its_cameras(root, tmp_path):
    plans, output = tmp_path / "plans.npz", tmp_path / "out"
    times_s = [2.6, 3.1]
    t0_ns = np.round(np.array(times_s) * 1e9).astype(np.int64)
    np.savez(plans, t0_ns=t0_ns, waypoints=np.array([future(MOTION, t) for t in times_s]))
    at = [word for t in times_s for word in ("--at", str(t))]
    assert main([str(root), *at, "--plans", str(plans), "--output", str(output)]) == 0
    values = json.loads((output / "metrics.json").read_text())
    assert values["decisions"] == 2
    assert [bag["name"] for bag in values["bags"]] == [CLIP]
    of_model = [row for row in values["figures"] if row["subject"] == "model"]
    assert max(row["mean"] for row in of_model) < 1e-9
    assert (output / "report.html").read_text().count("<img") == 2 * 5


def test_the_built_in_model_plans_on_a_clip(root, tmp_path):
    output = tmp_path / "out"
    options = ["--at", str(T0_S), "--num-samples", "2", "--max-new-tokens", "4"]
    assert main([str(root), *options, "--output", str(output)]) == 0
    assert json.loads((output / "metrics.json").read_text())["decisions"] == 1


def drop_column(root: Path) -> None:
    table = root / "labels" / "egomotion" / f"{CLIP}.egomotion.parquet"
    columns = motion_table(10.0)
    del columns["qw"]
    write_table(table, columns)


def truncate(root: Path, name: str, share: float = 0.5) -> None:
    (file,) = root.rglob(name)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


def repeat_a_stamp(root: Path) -> None:
    (file,) = root.rglob("*front_tele*.parquet")
    stamps = stamps_us("front_tele")
    stamps[5] = stamps[4]
    write_table(file, {"timestamp": stamps})


DAMAGES = {
    "lacks the column qw": drop_column,
    "front_tele_30fov.mp4 cannot be read": lambda root: truncate(root, "*front_tele*.mp4"),
    "cannot be read": lambda root: truncate(root, "*cross_left*.parquet"),
    "do not rise": repeat_a_stamp,
    "lacks": lambda root: next(root.rglob("*cross_right*.mp4")).unlink(),
}


@pytest.mark.parametrize("says", DAMAGES)
def test_a_damaged_clip_is_refused_in_one_line(tmp_path, says):
    root = write_clip(tmp_path)
    DAMAGES[says](root)
    with pytest.raises(BagError, match=says) as caught:
        Clip.load(root).selection(T0_S)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("t0_s", [0.2, 1.4, 4.1, 9.0])
def test_a_t0_that_a_clip_does_not_cover_is_refused(root, t0_s):
    with pytest.raises(BagError, match="does not cover t0"):
        Clip.load(root).selection(t0_s)
