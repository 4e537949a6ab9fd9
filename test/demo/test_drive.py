"""The drive as a whole: the same for a seed, safe, foreseeable, and true to its words."""

import math
from collections import Counter

import numpy as np
import pytest

from alpamayo_ros.demo.causes import Action, Category
from alpamayo_ros.demo.course import random_course
from alpamayo_ros.demo.drive import HELD_OUT_SEEDS, TRAINING_SEEDS, Drive, outline_m
from alpamayo_ros.demo.ego import FRONT_M, simulate
from alpamayo_ros.demo.junctions import Turn
from alpamayo_ros.demo.pedestrians import Walker
from alpamayo_ros.demo.signals import Phase, Signal
from alpamayo_ros.demo.traffic import EGO_LENGTH_M, EGO_REAR_OVERHANG_M, EGO_WIDTH_M, Actor, Traffic

DRIVE = Drive(0)
SEEDS = range(1000, 1012)
DRIVES = {seed: Drive(seed) for seed in SEEDS}


def ego_outline_m(drive: Drive, t_s: float) -> np.ndarray:
    state = drive.state_at(t_s)
    forward = EGO_LENGTH_M / 2 - EGO_REAR_OVERHANG_M
    x = state.x_m + forward * math.cos(state.yaw_rad)
    y = state.y_m + forward * math.sin(state.yaw_rad)
    return outline_m(Actor("red", x, y, state.yaw_rad, EGO_LENGTH_M, EGO_WIDTH_M))


def apart(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether an edge of one of two convex outlines separates them."""
    for a, b in ((one, other), (other, one)):
        for i in range(len(a)):
            dx, dy = a[(i + 1) % len(a)] - a[i]
            outwards = np.array([dy, -dx])
            if ((b - a[i]) @ outwards).min() > 0:
                return True
    return False


def test_a_seed_fixes_the_drive_and_another_one_changes_it():
    assert Drive(5).state_at(6.0) == Drive(5).state_at(6.0)
    assert Drive(6).state_at(6.0) != Drive(5).state_at(6.0)


def test_training_and_held_out_seeds_have_nothing_in_common():
    assert 0 in HELD_OUT_SEEDS
    assert not set(HELD_OUT_SEEDS) & set(TRAINING_SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ego_moves_like_a_kinematic_bicycle_driven_gently(seed):
    drive = DRIVES[seed]
    t_s = np.arange(0, drive.duration_s, 0.1)
    states = [drive.state_at(float(t)) for t in t_s]
    speed = np.array([state.speed_m_s for state in states])
    yaw = np.unwrap([state.yaw_rad for state in states])
    bend = np.array([state.curvature_1_m for state in states])
    xy = np.array([(state.x_m, state.y_m) for state in states])
    acceleration = np.array([state.acceleration_m_s2 for state in states])
    middle = (speed[1:] + speed[:-1]) / 2
    assert np.abs(np.hypot(*np.diff(xy, axis=0).T) / 0.1 - middle).max() < 0.05
    assert np.abs(np.diff(yaw) / 0.1 - middle * (bend[1:] + bend[:-1]) / 2).max() < 0.02
    assert np.abs(acceleration).max() < 3.0
    assert np.abs(np.diff(acceleration) / 0.1).max() < 10.0
    assert (speed**2 * np.abs(bend)).max() < 2.8
    assert np.abs(bend).max() < 0.2
    assert speed.min() >= 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ego_touches_nobody(seed):
    drive = DRIVES[seed]
    walkers = [h.thing for h in drive.run.hindrances if isinstance(h.thing, Walker)]
    for t_s in np.arange(0, drive.duration_s, 0.5).tolist():
        ego = ego_outline_m(drive, t_s)
        for actor in drive.actors_at(t_s):
            assert apart(ego, outline_m(actor)), f"{actor} at {t_s}"
        for walker in walkers:
            place = drive.road.at(walker.zebra_m).ahead(0.0, walker.lateral_m(t_s))
            person = outline_m(Actor("red", *place, 0.0, 0.7, 0.7))
            assert apart(ego, person), f"{walker} at {t_s}"


@pytest.mark.parametrize("seed", SEEDS)
def test_other_vehicles_touch_neither_each_other_nor_people(seed):
    drive = DRIVES[seed]
    walkers = [h.thing for h in drive.run.hindrances if isinstance(h.thing, Walker)]
    for t_s in np.arange(0, drive.duration_s, 1.0).tolist():
        outlines = [outline_m(actor) for actor in drive.actors_at(t_s)]
        for i, outline in enumerate(outlines):
            assert all(apart(outline, other) for other in outlines[:i]), t_s
            for walker in walkers:
                place = drive.road.at(walker.zebra_m).ahead(0.0, walker.lateral_m(t_s))
                assert apart(outline, outline_m(Actor("red", *place, 0.0, 0.5, 0.5))), t_s


def test_nobody_comes_near_a_zebra_while_somebody_is_on_it():
    crossed = 0
    for seed in range(1000, 1040):
        course = random_course(np.random.default_rng(seed), 80.0, 200.0)
        run = simulate(course, 80.0)
        traffic = Traffic(course, run, np.random.default_rng(seed))
        for hindrance in run.hindrances:
            walker = hindrance.thing
            if not isinstance(walker, Walker) or walker.gone_s > 75.0:
                continue
            crossed += 1
            zebra = course.road.at(walker.zebra_m)
            for t_s in np.arange(walker.start_s, walker.gone_s, 0.2).tolist():
                near = traffic.actors(t_s, 80.0, 80.0)
                away = [math.hypot(a.x_m - zebra.x_m, a.y_m - zebra.y_m) for a in near]
                assert min(away, default=99.0) > 6.0
    assert crossed > 25


def test_the_ego_never_runs_a_red_light_and_what_is_red_stays_red_for_long():
    lines = 0
    for drive in DRIVES.values():
        for hindrance in drive.run.hindrances:
            signal = hindrance.thing
            if not isinstance(signal, Signal):
                continue
            front_m = drive.run.s_m + FRONT_M
            if front_m[-1] < signal.line_m + 1:
                continue
            crossing_s = float(np.argmax(front_m > signal.line_m)) * 0.01
            near_s = float(np.argmax(front_m > signal.line_m - 60)) * 0.01
            assert signal.phase(crossing_s) is Phase.GREEN
            lines += signal.phase(near_s) is Phase.RED
            if signal.phase(near_s) is Phase.RED:
                assert all(signal.phase(near_s + t) is Phase.RED for t in np.arange(0, 7, 0.5))
    assert lines >= 5


def test_words_agree_with_deeds():
    rng = np.random.default_rng(2)
    wrong, counts = Counter(), Counter()
    for drive in DRIVES.values():
        for t_s in rng.uniform(0, drive.duration_s, 150).tolist():
            now, later = (drive.state_at(t).speed_m_s for t in (t_s, t_s + 3))
            soon = min(drive.state_at(t_s + t).speed_m_s for t in np.arange(0, 6.5, 0.1))
            action = drive.cause_at(t_s).action
            agrees = {
                Action.KEEP: abs(later - now) < 0.85,
                Action.SLOW: later - now < -0.55,
                Action.SPEED_UP: later - now > 0.55,
                Action.STOP: soon < 0.6,
                Action.WAIT: now < 0.6 and later < 0.8,
            }
            counts[action] += 1
            wrong[action] += not agrees.get(action, True)
    assert set(counts) == set(Action)
    assert all(wrong[action] <= 0.05 * counts[action] + 1 for action in counts), wrong


def test_turns_are_named_where_the_route_turns():
    seen = Counter()
    for drive in DRIVES.values():
        for junction in drive.course.junctions:
            plan = junction.plan
            middle_m = (plan.entry_m + plan.exit_m) / 2
            if plan.turn is Turn.STRAIGHT or drive.run.s_m[-700] < middle_m:
                continue
            t_s = float(np.argmax(drive.run.s_m > middle_m)) * 0.01
            named = drive.cause_at(t_s).category.value
            seen[named] += 1
            assert named == f"turn_{plan.turn.value}"
    assert min(seen["turn_left"], seen["turn_right"]) >= 5


def test_navigation_is_given_in_time_and_ends_with_the_turn():
    for drive in DRIVES.values():
        for junction in drive.course.junctions:
            plan = junction.plan
            if drive.run.s_m[-700] < plan.exit_m + 12 or plan.entry_m < 90:
                continue
            word = {"left": "left", "right": "right", "straight": "straight"}[plan.turn.value]
            for place_m, given in (
                (plan.entry_m - FRONT_M - 55, True),
                (plan.entry_m, True),
                ((plan.entry_m + plan.exit_m) / 2, True),
                (plan.exit_m + 10, False),
            ):
                t_s = float(np.argmax(drive.run.s_m > place_m)) * 0.01
                assert (word in drive.navigation_at(t_s)) >= given


def test_a_cause_lasts():
    lengths = []
    for drive in DRIVES.values():
        last, length = None, 0
        for t_s in np.arange(0, drive.duration_s, 0.1).tolist():
            cause = drive.cause_at(t_s + 1e-9)
            key = cause.category, cause.action
            if last is not None and key != last:
                lengths.append(length)
                length = 0
            last, length = key, length + 1
    assert np.mean(np.array(lengths) < 5) < 0.02


def test_no_category_is_rare_or_drowns_the_others():
    counts = Counter(
        drive.cause_at(t_s).category
        for drive in DRIVES.values()
        for t_s in np.arange(0, drive.duration_s, 0.2).tolist()
    )
    shares = {category: counts[category] / counts.total() for category in Category}
    print({category.value: round(share, 3) for category, share in shares.items()})
    assert min(shares.values()) > 0.02
    assert max(shares.values()) < 0.4


def test_the_demos_first_seconds_show_several_kinds_of_events():
    seen = {DRIVE.cause_at(t_s).category for t_s in np.arange(0, 20, 0.1).tolist()}
    assert {Category.TURN_RIGHT, Category.PEDESTRIAN, Category.CURVE_RIGHT} <= seen


def test_the_future_is_where_the_ego_will_be():
    future = DRIVE.future_xyyaw(3.0)
    assert future.shape == (64, 3)
    now, later = DRIVE.state_at(3.0), DRIVE.state_at(3.0 + 6.4)
    x, y, yaw = future[-1]
    cos, sin = math.cos(now.yaw_rad), math.sin(now.yaw_rad)
    assert now.x_m + cos * x - sin * y == pytest.approx(later.x_m)
    assert now.y_m + sin * x + cos * y == pytest.approx(later.y_m)
    assert math.remainder(now.yaw_rad + yaw - later.yaw_rad, 2 * math.pi) == pytest.approx(0)
    assert future[0, 0] == pytest.approx(now.speed_m_s * 0.1, abs=0.02)


def test_the_last_moment_still_has_a_future():
    assert DRIVE.future_xyyaw(DRIVE.duration_s).shape == (64, 3)


def test_lane_lines_run_left_and_right_of_the_ego():
    places = []
    for line in DRIVE.lane_lines(16.0)[:5]:
        nearest = line[np.abs(line[:, 0]).argmin()]
        places.append(nearest[1])
    assert places == sorted(places, reverse=True)
    # The ego keeps the right lane: the road's middle 1.75 m to the left, its own line to the right.
    assert places[2] == pytest.approx(1.75, abs=0.3)
    assert places[3] == pytest.approx(-1.65, abs=0.3)


def test_a_time_outside_the_drive_is_refused():
    with pytest.raises(ValueError, match=r"time -0\.1 s: a drive lasts from 0 to"):
        DRIVE.state_at(-0.1)
