"""Examples are what the drive shows, and are made once."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.training import examples
from alpamayo_ros.demo.training.examples import Recipe, example_at, history_of, make_examples
from alpamayo_ros.types import STEP_S

RECIPE = Recipe(per_drive=3, min_pixels=10240, max_pixels=16640)


@pytest.fixture(scope="module")
def example():
    return example_at(Drive(5), 12.0, RECIPE)


def test_the_history_is_the_way_to_here_seen_from_here(example):
    states = [Drive(5).state_at(12.0 - STEP_S * k) for k in range(15, -1, -1)]
    steps = np.hypot(*np.diff([(s.x_m, s.y_m) for s in states], axis=0).T)
    assert np.hypot(*np.diff(example.history_xyz[:, :2], axis=0).T) == pytest.approx(steps)
    assert not example.history_xyz[-1].any()
    assert np.array_equal(example.history_rot[-1], np.eye(3))
    assert example.history_xyz[0, 0] < 0


def test_rotations_are_those_of_the_states():
    states = [Drive(5).state_at(t_s) for t_s in (3.0, 4.0)]
    _, rot = history_of(states)
    turn = states[0].yaw_rad - states[1].yaw_rad
    assert rot[0, :2, 0] == pytest.approx([np.cos(turn), np.sin(turn)])
    assert rot @ rot.transpose(0, 2, 1) == pytest.approx(np.tile(np.eye(3), (2, 1, 1)))


def test_the_snapshot_shows_the_examples_images_in_the_prompts_order(example):
    snapshot = example.snapshot()
    assert example.images.shape == (16, 96, 160, 3)
    for camera in range(4):
        assert np.array_equal(snapshot.frames[camera], example.images[4 * camera : 4 * camera + 4])
    assert snapshot.t0_ns == 12_000_000_000


def test_the_folder_gives_the_same_examples_again_without_making_them(tmp_path, monkeypatch):
    first = make_examples(tmp_path, [7], RECIPE, workers=1)
    monkeypatch.setattr(examples, "ProcessPoolExecutor", None)
    again = make_examples(tmp_path, [7], RECIPE, workers=1)
    assert 1 <= len(first) == len(again) <= 3
    direct = example_at(Drive(7), first[0].t_s, RECIPE)
    for made in (first[0], again[0]):
        assert np.array_equal(made.images, direct.images)
        assert np.array_equal(made.future, direct.future)
        assert (made.sentence, made.navigation) == (direct.sentence, direct.navigation)
    assert not list(tmp_path.glob("**/.making-*"))
