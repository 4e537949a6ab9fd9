"""Counters of a node's life, for status, diagnostics and summaries."""

from __future__ import annotations

import collections
import statistics
from dataclasses import dataclass, field

import numpy as np

from alpamayo_ros.planning.planner import Decision

KEPT_DURATIONS = 600  # a minute at 10 Hz
WINDOW_S = 60.0
KEPT_TIMINGS = 6_000  # a minute at 100 Hz, the highest planning.max_rate_hz


@dataclass(frozen=True)
class Latencies:
    """How fast the decisions of the last minute were."""

    plans_per_s: float  # from the first of them until now, so that it falls when planning stops
    p50_ms: dict[str, float]  # by stage, and `total`
    p99_ms: dict[str, float]


@dataclass
class Statistics:
    """What has happened since configure. Written by the planning thread, read by the executor."""

    snapshots: int = 0
    plans: int = 0
    accepted: int = 0
    rejections: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: int = 0
    last_error: str = ""
    black_box_problem: str = ""  # why the newest snapshot could not be written
    encoded_ahead: int = 0  # frames that were encoded before their plan was due
    last_decision: Decision | None = None
    device_free_bytes: int | None = None  # after the newest decision; None before the first
    durations_ms: collections.deque[float] = field(
        default_factory=lambda: collections.deque(maxlen=KEPT_DURATIONS)
    )
    timings: collections.deque[tuple[float, dict[str, float]]] = field(
        default_factory=lambda: collections.deque(maxlen=KEPT_TIMINGS)
    )  # steady time in s of each decision's end, and its stages' durations in ms

    @property
    def rejected(self) -> int:
        """Plans that the gate rejected."""
        return self.plans - self.accepted

    @property
    def median_ms(self) -> float:
        """Median duration of the newest decisions; -1 before the first."""
        durations = list(self.durations_ms)
        return statistics.median(durations) if durations else -1.0

    def count(self, decision: Decision, steady_s: float) -> None:
        """Count a decision that was finished at `steady_s` of the steady clock."""
        self.plans += 1
        self.accepted += decision.verdict.accepted
        self.rejections.update({r.split(":")[0] for r in decision.verdict.reasons})
        self.durations_ms.append(decision.plan.timing_ms["total"])
        self.timings.append((steady_s, decision.plan.timing_ms))
        while self.timings[0][0] <= steady_s - WINDOW_S:  # or ten minutes are kept at 10 Hz
            self.timings.popleft()
        self.last_decision = decision
        self.last_error = ""

    def latencies(self, steady_s: float) -> Latencies | None:
        """Those of the minute before `steady_s` of the steady clock; None without a decision."""
        recent = [timing for timing in list(self.timings) if timing[0] > steady_s - WINDOW_S]
        if not recent:
            return None
        span_s = steady_s - recent[0][0]
        by_stage: dict[str, list[float]] = {}
        for _, durations_ms in recent:
            for stage, duration_ms in durations_ms.items():
                by_stage.setdefault(stage, []).append(duration_ms)
        p50_ms, p99_ms = (
            {stage: float(np.percentile(values, share)) for stage, values in by_stage.items()}
            for share in (50, 99)
        )
        rate = (len(recent) - 1) / span_s if span_s > 0 else 0.0
        return Latencies(rate, p50_ms, p99_ms)
