"""Intersections: whichever way the route goes, the plaza and the way over it fit together."""

import math

import numpy as np
import pytest

from alpamayo_ros.demo.course import random_course
from alpamayo_ros.demo.junctions import Turn, add_junction, place_junctions
from alpamayo_ros.demo.road import ASPHALT_HALF_M, RoadPlan

COURSE = random_course(np.random.default_rng(11), 80.0, 200.0)


def crossing(turn: Turn):
    """A route along x from the origin over one intersection, and the intersection."""
    plan = RoadPlan()
    plan.straight(40.0)
    junction = add_junction(plan, turn, 8.0, 9.0)
    plan.straight(40.0)
    road = plan.road((0.0, 0.0), 0.0)
    (placed,) = place_junctions([junction], road, np.random.default_rng(1))
    return road, placed


@pytest.mark.parametrize("turn", Turn)
def test_the_route_leaves_by_the_middle_of_a_mouth_at_a_right_angle(turn):
    road, junction = crossing(turn)
    point = road.at(junction.plan.exit_m)
    mouth = junction.middle.x_m, junction.middle.y_m
    assert (junction.middle.x_m, junction.middle.y_m) == pytest.approx(
        (40 + junction.plan.reach_m, 0)
    )
    assert point.heading_rad == pytest.approx(turn.angle_rad, abs=2e-3)
    away = point.x_m - mouth[0], point.y_m - mouth[1]
    along = math.cos(turn.angle_rad), math.sin(turn.angle_rad)
    assert away == pytest.approx(np.multiply(along, junction.plan.reach_m), abs=0.1)


def test_the_plaza_looks_alike_whichever_way_the_route_goes():
    plazas = [crossing(turn)[1].plaza_m() for turn in Turn]
    np.testing.assert_allclose(plazas[1], plazas[0], atol=1e-6)
    np.testing.assert_allclose(plazas[2], plazas[0], atol=1e-6)


def test_the_plaza_has_four_equal_sides_and_the_area_of_a_rounded_cross():
    plaza = crossing(Turn.LEFT)[1].plaza_m()
    x, y = plaza.T
    area = 0.5 * np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)
    reach, half, radius = ASPHALT_HALF_M + 8.0 + 3.5, ASPHALT_HALF_M, 8.0
    cross = 4 * half**2 + 4 * 2 * half * (reach - half)
    rounded = cross + 4 * radius**2 * (1 - math.pi / 4)
    assert area == pytest.approx(rounded, rel=0.01)


@pytest.mark.parametrize("turn", Turn)
def test_arms_begin_where_the_plaza_ends(turn):
    _, junction = crossing(turn)
    assert len(junction.arms) == 2
    headings = set()
    for arm in junction.arms:
        from_middle = arm.xy_m[0] - (junction.middle.x_m, junction.middle.y_m)
        assert np.hypot(*from_middle) == pytest.approx(junction.plan.reach_m)
        headings.add(round(float(arm.heading_rad[0]), 6))
    headings.add(round(turn.angle_rad, 6))
    assert headings == {0.0, round(math.pi / 2, 6), -round(math.pi / 2, 6)}


@pytest.mark.parametrize("seed", range(8))
def test_a_route_never_comes_near_itself_again(seed):
    road = random_course(np.random.default_rng(seed), 80.0, 200.0).road
    places, s_m = road.xy_m[::20], road.s_m[::20]
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    far_along = np.abs(s_m[:, None] - s_m[None]) > 80
    assert distances[far_along].min() > 20.0
    assert np.abs(road.curvature_1_m).max() > 0.03, "a route without a curve tests nothing"


def test_the_route_turns_both_ways_and_goes_straight_on():
    turns = {
        junction.plan.turn
        for seed in range(4)
        for junction in random_course(np.random.default_rng(seed), 80.0, 200.0).junctions
    }
    assert turns == set(Turn)
