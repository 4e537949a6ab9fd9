"""The watchdog: when a plan is too old, and when a decision hangs."""

from __future__ import annotations

import pytest

from alpamayo_ros.planning.watchdog import Watchdog, timeout_s

S = 1_000_000_000


@pytest.mark.parametrize(
    ("parameter_s", "warm_up_s", "expected_s"),
    [(0.0, 0.1, 1.0), (0.0, 0.5, 1.5), (0.7, 0.5, 0.7), (5.0, 0.1, 5.0)],
)
def test_the_timeout_follows_the_warm_up_unless_it_is_given(parameter_s, warm_up_s, expected_s):
    assert timeout_s(parameter_s, warm_up_s) == pytest.approx(expected_s)


def test_it_fires_once_when_the_timeout_has_passed():
    watchdog = Watchdog(timeout_ns=S, hang_ns=5 * S, since_ns=100 * S)
    assert not watchdog.check(101 * S)
    assert watchdog.check(101 * S + 1)
    assert watchdog.expired
    assert not watchdog.check(102 * S)


def test_a_plan_counts_from_its_t0_and_is_valid_only_if_accepted():
    watchdog = Watchdog(timeout_ns=S, hang_ns=5 * S, since_ns=100 * S)
    watchdog.published(101 * S, accepted=True)
    assert watchdog.plan_valid
    assert watchdog.plan_age_s(101 * S + S // 2) == pytest.approx(0.5)
    assert not watchdog.check(102 * S)
    assert watchdog.check(102 * S + 1)
    assert not watchdog.plan_valid
    assert watchdog.plan_age_s(102 * S + 1) == -1.0


def test_a_rejected_plan_is_never_valid_and_never_counts_as_accepted():
    """In report mode: the path is fresh, yet no plan was accepted in time."""
    watchdog = Watchdog(timeout_ns=S, hang_ns=5 * S, since_ns=100 * S)
    watchdog.published(101 * S, accepted=False)
    assert not watchdog.plan_valid
    assert not watchdog.check(101 * S)
    assert watchdog.check(101 * S + 1)
    assert watchdog.expired
    watchdog.published(102 * S, accepted=False)
    assert watchdog.expired
    assert not watchdog.check(103 * S)
    assert watchdog.check(103 * S + 1)  # that path, too, has grown old
    assert not watchdog.check(104 * S)


def test_a_plan_from_the_future_or_the_far_past_is_not_fresh():
    watchdog = Watchdog(timeout_ns=S, hang_ns=5 * S, since_ns=100 * S)
    assert watchdog.fresh(100 * S, 101 * S)
    assert not watchdog.fresh(100 * S, 101 * S + 1)
    assert watchdog.fresh(100 * S + 200_000_000, 100 * S)
    assert not watchdog.fresh(100 * S + 200_000_001, 100 * S)


def test_it_recovers_with_the_next_plan():
    watchdog = Watchdog(timeout_ns=S, hang_ns=5 * S, since_ns=100 * S)
    assert watchdog.check(102 * S)
    watchdog.published(102 * S, accepted=True)
    assert not watchdog.check(102 * S + 1)
    assert not watchdog.expired
    assert watchdog.check(104 * S)


def test_after_a_jump_back_it_waits_anew():
    watchdog = Watchdog(timeout_ns=S, hang_ns=5 * S, since_ns=100 * S)
    watchdog.published(100 * S, accepted=True)
    watchdog.restart(10 * S)
    assert not watchdog.plan_valid
    assert not watchdog.check(11 * S)
    assert watchdog.check(11 * S + 1)


def test_a_decision_hangs_after_its_time():
    watchdog = Watchdog(timeout_ns=S, hang_ns=5 * S, since_ns=0)
    assert not watchdog.hangs(100 * S)
    watchdog.decision_since_ns = 90 * S
    assert not watchdog.hangs(95 * S)
    assert watchdog.hangs(95 * S + 1)
