"""The cameras against the pinhole formulas, written out."""

import math

import numpy as np
import pytest

from alpamayo_ros.demo.cameras import default_rig
from alpamayo_ros.types import CAMERA_ROLES

RIG = {camera.role: camera for camera in default_rig()}


def test_the_rig_has_the_four_roles_in_the_models_order():
    assert tuple(RIG) == CAMERA_ROLES


@pytest.mark.parametrize(
    ("role", "hfov_deg"),
    [("cross_left", 120), ("front_wide", 120), ("cross_right", 120), ("front_tele", 30)],
)
def test_a_ray_at_half_the_field_of_view_meets_the_images_edge(role, hfov_deg):
    camera = RIG[role]
    half = math.radians(hfov_deg) / 2
    optical = np.array([[math.sin(half), 0.0, math.cos(half)]])
    (pixel,) = camera.pixels(optical)
    assert pixel == pytest.approx((camera.width_px - 0.5, (camera.height_px - 1) / 2))


def test_a_point_straight_ahead_of_a_camera_is_at_the_principal_point():
    for camera in RIG.values():
        x, y, z = camera.position_m
        ahead = (x + 7 * math.cos(camera.yaw_rad), y + 7 * math.sin(camera.yaw_rad), z)
        optical = camera.optical(np.array([ahead]))
        assert optical[0] == pytest.approx((0, 0, 7), abs=1e-12)
        assert camera.pixels(optical)[0] == pytest.approx(camera.centre_px)


def test_left_of_the_vehicle_is_left_in_the_image_and_high_is_up():
    camera = RIG["front_wide"]
    x, y, z = camera.position_m
    left, right, high = camera.pixels(
        camera.optical(np.array([[x + 10, y + 1, z], [x + 10, y - 1, z], [x + 10, y, z + 1]]))
    )
    step_px = 576 / 2 / math.tan(math.radians(60)) / 10
    assert left == pytest.approx((287.5 - step_px, 159.5))
    assert right == pytest.approx((287.5 + step_px, 159.5))
    assert high == pytest.approx((287.5, 159.5 - step_px))


def test_the_matrix_gives_the_same_pixels():
    camera = RIG["cross_right"]
    optical = np.array([0.4, -0.3, 2.0])
    u, v, w = camera.matrix() @ optical
    assert camera.pixels(optical[None])[0] == pytest.approx((u / w, v / w))


def test_the_cross_cameras_look_to_their_sides():
    assert 0.9 < RIG["cross_left"].yaw_rad < 1.1
    assert RIG["cross_right"].yaw_rad == -RIG["cross_left"].yaw_rad
    assert RIG["cross_left"].position_m[1] > 0 > RIG["cross_right"].position_m[1]


def test_a_size_too_small_to_see_anything_is_refused():
    with pytest.raises(ValueError, match="8 x 320: at least 16 x 16"):
        default_rig(8, 320)
