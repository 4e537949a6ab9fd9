"""Decisions with the pictures that a reviewer wants to see of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from alpamayo_ros.demo.pictures import Surroundings, draw_from_above
from alpamayo_ros.evaluation.bags import Bag, TopicChoice
from alpamayo_ros.evaluation.clips import Clip, is_clip
from alpamayo_ros.evaluation.records import BagRecords
from alpamayo_ros.evaluation.scores import MODEL, Scored
from alpamayo_ros.sensing.images import decode
from alpamayo_ros.sensing.messages import stamp_ns
from alpamayo_ros.types import CAMERA_ROLES, NS_PER_S, UserError

WORST = 10
PICTURE_WIDTH_PX = 576
BEFORE_NS, AFTER_NS = NS_PER_S, 2 * NS_PER_S  # log times around t0 that hold its frames


@dataclass(frozen=True, eq=False)
class Moment:
    """One decision; pictures are uint8 (H, W, 3) RGB."""

    scored: Scored
    ade_m: float
    cameras: Mapping[str, np.ndarray]  # by role, at t0; without those that the bag lost
    from_above: np.ndarray


def worst(scored: Sequence[Scored], horizon_s: float, count: int = WORST) -> list[Scored]:
    """The decisions with the largest average displacement, the worst first."""
    known = [d for d in scored if np.isfinite(d.value(MODEL, "ade", horizon_s))]
    return sorted(known, key=lambda d: -d.value(MODEL, "ade", horizon_s))[:count]


def make_moments(
    chosen: Sequence[Scored], bags: Sequence[BagRecords], horizon_s: float
) -> list[Moment]:
    """Moments of decisions, with their cameras read from the bags once more."""
    pictures: dict[tuple[str, int], dict[str, np.ndarray]] = {}
    for bag in bags:
        wanted = [decision for decision in chosen if decision.bag == bag.name]
        if wanted:
            pictures |= _pictures(bag, wanted)
    return [
        Moment(
            decision,
            decision.value(MODEL, "ade", horizon_s),
            pictures.get((decision.bag, decision.record.t0_ns), {}),
            _from_above(decision),
        )
        for decision in chosen
    ]


def _from_above(decision: Scored) -> np.ndarray:
    record = decision.record
    return draw_from_above(
        record.plan.astype(np.float64),
        record.samples.astype(np.float64),
        record.history_xyz,
        Surroundings(truth=record.known_truth),
        accepted=not record.reasons,
    )


def _pictures(
    bag: BagRecords, wanted: Sequence[Scored]
) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Each decision's newest frame of each camera; none of a bag that is no longer there."""
    path = Path(bag.path)
    try:
        if is_clip(path):
            clip = Clip.load(path)
            return {(d.bag, d.record.t0_ns): _cameras_of_clip(clip, d) for d in wanted}
        cameras = {role: bag.topics.get(role, "") for role in CAMERA_ROLES}
        choice = TopicChoice(cameras, odometry=bag.topics.get("odometry", ""))
        with Bag(path, choice) as reader:
            return {(d.bag, d.record.t0_ns): _cameras(reader, d) for d in wanted}
    except UserError:
        return {}


def _cameras_of_clip(clip: Clip, decision: Scored) -> dict[str, np.ndarray]:
    frames = clip.selection(decision.record.t0_ns / 1e9).frames
    return {role: _shrunk(decode(frames[role][-1])) for role in CAMERA_ROLES}


def _cameras(reader: Bag, decision: Scored) -> dict[str, np.ndarray]:
    stamps = dict(zip(CAMERA_ROLES, decision.record.frame_stamps_ns.tolist()))
    t0_ns = decision.record.t0_ns
    found = {}
    for message in reader.messages(CAMERA_ROLES, t0_ns - BEFORE_NS, t0_ns + AFTER_NS):
        if stamp_ns(message.value.header.stamp) == stamps[message.name]:
            found[message.name] = _shrunk(decode(message.frame()))
    return {role: found[role] for role in CAMERA_ROLES if role in found}


def _shrunk(rgb: np.ndarray) -> np.ndarray:
    """An image no wider than a report shows it."""
    height, width = rgb.shape[:2]
    if width <= PICTURE_WIDTH_PX:
        return rgb
    size = PICTURE_WIDTH_PX, round(height * PICTURE_WIDTH_PX / width)
    return cv2.resize(rgb, size, interpolation=cv2.INTER_AREA)
