"""One bag: read in code, sampled, planned and judged as the node does, then held against truth."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from alpamayo_ros.evaluation.bags import Bag, BagError, BagMessage, TopicChoice, bag_sha256
from alpamayo_ros.evaluation.clips import ANCHOR, PUBLISHED_T0_S, RIG, Clip
from alpamayo_ros.evaluation.records import BagRecords, Record
from alpamayo_ros.evaluation.truth import DrivenTrack
from alpamayo_ros.planning.planner import UnusableFrameError
from alpamayo_ros.sensing.images import MalformedImageError
from alpamayo_ros.sensing.messages import MalformedOdometryError, pose_of_odometry
from alpamayo_ros.sensing.navigation import Navigation
from alpamayo_ros.sensing.poses import NO_ORIGIN, Origin
from alpamayo_ros.sensing.sampler import Sampler, SamplerSettings
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import CAMERA_ROLES, Plan, Verdict

NAVIGATION_LENGTH = 200  # the node's defaults of navigation.max_length and ...
NAVIGATION_TIMEOUT_NS = 10_000_000_000  # ... navigation.timeout_s
NOT_GIVEN = "not_given"  # a t0 that --plans has no plan for


@dataclass(frozen=True)
class RunSettings:
    """What decides on the figures of a bag, apart from the model."""

    every_s: float = 0.5  # between decisions
    topics: TopicChoice = field(default_factory=TopicChoice)
    to_rear_axle: Origin = NO_ORIGIN
    clip_times_s: tuple[float, ...] = (PUBLISHED_T0_S,)  # t0s of a clip, from its start

    @property
    def sampler(self) -> SamplerSettings:
        """The t0 rule with the node's defaults."""
        return SamplerSettings(period_ns=round(self.every_s * 1e9), to_rear_axle=self.to_rear_axle)


class Judged(Protocol):
    """A plan with the gate's verdict: planner.Decision, or a plan that was given."""

    @property
    def plan(self) -> Plan:
        """The plan."""

    @property
    def verdict(self) -> Verdict:
        """What the gate says of it."""


class Decider(Protocol):
    """Whatever has a plan for a selection."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Model id, device and number type."""

    def decide(self, bag: str, selection: Selection, navigation_text: str) -> Judged | None:
        """A plan for the selection; None when there is none.

        Raises:
            UnusableFrameError: a frame is no image.
        """

    def reset(self) -> None:
        """Forget what was kept of earlier selections."""


@dataclass(frozen=True, eq=False)
class _Taken:
    """A decision before its truth is known."""

    selection: Selection
    judged: Judged

    def record(self, start_ns: int, truth: np.ndarray) -> Record:
        """What is kept of it, with t0 counted from start_ns."""
        selection, plan = self.selection, self.judged.plan
        stamps_ns = [selection.frames[role][-1].stamp_ns for role in CAMERA_ROLES]
        return Record(
            t0_ns=selection.t0_ns,
            t_s=(selection.t0_ns - start_ns) / 1e9,
            samples=plan.samples,
            actions=plan.actions[plan.chosen],
            chosen=plan.chosen,
            truth=truth,
            history_xyz=selection.ego_history_xyz,
            history_rot=selection.ego_history_rot,
            speed_m_s=selection.t0_speed_m_s,
            v0_m_s=plan.v0_m_s,
            spread_m=plan.spread_m,
            position=selection.t0_position,
            quaternion=selection.t0_quaternion,
            frame_stamps_ns=np.array(stamps_ns, np.int64),
            z_m=float(plan.z_m),
            reasoning=plan.reasoning,
            tokens=len(plan.token_ids[plan.chosen]) if plan.token_ids else 0,
            truncated=bool(plan.truncated[plan.chosen]),
            reasons=self.judged.verdict.reasons,
            navigation_text=plan.navigation_text,
            timing_ms=plan.timing_ms,
        )


Progress = Callable[[float, int], None]  # share of the bag that was read, decisions


def evaluate_bag(
    path: Path,
    name: str,
    decider: Decider,
    settings: RunSettings,
    progress: Progress = lambda share, decisions: None,
    sha256: str | None = None,
) -> BagRecords:
    """Every decision on a bag, with its truth.

    The clock is the log time of the messages, as it is for a node to which the bag is played: what
    the node would refuse as stale is refused here.

    Args:
        sha256: of the bag, where it is known already: bags have gigabytes.

    Raises:
        BagError: the bag is damaged, lacks a topic, or holds no t0 to plan on; one line.
    """
    start_s = time.perf_counter()
    decider.reset()
    with Bag(path, settings.topics) as bag:
        reading = _Reading(name, decider, settings)
        for message in bag.messages():
            reading.hear(message)
            progress(bag.share_before(message.log_ns), len(reading.taken))
        if not reading.taken:
            raise BagError(f"bag {path}: no decision was made: {reading.why_not()}")
        wall_s = time.perf_counter() - start_s
        return _records(path, name, bag, reading, decider, wall_s, sha256 or bag_sha256(path))


def evaluate_clip(
    clip: Clip, path: Path, name: str, decider: Decider, settings: RunSettings, sha256: str
) -> BagRecords:
    """Every decision on a clip of the public dataset, with its truth.

    Args:
        path: where the clip was found.
        sha256: of the clip.

    Raises:
        BagError: the clip is damaged or does not cover a t0; one line.
    """
    start_s = time.perf_counter()
    decider.reset()
    origin = settings.to_rear_axle
    records = []
    for t0_s in settings.clip_times_s:
        selection = clip.selection(t0_s, origin)
        judged = decider.decide(name, selection, "")
        if judged is not None:
            truth = clip.truth(selection, origin)
            records.append(_Taken(selection, judged).record(0, truth))
    if not records:
        raise BagError(f"clip {name}: none of the given plans is for one of its t0s")
    model_id, device, dtype = decider.identity
    missing = len(settings.clip_times_s) - len(records)
    return BagRecords(
        name=name,
        path=str(path),
        sha256=sha256,
        duration_s=clip.duration_s,
        frame_id=ANCHOR,
        child_frame_id=RIG,
        model_id=model_id,
        device=device,
        dtype=dtype,
        refused={NOT_GIVEN: missing} if missing else {},
        unusable_messages=0,
        records=tuple(records),
        wall_s=time.perf_counter() - start_s,
    )


class _Reading:
    """The state while a bag is read: what the node keeps, and all odometry beside it."""

    def __init__(self, name: str, decider: Decider, settings: RunSettings) -> None:
        self.name = name
        self.settings = settings
        self.sampler = Sampler(settings.sampler)
        self.drive = DrivenTrack()
        self.taken: list[_Taken] = []
        self.received: collections.Counter[str] = collections.Counter()
        self.malformed: collections.Counter[str] = collections.Counter()
        self.not_given = 0
        self._navigation = Navigation()
        self._decider = decider

    def hear(self, message: BagMessage) -> None:
        """Take a message, then plan on what can be planned on."""
        self.received[message.name] += 1
        try:
            self._store(message)
        except (MalformedImageError, MalformedOdometryError) as error:
            self.malformed[str(error)] += 1
            return
        while self._take(message.log_ns):
            pass

    def _store(self, message: BagMessage) -> None:
        name, value, log_ns = message.name, message.value, message.log_ns
        if name == "navigation":
            self._navigation.set(value.data, log_ns, NAVIGATION_LENGTH)
        elif name == "odometry":
            pose = pose_of_odometry(value)
            self.sampler.add_pose(pose, value.header.frame_id, value.child_frame_id, log_ns)
            self.drive.add(pose, value.header.frame_id, value.child_frame_id)
        else:
            self.sampler.add_frame(name, message.frame(), log_ns)

    def _take(self, now_ns: int) -> bool:
        """Plan on the newest t0; whether another may be there because a frame was dropped."""
        selection = self.sampler.take(now_ns)
        if selection is None:
            return False
        text = self._navigation.current(now_ns, NAVIGATION_TIMEOUT_NS)
        try:
            judged = self._decider.decide(self.name, selection, text)
        except UnusableFrameError as error:
            self.malformed[str(error)] += self.sampler.drop_frame(
                error.role, error.frame, selection.t0_ns, str(error)
            )
            return True
        if judged is None:
            self.not_given += 1
        else:
            self.taken.append(_Taken(selection, judged))
        return False

    def records(self, start_ns: int) -> Iterator[Record]:
        """Every decision with its truth, now that all odometry is known."""
        gap_ns, origin = self.settings.sampler.max_gap_ns, self.settings.to_rear_axle
        for taken in self.taken:
            yield taken.record(start_ns, self.drive.future(taken.selection, gap_ns, origin))

    def why_not(self) -> str:
        """Why there is no decision, in one line."""
        if silent := [n for n in (*CAMERA_ROLES, "odometry") if not self.received[n]]:
            return f"{silent[0]} has no message"
        if self.not_given:
            return f"none of the given plans is for one of its {self.not_given} t0s"
        if self.malformed:
            return self.malformed.most_common(1)[0][0]
        refusal = self.sampler.last_refusal
        if refusal is None:
            return "it ends before the first 1.5 s are complete"
        counts = ", ".join(f"{reason} {n}" for reason, n in self.sampler.refused.most_common())
        return f"{refusal.detail} ({counts})"


def _records(
    path: Path,
    name: str,
    bag: Bag,
    reading: _Reading,
    decider: Decider,
    wall_s: float,
    sha256: str,
) -> BagRecords:
    model_id, device, dtype = decider.identity
    refused = dict(sorted(reading.sampler.refused.items()))
    if reading.not_given:
        refused[NOT_GIVEN] = reading.not_given
    last = reading.taken[-1].selection
    return BagRecords(
        name=name,
        path=str(path),
        sha256=sha256,
        duration_s=bag.duration_s,
        frame_id=last.frame_id,
        child_frame_id=last.child_frame_id,
        model_id=model_id,
        device=device,
        dtype=dtype,
        refused=refused,
        unusable_messages=sum(reading.malformed.values()),
        records=tuple(reading.records(bag.start_ns)),
        wall_s=wall_s,
        topics=bag.topics,
    )
