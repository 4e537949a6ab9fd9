"""Plans from a file: found by t0, checked, and judged by the gate."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.evaluation.deciders import GivenDecider, Plans, PlansError, implied_actions

T_S = np.arange(1, 65) * 0.1
T0_NS = 1_700_000_000_123_456_789


def load(tmp_path, **arrays) -> Plans:
    np.savez(tmp_path / "plans.npz", **arrays)
    return Plans.load(tmp_path / "plans.npz")


def test_actions_of_a_path_are_its_acceleration_and_curvature():
    """An arc of radius 40 m at 5 m/s, braking by 0.5 m/s2: way s = 5 t - 0.25 t^2."""
    way = 5 * T_S - 0.25 * T_S**2
    path = np.column_stack([40 * np.sin(way / 40), 40 * (1 - np.cos(way / 40)), way / 40])
    actions = implied_actions(path, 5.0)
    np.testing.assert_allclose(actions[1:, 0], -0.5, atol=1e-3)
    np.testing.assert_allclose(actions[:, 1], 1 / 40, rtol=1e-4)


def test_a_path_that_stands_still_has_no_curvature():
    path = np.zeros((64, 3))
    path[:, 2] = T_S
    assert not implied_actions(path, 0.0)[:, 1].any()


def test_plans_without_yaw_head_along_their_motion(tmp_path):
    plans = load(tmp_path, t0_ns=np.array([T0_NS]), waypoints=np.stack([T_S, T_S], 1)[None])
    assert plans.samples.shape == (1, 1, 64, 3)
    np.testing.assert_allclose(plans.samples[0, 0, :, 2], np.pi / 4)


def test_a_t0_that_went_through_float_seconds_is_found(tmp_path):
    stamps = np.array([T0_NS, T0_NS + 100_000_000])
    plans = load(tmp_path, t0_ns=stamps, samples=np.zeros((2, 3, 64, 3)))
    assert plans.find("any", int(T0_NS / 1e9 * 1e9)) == 0
    assert plans.find("any", T0_NS + 100_000_000) == 1
    assert plans.find("any", T0_NS + 50_000_000) is None


def test_the_identity_is_that_of_the_files_content(tmp_path):
    names = []
    for shift in (0.0, 0.0, 1.0):
        plans = load(tmp_path, t0_ns=np.array([T0_NS]), waypoints=np.zeros((1, 64, 3)) + shift)
        names.append(GivenDecider(plans).identity[0])
    assert names[0] == names[1] != names[2]


GOOD = {"t0_ns": np.array([T0_NS]), "samples": np.zeros((1, 2, 64, 3))}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"samples": np.zeros((1, 2, 63, 3))}, r"samples must be \(1, S, 64, 3 or 2\)"),
        ({"samples": np.zeros((2, 2, 64, 3))}, r"got \(2, 2, 64, 3\)"),
        ({"samples": np.zeros((1, 0, 64, 3))}, "samples must be"),
        ({"samples": np.zeros((1, 2, 64, 3), np.int64)}, "floating point"),
        ({"t0_ns": np.array([1.7e9])}, "whole nanoseconds, got float64"),
        ({"chosen": np.array([2])}, "of 0 to 1"),
        ({"chosen": np.array([-1])}, "of 0 to 1"),
        ({"chosen": np.array([0.5])}, "whole numbers of 0 to 1"),
        ({"chosen": np.array(["0"])}, "whole numbers of 0 to 1"),
        ({"chosen": np.array(0)}, "chosen must be"),
        ({"samples": np.array(1.0)}, r"got \(\)"),
        ({"samples": np.zeros((1, 2, 64, 3), complex)}, "floating point"),
        ({"samples": np.zeros((1, 2, 64, 4))}, "samples must be"),
        ({"t0_ns": np.array(T0_NS)}, r"t0_ns must be \(N,\)"),
        ({"t0_ns": np.array([[T0_NS]])}, r"t0_ns must be \(N,\)"),
        ({"t0_ns": np.zeros(0, np.int64), "samples": np.zeros((0, 2, 64, 3))}, "t0_ns must be"),
        ({"t0_ns": np.array(["now"])}, "whole nanoseconds"),
        ({"reasoning": np.array([1])}, "reasoning must be"),
        ({"bag": np.array(["a", "b"])}, "bag must be"),
    ],
)
def test_plans_of_a_wrong_form_are_refused(tmp_path, change, says):
    with pytest.raises(PlansError, match=says) as caught:
        load(tmp_path, **{**GOOD, **change})
    assert "\n" not in str(caught.value)


def test_waypoints_of_a_wrong_form_are_refused(tmp_path):
    for waypoints in (np.array(1.0), np.zeros(64), np.zeros((64, 3)), np.zeros((1, 2, 64, 3))):
        with pytest.raises(PlansError, match="samples must be"):
            load(tmp_path, t0_ns=np.array([T0_NS]), waypoints=waypoints)


def test_a_file_that_lacks_plans_or_is_none_is_refused(tmp_path):
    with pytest.raises(PlansError, match="needs t0_ns"):
        load(tmp_path, t0_ns=np.array([T0_NS]))
    with pytest.raises(PlansError, match="no such file"):
        Plans.load(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(PlansError, match="damaged"):
        Plans.load(tmp_path / "bad.npz")
