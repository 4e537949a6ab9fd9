"""People who cross: when they start, how they walk, when the lane is free."""

import numpy as np
import pytest

from alpamayo_ros.demo.pedestrians import KERB_M, Walker, person
from alpamayo_ros.demo.road import EGO_LANE_M, LANE_WIDTH_M


def test_a_walker_stands_at_the_kerb_until_the_ego_is_near():
    walker = Walker(100.0, -1, 1.4, 40.0, 0)
    assert walker.seen(3.0, 55.0) is walker
    assert walker.lateral_m(50.0) == -KERB_M
    started = walker.seen(3.0, 61.0)
    assert started.start_s == 3.0
    assert started.seen(4.0, 70.0) is started


@pytest.mark.parametrize("side", [-1, 1])
def test_a_walker_crosses_at_constant_speed_and_then_stands(side):
    walker = Walker(100.0, side, 1.25, 40.0, 0, start_s=2.0)
    assert walker.lateral_m(2.0) == side * KERB_M
    assert walker.lateral_m(4.0) == pytest.approx(side * (KERB_M - 2.5))
    assert walker.lateral_m(200.0) == walker.lateral_m(300.0)
    assert walker.lateral_m(walker.gone_s) == pytest.approx(-side * KERB_M)


@pytest.mark.parametrize("side", [-1, 1])
def test_the_lane_is_free_when_the_walker_has_left_it(side):
    walker = Walker(100.0, side, 1.25, 40.0, 0, start_s=2.0)
    to_lane_m = abs(walker.lateral_m(walker.clear_s) - EGO_LANE_M)
    assert to_lane_m == pytest.approx(LANE_WIDTH_M / 2 + 0.2)
    later_m = abs(walker.lateral_m(walker.clear_s + 0.5) - EGO_LANE_M)
    assert later_m > to_lane_m


def test_a_person_is_as_tall_as_people_and_faces_outwards_everywhere():
    body = person((255, 0, 0), 0.5)
    heights = body.corners_m[..., 2]
    assert heights.min() == 0.0
    assert 1.7 < heights.max() < 1.95
    a, b, c = body.corners_m[:, 0], body.corners_m[:, 1], body.corners_m[:, 2]
    assert (np.linalg.norm(np.cross(b - a, c - a), axis=1) > 1e-4).all()
