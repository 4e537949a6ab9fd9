"""Fields of view and equal images: a rig that is not the model's is noticed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from alpamayo_ros.sensing.rig_check import equal_pairs, field_problem, horizontal_fov_deg
from alpamayo_ros.types import CAMERA_ROLES, Frame


@pytest.mark.parametrize("fov_deg", [30.0, 90.0, 120.0])
def test_the_field_of_a_pinhole_follows_from_its_focal_length(fov_deg):
    focal_px = 960 / math.tan(math.radians(fov_deg / 2))
    assert horizontal_fov_deg(1920, focal_px, "plumb_bob") == pytest.approx(fov_deg)
    assert horizontal_fov_deg(1920, focal_px, "rational_polynomial") == pytest.approx(fov_deg)


def test_a_fisheyes_angle_grows_with_the_distance_from_the_centre():
    focal_px = 1920 / math.radians(120.0)
    assert horizontal_fov_deg(1920, focal_px, "equidistant") == pytest.approx(120.0)


@pytest.mark.parametrize(("width", "focal"), [(0, 500.0), (1920, 0.0), (1920, math.nan), (1, -1)])
def test_a_camera_that_is_not_calibrated_has_no_known_field(width, focal):
    assert horizontal_fov_deg(width, focal, "plumb_bob") is None


@pytest.mark.parametrize(
    ("role", "sound", "wrong"),
    [
        ("front_wide", (100.0, 120.0, 140.0), (99.9, 140.1, 30.0)),
        ("cross_left", (100.0, 140.0), (99.9, 140.1)),
        ("cross_right", (100.0, 140.0), (99.9, 140.1)),
        ("front_tele", (20.0, 30.0, 45.0), (19.9, 45.1, 120.0)),
    ],
)
def test_a_role_has_a_range_of_fields_with_its_ends(role, sound, wrong):
    assert [field_problem(role, deg) for deg in sound] == [""] * len(sound)
    for deg in wrong:
        assert field_problem(role, deg).startswith(f"{role} has a horizontal field of view of ")


def test_a_wrong_field_is_said_with_both_numbers():
    assert field_problem("front_tele", 119.6) == (
        "front_tele has a horizontal field of view of 120 degrees, "
        "the model wants 20 to 45: is it another camera?"
    )


def frames() -> dict[str, Frame]:
    """A frame of noise for each role."""
    rng = np.random.default_rng(0)
    return {role: Frame(1, "rgb8", rng.bytes(60_000), 100, 200, 600) for role in CAMERA_ROLES}


def test_cameras_that_differ_are_no_pairs():
    assert equal_pairs(frames()) == []


def test_one_topic_for_two_roles_is_a_pair_however_its_bytes_are_held():
    newest = frames()
    copy = memoryview(bytearray(newest["front_wide"].data))
    newest["front_tele"] = Frame(2, "rgb8", copy, 100, 200, 600)
    assert equal_pairs(newest) == [("front_wide", "front_tele")]


def test_frames_that_only_end_alike_are_no_pair():
    newest = frames()
    data = newest["front_wide"].data
    newest["front_tele"] = Frame(1, "rgb8", bytes([data[0] ^ 1]) + data[1:], 100, 200, 600)
    newest["cross_left"] = Frame(1, "rgb8", data[1:], 100, 200, 600)
    assert equal_pairs(newest) == []
