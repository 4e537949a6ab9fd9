"""Vehicles ahead: when they start, where they drive, where they end."""

import math

import pytest

from alpamayo_ros.demo.leaders import BAY_M, Leader, Leading
from alpamayo_ros.demo.road import EGO_LANE_M

IN_BAY = Leader("red", 100.0, 250.0, False, 40.0, math.inf, 6.0, 4.5)
IN_LANE = Leader("van", 100.0, 250.0, True, 0.0, 3.0, 6.0, 5.6)


def test_a_leader_pulls_out_of_its_bay_and_over_into_the_next():
    assert IN_BAY.lateral_m(100.0) == pytest.approx(BAY_M)
    assert IN_BAY.lateral_m(109.0) == pytest.approx((BAY_M + EGO_LANE_M) / 2)
    assert IN_BAY.lateral_m(180.0) == pytest.approx(EGO_LANE_M)
    assert IN_BAY.lateral_m(250.0) == pytest.approx(BAY_M)
    assert IN_LANE.lateral_m(100.0) == pytest.approx(EGO_LANE_M)


def test_one_in_a_bay_starts_when_the_gap_is_small_enough():
    still = Leading(100.0).ready(IN_BAY, 5.0, 41.0, 10.0)
    assert math.isinf(still.start_s)
    assert still.ready(IN_BAY, 6.0, 39.0, 10.0).start_s == 6.0


def test_one_in_the_lane_starts_some_time_after_the_ego_stands_behind_it():
    state = Leading(100.0)
    for t_s in (1.0, 2.0, 3.9):
        state = state.ready(IN_LANE, t_s, 5.0, 0.0)
        assert math.isinf(state.start_s)
    assert state.ready(IN_LANE, 4.1, 5.0, 0.0).start_s == 4.1


def test_a_leader_cruises_in_between_and_stops_where_it_ends():
    state, speeds = Leading(100.0, start_s=0.0), []
    for step in range(6000):
        state = state.moved(IN_BAY, step * 0.01, 20.0, 0.01)
        speeds.append(state.speed_m_s)
    assert max(speeds) == pytest.approx(6.0 * 1.08, abs=0.3)
    assert state.s_m == pytest.approx(250.0, abs=1.5)  # the pedals lag
    assert state.speed_m_s < 0.2


def test_a_bend_slows_a_leader_down():
    state = Leading(100.0, start_s=0.0)
    for step in range(1000):
        state = state.moved(IN_BAY, step * 0.01, 4.0, 0.01)
    assert state.speed_m_s == pytest.approx(4.0, abs=0.1)
