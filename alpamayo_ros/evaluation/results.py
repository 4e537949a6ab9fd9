"""metrics.json and decisions.csv: what a run came to."""

from __future__ import annotations

import collections
import csv
import hashlib
import io
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import alpamayo_ros
from alpamayo_ros.demo.summary import Quantiles, write_text
from alpamayo_ros.evaluation.metrics import HORIZONS_S, ComfortLimits, steps_of
from alpamayo_ros.evaluation.records import BagRecords
from alpamayo_ros.evaluation.scores import (
    DRIVEN,
    FIGURES,
    MODEL,
    SUBJECTS,
    Scored,
    score,
)
from alpamayo_ros.evaluation.statistics import Estimate, blocks, estimate
from alpamayo_ros.evaluation.words import MANOEUVRES
from alpamayo_ros.sensing.poses import Origin
from alpamayo_ros.types import STEP_S

SCHEMA = 1
LIBRARIES = ("numpy", "opencv-python-headless", "rosbags", "torch", "transformers")


@dataclass(frozen=True)
class FailedBag:
    """A bag that could not be evaluated, and why."""

    name: str
    error: str


@dataclass(frozen=True, eq=False)
class Results:
    """All that a run knows; every figure is computed from it."""

    bags: tuple[BagRecords, ...]
    failed: tuple[FailedBag, ...]
    configuration: Mapping[str, Any]  # plain values that decide on the figures
    origin: Origin
    seed: int
    created: str  # ISO time
    wall_s: float

    def scored(self) -> list[Scored]:
        """Every decision with its figures."""
        return score(self.bags, self.origin)


@dataclass(frozen=True)
class Row:
    """One figure of one subject."""

    subject: str
    figure: str
    horizon_s: float
    unit: str
    estimate: Estimate

    def as_json(self) -> dict[str, Any]:
        """The row of metrics.json."""
        rest = {"figure": self.figure, "horizon_s": self.horizon_s, "unit": self.unit}
        return {"subject": self.subject, **rest, **vars(self.estimate)}


def figure_rows(scored: Sequence[Scored], seed: int) -> list[Row]:
    """Means and intervals of all figures, over the decisions for which each is known."""
    block = block_of(scored)
    return [
        Row(subject, name, horizon_s, figure.unit, estimate(values, block, seed))
        for name, figure in FIGURES.items()
        for horizon_s in HORIZONS_S
        for subject in SUBJECTS
        for values in [np.array([d.value(subject, name, horizon_s) for d in scored])]
    ]


def block_of(scored: Sequence[Scored]) -> np.ndarray:
    """The stretch (N,) that each decision is resampled with."""
    return blocks(
        np.array([decision.bag_number for decision in scored]),
        np.array([decision.record.t_s for decision in scored]),
    )


def document(results: Results, scored: Sequence[Scored]) -> dict[str, Any]:
    """metrics.json; everything that differs from run to run lies under "times"."""
    block, seed = block_of(scored), results.seed
    return {
        "schema": SCHEMA,
        "versions": versions(),
        "model": _model(results),
        "configuration": dict(results.configuration),
        "configuration_sha256": sha256_of(results.configuration),
        "seed": seed,
        "bags": [_bag(bag) for bag in results.bags],
        "failed_bags": [asdict(bag) for bag in results.failed],
        "decisions": len(scored),
        "decisions_not_finite": sum(not decision.finite for decision in scored),
        "decisions_with_truth": {
            str(horizon_s): sum(
                decision.known_waypoints >= steps_of(horizon_s) for decision in scored
            )
            for horizon_s in HORIZONS_S
        },
        "figures": [row.as_json() for row in figure_rows(scored, seed)],
        "comfort": _comfort(scored, block, seed),
        "inconsistency_m": {
            subject: vars(_inconsistency(scored, subject, block, seed)) for subject in SUBJECTS
        },
        "gate": _gate(scored),
        "reasoning": _reasoning(scored, block, seed),
        "times": _times(results, scored),
    }


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write an object of numbers that are all finite, atomically."""
    write_text(path, json.dumps(values, indent=2, allow_nan=False) + "\n")


def sha256_of(values: Mapping[str, Any]) -> str:
    """sha256 of plain values, whatever their order."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def versions() -> dict[str, str]:
    """This package's version, and those that may move a figure's last digits."""
    own = {"alpamayo_ros": alpamayo_ros.__version__, "python": platform.python_version()}
    return {**own, **{name: _version(name) for name in LIBRARIES}}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # OpenCV of the distribution, for instance
        return "unknown"


def _model(results: Results) -> dict[str, str]:
    first = results.bags[0]
    return {"id": first.model_id, "device": first.device, "dtype": first.dtype}


def _bag(bag: BagRecords) -> dict[str, Any]:
    return {
        "name": bag.name,
        "sha256": bag.sha256,
        "duration_s": bag.duration_s,
        "topics": dict(bag.topics),
        "decisions": len(bag.records),
        "refused": dict(bag.refused),
        "unusable_messages": bag.unusable_messages,
    }


def _comfort(scored: Sequence[Scored], block: np.ndarray, seed: int) -> dict[str, Any]:
    limits = ComfortLimits()
    found: dict[str, Any] = {"limits": asdict(limits)}
    for subject in (*SUBJECTS, DRIVEN):
        exceeded = [decision.exceeded(subject, limits) for decision in scored]
        values = np.array([np.nan if names is None else float(bool(names)) for names in exceeded])
        counts = collections.Counter(name for names in exceeded for name in names or ())
        found[subject] = {
            "uncomfortable": vars(estimate(values, block, seed)),
            "exceeded": dict(sorted(counts.items())),
        }
    return found


def _inconsistency(
    scored: Sequence[Scored], subject: str, block: np.ndarray, seed: int
) -> Estimate:
    values = [decision.inconsistency_m[subject] for decision in scored]
    return estimate(np.array(values), block, seed)


def _gate(scored: Sequence[Scored]) -> dict[str, Any]:
    names = [
        {reason.partition(":")[0] for reason in decision.record.reasons} for decision in scored
    ]
    counts = collections.Counter(name for found in names for name in found)
    return {
        "accepted": sum(not found for found in names),
        "rejected": sum(bool(found) for found in names),
        "rejected_by": dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
    }


def _reasoning(scored: Sequence[Scored], block: np.ndarray, seed: int) -> dict[str, Any]:
    """Length of the reasoning, and agreement of its words with the path."""
    with_text = [decision for decision in scored if decision.record.tokens]
    agreement = [np.nan if d.agrees is None else float(d.agrees) for d in scored]
    tokens = [decision.record.tokens for decision in with_text]
    return {
        "tokens": vars(Quantiles.of(tokens)) if tokens else None,
        "truncated": sum(decision.record.truncated for decision in scored),
        "agreement": vars(estimate(np.array(agreement), block, seed)),
        "claims": {
            name: {
                "said": sum(name in d.claims for d in scored),
                "done": sum(name in d.claims and name in d.deeds for d in scored),
            }
            for name in MANOEUVRES
        },
    }


def _times(results: Results, scored: Sequence[Scored]) -> dict[str, Any]:
    stages: dict[str, list[float]] = {}
    for decision in scored:
        for stage, duration_ms in decision.record.timing_ms.items():
            stages.setdefault(stage, []).append(duration_ms)
    return {
        "created": results.created,
        "wall_s": results.wall_s,
        "latency_ms": {stage: vars(Quantiles.of(values)) for stage, values in stages.items()},
    }


def write_decisions(path: Path, scored: Sequence[Scored]) -> None:
    """decisions.csv: one row a decision, with all figures; what is not known is empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(name for name, _ in _cells(scored[0]))
    writer.writerows([value for _, value in _cells(decision)] for decision in scored)
    write_text(path, text.getvalue())


def _cells(decision: Scored) -> Iterator[tuple[str, Any]]:
    """Names and values of a row; lists are joined by "; "."""
    record = decision.record
    yield "bag", decision.bag
    yield "t0_ns", record.t0_ns
    yield "t_s", f"{record.t_s:.3f}"
    yield "speed_m_s", f"{record.speed_m_s:.6g}"
    yield "truth_s", f"{decision.known_waypoints * STEP_S:.1f}"
    yield "accepted", int(not record.reasons)
    yield "reasons", "; ".join(record.reasons)
    for subject in SUBJECTS:
        for name in FIGURES:
            for horizon_s in HORIZONS_S:
                value = decision.value(subject, name, horizon_s)
                cell = f"{value:.6g}" if np.isfinite(value) else ""
                yield f"{subject}.{name}.{horizon_s:g}s", cell
    inconsistency_m = decision.inconsistency_m[MODEL]
    yield "inconsistency_m", f"{inconsistency_m:.6g}" if np.isfinite(inconsistency_m) else ""
    yield "uncomfortable", "; ".join(decision.exceeded(MODEL, ComfortLimits()) or ())
    yield "claims", "; ".join(sorted(decision.claims))
    yield "deeds", "; ".join(sorted(decision.deeds))
    yield "tokens", record.tokens
    yield "truncated", int(record.truncated)
    yield "reasoning", " ".join(record.reasoning.split())
    yield "total_ms", f"{record.timing_ms.get('total', float('nan')):.1f}".replace("nan", "")
