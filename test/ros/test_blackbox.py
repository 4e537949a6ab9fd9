"""The black box of a running node: what it keeps of rejected plans, and on request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.msg import DrivingPlan
from alpamayo_ros.planning.planner import Planner, PlannerSettings
from alpamayo_ros.ros.bag_run import plan_stamp_ns, waypoints_in_ego_frame
from alpamayo_ros.types import Snapshot

from .conftest import parameters
from .rig import Rig

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

TOKENS = 8
# The node has reused features that were encoded in another batch, with other threads: bit-equality
# holds in one process (test/sensing/test_blackbox.py), across them the bound that reuse must keep.
REUSE_ATOL_M = 1e-4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("box")


@pytest.fixture(scope="module")
def bench(start_node, context, folder):
    """A node whose gate rejects everything, with room for three files."""
    with Rig(context) as rig:
        transports = {f"cameras__{role}__transport": "compressed" for role in rig.cameras}
        yield start_node(
            *parameters(
                model__path="demo",
                sampling__max_new_tokens=TOKENS,
                sampling__seed=9,
                gate__speed_m_s=0.0,
                blackbox__directory=folder,
                blackbox__max_files=3,
                **transports,
            )
        )


def plan_of(bench, path: Path) -> DrivingPlan:
    """The published plan that a file was kept of."""
    t0_ns = Snapshot.load(path).t0_ns
    bench.wait(lambda: any(plan_stamp_ns(p) == t0_ns for p in bench.ear.plans), "the plan")
    return next(p for p in bench.ear.plans if plan_stamp_ns(p) == t0_ns)


def expect_the_same_again(path: Path, published: DrivingPlan) -> None:
    """Plan on a kept snapshot and compare with what the node has published."""
    planner = Planner(load_demo_model(), PlannerSettings(seed=9, max_new_tokens=TOKENS))
    plan = planner.plan(Snapshot.load(path))
    planner.close()
    assert plan.reasoning == published.reasoning
    difference = waypoints_in_ego_frame(published) - plan.waypoints
    difference[:, 2] = np.remainder(difference[:, 2] + np.pi, 2 * np.pi) - np.pi
    np.testing.assert_allclose(difference, 0, atol=REUSE_ATOL_M)


def test_the_newest_snapshots_of_rejected_plans_are_kept_and_give_those_plans_again(bench, folder):
    bench.wait_for_plans(10)
    assert bench.set_parameter("planning.paused", True).successful
    bench.wait(lambda: bench.ear.status.last_refusal == "paused", "a pause")
    bench.wait(lambda: not list(folder.glob(".*")), "the end of writing")
    files = sorted(folder.glob("*_rejected.npz"))
    assert len(files) == 3
    published = plan_of(bench, files[-1])
    assert published.verdict == DrivingPlan.REJECTED
    expect_the_same_again(files[-1], published)


def test_the_last_snapshot_is_kept_on_request(bench, folder):
    """After the one before: the node is paused, so the last decision stays the last."""
    answer = bench.trigger("save_snapshot")
    assert answer.success, answer.message
    path = Path(answer.message)
    assert path.parent == folder
    assert path.name.endswith("_requested.npz")
    assert len(list(folder.glob("*.npz"))) == 3
    expect_the_same_again(path, plan_of(bench, path))
