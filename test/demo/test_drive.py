"""The drive as a whole: the same for a seed, causal, and safe."""

import math
from dataclasses import replace

import numpy as np
import pytest

from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.road import EGO_LANE_M
from alpamayo_ros.demo.traffic import EGO_LENGTH_M

DRIVE = Drive(5)


def test_a_seed_fixes_the_drive_and_another_one_changes_it():
    assert Drive(5).world_at(6.0) == DRIVE.world_at(6.0)
    assert Drive(6).world_at(6.0) != DRIVE.world_at(6.0)


def test_a_state_does_not_depend_on_what_was_asked_before():
    fresh = Drive(5)
    late_first = fresh.state_at(9.004)
    assert fresh.state_at(2.003) == Drive(5).state_at(2.003)
    assert late_first == DRIVE.state_at(9.004)


def test_the_lead_is_slower_so_the_ego_closes_in_and_keeps_its_distance():
    gaps = []
    for t_s in np.arange(0, 40, 0.5):
        world = DRIVE.world_at(float(t_s))
        gaps.append(world.lead.s_m - world.ego.s_m - EGO_LENGTH_M)
    assert gaps[0] > 30
    assert min(gaps) > 8
    assert gaps[-1] < 25


@pytest.mark.parametrize("seed", range(4))
def test_the_ego_stays_in_its_lane(seed):
    drive = Drive(seed)
    offsets = [drive.world_at(float(t)).ego.lateral_m - EGO_LANE_M for t in np.arange(0, 30, 0.2)]
    assert np.abs(offsets).max() < 0.15


def test_an_ego_with_a_free_road_slows_down_for_curves_and_only_there():
    traffic = replace(DRIVE.traffic, first_gap_m=400.0)
    world = traffic.first(DRIVE.road)
    laterals, speeds = [], []
    for _ in range(4000):
        world = traffic.step(world, DRIVE.road, 0.01)
        laterals.append(world.ego.state.speed_m_s**2 * abs(world.ego.state.curvature_1_m))
        speeds.append(world.ego.state.speed_m_s)
    assert max(speeds) == pytest.approx(traffic.ego_desired_m_s, abs=0.5)
    assert max(laterals) < 2.6
    fastest_bend = np.abs(DRIVE.road.curvature_1_m[: int(2 * world.ego.s_m)]).max()
    assert traffic.ego_desired_m_s**2 * fastest_bend > 3.0, "there was something to slow down for"


def test_the_future_is_where_the_ego_will_be():
    future = DRIVE.future_xyyaw(3.0)
    assert future.shape == (64, 3)
    now, later = DRIVE.state_at(3.0), DRIVE.state_at(3.0 + 6.4)
    x, y, yaw = future[-1]
    cos, sin = math.cos(now.yaw_rad), math.sin(now.yaw_rad)
    assert now.x_m + cos * x - sin * y == pytest.approx(later.x_m)
    assert now.y_m + sin * x + cos * y == pytest.approx(later.y_m)
    assert math.remainder(now.yaw_rad + yaw - later.yaw_rad, 2 * math.pi) == pytest.approx(0)
    assert future[0, 0] == pytest.approx(now.speed_m_s * 0.1, abs=0.02)


def test_lane_lines_run_left_and_right_of_the_ego():
    lines = DRIVE.lane_lines(4.0)
    places = []
    for line in lines:
        nearest = line[np.abs(line[:, 0]).argmin()]
        places.append(nearest[1])
    assert places == sorted(places, reverse=True)
    # The ego keeps the right lane: the road's middle 1.75 m to the left, its own line to the right.
    assert places[2] == pytest.approx(1.75, abs=0.3)
    assert places[3] == pytest.approx(-1.65, abs=0.3)


def test_the_lead_is_seen_ahead_in_the_ego_lane():
    outline = DRIVE.actor_outlines(20.0)[0]
    assert 15 < outline[:, 0].mean() < 60
    widths = [np.linalg.norm(outline[i] - outline[(i + 1) % 4]) for i in range(4)]
    assert sorted(widths) == pytest.approx(sorted([1.84, 4.5] * 2), abs=0.01) or sorted(
        widths
    ) == pytest.approx(sorted([2.05, 5.6] * 2), abs=0.01)


def test_no_two_vehicles_touch():
    for t_s in np.arange(0, 30, 1.0):
        actors = DRIVE.actors_at(float(t_s))
        places = np.array([(actor.x_m, actor.y_m) for actor in actors])
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        assert apart[np.triu_indices(len(places), 1)].min(initial=9.0) > 3.0


def test_a_time_outside_the_drive_is_refused():
    with pytest.raises(ValueError, match=r"time -0\.1 s: a drive lasts from 0 to"):
        DRIVE.state_at(-0.1)
