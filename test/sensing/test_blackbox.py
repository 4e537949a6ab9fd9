"""The black box: bounded, whole files only, and what it kept gives the same plan again."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from alpamayo_ros.cli import inference
from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.planning.planner import Planner, PlannerSettings
from alpamayo_ros.sensing.blackbox import BlackBox
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.sensing.sampler import Sampler
from alpamayo_ros.types import CAMERA_ROLES, Frame, Snapshot, UserError

from .streams import Circle, drive, events, rig, stamps

MEGABYTE = 1_000_000


def snapshot(index: int) -> Snapshot:
    """A small snapshot with a stamp of its own, about 30 kB as a file."""
    small = fake_snapshot(index, height=64, width=96)
    return replace(small, t0_ns=small.t0_ns + index)


def kept(folder) -> list[int]:
    """How far the stamps of the files of a folder lie behind the first snapshot's."""
    first_ns = snapshot(0).t0_ns
    return sorted(Snapshot.load(path).t0_ns - first_ns for path in folder.glob("*.npz"))


def test_the_newest_files_are_kept_up_to_their_number(tmp_path):
    box = BlackBox(str(tmp_path), max_files=3, max_bytes=MEGABYTE)
    for index in range(6):
        box.save(snapshot(index), "rejected")
    assert kept(tmp_path) == [3, 4, 5]


def test_the_newest_files_are_kept_up_to_their_size_together(tmp_path):
    size = BlackBox(str(tmp_path / "one"), 1, MEGABYTE).save(snapshot(0), "x").stat().st_size
    box = BlackBox(str(tmp_path), max_files=100, max_bytes=round(2.5 * size))
    for index in range(6):
        box.save(snapshot(index), "rejected")
    assert kept(tmp_path) == [4, 5]


def test_the_newest_file_stays_even_when_it_alone_is_too_large(tmp_path):
    box = BlackBox(str(tmp_path), max_files=20, max_bytes=10)
    for index in range(3):
        path = box.save(snapshot(index), "requested")
    assert list(tmp_path.iterdir()) == [path]


def test_the_oldest_is_the_one_written_first_whatever_its_stamp(tmp_path):
    """A bag that loops writes old stamps late."""
    box = BlackBox(str(tmp_path), max_files=2, max_bytes=MEGABYTE)
    for index in (5, 1, 2):
        box.save(snapshot(index), "rejected")
    assert kept(tmp_path) == [1, 2]


def test_files_of_others_are_not_touched(tmp_path):
    (tmp_path / "notes.npz").write_bytes(b"mine")
    (tmp_path / "snapshot.txt").write_bytes(b"mine")
    box = BlackBox(str(tmp_path), max_files=1, max_bytes=10)
    for index in range(3):
        box.save(snapshot(index), "rejected")
    assert (tmp_path / "notes.npz").exists()
    assert (tmp_path / "snapshot.txt").exists()


def test_who_reads_a_file_while_it_is_replaced_reads_the_whole_old_one(tmp_path):
    box = BlackBox(str(tmp_path), max_files=5, max_bytes=MEGABYTE)
    before = box.save(snapshot(0), "rejected")
    content = before.read_bytes()
    with open(before, "rb") as reader:
        head = reader.read(1000)
        after = box.save(replace(snapshot(1), t0_ns=snapshot(0).t0_ns), "rejected")
        assert head + reader.read() == content
    assert after == before
    assert after.read_bytes() != content
    np.testing.assert_array_equal(Snapshot.load(after).frames[0], snapshot(1).frames[0])


def test_a_full_disk_leaves_no_half_file_and_the_old_ones_as_they_were(tmp_path, monkeypatch):
    box = BlackBox(str(tmp_path), max_files=5, max_bytes=MEGABYTE)
    before = box.save(snapshot(0), "rejected")
    content = before.read_bytes()

    def write_half(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", write_half)
    for index in (0, 1):
        with pytest.raises(OSError, match="No space left"):
            box.save(snapshot(index), "rejected")
    assert list(tmp_path.iterdir()) == [before]
    assert before.read_bytes() == content


def test_drafts_of_a_killed_process_are_removed_and_fresh_ones_left_alone(tmp_path):
    old, fresh = (tmp_path / f".snapshot_{n}_rejected.npz.{n}.draft" for n in (1, 2))
    for draft in (old, fresh):
        draft.write_bytes(b"half")
    os.utime(old, (0, 0))
    BlackBox(str(tmp_path), 5, MEGABYTE).save(snapshot(0), "rejected")
    assert not old.exists()
    assert fresh.exists()


def test_a_folder_that_cannot_be_made_is_an_os_error_and_a_home_of_nobody_a_users(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        BlackBox(str(tmp_path / "file" / "box"), 5, MEGABYTE).save(snapshot(0), "rejected")
    with pytest.raises(UserError, match="no such user"):
        BlackBox("~nobody_of_this_name/box", 5, MEGABYTE)


def two_selections_that_follow_each_other():
    """Selections 0.1 s apart, of frames larger than the model's that have pixels of their own."""
    rng = np.random.default_rng(7)
    frames = {}

    def large(frame: Frame) -> Frame:
        pixels = rng.integers(0, 256, 400 * 700 * 3).astype(np.uint8).tobytes()
        return Frame(frame.stamp_ns, "rgb8", pixels, 400, 700, 2100)

    for chosen in drive(Sampler(), events(rig(10), stamps(50)), Circle())[-2:]:
        for role in CAMERA_ROLES:
            for frame in chosen.frames[role]:
                if (role, frame.stamp_ns) not in frames:
                    frames[role, frame.stamp_ns] = large(frame)
        yield replace(
            chosen,
            frames={
                role: tuple(frames[role, frame.stamp_ns] for frame in chosen.frames[role])
                for role in CAMERA_ROLES
            },
        )


@pytest.mark.parametrize("navigation_text", ["", "turn left in 40 m"])
def test_a_kept_snapshot_gives_the_identical_plan_again(tmp_path, navigation_text):
    planner = Planner(load_demo_model(), PlannerSettings(seed=5, num_samples=2, max_new_tokens=8))
    first, second = two_selections_that_follow_each_other()
    planner.decide(first)  # the next reuses the features of twelve frames
    decision = planner.decide(second, navigation_text)
    path = BlackBox(str(tmp_path), 5, 100 * MEGABYTE).save(decision.snapshot, "rejected")
    output = tmp_path / "plan.json"
    arguments = ["--snapshot", str(path), "--seed", "5", "--num-samples", "2"]
    code = inference.main([*arguments, "--max-new-tokens", "8", "--output", str(output)])
    assert code == 0
    again = json.loads(output.read_text())
    samples = np.array(again["samples"], np.float32)
    np.testing.assert_array_equal(samples, decision.plan.samples)  # to the last bit
    assert again["reasoning"] == decision.plan.reasoning
    planner.close()
