"""A plan in a camera's image: pixels worked out by hand, and what must not be drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from alpamayo_ros.planning.overlay import (
    Lens,
    draw_plan,
    mounted,
    optical_points_m,
    speed_colour,
)
from alpamayo_ros.planning.placement import IDENTITY

from .plans import arc_plan

FOCAL_PX = 200.0
MATRIX = np.array([[FOCAL_PX, 0.0, 319.5], [0.0, FOCAL_PX, 239.5], [0.0, 0.0, 1.0]])
AHEAD = mounted((1.5, 0.0, 1.2, 0.0, 0.0, 0.0))
GREY_RGB = (100, 100, 100)


def lens(*distortion: float, model: str = "plumb_bob") -> Lens:
    return Lens(640, 480, MATRIX, np.array(distortion, np.float64), model)


def drawn(waypoints: np.ndarray, camera=AHEAD, driven: bool = True, text: str = "") -> np.ndarray:
    image = np.full((480, 640, 3), GREY_RGB, np.uint8)
    return draw_plan(image, lens(), camera, IDENTITY, waypoints, 0.0, driven, text)


def painted(image: np.ndarray) -> np.ndarray:
    return (image != GREY_RGB).any(axis=2)


def test_a_level_camera_sees_the_ground_ahead_where_a_pinhole_puts_it():
    """A point 10 m before the lens, 1.2 m below it and 2 m to the left."""
    optical = optical_points_m(np.array([[11.5, 2.0, 0.0]]), AHEAD)
    np.testing.assert_allclose(optical, [[-2.0, 1.2, 10.0]], atol=1e-12)
    np.testing.assert_allclose(lens().pixels(optical), [[319.5 - 40.0, 239.5 + 24.0]], atol=1e-9)


@pytest.mark.parametrize(
    ("angles", "optical"),
    [
        ((0.0, 0.0, math.pi / 2), (10.0, 0.0, 0.0)),  # looks left: what is ahead is at its right
        ((0.0, math.pi / 2, 0.0), (0.0, -10.0, 0.0)),  # looks down: ahead is up in the image
        ((math.pi / 2, 0.0, 0.0), (0.0, 0.0, 10.0)),  # rolled: what lies on the axis stays there
    ],
)
def test_a_mount_is_roll_pitch_and_yaw_about_the_vehicles_axes(angles, optical):
    camera = mounted((0.0, 0.0, 0.0, *angles))
    np.testing.assert_allclose(
        optical_points_m(np.array([[10.0, 0.0, 0.0]]), camera), [optical], atol=1e-9
    )


def test_a_mounts_angles_combine_as_yaw_times_pitch_times_roll():
    roll, pitch, yaw = 0.3, -0.2, 0.5

    def turn(axis: int, angle: float) -> np.ndarray:
        matrix, (i, j) = np.eye(3), [(1, 2), (2, 0), (0, 1)][axis]
        matrix[i, i] = matrix[j, j] = math.cos(angle)
        matrix[i, j], matrix[j, i] = -math.sin(angle), math.sin(angle)
        return matrix

    body = turn(2, yaw) @ turn(1, pitch) @ turn(0, roll)
    camera = mounted((1.0, 2.0, 3.0, roll, pitch, yaw))
    point = body @ np.array([7.0, 0.5, -0.25]) + np.array([1.0, 2.0, 3.0])
    # In the camera's body 7 m ahead, 0.5 left and 0.25 down: optical right, down, ahead.
    np.testing.assert_allclose(
        optical_points_m(point[None], camera), [[-0.5, 0.25, 7.0]], atol=1e-12
    )


def test_radial_and_tangential_distortion_are_those_of_plumb_bob():
    k1, k2, p1, p2, k3 = -0.2, 0.05, 0.002, -0.001, 0.01
    x, y = 0.4, -0.3
    r2 = x * x + y * y
    radial = 1 + k1 * r2 + k2 * r2**2 + k3 * r2**3
    u = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    v = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
    pixels = lens(k1, k2, p1, p2, k3).pixels(np.array([[4.0, -3.0, 10.0]]))
    np.testing.assert_allclose(pixels, [[319.5 + FOCAL_PX * u, 239.5 + FOCAL_PX * v]], atol=1e-6)


def test_a_fisheyes_pixels_lie_as_far_from_the_middle_as_its_angle_says():
    k1, k2 = 0.02, -0.003
    angle = math.radians(50.0)
    point = np.array([[math.sin(angle), 0.0, math.cos(angle)], [0.0, 0.0, 1.0]])
    radius = FOCAL_PX * (angle + k1 * angle**3 + k2 * angle**5)
    pixels = lens(k1, k2, 0.0, 0.0, model="equidistant").pixels(point)
    np.testing.assert_allclose(pixels, [[319.5 + radius, 239.5], [319.5, 239.5]], atol=1e-9)


@pytest.mark.parametrize("corner", [(-0.5, -0.5), (639.5, 479.5), (100.0, 200.0)])
def test_in_a_scaled_image_a_pixel_keeps_its_share_of_the_width(corner):
    column, row = corner
    point = np.array([[(column - 319.5) / FOCAL_PX, (row - 239.5) / FOCAL_PX, 1.0]])
    found = lens().seen_at(320, 160).pixels(point)[0]
    np.testing.assert_allclose(found, [(column + 0.5) / 2 - 0.5, (row + 0.5) / 3 - 0.5], atol=1e-9)


def test_in_a_cropped_image_the_middle_of_the_lens_stays_in_the_middle():
    """640 x 480 cropped to 2 : 1 is rows 80 to 399; halved, 320 x 160."""
    small = lens().seen_at(320, 160, crop_aspect=2.0)
    np.testing.assert_allclose(small.matrix[:2, 2], [159.5, 79.5])
    top = np.array([[0.0, (80 - 0.5 - 239.5) / FOCAL_PX, 1.0]])
    np.testing.assert_allclose(small.pixels(top)[0, 1], -0.5, atol=1e-9)


def test_a_straight_plan_is_a_ribbon_of_its_width_that_narrows_with_distance():
    """At 10 m before the lens 1.8 m are 36 pixels, in the row 24 below the horizon."""
    shown = painted(drawn(arc_plan(speed_m_s=8.0).waypoints))
    columns = np.flatnonzero(shown[264])
    assert columns.min() == pytest.approx(319.5 - 18, abs=1.5)
    assert columns.max() == pytest.approx(319.5 + 18, abs=1.5)
    assert not shown[:240].any()  # nothing above the horizon
    # The last waypoint lies 51.2 m before the ego, 49.7 m before the lens: 4.8 px below.
    assert np.flatnonzero(shown.any(axis=1)).min() == pytest.approx(244, abs=1)


def test_a_plan_that_bends_left_is_drawn_where_its_circle_crosses_the_row():
    """10 m before the lens a circle of 33.3 m from the ego has come 2.05 m to the left: 41 px."""
    aside_m = 1 / 0.03 - math.sqrt(1 / 0.03**2 - 11.5**2)
    columns = np.flatnonzero(painted(drawn(arc_plan(8.0, curvature=0.03).waypoints))[264])
    middle = (columns.min() + columns.max()) / 2
    assert middle == pytest.approx(319.5 - FOCAL_PX * aside_m / 10.0, abs=2.0)


def test_the_colour_is_that_of_the_speed_and_grey_when_not_driven():
    below = (300, 320)  # between 3 and 4 m before the lens
    fast = drawn(arc_plan(18.0).waypoints)[below].astype(int)
    slow = drawn(arc_plan(3.0).waypoints)[below].astype(int)
    assert fast[1] > fast[0]
    assert slow[0] > slow[1]
    red, green, blue = drawn(arc_plan(18.0).waypoints, driven=False)[below]
    assert red == green == blue != GREY_RGB[0]
    assert speed_colour(-30.0, True) == speed_colour(20.0, True)  # backing up has a speed too


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
def test_what_is_not_finite_or_far_away_is_left_out_and_the_rest_is_drawn(bad):
    waypoints = arc_plan(8.0).waypoints.astype(np.float64)
    waypoints[20:, :2] = bad
    shown = painted(drawn(waypoints))
    assert shown[264].any()
    assert not shown[:240].any()


def test_nothing_is_drawn_of_what_lies_behind_the_camera():
    backwards = mounted((1.5, 0.0, 1.2, 0.0, 0.0, math.pi))
    waypoints = arc_plan(8.0).waypoints[4:]  # from 4 m ahead of the ego on
    assert not painted(drawn(waypoints, camera=backwards)).any()


def test_words_are_wrapped_at_the_lower_edge_and_the_input_is_left_alone():
    image = np.full((120, 160, 3), GREY_RGB, np.uint8)
    text = "The road is clear; keep the speed, and then slow down for the bend. \u00fc"
    small = lens().seen_at(160, 120)
    result = draw_plan(image, small, AHEAD, IDENTITY, np.zeros((0, 3)), 0.0, True, text)
    rows = np.flatnonzero(painted(result).any(axis=1))
    assert rows.max() == 119
    assert 119 - rows.min() > 3 * 14  # four lines
    assert (image == GREY_RGB).all()
