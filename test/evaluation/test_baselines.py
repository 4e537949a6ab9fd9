"""The baselines are exact on the motions that they are named after."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.evaluation.baselines import (
    BASELINES,
    acceleration_m_s2,
    constant_acceleration,
    constant_turn_rate_and_velocity,
    constant_velocity,
    turn_rate_rad_s,
)

PAST_S = np.arange(-15, 1) * 0.1
AHEAD_S = np.arange(1, 65) * 0.1


def rotations(yaw: np.ndarray) -> np.ndarray:
    """Turns about z, (N, 3, 3)."""
    result = np.zeros((len(yaw), 3, 3))
    result[:, 0, 0] = result[:, 1, 1] = np.cos(yaw)
    result[:, 1, 0], result[:, 0, 1] = np.sin(yaw), -np.sin(yaw)
    result[:, 2, 2] = 1
    return result


def straight(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The history of a way along x."""
    return np.column_stack([x, 0 * x, 0 * x]), rotations(0 * x)


def circle(t_s: np.ndarray, speed: float, rate: float) -> np.ndarray:
    """x, y, yaw on a circle that begins at the origin."""
    radius, turned = speed / rate, rate * t_s
    return np.column_stack([radius * np.sin(turned), radius * (1 - np.cos(turned)), turned])


@pytest.mark.parametrize("v0", [13.0, 0.0, -2.0])
def test_constant_velocity_is_exact_on_a_straight_way_at_one_speed(v0):
    plan = constant_velocity(*straight(v0 * PAST_S), v0)
    np.testing.assert_allclose(plan[:, 0], v0 * AHEAD_S, atol=1e-9)
    assert not plan[:, 1:].any()


@pytest.mark.parametrize("rate", [0.3, -0.05, 0.6, 1e-12])
def test_constant_turn_rate_is_exact_on_a_circle(rate):
    history = circle(PAST_S, 8.0, rate)
    xyz = np.column_stack([history[:, :2], np.zeros(16)])
    plan = constant_turn_rate_and_velocity(xyz, rotations(history[:, 2]), 8.0)
    want = circle(AHEAD_S, 8.0, rate)
    if abs(rate) < 1e-9:  # the closed form of the circle loses its digits: it is a straight way
        want = np.column_stack([8.0 * AHEAD_S, 0 * AHEAD_S, 0 * AHEAD_S])
    np.testing.assert_allclose(plan[:, :2], want[:, :2], atol=1e-9)
    np.testing.assert_allclose(np.exp(1j * plan[:, 2]), np.exp(1j * want[:, 2]), atol=1e-9)
    assert (np.abs(plan[:, 2]) <= np.pi).all()


def test_the_turn_rate_counts_through_half_a_turn():
    assert turn_rate_rad_s(rotations(3.0 + 0.7 * PAST_S)) == pytest.approx(0.7, abs=1e-9)
    assert turn_rate_rad_s(rotations(3.3 + 0.7 * PAST_S)) == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize(("v0", "a"), [(5.0, 1.5), (0.0, 2.0), (20.0, -1.0), (-3.0, -0.5)])
def test_constant_acceleration_is_exact_on_a_straight_way(v0, a):
    history = straight(v0 * PAST_S + a * PAST_S**2 / 2)
    plan = constant_acceleration(*history, v0)
    np.testing.assert_allclose(plan[:, 0], v0 * AHEAD_S + a * AHEAD_S**2 / 2, atol=1e-9)


@pytest.mark.parametrize(("v0", "a"), [(6.0, -3.0), (-2.0, 1.0)])
def test_braking_ends_in_a_standstill_not_in_the_other_direction(v0, a):
    plan = constant_acceleration(*straight(v0 * PAST_S + a * PAST_S**2 / 2), v0)
    stopped = -v0 / a <= AHEAD_S
    np.testing.assert_allclose(plan[stopped, 0], -(v0**2) / (2 * a), atol=1e-9)
    assert stopped.sum() > 20


def test_acceleration_has_a_sign_in_reverse():
    """Backing up ever faster is a negative acceleration along the vehicle."""
    xyz, rot = straight(-1.0 * PAST_S - 0.8 * PAST_S**2 / 2)
    moving = xyz[-6:]
    assert (np.diff(moving[:, 0]) < 0).all()
    assert acceleration_m_s2(xyz, rot) == pytest.approx(-0.8, abs=1e-9)


@pytest.mark.parametrize("name", BASELINES)
def test_a_vehicle_that_stands_goes_nowhere(name):
    plan = BASELINES[name](*straight(0 * PAST_S), 0.0)
    assert plan.shape == (64, 3)
    assert plan.dtype == np.float64
    assert not plan.any()
