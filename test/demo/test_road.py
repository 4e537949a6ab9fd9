"""The road's geometry against circles and straight lines."""

import math

import numpy as np
import pytest

from alpamayo_ros.demo.road import Road, RoadPlan


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


def test_a_point_between_samples_lies_between_them():
    road = circle(60.0)
    point = road.at(33.25)
    angle = 33.25 / 60.0
    assert point.heading_rad == pytest.approx(angle)
    assert point.x_m == pytest.approx(60.0 * math.sin(angle), abs=2e-3)
    assert point.y_m == pytest.approx(60.0 * (1 - math.cos(angle)), abs=2e-3)


@pytest.mark.parametrize("turn_deg", [-90.0, -12.0, 35.0, 160.0])
@pytest.mark.parametrize("radius_m", [9.0, 60.0])
def test_a_bend_turns_by_its_angle_and_its_curvature_has_no_jumps(radius_m, turn_deg):
    plan = RoadPlan()
    plan.straight(20.0)
    plan.bend(radius_m, math.radians(turn_deg), 8.0)
    plan.straight(20.0)
    road = plan.road((5.0, -3.0), 0.4)
    assert plan.heading_rad == pytest.approx(math.radians(turn_deg))
    assert road.heading_rad[-1] - 0.4 == pytest.approx(math.radians(turn_deg), abs=0.01)
    assert np.abs(road.curvature_1_m).max() == pytest.approx(1 / radius_m, rel=0.03)
    assert np.abs(np.diff(road.curvature_1_m)).max() < 0.11 / radius_m
    assert road.xy_m[0] == pytest.approx((5.0, -3.0))
