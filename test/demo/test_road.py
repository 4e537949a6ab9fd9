"""The road's geometry against circles and straight lines."""

import math

import numpy as np
import pytest

from alpamayo_ros.demo.road import MAX_TURNED_RAD, RADIUS_RANGE_M, Road


def circle(radius_m: float, length_m: float = 200.0) -> Road:
    """A road that bends left from the origin along x, around (0, radius)."""
    return Road(np.array([0.0, length_m]), np.full(2, 1 / radius_m))


def test_a_road_of_constant_curvature_is_a_circle():
    road = circle(50.0)
    from_centre = np.hypot(road.xy_m[:, 0], road.xy_m[:, 1] - 50.0)
    assert np.abs(from_centre - 50.0).max() < 2e-3
    assert road.heading_rad[-1] == pytest.approx(200.0 / 50.0)


def test_lateral_places_are_on_circles_inside_and_outside():
    road = circle(50.0)
    s_m = np.linspace(0, 150, 40)
    for lateral_m in (-4.0, 3.0):
        points = road.points_m(s_m, lateral_m)
        from_centre = np.hypot(points[:, 0], points[:, 1] - 50.0)
        assert np.abs(from_centre - (50.0 - lateral_m)).max() < 3e-3


def test_locate_undoes_points():
    road = Road.random(np.random.default_rng(4), 600.0)
    for s_m in np.linspace(10, 550, 37):
        for lateral_m in (-5.0, 0.0, 4.0):
            ((x, y),) = road.points_m(np.array([s_m]), lateral_m)
            found_s, found_lateral = road.locate(x, y, s_m + 1.5)
            assert found_s == pytest.approx(s_m, abs=0.02)
            assert found_lateral == pytest.approx(lateral_m, abs=0.01)


def test_a_point_between_samples_lies_between_them():
    road = circle(60.0)
    point = road.at(33.25)
    angle = 33.25 / 60.0
    assert point.heading_rad == pytest.approx(angle)
    assert point.x_m == pytest.approx(60.0 * math.sin(angle), abs=2e-3)
    assert point.y_m == pytest.approx(60.0 * (1 - math.cos(angle)), abs=2e-3)


@pytest.mark.parametrize("seed", range(12))
def test_a_random_road_is_gentle_and_never_turns_back(seed):
    road = Road.random(np.random.default_rng(seed), 2000.0)
    assert np.abs(road.curvature_1_m).max() <= 1 / RADIUS_RANGE_M[0] + 1e-12
    # A clothoid: curvature has no jumps, so a steering wheel can follow.
    assert np.abs(np.diff(road.curvature_1_m)).max() < 0.5 / 400
    turned = road.heading_rad - road.heading_rad[0]
    assert np.abs(turned).max() <= MAX_TURNED_RAD + 1e-3
    forward = road.xy_m @ (math.cos(road.heading_rad[0]), math.sin(road.heading_rad[0]))
    assert (np.diff(forward) > 0).all()
    assert np.abs(turned).max() > math.radians(15), "a road without a curve tests nothing"


def test_random_roads_start_away_from_the_origin():
    starts = [Road.random(np.random.default_rng(seed), 100.0).xy_m[0] for seed in range(5)]
    assert all(np.abs(start).min() > 100 for start in starts)
