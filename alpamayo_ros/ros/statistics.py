"""Counters of a node's life, for status, diagnostics and summaries."""

from __future__ import annotations

import collections
import statistics
from dataclasses import dataclass, field

from alpamayo_ros.planning.planner import Decision

KEPT_DURATIONS = 600  # a minute at 10 Hz


@dataclass
class Statistics:
    """What has happened since configure. Written by the planning thread, read by the executor."""

    snapshots: int = 0
    plans: int = 0
    accepted: int = 0
    rejections: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: int = 0
    last_error: str = ""
    last_decision: Decision | None = None
    durations_ms: collections.deque[float] = field(
        default_factory=lambda: collections.deque(maxlen=KEPT_DURATIONS)
    )

    @property
    def rejected(self) -> int:
        """Plans that the gate rejected."""
        return self.plans - self.accepted

    @property
    def median_ms(self) -> float:
        """Median duration of the newest decisions; -1 before the first."""
        durations = list(self.durations_ms)
        return statistics.median(durations) if durations else -1.0

    def count(self, decision: Decision) -> None:
        """Count a finished decision."""
        self.plans += 1
        self.accepted += decision.verdict.accepted
        self.rejections.update({r.split(":")[0] for r in decision.verdict.reasons})
        self.durations_ms.append(decision.plan.timing_ms["total"])
        self.last_decision = decision
        self.last_error = ""
