"""A node to which a bag is played, and the evaluation that reads it: the same plans."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.evaluation.deciders import ModelChoice, ModelDecider
from alpamayo_ros.evaluation.run import RunSettings, evaluate_bag
from alpamayo_ros.planning.planner import PlannerSettings
from alpamayo_ros.ros.bag_run import plan_stamp_ns, run_node_on_bag, waypoints_in_ego_frame
from alpamayo_ros.types import CAMERA_ROLES
from test.evaluation.drives import Recipe, circle, write_drive

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SEED = 11
PARAMETERS = f"""
alpamayo:
  ros__parameters:
    use_sim_time: true
    model.path: demo
    gate.mode: report
    sampling.seed: {SEED}
    sampling.max_new_tokens: 12
    num_samples: 2
"""


def test_the_node_on_the_played_bag_and_the_evaluation_make_the_same_plans(tmp_path, domain_id):
    bag = write_drive(
        tmp_path / "drive", Recipe(motion=circle(9.0, 0.15), duration_s=5.0, jpeg=False)
    )
    (tmp_path / "node.yaml").write_text(PARAMETERS)
    topics = {f"~/input/{role}/image": f"/camera/{role}/image" for role in CAMERA_ROLES}
    topics["~/input/odometry"] = "/localization/odometry"
    outcome = run_node_on_bag(bag, tmp_path / "node.yaml", topics, tmp_path / "node.log", domain_id)
    settings = PlannerSettings(num_samples=2, seed=SEED, max_new_tokens=12)
    decider = ModelDecider(ModelChoice(planner=settings))
    records = evaluate_bag(bag, "drive", decider, RunSettings(every_s=0.1))
    by_t0 = {record.t0_ns: record for record in records.records}
    played = {plan_stamp_ns(plan): plan for plan in outcome.plans}
    assert len(played) >= 3
    assert played.keys() <= by_t0.keys()  # the evaluation misses none; the node is busy at times
    for t0_ns, plan in played.items():
        record = by_t0[t0_ns]
        # Features that were reused are rounded in another order: 1e-4 m, as the model promises.
        np.testing.assert_allclose(waypoints_in_ego_frame(plan), record.plan, atol=2e-4)
        assert plan.reasoning == record.reasoning
        assert list(plan.reasons) == list(record.reasons)
        assert plan.ego_speed == pytest.approx(record.v0_m_s, abs=1e-9)
        assert plan.seed == SEED
