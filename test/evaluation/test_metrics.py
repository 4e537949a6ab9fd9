"""Each figure against a value worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from alpamayo_ros.evaluation.metrics import (
    HORIZONS_S,
    Comfort,
    ComfortLimits,
    ade_m,
    comfort,
    fde_m,
    heading_error_rad,
    inconsistency_m,
    lateral_m,
    longitudinal_m,
    min_ade_m,
    min_fde_m,
    missed,
    speed_error_m_s,
    split_m,
    steps_of,
)

T_S = np.arange(1, 65) * 0.1
TURNED = math.radians(30)


def along(speed: float, yaw: float = 0.0) -> np.ndarray:
    """A straight way (64, 3) in a direction, headed along it."""
    return np.column_stack([speed * T_S * np.cos(yaw), speed * T_S * np.sin(yaw), 0 * T_S + yaw])


def circle(speed: float, rate: float) -> np.ndarray:
    """A left turn (64, 3) at one speed."""
    return np.column_stack(
        [speed / rate * np.sin(rate * T_S), speed / rate * (1 - np.cos(rate * T_S)), rate * T_S]
    )


@pytest.mark.parametrize("horizon_s", HORIZONS_S)
def test_the_truth_has_no_error(horizon_s):
    truth = circle(7.0, 0.2)
    for figure in (ade_m, fde_m, longitudinal_m, lateral_m, heading_error_rad, speed_error_m_s):
        assert figure(truth, truth, horizon_s) == 0
    assert min_ade_m(truth[None], truth, horizon_s) == 0
    assert min_fde_m(truth[None], truth, horizon_s) == 0


@pytest.mark.parametrize("horizon_s", HORIZONS_S)
def test_an_offset_of_3_and_4_m_is_an_error_of_5_m(horizon_s):
    plan = along(10.0) + [3.0, 4.0, 0.0]
    assert ade_m(plan, along(10.0), horizon_s) == pytest.approx(5, abs=1e-9)
    assert fde_m(plan, along(10.0), horizon_s) == pytest.approx(5, abs=1e-9)
    assert longitudinal_m(plan, along(10.0), horizon_s) == pytest.approx(3, abs=1e-9)
    assert lateral_m(plan, along(10.0), horizon_s) == pytest.approx(4, abs=1e-9)


@pytest.mark.parametrize("horizon_s", HORIZONS_S)
def test_2_m_s_too_fast_is_off_by_the_way_that_it_gains(horizon_s):
    """2 t at the horizon; on the mean of t = 0.1 .. h that is 2 (h + 0.1) / 2."""
    plan, truth = along(12.0), along(10.0)
    assert fde_m(plan, truth, horizon_s) == pytest.approx(2 * horizon_s, abs=1e-9)
    assert ade_m(plan, truth, horizon_s) == pytest.approx(horizon_s + 0.1, abs=1e-9)
    assert speed_error_m_s(plan, truth, horizon_s) == pytest.approx(2, abs=1e-9)
    assert lateral_m(plan, truth, horizon_s) == 0


def test_along_and_across_are_those_of_the_driven_heading():
    truth = along(10.0, TURNED)
    ahead_and_left = np.array([math.cos(TURNED), math.sin(TURNED)]) * 1.5 + np.array(
        [-math.sin(TURNED), math.cos(TURNED)]
    ) * (0.25)
    plan = truth.copy()
    plan[:, :2] += ahead_and_left
    np.testing.assert_allclose(split_m(plan, truth), np.tile([1.5, 0.25], (64, 1)), atol=1e-9)


def test_headings_are_compared_modulo_a_whole_turn():
    truth, plan = along(5.0), along(5.0)
    truth[:, 2], plan[:, 2] = math.pi - 0.05, -math.pi + 0.05
    assert heading_error_rad(plan, truth, 6.4) == pytest.approx(0.1, abs=1e-9)


def test_the_best_of_several_samples_counts_by_figure():
    truth = along(10.0)
    offsets = [np.full(64, 1.0), np.where(T_S < 6.35, 2.0, 0.5)]
    samples = np.stack([truth + np.column_stack([0 * T_S, o, 0 * T_S]) for o in offsets])
    assert min_ade_m(samples, truth, 6.4) == pytest.approx(1.0, abs=1e-9)
    assert min_fde_m(samples, truth, 6.4) == pytest.approx(0.5, abs=1e-9)
    assert min_fde_m(samples, truth, 3.0) == pytest.approx(1.0, abs=1e-9)


def test_a_miss_is_more_than_2_m():
    assert (missed(2.0), missed(2.001)) == (0, 1)
    assert math.isnan(missed(float("nan")))


def test_figures_reach_as_far_as_the_truth_does():
    truth = along(10.0)
    truth[30:] = np.nan
    plan = along(11.0)
    for figure in (ade_m, fde_m, longitudinal_m, lateral_m, heading_error_rad, speed_error_m_s):
        assert math.isfinite(figure(plan, truth, 3.0))
        assert math.isnan(figure(plan, truth, 5.0))
    assert math.isnan(min_ade_m(plan[None], truth, 5.0))


@pytest.mark.parametrize("horizon_s", [0.0, 0.05, 6.5, -1.0, float("nan")])
def test_a_horizon_between_waypoints_is_refused(horizon_s):
    with pytest.raises(ValueError, match="allowed are"):
        steps_of(horizon_s)


def test_comfort_of_a_known_acceleration():
    plan = np.column_stack([5.0 * T_S + 0.6 * T_S**2, 0 * T_S, 0 * T_S])
    found = comfort(plan)
    assert found.forward_m_s2 == pytest.approx(1.2, abs=1e-9)
    assert found.braking_m_s2 == 0
    assert found.lateral_m_s2 == 0
    assert found.jerk_m_s3 == pytest.approx(0, abs=1e-6)


def test_comfort_of_a_known_jerk():
    """x = t^3 / 3 has the jerk 2 everywhere."""
    found = comfort(np.column_stack([T_S**3 / 3, 0 * T_S, 0 * T_S]))
    assert found.jerk_m_s3 == pytest.approx(2, abs=1e-6)


def test_comfort_across_on_a_circle():
    """v^2 / r = v w; the chord of 0.1 s is shorter than its arc by 4e-5 at 0.3 rad/s."""
    assert comfort(circle(10.0, 0.3)).lateral_m_s2 == pytest.approx(3.0, rel=1e-4)


def test_braking_is_positive():
    plan = np.column_stack([20 * T_S - 1.5 * T_S**2, 0 * T_S, 0 * T_S])
    assert comfort(plan).braking_m_s2 == pytest.approx(3.0, abs=1e-9)


def test_limits_are_exceeded_by_name_and_by_what_is_no_number():
    limits = ComfortLimits()
    at = Comfort(limits.forward_m_s2, limits.braking_m_s2, limits.lateral_m_s2, limits.jerk_m_s3)
    assert at.exceeded(limits) == ()
    above = Comfort(at.forward_m_s2, at.braking_m_s2 + 1e-6, float("nan"), at.jerk_m_s3)
    assert above.exceeded(limits) == ("braking", "lateral")


@pytest.mark.parametrize("gap_s", [0.1, 0.5, 3.0, 0.25])
def test_two_plans_of_one_motion_are_consistent(gap_s):
    pose = np.array([10.0 * gap_s * math.cos(TURNED), 10.0 * gap_s * math.sin(TURNED), TURNED])
    assert inconsistency_m(along(10.0, TURNED), along(10.0), gap_s, pose) == pytest.approx(
        0, abs=1e-9
    )


def test_a_plan_that_moves_by_half_a_metre_is_inconsistent_by_that():
    pose = np.array([5.0, 0.0, 0.0])
    moved = along(10.0) + [0.0, 0.5, 0.0]
    assert inconsistency_m(along(10.0), moved, 0.5, pose) == pytest.approx(0.5, abs=1e-9)


def test_plans_that_do_not_overlap_say_nothing():
    assert math.isnan(inconsistency_m(along(10.0), along(10.0), 6.4, np.zeros(3)))
    assert math.isfinite(inconsistency_m(along(10.0), along(10.0), 6.3, np.zeros(3)))
