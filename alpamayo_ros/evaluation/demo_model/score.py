"""The small model's plans on drives that nothing was learnt from, beside what was driven.

It plans at random moments of held-out drives, as they are, with blank images and with the cameras
exchanged; and before each intersection, with its instruction and with the opposite one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from alpamayo_ros.demo.cameras import default_rig
from alpamayo_ros.demo.causes import Action, Category, action_of, category_of
from alpamayo_ros.demo.drive import HELD_OUT_SEEDS, Drive
from alpamayo_ros.demo.ego import FRONT_M
from alpamayo_ros.demo.judgement import CHANGE_M_S, STANDS_M_S
from alpamayo_ros.demo.junctions import JunctionPlan, Turn
from alpamayo_ros.demo.training.examples import (
    FIRST_T0_S,
    HORIZON_S,
    LAST_T0_S,
    Example,
    Recipe,
    drawn_times_s,
    example_at,
)
from alpamayo_ros.evaluation.baselines import constant_turn_rate_and_velocity
from alpamayo_ros.evaluation.metrics import ade_m, min_ade_m
from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.planning.gate import GateLimits, judge, segment_speeds_m_s
from alpamayo_ros.types import Plan

SCORED_SEEDS = HELD_OUT_SEEDS[100:140]
TURN_SEEDS = HELD_OUT_SEEDS[200:300]  # of drives whose intersections are scored
PER_DRIVE = 8
HORIZONS_S = (3.0, 6.4)
AT_3_S = slice(27, 32)  # segments around 3 s
TURNS_RAD = np.radians(30)  # a path that turns less at an intersection goes straight on
SWAYS_RAD = np.radians(2)  # a path that turns less doesn't follow a bend
BEFORE_M = 5.0  # the ego's front before an intersection when its turning is scored
BLANK = 128


@dataclass(frozen=True)
class Scored:
    """A decision beside what was driven."""

    seed: int
    t_s: float
    category: str
    sentence: str
    said: str
    ade_m: tuple[float, ...]  # at HORIZONS_S
    baseline_ade_m: tuple[float, ...]  # of constant turn rate and velocity
    keeps_its_word: bool
    truth_keeps_its_word: bool  # what was driven does what the true sentence says
    reasons: tuple[str, ...]  # why the gate rejects it

    @property
    def said_category(self) -> str | None:
        """What it says it reacts to."""
        found = category_of(self.said)
        return found.value if found else None

    @property
    def slows_or_turns(self) -> bool:
        """Whether the true cause is one to slow, stop or turn."""
        return action_of(self.sentence) in (
            *(Action.SLOW, Action.STOP, Action.TURN_LEFT, Action.TURN_RIGHT),
        )


@dataclass(frozen=True)
class Turned:
    """Where plans at an intersection went, by what they were told."""

    seed: int
    t_s: float
    driven: str  # of Turn
    told: str
    planned: str
    swapped_told: str
    swapped_planned: str


@dataclass(frozen=True)
class Scores:
    """Of one held-out drive, or of many."""

    seeing: list[Scored] = field(default_factory=list)
    blank: list[Scored] = field(default_factory=list)
    exchanged: list[Scored] = field(default_factory=list)
    turns: list[Turned] = field(default_factory=list)

    def add(self, other: Scores) -> None:
        """Take in another drive's."""
        for mine, others in zip(vars(self).values(), vars(other).values()):
            mine.extend(others)


def keeps_its_word(path: np.ndarray, v0_m_s: float, sentence: str) -> bool:
    """Whether a path (64, 3) does what a sentence says, by half the change that makes a word.

    A sentence that says no action of causes.Action is never kept.
    """
    speeds = segment_speeds_m_s(np.asarray(path, np.float64))
    yaw = np.unwrap(np.asarray(path, np.float64)[:, 2])
    more_m_s = speeds[AT_3_S].mean() - v0_m_s
    category = category_of(sentence)
    if category is Category.CURVE_LEFT and yaw.max() < SWAYS_RAD:
        return False
    if category is Category.CURVE_RIGHT and yaw.min() > -SWAYS_RAD:
        return False
    kept = {
        Action.KEEP: abs(more_m_s) < 2 * CHANGE_M_S,
        Action.SPEED_UP: more_m_s > CHANGE_M_S / 2,
        Action.SLOW: more_m_s < -CHANGE_M_S / 2,
        Action.STOP: speeds.min() < 2 * STANDS_M_S,
        Action.WAIT: speeds[: AT_3_S.stop].max() < 2 * STANDS_M_S,
        Action.TURN_LEFT: yaw.max() > TURNS_RAD / 2,
        Action.TURN_RIGHT: yaw.min() < -TURNS_RAD / 2,
    }
    action = action_of(sentence)
    return action is not None and bool(kept[action])


def turn_of(path: np.ndarray) -> Turn:
    """Which way a path (64, 3) leaves an intersection that lies right ahead."""
    yaw_rad = np.unwrap(np.asarray(path, np.float64)[:, 2])[-1]
    if abs(yaw_rad) < TURNS_RAD:
        return Turn.STRAIGHT
    return Turn.LEFT if yaw_rad > 0 else Turn.RIGHT


def moments_to_score(drive: Drive) -> list[float]:
    """PER_DRIVE times, drawn from the whole drive with nothing left out."""
    return drawn_times_s(np.random.default_rng([drive.seed, 2]), PER_DRIVE)


def turns_to_score(drive: Drive) -> Iterator[tuple[JunctionPlan, float]]:
    """Intersections with the last time at which the ego's front is BEFORE_M away.

    Where the ego hasn't turned at the plan's end, no path tells, and it is left out.
    """
    times_s = np.arange(FIRST_T0_S, LAST_T0_S, 0.1)
    fronts_m = np.array([drive.place_m(t_s) for t_s in times_s]) + FRONT_M
    for junction in drive.course.junctions:
        before = np.flatnonzero(fronts_m < junction.plan.entry_m - BEFORE_M)
        if not len(before) or before[-1] + 1 == len(times_s):
            continue
        t_s = float(times_s[before[-1]])
        crossed = drive.place_m(t_s + HORIZON_S) > junction.plan.exit_m
        if crossed or turn_of(drive.future_xyyaw(t_s)) is not Turn.STRAIGHT:
            yield junction.plan, t_s


def opposite(text: str) -> str:
    """An instruction to turn to the other side; going straight on becomes turning left."""
    other = {"turn left": "turn right", "turn right": "turn left", "go straight": "turn left"}

    def swap(found: re.Match[str]) -> str:
        swapped = other[found[0].lower()]
        return swapped.capitalize() if found[0][0].isupper() else swapped

    return re.sub("|".join(other), swap, text, flags=re.IGNORECASE)


class Scorer:
    """Plans with a model as the demo's node does."""

    def __init__(self, model: AlpamayoR1, greedy: bool) -> None:
        self.model = model
        self.greedy = greedy
        config = model.config
        self.recipe = Recipe(PER_DRIVE, config.min_pixels, config.max_pixels)

    def drive(self, seed: int) -> Scores:
        """The scores of a drive."""
        drive, scores = Drive(seed), Scores()
        if seed in TURN_SEEDS:
            scores.turns.extend(self._turned(drive, *at) for at in turns_to_score(drive))
        if seed not in SCORED_SEEDS:
            return scores
        for t_s in moments_to_score(drive):
            example = self._example(drive, t_s)
            blank = np.full_like(example.images, BLANK)
            exchanged = np.roll(example.images, 4, axis=0)  # each camera shows another one's view
            scores.seeing.append(self._scored(example))
            scores.blank.append(self._scored(replace(example, images=blank)))
            scores.exchanged.append(self._scored(replace(example, images=exchanged)))
        return scores

    def _example(self, drive: Drive, t_s: float) -> Example:
        return example_at(drive, t_s, self.recipe, default_rig())

    def _plan(self, example: Example, navigation: str) -> Plan:
        return self.model.plan(
            example.snapshot(), greedy=self.greedy, max_new_tokens=64, navigation_text=navigation
        )

    def _scored(self, example: Example) -> Scored:
        plan = self._plan(example, example.navigation)
        truth = example.future
        baseline = constant_turn_rate_and_velocity(
            example.history_xyz, example.history_rot, plan.v0_m_s
        )
        return Scored(
            seed=example.seed,
            t_s=example.t_s,
            category=example.category,
            sentence=example.sentence,
            said=plan.reasoning,
            ade_m=tuple(min_ade_m(plan.samples, truth, horizon) for horizon in HORIZONS_S),
            baseline_ade_m=tuple(ade_m(baseline, truth, horizon) for horizon in HORIZONS_S),
            keeps_its_word=keeps_its_word(plan.waypoints, plan.v0_m_s, plan.reasoning),
            truth_keeps_its_word=keeps_its_word(truth, plan.v0_m_s, example.sentence),
            reasons=judge(plan, GateLimits(), plan.v0_m_s).reasons,
        )

    def _turned(self, drive: Drive, junction: JunctionPlan, t_s: float) -> Turned:
        example = self._example(drive, t_s)
        told, swapped = example.navigation, opposite(example.navigation)
        return Turned(
            seed=drive.seed,
            t_s=t_s,
            driven=junction.turn.value,
            told=told,
            planned=turn_of(self._plan(example, told).waypoints).value,
            swapped_told=swapped,
            swapped_planned=turn_of(self._plan(example, swapped).waypoints).value,
        )
