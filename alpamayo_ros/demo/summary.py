"""What a demo run came to, in numbers and in some moments worth a look."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import alpamayo_ros

FASTEST_PERIOD_S = 0.1  # the node plans at most once a frame
EXPECTED_SHARE = 0.9


@dataclass(frozen=True)
class Decision:
    """One plan as it was published."""

    t_s: float  # of its t0, from the bag's start
    decision_ms: float  # from the snapshot to the plan
    stages_ms: Mapping[str, float]  # stage to duration, in order
    reasons: tuple[str, ...] = ()  # why the gate rejected it, such as "lateral: 7.3 m/s2 over 6"

    @property
    def accepted(self) -> bool:
        """Whether the gate let it pass."""
        return not self.reasons


@dataclass(frozen=True)
class Quantiles:
    """How durations are spread."""

    median: float
    p90: float
    p99: float

    @classmethod
    def of(cls, durations: Iterable[float]) -> Quantiles:
        """Quantiles of at least one duration, interpolated linearly."""
        median, p90, p99 = np.percentile(list(durations), [50, 90, 99])
        return cls(float(median), float(p90), float(p99))


@dataclass(frozen=True)
class Summary:
    """The numbers of a run."""

    decisions: tuple[Decision, ...]
    refused: Mapping[str, int]  # snapshots not planned on, by reason
    seconds_from_first_window: float  # from the first complete snapshot to the bag's end
    model_id: str
    device: str
    bag: str  # name of the bag
    version: str = alpamayo_ros.__version__

    @property
    def plans(self) -> int:
        """How many plans were published."""
        return len(self.decisions)

    @property
    def accepted(self) -> int:
        """How many of them the gate let pass."""
        return sum(decision.accepted for decision in self.decisions)

    @property
    def rejected(self) -> dict[str, int]:
        """How many plans were rejected for a reason, the most frequent first.

        A plan with two reasons counts for both.
        """
        names = Counter(
            name
            for decision in self.decisions
            for name in {reason.partition(":")[0] for reason in decision.reasons}
        )
        return dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))

    @property
    def decision_time_median_ms(self) -> float | None:
        """Median time from a snapshot to its plan; None without plans."""
        if not self.decisions:
            return None
        return float(np.median([decision.decision_ms for decision in self.decisions]))

    @property
    def latency_ms(self) -> dict[str, Quantiles]:
        """Durations of whole decisions ("decision") and of each stage, milliseconds."""
        durations: dict[str, list[float]] = {}
        for decision in self.decisions:
            durations.setdefault("decision", []).append(decision.decision_ms)
            for stage, duration_ms in decision.stages_ms.items():
                durations.setdefault(stage, []).append(duration_ms)
        return {stage: Quantiles.of(values) for stage, values in durations.items()}

    @property
    def expected_plans(self) -> float:
        """How many plans a node has to publish that is no slower than its model."""
        decision_s = (self.decision_time_median_ms or 0.0) / 1e3
        return EXPECTED_SHARE * self.seconds_from_first_window / max(FASTEST_PERIOD_S, decision_s)

    def to_json(self) -> str:
        """The document of summary.json."""
        document = {
            "plans": self.plans,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "refused": dict(self.refused),
            "latency_ms": {stage: vars(spread) for stage, spread in self.latency_ms.items()},
            "decision_time_median_ms": self.decision_time_median_ms,
            "seconds_from_first_window": self.seconds_from_first_window,
            "expected_plans": self.expected_plans,
            "model_id": self.model_id,
            "device": self.device,
            "bag": self.bag,
            "version": self.version,
        }
        return json.dumps(document, indent=2, allow_nan=False) + "\n"

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write summary.json into an existing folder, atomically."""
        return write_text(Path(folder) / "summary.json", self.to_json())


@dataclass(frozen=True, eq=False)
class Moment:
    """One decision with pictures, all uint8 (H, W, 3) RGB."""

    decision: Decision
    cameras: Mapping[str, np.ndarray]  # by role, as the model saw them at t0
    plan_in_front: np.ndarray  # of pictures.draw_plan_in_front
    plan_from_above: np.ndarray  # of pictures.draw_from_above
    reasoning: str
    ego_speed_m_s: float
    navigation_text: str = ""
    truncated: bool = False


def write_text(target: Path, text: str) -> Path:
    """Write a file so that it is never seen half-written."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return target
