"""The example of docs/consumers.md, run on paths as the node publishes them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from alpamayo_ros.planning.placement import IDENTITY
from alpamayo_ros.ros.messages import path_message, placed_poses

from ..planning.plans import T0_NS, arc_plan

GUIDE = (Path(__file__).parents[2] / "docs" / "consumers.md").read_text()
MS = 1_000_000


@pytest.fixture(scope="module")
def target():
    """The function as the guide has it."""
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", GUIDE, re.DOTALL)[1], names)
    return names["target"]


def path(curvature: float = 0.0):
    poses = placed_poses(IDENTITY, arc_plan(8.0, curvature).waypoints, 0.0)
    return path_message("map", T0_NS, poses)


def test_the_worked_example_comes_out_as_the_guide_says(target):
    x, y, yaw = target(path(), T0_NS + 370 * MS, delay_ns=150 * MS)
    assert (x, y, yaw) == pytest.approx((4.16, 0.0, 0.0), abs=1e-6)
    assert f"{x:.2f} m from" in GUIDE
    assert f"{x - 8 * 0.37:.2f} m\nahead of it" in GUIDE


@pytest.mark.parametrize("age_ms", [100, 149, 370, 499])
def test_on_a_circle_the_target_is_where_the_circle_is_at_that_instant(target, age_ms):
    turn = 0.05 * 8.0 * (age_ms + 150) / 1e3
    x, y, yaw = target(path(0.05), T0_NS + age_ms * MS, delay_ns=150 * MS)
    assert x == pytest.approx(math.sin(turn) / 0.05, abs=0.01)  # a chord of 0.8 m sags by 4 mm
    assert y == pytest.approx((1 - math.cos(turn)) / 0.05, abs=0.01)
    assert yaw == pytest.approx(turn, abs=1e-4)


def test_the_turn_between_two_poses_takes_the_short_way_round(target):
    poses = placed_poses(IDENTITY, np.array([[1.0, 0.0, 3.1], [2.0, 0.0, -3.1]]), 0.0)
    yaw = target(path_message("map", T0_NS, poses), T0_NS + 150 * MS, delay_ns=0)[2]
    assert abs(math.remainder(yaw - math.pi, 2 * math.pi)) < 1e-9


@pytest.mark.parametrize(
    ("age_ms", "delay_ms"), [(-1, 300), (501, 100), (50, 49), (400, 6000), (10**7, 0)]
)
def test_there_is_no_target_in_a_stale_path_nor_beyond_its_ends(target, age_ms, delay_ms):
    assert target(path(), T0_NS + age_ms * MS, delay_ms * MS) is None


def test_there_is_no_target_in_an_empty_path(target):
    assert target(path_message("map", T0_NS, []), T0_NS + 100 * MS, 0) is None
