"""Every figure of every decision, of the plan and of the baselines beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from alpamayo_ros.evaluation import metrics
from alpamayo_ros.evaluation.baselines import BASELINES
from alpamayo_ros.evaluation.metrics import HORIZONS_S, Comfort, ComfortLimits, comfort
from alpamayo_ros.evaluation.records import BagRecords, Record
from alpamayo_ros.evaluation.words import claims, deeds
from alpamayo_ros.sensing.poses import Origin, Track, ego_history
from alpamayo_ros.types import STEP_S

MODEL = "model"
DRIVEN = "driven"  # the truth, where a figure says something about it
SUBJECTS = (MODEL, *BASELINES)
LONGEST_GAP_S = 3.2  # between two plans that are compared: they share half of their horizon


@dataclass(frozen=True)
class Figure:
    """What is measured, how, and in which unit."""

    name: str
    unit: str
    meaning: str


FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        figure.name: figure
        for figure in (
            Figure("ade", "m", "average displacement of the driven sample"),
            Figure("fde", "m", "displacement at the horizon"),
            Figure("min_ade", "m", "average displacement of the best sample (minADE)"),
            Figure("min_fde", "m", "displacement at the horizon of the best sample"),
            Figure("miss", "share", "misses: over 2 m off at the horizon"),
            Figure("min_miss", "share", "misses of the best sample"),
            Figure("longitudinal", "m", "mean distance along the driven heading"),
            Figure("lateral", "m", "mean distance across the driven heading"),
            Figure("heading", "rad", "mean absolute heading error"),
            Figure("speed", "m/s", "mean absolute speed error"),
        )
    }
)


@dataclass(frozen=True, eq=False)
class Scored:
    """A decision with its figures."""

    bag: str
    bag_number: int
    record: Record
    inconsistency_m: Mapping[str, float]  # by subject, to the decision before; NaN without one

    @cached_property
    def finite(self) -> bool:
        """Whether every sample is numbers; a decision that is not has no figures."""
        return bool(np.isfinite(self.record.samples).all())

    @cached_property
    def known_waypoints(self) -> int:
        """How far the truth reaches."""
        return len(self.record.known_truth)

    @cached_property
    def plans(self) -> Mapping[str, np.ndarray]:
        """Samples (S, 64, 3) by subject, the driven one first."""
        record = self.record
        driven = record.samples[record.chosen][None]
        others = np.delete(record.samples, record.chosen, axis=0)
        history = record.history_xyz, record.history_rot
        return {
            MODEL: np.concatenate([driven, others]),
            **{name: base(*history, record.speed_m_s)[None] for name, base in BASELINES.items()},
        }

    @cached_property
    def figures(self) -> Mapping[tuple[str, str, float], float]:
        """Value by subject, figure and horizon; NaN where the truth does not reach."""
        return {
            (subject, name, horizon_s): value
            for subject, samples in self.plans.items()
            for horizon_s in HORIZONS_S
            for name, value in _figures(samples, self.record.truth, horizon_s).items()
        }

    def value(self, subject: str, figure: str, horizon_s: float) -> float:
        """One figure; NaN when it is not known."""
        if subject == MODEL and not self.finite:
            return float("nan")
        return self.figures[subject, figure, horizon_s]

    @cached_property
    def comfort(self) -> Mapping[str, Comfort]:
        """Extremes by subject, and of the driven path where all of it is known."""
        found = {name: comfort(samples[0]) for name, samples in self.plans.items()}
        if self.known_waypoints == len(self.record.truth):
            found[DRIVEN] = comfort(self.record.truth)
        return found

    def exceeded(self, subject: str, limits: ComfortLimits) -> tuple[str, ...] | None:
        """Comfort limits that a subject exceeds; None when there is no such path."""
        if subject not in self.comfort or (subject == MODEL and not self.finite):
            return None
        return self.comfort[subject].exceeded(limits)

    @cached_property
    def claims(self) -> frozenset[str]:
        """What the reasoning says the ego does."""
        return claims(self.record.reasoning)

    @cached_property
    def deeds(self) -> frozenset[str]:
        """What the path does."""
        return deeds(self.record.plan, self.record.speed_m_s) if self.finite else frozenset()

    @property
    def agrees(self) -> bool | None:
        """Whether the path does all that the words claim; None without a claim."""
        return self.claims <= self.deeds if self.claims else None


def score(bags: Sequence[BagRecords], origin: Origin) -> list[Scored]:
    """All decisions of all bags, in their order.

    Args:
        origin: x, y, z, yaw of the model's origin in child_frame_id.
    """
    scored = []
    for number, bag in enumerate(bags):
        nothing = dict.fromkeys(SUBJECTS, float("nan"))
        found = [Scored(bag.name, number, record, nothing) for record in bag.records]
        for i, (before, after) in enumerate(pairwise(found), start=1):
            found[i] = Scored(
                bag.name, number, after.record, _inconsistency(before, after, np.array(origin))
            )
        scored += found
    return scored


def _figures(samples: np.ndarray, truth: np.ndarray, horizon_s: float) -> dict[str, float]:
    plan = samples[0]
    fde = metrics.fde_m(plan, truth, horizon_s)
    min_fde = metrics.min_fde_m(samples, truth, horizon_s)
    return {
        "ade": metrics.ade_m(plan, truth, horizon_s),
        "fde": fde,
        "min_ade": metrics.min_ade_m(samples, truth, horizon_s),
        "min_fde": min_fde,
        "miss": metrics.missed(fde),
        "min_miss": metrics.missed(min_fde),
        "longitudinal": metrics.longitudinal_m(plan, truth, horizon_s),
        "lateral": metrics.lateral_m(plan, truth, horizon_s),
        "heading": metrics.heading_error_rad(plan, truth, horizon_s),
        "speed": metrics.speed_error_m_s(plan, truth, horizon_s),
    }


def _inconsistency(before: Scored, after: Scored, origin: np.ndarray) -> dict[str, float]:
    gap_s = (after.record.t0_ns - before.record.t0_ns) / 1e9
    if gap_s > LONGEST_GAP_S + STEP_S / 2:
        return dict.fromkeys(SUBJECTS, float("nan"))
    pair = Track(
        np.array([after.record.position, before.record.position]),
        np.array([after.record.quaternion, before.record.quaternion]),
        np.array([after.record.speed_m_s, before.record.speed_m_s]),
    )
    xyz, rot = ego_history(pair, origin)  # the later pose in the frame of the earlier one
    pose = np.array([xyz[0, 0], xyz[0, 1], np.arctan2(rot[0, 1, 0], rot[0, 0, 0])])
    return {
        name: metrics.inconsistency_m(before.plans[name][0], after.plans[name][0], gap_s, pose)
        for name in SUBJECTS
    }
