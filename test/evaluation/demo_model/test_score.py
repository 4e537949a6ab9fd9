"""The scores of the small model: rules that what was driven obeys, and counts by hand."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.demo.causes import TEMPLATES, Action, Category, action_of, category_of
from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.ego import FRONT_M
from alpamayo_ros.demo.junctions import Turn
from alpamayo_ros.demo.navigation import PHRASES, TURNS
from alpamayo_ros.demo.training.train import CHECK_SEEDS
from alpamayo_ros.evaluation.demo_model.figures import figures
from alpamayo_ros.evaluation.demo_model.score import (
    BEFORE_M,
    PER_DRIVE,
    SCORED_SEEDS,
    TURN_SEEDS,
    Scored,
    Scores,
    Turned,
    keeps_its_word,
    moments_to_score,
    opposite,
    turn_of,
    turns_to_score,
)


def path(v0_m_s: float, acceleration_m_s2: float = 0.0, turn_rad_s: float = 0.0) -> np.ndarray:
    """An arc whose speed changes evenly until it stands, 0.1 s a waypoint."""
    t = np.arange(1, 65) * 0.1
    speed = np.maximum(v0_m_s + acceleration_m_s2 * (t - 0.05), 0.0)
    yaw = np.where(speed > 0, turn_rad_s * t, 0.0)
    x, y = np.cumsum(speed * 0.1 * np.cos(yaw)), np.cumsum(speed * 0.1 * np.sin(yaw))
    return np.column_stack([x, y, yaw])


KEEPING = {
    Action.KEEP: path(8.0),
    Action.SPEED_UP: path(8.0, 0.5),
    Action.SLOW: path(8.0, -0.5),
    Action.STOP: path(8.0, -1.5),
    Action.WAIT: path(0.0),
    Action.TURN_LEFT: path(5.0, turn_rad_s=0.2),
    Action.TURN_RIGHT: path(5.0, turn_rad_s=-0.2),
}
SPEEDS_M_S = {Action.WAIT: 0.0, Action.TURN_LEFT: 5.0, Action.TURN_RIGHT: 5.0}


@pytest.mark.parametrize(("category", "action"), TEMPLATES)
def test_a_path_keeps_the_words_that_it_follows_and_breaks_most_others(category, action):
    sentence = TEMPLATES[category, action].format(d=20)
    bent = {Category.CURVE_LEFT: 0.02, Category.CURVE_RIGHT: -0.02}.get(category, 0.0)
    v0_m_s = SPEEDS_M_S.get(action, 8.0)
    kept = KEEPING[action].copy()
    kept[:, 2] += bent * np.arange(1, 65) * 0.1
    assert keeps_its_word(kept, v0_m_s, sentence)
    opposites = {
        Action.KEEP: path(8.0, -1.0),
        Action.SPEED_UP: path(8.0),
        Action.SLOW: path(8.0),
        Action.STOP: path(8.0, -0.5),
        Action.WAIT: path(0.0, 1.0),
        Action.TURN_LEFT: path(5.0, turn_rad_s=-0.2),
        Action.TURN_RIGHT: path(5.0, turn_rad_s=0.2),
    }
    assert not keeps_its_word(opposites[action], v0_m_s, sentence)


def test_a_straight_path_follows_no_bend_and_no_words_are_not_kept():
    assert not keeps_its_word(path(8.0), 8.0, "The road bends left; keep the speed and follow it.")
    assert not keeps_its_word(path(8.0), 8.0, "The road bends right; keep the speed and follow it.")
    assert not keeps_its_word(path(8.0), 8.0, "")


def test_what_is_driven_nearly_always_does_what_the_true_sentence_says():
    kept = []
    for seed in SCORED_SEEDS[:6]:
        drive = Drive(seed)
        for t_s in moments_to_score(drive):
            speed, sentence = drive.state_at(t_s).speed_m_s, drive.cause_at(t_s).sentence
            kept.append(keeps_its_word(drive.future_xyyaw(t_s), speed, sentence))
    assert len(kept) == 6 * PER_DRIVE
    assert np.mean(kept) > 0.93


def test_what_is_driven_goes_the_way_that_the_instruction_says():
    turned = []
    for seed in TURN_SEEDS[:8]:
        drive = Drive(seed)
        for junction, t_s in turns_to_score(drive):
            assert 0 < junction.entry_m - drive.place_m(t_s) - FRONT_M - BEFORE_M < 2.0
            assert turn_of(drive.future_xyyaw(t_s)) is junction.turn
            assert TURNS[junction.turn] in drive.navigation_at(t_s).lower()
            turned.append(junction.turn)
    assert {Turn.LEFT, Turn.RIGHT} <= set(turned)


def test_scored_drives_are_held_out_and_not_looked_at_in_training():
    assert max(*SCORED_SEEDS, *TURN_SEEDS) < 1000
    assert not {*SCORED_SEEDS, *TURN_SEEDS} & {0, *CHECK_SEEDS}
    assert len(SCORED_SEEDS) * PER_DRIVE >= 200


@pytest.mark.parametrize("phrase", PHRASES)
def test_the_opposite_instruction_is_one_that_a_drive_could_say(phrase):
    said = {turn: phrase.format(Turn=t.capitalize(), turn=t, d=20) for turn, t in TURNS.items()}
    assert opposite(said[Turn.LEFT]) == said[Turn.RIGHT]
    assert opposite(said[Turn.RIGHT]) == said[Turn.LEFT]
    assert opposite(said[Turn.STRAIGHT]) == said[Turn.LEFT]


def scored(category: Category, said: str, ade_m: float, t_s: float = 0.0) -> Scored:
    sentence = next(text for (c, _), text in TEMPLATES.items() if c is category).format(d=20)
    assert category_of(sentence) is category
    assert action_of(sentence) is not None
    return Scored(1, t_s, category.value, sentence, said, (ade_m, 2 * ade_m), (2.0, 2.0), True,
                  True, ())  # fmt: skip


def test_figures_count_what_was_said_and_compare_means():
    red = "The light is red 20 m ahead; stop at the line."
    seeing = [
        scored(Category.RED_LIGHT, red, 1.0),
        scored(Category.RED_LIGHT, "The road is clear; keep the speed.", 2.0),
        scored(Category.CLEAR, "The road is clear; speed up.", 0.6),
        scored(Category.RED_LIGHT, "mumble", 0.4),
    ]
    turns = [
        Turned(1, 0.0, "left", "Turn left", "left", "Turn right", "right"),
        Turned(1, 0.0, "straight", "Go straight", "left", "Turn left", "left"),
        Turned(1, 0.0, "right", "Turn right", "right", "Turn left", "right"),
    ]
    result = figures(Scores(seeing, seeing[:1], seeing[1:2], turns))
    everything, slowing = result.groups[:2]
    assert (everything.count, everything.ade_m, everything.less) == (4, (1.0, 2.0), (0.5, 0.0))
    assert (slowing.count, slowing.ade_m[0]) == (3, pytest.approx(3.4 / 3))
    assert [group.ade_m[0] for group in result.groups[-2:]] == [1.0, 2.0]
    assert result.right.mean == 0.5
    assert result.most_frequent == 0.75
    assert result.kinds[0].right == 1
    assert result.kinds[0].instead == (("clear", 1), ("nothing known", 1))
    assert (result.turned, result.turned_otherwise) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
