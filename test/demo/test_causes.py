"""Sentences say one category and one action, and are read back as they were meant."""

import re

import pytest

from alpamayo_ros.demo.causes import TEMPLATES, Action, Category, action_of, category_of, cause


@pytest.mark.parametrize("pair", TEMPLATES, ids=lambda pair: f"{pair[0].value}-{pair[1].value}")
def test_a_sentence_is_read_back_as_its_category_and_action(pair):
    for distance_m in (0.0, 7.4, 31.0, 200.0):
        sentence = cause(*pair, distance_m).sentence
        assert (category_of(sentence), action_of(sentence)) == pair
        assert (category_of(sentence.upper()), action_of(sentence.upper())) == pair
        assert len(sentence.split()) <= 16


def test_every_category_and_every_action_has_a_sentence():
    assert {category for category, _ in TEMPLATES} == set(Category)
    assert {action for _, action in TEMPLATES} == set(Action)


@pytest.mark.parametrize(
    ("distance_m", "said"), [(0.2, 5), (7.4, 5), (7.6, 10), (33.0, 35), (99.0, 60)]
)
def test_distances_are_said_in_steps_of_5_m(distance_m, said):
    sentence = cause(Category.RED_LIGHT, Action.STOP, distance_m).sentence
    assert re.findall(r"\d+", sentence) == [str(said)]


@pytest.mark.parametrize("text", ["", "banana", "The the the ;;", "60 m"])
def test_text_that_says_nothing_known_is_nothing(text):
    assert category_of(text) is None
    assert action_of(text) is None
