"""What the navigation says, and from where to where."""

import pytest

from alpamayo_ros.demo.junctions import JunctionPlan, Turn
from alpamayo_ros.demo.navigation import PHRASES, TURNS, navigation_text

LEFT = JunctionPlan(Turn.LEFT, 200.0, 225.0, 8.0)


@pytest.mark.parametrize(
    ("front_m", "speed_m_s", "given"),
    [
        (139.0, 8.0, False),
        (141.0, 8.0, True),
        (121.0, 13.0, False),
        (123.0, 13.0, True),  # 6 s at 13 m/s are 78 m
        (210.0, 5.0, True),
        (227.0, 5.0, False),
    ],
)
def test_an_instruction_is_given_from_60_m_or_6_s_before_until_the_turn_is_done(
    front_m, speed_m_s, given
):
    assert bool(navigation_text(LEFT, PHRASES[0], front_m, speed_m_s)) == given


def test_distances_are_said_in_steps_of_10_m():
    phrase = "{Turn} at the intersection in {d} m"
    assert navigation_text(LEFT, phrase, 162.0, 8.0) == "Turn left at the intersection in 40 m"
    assert navigation_text(LEFT, phrase, 205.0, 8.0) == "Turn left at the intersection in 10 m"


@pytest.mark.parametrize("phrase", PHRASES)
@pytest.mark.parametrize("turn", Turn)
def test_every_phrase_says_the_way_and_begins_with_a_capital(turn, phrase):
    text = navigation_text(JunctionPlan(turn, 200.0, 225.0, 8.0), phrase, 180.0, 8.0)
    assert TURNS[turn] in text.lower()
    assert text[0].isupper()
