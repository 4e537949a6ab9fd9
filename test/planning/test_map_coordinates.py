"""Where in the map a drive takes place changes no plan: UTM coordinates are as good as any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.planning.planner import Planner, PlannerSettings
from alpamayo_ros.sensing.sampler import Sampler
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import CAMERA_ROLES, Frame

from ..sensing.streams import Circle, drive, events, rig, stamps

LIMIT_M = 1e-3
UTM_M = (500_123.4, 4_649_776.2)  # easting and northing at 42 degrees north


def selection(x0_m: float, y0_m: float) -> Selection:
    """The last selection of one and the same drive that starts at a place in the map."""
    motion = Circle(speed_m_s=9.0, curvature=0.03, x0_m=x0_m, y0_m=y0_m)
    chosen = drive(Sampler(), events(rig(10), stamps(50)), motion)[-1]
    rng = np.random.default_rng(0)
    frames = {
        role: tuple(
            Frame(frame.stamp_ns, "rgb8", rng.bytes(320 * 576 * 3), 320, 576, 576 * 3)
            for frame in chosen.frames[role]
        )
        for role in CAMERA_ROLES
    }
    return replace(chosen, frames=frames)


@pytest.fixture(scope="module")
def planner():
    planner = Planner(load_demo_model(), PlannerSettings(seed=1, max_new_tokens=4))
    yield planner
    planner.close()


@pytest.mark.parametrize("place_m", [UTM_M, (-4e6, 4e6)])
def test_a_drive_in_utm_coordinates_gives_the_plan_of_the_same_drive_at_the_origin(
    planner, place_m
):
    local, far = selection(0.0, 0.0), selection(*place_m)
    assert np.linalg.norm(far.t0_position - local.t0_position) > 4e6
    np.testing.assert_allclose(far.ego_history_xyz, local.ego_history_xyz, atol=1e-7)
    plans = []
    for chosen in (local, far):
        planner.reset()
        plans.append(planner.decide(chosen).plan)
    here, there = plans
    np.testing.assert_allclose(there.waypoints, here.waypoints, atol=LIMIT_M)
    assert there.reasoning == here.reasoning
    assert there.v0_m_s == pytest.approx(here.v0_m_s, abs=1e-6)


def test_single_precision_would_not_do(planner):
    """The limit can be broken: the same history with its positions rounded to float32 at 4e6 m."""
    chosen = selection(*UTM_M)
    snapshot = planner.prepare(chosen)
    at_m = snapshot.ego_history_xyz + np.array([*UTM_M, 0.0])
    rounded = at_m.astype(np.float32).astype(np.float64)
    coarse = replace(snapshot, ego_history_xyz=rounded - rounded[-1])
    planner.reset()
    exact_plan = planner.plan(snapshot)
    planner.reset()
    coarse_plan = planner.plan(coarse)
    assert np.abs(exact_plan.waypoints - coarse_plan.waypoints).max() > LIMIT_M
