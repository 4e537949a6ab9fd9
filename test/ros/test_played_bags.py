"""One node to which bags are played: at any rate, again and again, and damaged ones."""

from __future__ import annotations

import time

import numpy as np
import pytest

from alpamayo_ros.ros.bag_player import BagError, BagPlayer
from alpamayo_ros.ros.bag_run import plan_stamp_ns, waypoints_in_ego_frame
from alpamayo_ros.ros.node_process import wait_until
from alpamayo_ros.types import CAMERA_ROLES
from test.evaluation.drives import START_NS, Recipe, circle, write_drive

from ..damage import BY_NAME, DURATION_S, S, damaged_bag, truncate_file
from .conftest import parameters

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

TOPICS = {role: f"/camera/{role}/image" for role in CAMERA_ROLES}
TOPICS["odometry"] = "/localization/odometry"
REUSE_ATOL = 2e-4  # features of a frame are rounded by what it was encoded beside
QUIET_S = 1.5
ENOUGH = 3  # plans whose t0 was planned before; a busy node takes others in every round


class Stage:
    """A node that plans as fast as it can, bags played to it, and what it has planned so far."""

    def __init__(self, bench) -> None:
        self.bench = bench
        self.known: dict[int, np.ndarray] = {}

    def play(self, bag, rates=(1.0,)) -> list[dict[int, np.ndarray]]:
        """Play a bag once for each rate; by round, plans (64, 3) in the ego frame by t0."""
        ear = self.bench.ear
        player = BagPlayer(ear, bag, {topic: topic for topic in TOPICS.values()})
        assert player.wait_for_listeners(20.0)
        seen = len(ear.plans)
        for rate in rates:
            player.play(rate)
        assert wait_until(lambda: time.monotonic() - ear.last_plan_s > QUIET_S, 60.0)
        player.close()
        rounds: list[dict[int, np.ndarray]] = []
        newest_ns = 0
        for plan in ear.plans[seen:]:
            t0_ns = plan_stamp_ns(plan)
            if not rounds or t0_ns <= newest_ns:  # within a round t0 never goes back
                rounds.append({})
            newest_ns = t0_ns
            rounds[-1][t0_ns] = waypoints_in_ego_frame(plan)
        assert len(rounds) == len(rates)
        return rounds

    def expect_as_before(self, plans: dict[int, np.ndarray]) -> None:
        """Plans are those that were made of the same t0s in other rounds; they are learnt."""
        both = plans.keys() & self.known.keys()
        assert len(both) >= ENOUGH
        for t0_ns in both:
            np.testing.assert_allclose(plans[t0_ns], self.known[t0_ns], atol=REUSE_ATOL)
        self.known |= plans


@pytest.fixture(scope="module")
def stage(start_node):
    arguments = parameters(
        use_sim_time=True,
        model__path="demo",
        gate__mode="report",
        sampling__seed=3,
        sampling__max_new_tokens=8,
        planning__max_rate_hz=100.0,
    )
    for source, topic in TOPICS.items():
        name = "~/input/odometry" if source == "odometry" else f"~/input/{source}/image"
        arguments += ["-r", f"{name}:={topic}"]
    bench = start_node(*arguments)
    bench.wait_for_state("active")
    return Stage(bench)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A bag that nothing is wrong with, as long as the table of damage wants it."""
    recipe = Recipe(motion=circle(9.0, 0.15), duration_s=DURATION_S, jpeg=False)
    return write_drive(tmp_path_factory.mktemp("whole") / "bag", recipe)


@pytest.fixture(scope="module", autouse=True)
def once(stage, whole):
    """The whole bag has been played once, at its own speed."""
    (stage.known,) = stage.play(whole)
    assert len(stage.known) >= 2 * ENOUGH


def test_a_bag_that_is_looped_gives_the_same_plans_in_every_round(stage, whole):
    rounds = stage.play(whole, rates=(1.0, 1.0, 1.0))
    for plans in rounds:
        stage.expect_as_before(plans)


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_a_bag_at_another_rate_gives_the_same_plans(stage, whole, rate):
    (plans,) = stage.play(whole, rates=(rate,))
    stage.expect_as_before(plans)


@pytest.mark.parametrize("name", ["drop_camera", "spike_odometry", "freeze_stamp"])
def test_a_damaged_bag_loses_the_t0s_of_the_damage_and_no_plan_changes(
    stage, whole, tmp_path, name
):
    damage = BY_NAME[name]
    bag = damaged_bag(whole, tmp_path / "bag", damage, TOPICS, START_NS)
    (plans,) = stage.play(bag)
    lost = [t0_ns for t0_ns in plans if damage.is_lost((t0_ns - START_NS) / S)]
    assert lost == []
    after_s = [t for t in ((t0_ns - START_NS) / S for t0_ns in plans) if t > damage.lost_s[1]]
    assert after_s  # it has recovered
    assert after_s[0] <= damage.lost_s[1] + 0.5
    stage.expect_as_before(plans)
    refused = stage.bench.ear.status.refusal_reasons
    assert {reason.value for reason in damage.reasons} & set(refused)


def test_a_bag_that_is_cut_off_is_refused_in_one_line(stage, whole, tmp_path):
    """rosbags reads an mcap by its index, which lies at the end."""
    bag = damaged_bag(whole, tmp_path / "bag", BY_NAME["nothing"], TOPICS, START_NS)
    truncate_file(next(bag.glob("*.mcap")))
    with pytest.raises(BagError, match=r"^bag .* cannot be read") as error:
        BagPlayer(stage.bench.ear, bag)
    assert "\n" not in str(error.value)
