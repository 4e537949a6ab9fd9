"""Plans of known shape, for tests of the gate, the worker and the messages."""

from __future__ import annotations

import numpy as np

from alpamayo_ros.types import STEP_S, Plan

T0_NS = 1_700_000_000_123_456_789


def arc_plan(
    speed_m_s: float = 8.0,
    curvature: float = 0.0,
    acceleration: float = 0.0,
    v0_m_s: float | None = None,
    samples: int = 1,
    truncated: bool = False,
) -> Plan:
    """A plan along a circle at constant speed (negative: backwards), exactly on the arc."""
    k = np.arange(1, 65)
    s = speed_m_s * STEP_S * k
    yaw = curvature * s
    half = yaw / 2
    chord = s * np.sinc(half / np.pi)
    waypoints = np.column_stack([chord * np.cos(half), chord * np.sin(half), yaw])
    actions = np.tile([acceleration, curvature], (64, 1))
    return Plan(
        t0_ns=T0_NS,
        samples=np.stack([waypoints] * samples).astype(np.float32),
        actions=np.stack([actions] * samples).astype(np.float32),
        chosen=0,
        z_m=0.0,
        v0_m_s=speed_m_s if v0_m_s is None else v0_m_s,
        reasoning="The road is clear; keep the speed.",
        token_ids=((1, 2, 3),) * samples,
        truncated=(truncated,) * samples,
        spread_m=0.0,
        seed=7,
        model_id="test",
        device="cpu",
        dtype="float32",
        timing_ms={"vision": 1.5, "total": 2.5},
    )
