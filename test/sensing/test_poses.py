"""Odometry between its stamps: against exact motion, and against SLERP written another way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from alpamayo_ros.sensing.poses import PoseRing, rotation_matrices, slerp
from alpamayo_ros.types import POSE_OFFSETS_NS, EgoPose

from .streams import MS, START_NS, Circle, stamps


@pytest.mark.parametrize("phase_ms", [0, 1, 37, 50, 99])
@pytest.mark.parametrize("rate_hz", [10, 50, 100, 200])
def test_positions_are_within_a_millimetre_and_headings_within_a_tenth_of_a_milliradian(
    rate_hz, phase_ms
):
    """On a circle at 10 m/s and 3 m/s2 across: the chord of 0.1 s is 3.75 mm off in its middle."""
    motion = Circle(speed_m_s=10.0, curvature=0.03)
    ring = PoseRing()
    for stamp_ns in stamps(rate_hz, phase_ms):
        ring.append(motion.pose(stamp_ns))
    t0_ns = START_NS + 2500 * MS
    instants_ns = [t0_ns + offset for offset in POSE_OFFSETS_NS]
    track = ring.at(instants_ns)
    for instant_ns, position, quaternion in zip(instants_ns, track.positions, track.quaternions):
        expected, yaw = motion.at(instant_ns)
        assert np.linalg.norm(position - expected) < 1e-3
        turned = 2 * math.atan2(quaternion[2], quaternion[3])
        assert abs(math.remainder(turned - yaw, 2 * math.pi)) < 1e-4


def test_what_arrives_after_the_instant_is_covered_changes_nothing():
    motion = Circle()
    early, late = PoseRing(), PoseRing()
    instants_ns = [START_NS + 2495 * MS + offset for offset in POSE_OFFSETS_NS]
    for stamp_ns in stamps(50):
        late.append(motion.pose(stamp_ns))
        if early.stamps_ns[-1:] < [instants_ns[-1]]:
            early.append(motion.pose(stamp_ns))
    assert len(early) < len(late)
    np.testing.assert_array_equal(early.at(instants_ns).positions, late.at(instants_ns).positions)


def test_an_accelerating_straight_motion_is_exact():
    ring = PoseRing()
    for k in range(20):
        t_s = 0.1 * k
        position = np.array([5.0 * t_s + 1.5 * t_s**2, 0.0, 0.0])
        ring.append(EgoPose(START_NS + k * 100 * MS, position, np.array([0.0, 0.0, 0.0, 1.0]), 5.0))
    track = ring.at([START_NS + 950 * MS, START_NS + 1234 * MS])
    expected = [5.0 * t + 1.5 * t**2 for t in (0.95, 1.234)]
    np.testing.assert_allclose(track.positions[:, 0], expected, atol=1e-9)


def test_a_pose_before_a_gap_does_not_bend_the_motion_after_it():
    ring = PoseRing()
    for stamp_ms, x in ((0, 0.0), (1000, 100.0), (1100, 101.0)):
        ring.append(
            EgoPose(
                START_NS + stamp_ms * MS,
                np.array([x, 0.0, 0.0]),
                np.array([0.0, 0.0, 0.0, 1.0]),
                10.0,
            )
        )
    assert ring.at([START_NS + 1050 * MS]).positions[0, 0] == pytest.approx(100.5)


def test_instants_outside_the_odometry_are_refused():
    ring = PoseRing()
    with pytest.raises(ValueError, match="outside"):
        ring.at([START_NS])
    ring.append(Circle().pose(START_NS))
    with pytest.raises(ValueError, match="outside"):
        ring.at([START_NS + 1])
    np.testing.assert_array_equal(ring.at([START_NS]).positions[0], Circle().at(START_NS)[0])


def test_slerp_turns_at_a_constant_rate_about_one_axis_the_short_way():
    rng = np.random.default_rng(0)
    for _ in range(50):
        axis = rng.standard_normal(3)
        axis /= np.linalg.norm(axis)
        start = rng.standard_normal(4)
        start /= np.linalg.norm(start)
        angle, part = rng.uniform(-3.0, 3.0), rng.uniform()
        end = product(start, turn(axis, angle)) * rng.choice([-1, 1])  # the sign means nothing
        expected = product(start, turn(axis, angle * part))
        found = slerp(start[None], end[None], np.array([part]))
        np.testing.assert_allclose(
            rotation_matrices(found), rotation_matrices(expected[None]), atol=1e-9
        )


def test_slerp_between_almost_equal_orientations_loses_no_digits():
    a, b = turn(np.array([0.0, 0.0, 1.0]), 0.3), turn(np.array([0.0, 0.0, 1.0]), 0.3 + 1e-9)
    found = slerp(a[None], b[None], np.array([0.5]))[0]
    assert 2 * math.atan2(found[2], found[3]) == pytest.approx(0.3 + 5e-10, abs=1e-12)


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    return np.append(axis * math.sin(angle / 2), math.cos(angle / 2))


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Hamilton product of quaternions x, y, z, w."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])
