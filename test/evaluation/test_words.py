"""What a sentence claims, what a path does, and whether they agree."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.evaluation.words import MANOEUVRES, claims, deeds

T_S = np.arange(1, 65) * 0.1


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("Nudge to the left to increase clearance from parked cars on the right.", {"left"}),
        ("Turn right at the junction, then accelerate gently.", {"right", "accelerate"}),
        ("Keep the lane because a vehicle is merging from the right.", set()),
        ("Follow the curve to the left since the road bends to the left.", {"left"}),
        ("A car is on the left.", set()),
        ("Stop for the pedestrian.", {"stop"}),
        ("Slow down since there is a stop sign.", {"slow"}),
        ("Slow down for the stop sign.", {"slow"}),
        ("Pass the stopped vehicle.", set()),
        ("Stay stopped; the light is red.", {"stop"}),
        ("Decelerate and come to a standstill.", {"slow", "stop"}),
        ("Do not change to the left lane.", set()),
        ("Do not turn left, brake.", {"slow"}),
        ("BRAKE HARD.", {"slow"}),
        ("move off", {"accelerate"}),
        ("That is the right speed.", set()),
        ("", set()),
        ("\ufffd\x00 unreadable", set()),
    ],
)
def test_a_text_claims(text, claimed):
    assert claims(text) == claimed


def path(speed: np.ndarray, side: np.ndarray | float = 0.0) -> np.ndarray:
    """A path at speeds (64,) along x, moved sideways."""
    return np.column_stack([np.cumsum(speed) * 0.1, side + 0 * T_S, 0 * T_S])


@pytest.mark.parametrize(
    ("plan", "done"),
    [
        (path(10 + 0 * T_S), set()),
        (path(10 + 0 * T_S, 0.4 * T_S), {"left"}),
        (path(10 + 0 * T_S, -0.4 * T_S), {"right"}),
        (path(10 + 0 * T_S, 0.15 * T_S), set()),
        (path(10 + 0.5 * T_S), {"accelerate"}),
        (path(10 - 0.5 * T_S), {"slow"}),
        (path(np.maximum(10 - 2 * T_S, 0)), {"slow", "stop"}),
        (path(10 + 0.05 * T_S), set()),
    ],
)
def test_a_path_does(plan, done):
    assert deeds(plan, 10.0) == done


def test_a_vehicle_that_stands_and_stays_has_stopped_but_not_slowed():
    assert deeds(path(0 * T_S), 0.0) == {"stop"}


def test_every_manoeuvre_can_be_claimed_and_done():
    said = claims("turn left. turn right. stop. accelerate. slow down.")
    swerving = path(np.maximum(8 + 4 * np.sin(T_S) - 3 * T_S, 0), 3 * np.sin(2 * T_S))
    assert said == set(MANOEUVRES)
    assert deeds(swerving, 8.0) == set(MANOEUVRES)
