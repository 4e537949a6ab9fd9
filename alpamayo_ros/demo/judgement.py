"""Which cause is named when: from the run as it went, ten times a second.

The category is what holds the ego back most over the next 3 s, as far as it can be seen now. The
action is what the ego really does next, so words and deeds agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from alpamayo_ros.demo.causes import TEMPLATES, Action, Category, Cause, cause
from alpamayo_ros.demo.course import Course
from alpamayo_ros.demo.ego import BEND, FREE, FRONT_M, STEP_S, Run
from alpamayo_ros.demo.junctions import Turn
from alpamayo_ros.demo.leaders import Leader
from alpamayo_ros.demo.pedestrians import ZEBRA_HALF_M, Walker
from alpamayo_ros.demo.road import STEP_M
from alpamayo_ros.demo.signals import Phase, Signal

EVERY_S = 0.1
AHEAD_S = 3.0
STOPS_WITHIN_S = 6.4
CHANGE_M_S = 0.7  # over AHEAD_S: less is keeping the speed
STANDS_M_S = 0.5
HELD_M_S2 = 0.2  # mean over AHEAD_S: less is no reason
BENDS_RAD = math.radians(6)  # over AHEAD_S: a road that turns less is straight
SHORTEST_S = 0.6  # a cause that lasts less is left out
BEND_VIEW_S = 5.0  # a bend that binds now lies within this time
STANDING_LEADER_M_S = 0.5
FOLLOWS_WITHIN_M = 30.0


@dataclass(frozen=True)
class _Label:
    category: Category
    action: Action


def judge(course: Course, run: Run, duration_s: float) -> tuple[Cause, ...]:
    """The cause each EVERY_S from 0 to duration_s, for a run that is STOPS_WITHIN_S longer."""
    return _Judge(course, run).causes(round(duration_s / EVERY_S) + 1)


class _Judge:
    def __init__(self, course: Course, run: Run) -> None:
        self.course, self.run = course, run
        self.window = round(AHEAD_S / STEP_S)
        self.stop_window = round(STOPS_WITHIN_S / STEP_S)
        self.sums = {
            int(what): np.cumsum(np.where(run.binding == what, np.maximum(run.held_m_s2, 0), 0.0))
            for what in np.unique(run.binding)
            if what != FREE
        }

    def causes(self, count: int) -> tuple[Cause, ...]:
        labels = [self._label(step) for step in self._steps(count)]
        labels = _without_short(labels, round(SHORTEST_S / EVERY_S), lambda label: label.category)
        relabelled = [self._acting(step, a.category) for step, a in zip(self._steps(count), labels)]
        steady = _without_short(relabelled, round(SHORTEST_S / EVERY_S), lambda label: label)
        return tuple(
            cause(label.category, label.action, self._distance_m(step, label.category))
            for step, label in zip(self._steps(count), steady)
        )

    def _steps(self, count: int) -> range:
        stride = round(EVERY_S / STEP_S)
        return range(0, count * stride, stride)

    def _label(self, step: int) -> _Label:
        return self._acting(step, self._category(step))

    def _category(self, step: int) -> Category:
        scores = {
            what: (sums[step + self.window] - sums[step]) * STEP_S / AHEAD_S
            for what, sums in self.sums.items()
        }
        scores = {what: score for what, score in scores.items() if self._visible(step, what)}
        best = max(scores, key=lambda what: scores[what], default=FREE)
        if best != FREE and scores[best] > HELD_M_S2:
            return self._bend_category(step) if best == BEND else self._thing_category(step, best)
        return self._unhindered(step)

    def _unhindered(self, step: int) -> Category:
        """The road's bend where it is worth a word, else clear."""
        now, later = (self._index(self.run.s_m[i]) for i in (step, step + self.window))
        heading = self.course.road.heading_rad
        turned_rad = heading[later] - heading[now]
        if abs(turned_rad) < BENDS_RAD:
            return Category.CLEAR
        return self._bent(now, later + 1, turned_rad)

    def _bend_category(self, step: int) -> Category:
        """Of the bend that the ego slows for or is in."""
        s_m, v = self.run.s_m[step], self.run.speed_m_s[step]
        now, later = self._index(s_m), self._index(s_m + max(BEND_VIEW_S * v, 12.0))
        bends = self.course.road.curvature_1_m[now : later + 1]
        # The sharpest bend ahead binds; what lies nearer counts more, as braking bridges the rest.
        need = np.abs(bends) / (1 + 0.02 * np.arange(len(bends)) * STEP_M)
        sharpest = now + int(need.argmax())
        return self._bent(sharpest, sharpest + 1, float(bends[sharpest - now]))

    def _bent(self, first: int, last: int, left: float) -> Category:
        for junction in self.course.junctions:
            turns = junction.plan.turn is not Turn.STRAIGHT
            if (
                turns
                and junction.plan.entry_m < last * STEP_M
                and (first * STEP_M < junction.plan.exit_m)
            ):
                right = junction.plan.turn is Turn.RIGHT
                return Category.TURN_RIGHT if right else Category.TURN_LEFT
        return Category.CURVE_LEFT if left > 0 else Category.CURVE_RIGHT

    def _thing_category(self, step: int, what: int) -> Category:
        thing = self.run.hindrances[what].thing
        if isinstance(thing, Signal):
            return Category.RED_LIGHT
        if isinstance(thing, Walker):
            return Category.PEDESTRIAN
        speed_m_s = self._leading(step, thing)[1]
        standing = thing.in_lane and speed_m_s < STANDING_LEADER_M_S
        return Category.STOPPED_VEHICLE if standing else Category.SLOWER_VEHICLE

    def _visible(self, step: int, what: int) -> bool:
        if what == BEND:
            return True
        thing, t_s = self.run.hindrances[what].thing, step * STEP_S
        if isinstance(thing, Signal):
            return thing.phase(t_s) is Phase.RED
        if isinstance(thing, Walker):
            return t_s < thing.clear_s
        return True

    def _acting(self, step: int, category: Category) -> _Label:
        """The category with what the ego does next, where words for both exist."""
        action = self._action(step)
        if category is Category.SLOWER_VEHICLE and action is Action.SPEED_UP:
            category = self._moving_or_unhindered(step)
        while (category, action) not in TEMPLATES:
            category, action = self._said_otherwise(step, category, action)
        return _Label(category, action)

    def _moving_or_unhindered(self, step: int) -> Category:
        """Nobody speeds up to follow a vehicle that still stands in a bay far ahead."""
        far = self._distance_m(step, Category.SLOWER_VEHICLE) > FOLLOWS_WITHIN_M
        return self._unhindered(step) if far else Category.SLOWER_VEHICLE

    def _said_otherwise(
        self, step: int, category: Category, action: Action
    ) -> tuple[Category, Action]:
        """The nearest pair; each rule leads on towards one that has words."""
        if category in (Category.TURN_LEFT, Category.TURN_RIGHT):
            return category, Action(category.value)
        if category is Category.SLOWER_VEHICLE and action is Action.WAIT:
            return Category.STOPPED_VEHICLE, action
        if category is Category.STOPPED_VEHICLE and self.run.speed_m_s[step] < STANDS_M_S:
            return Category.SLOWER_VEHICLE, action  # it is about to drive off
        if category in (Category.STOPPED_VEHICLE, Category.PEDESTRIAN, Category.RED_LIGHT):
            # Speeding up: it is over, or will be; keeping the speed: it doesn't matter yet.
            return self._unhindered(step), action
        if action in (Action.STOP, Action.WAIT):
            return category, self._change(step)
        return category, Action.KEEP

    def _action(self, step: int) -> Action:
        speed = self.run.speed_m_s
        change = self._change(step)
        if change is not Action.SPEED_UP:
            if speed[step] < STANDS_M_S and speed[step + self.window] < STANDS_M_S + 0.2:
                return Action.WAIT
            if speed[step : step + self.stop_window + 1].min() < STANDS_M_S:
                return Action.STOP
        return change

    def _change(self, step: int) -> Action:
        more_m_s = self.run.speed_m_s[step + self.window] - self.run.speed_m_s[step]
        if more_m_s >= CHANGE_M_S:
            return Action.SPEED_UP
        return Action.SLOW if more_m_s <= -CHANGE_M_S else Action.KEEP

    def _distance_m(self, step: int, category: Category) -> float:
        """From the ego's front to the nearest thing of a category."""
        front_m = self.run.s_m[step] + FRONT_M
        gaps = [math.inf]
        for what, hindrance in enumerate(self.run.hindrances):
            thing = hindrance.thing
            if isinstance(thing, Signal):
                kind, place_m = Category.RED_LIGHT, thing.line_m
            elif isinstance(thing, Walker):
                kind, place_m = Category.PEDESTRIAN, thing.zebra_m - ZEBRA_HALF_M
            else:
                kind = Category.SLOWER_VEHICLE
                place_m = self._leading(step, thing)[0] - thing.length_m / 2
            ahead = place_m > front_m - 0.5 and self._visible(step, what)
            stopped = category is Category.STOPPED_VEHICLE and kind is Category.SLOWER_VEHICLE
            if ahead and (kind is category or stopped):
                gaps.append(place_m - front_m)
        return min(min(gaps), 60.0)

    def _leading(self, step: int, leader: Leader) -> np.ndarray:
        return self.run.leading[self.course.leaders.index(leader)][step]

    def _index(self, s_m: float) -> int:
        return min(int(s_m / STEP_M), len(self.course.road.s_m) - 1)


def _without_short(
    labels: list[_Label], shortest: int, key: Callable[[_Label], object]
) -> list[_Label]:
    """Labels in which each run of equal keys shorter than `shortest` continues the one before."""
    kept: list[_Label] = []
    for _, group in groupby(labels, key):
        run = list(group)
        kept += [kept[-1]] * len(run) if kept and len(run) < shortest else run
    return kept
