"""A frame becomes the reference's patch rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from alpamayo_ros.model import ModelError
from alpamayo_ros.model.config_file import load_config
from alpamayo_ros.model.images import model_size, patch_rows, resize_frame

from .golden import GOLDEN, TINY_CHECKPOINT, golden_image

LIMITS = (163840, 196608)  # of the released checkpoint
GOLDEN_SIZES = json.loads((GOLDEN / "image_preprocessing.json").read_text())["sizes_real"]
FIRST_SEED = json.loads((GOLDEN / "image_preprocessing.json").read_text())["image_seed_first"]


@pytest.mark.parametrize("index", range(len(GOLDEN_SIZES)))
def test_patch_rows_of_a_frame_equal_the_reference_bit_by_bit(index: int) -> None:
    height, width = GOLDEN_SIZES[index]
    with np.load(GOLDEN / "image_preprocessing.npz") as file:
        expected = file[f"{height}x{width}_rows"]
        grid = file[f"{height}x{width}_grid"]
    frame = resize_frame(golden_image(FIRST_SEED + index, height, width), *LIMITS)
    assert frame.shape[:2] == (grid[1] * 16, grid[2] * 16)
    vision = load_config(TINY_CHECKPOINT).backbone.vision
    rows = patch_rows(torch.from_numpy(frame)[None], vision)[0]
    np.testing.assert_array_equal(rows[::24].numpy(), expected)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1080, 1920), (320, 576)),
        ((720, 1280), (320, 576)),
        ((900, 1600), (320, 576)),
        ((540, 960), (320, 576)),
        ((320, 576), (320, 576)),
        ((1208, 1920), (320, 544)),
        ((1280, 1920), (352, 512)),
        ((480, 640), (384, 512)),
    ],
)
def test_sizes_of_real_cameras_are_the_references(size: tuple, expected: tuple) -> None:
    assert model_size(*size, *LIMITS) == expected


def test_sides_are_rounded_half_to_even() -> None:
    assert model_size(16 + 32 * 10, 16 + 32 * 15, 0, 10**9) == (320, 512)


def test_resizing_twice_is_resizing_once() -> None:
    for height in range(200, 2200, 40):
        for width in range(height, 3 * height, 56):
            size = model_size(height, width, *LIMITS)
            assert model_size(*size, *LIMITS) == size


def test_a_frame_of_the_models_size_is_the_same_array() -> None:
    frame = golden_image(1, 320, 576)
    assert resize_frame(frame, *LIMITS) is frame


def test_a_constant_frame_stays_constant() -> None:
    frame = np.full((1080, 1920, 3), (3, 120, 252), np.uint8)
    resized = resize_frame(frame, *LIMITS)
    np.testing.assert_array_equal(resized, np.broadcast_to(frame[:1, :1], resized.shape))


def test_the_patches_of_a_token_follow_each_other() -> None:
    vision = load_config(TINY_CHECKPOINT).backbone.vision
    frame = np.zeros((64, 96, 3), np.uint8)
    for row in range(4):
        for column in range(6):
            frame[row * 16 : row * 16 + 16, column * 16 : column * 16 + 16] = 10 * row + column
    first_values = patch_rows(torch.from_numpy(frame)[None], vision)[0, :, 0] * 127.5 + 127.5
    expected = [0, 1, 10, 11, 2, 3, 12, 13, 4, 5, 14, 15, 20, 21, 30, 31, 22, 23, 32, 33]
    np.testing.assert_allclose(first_values[:20].numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("size", [(0, 100), (10, 4000)])
def test_a_frame_of_impossible_shape_is_refused_in_one_line(size: tuple) -> None:
    with pytest.raises(ModelError, match="both sides must be positive and within a factor of 200"):
        model_size(*size, *LIMITS)
