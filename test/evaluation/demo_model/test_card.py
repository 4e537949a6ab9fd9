"""The small model's card says what was scored; the shipped one has today's headings and seeds."""

from __future__ import annotations

import re

import pytest

from alpamayo_ros.demo.causes import Category
from alpamayo_ros.demo.small_model import FOLDER
from alpamayo_ros.evaluation.demo_model.card import card
from alpamayo_ros.evaluation.demo_model.score import SCORED_SEEDS, Scored, Scores, Turned

RED, CLEAR = "The light is red 20 m ahead; stop at the line.", "The road is clear; speed up."


def scored(seed: int, t_s: float, said: str, ade_m: float) -> Scored:
    return Scored(seed, t_s, Category.RED_LIGHT.value, RED, said, (ade_m, ade_m), (2.0, 4.0),
                  said == RED, True, () if said == RED else ("lateral",))  # fmt: skip


@pytest.fixture(scope="module")
def page() -> str:
    seeing = [scored(seed, 10.0 * seed, RED if seed % 4 else CLEAR, 1.0) for seed in range(12)]
    turns = [Turned(1, 0.0, "left", "Turn left", "left", "Turn right", "left")]
    return card(FOLDER, Scores(seeing, [scored(1, 0.0, RED, 3.0)], seeing[:1], turns), greedy=False)


def test_it_says_that_it_drives_nothing_real(page: str) -> None:
    assert "drives nothing real" in page


def test_parts_come_with_intervals_and_means_with_their_baseline(page: str) -> None:
    named = re.search(r"true cause named .* \| (\S+) % \((\S+) to (\S+)\) \|", page)
    assert named is not None
    part, low, high = map(float, named.groups())
    assert part == 75.0
    assert low < part < high
    assert "| all | 12 | 1.00 | 2.00 | 50 % | 1.00 | 4.00 | 75 % |" in page
    assert "| all, images blank | 1 | 3.00 | 2.00 | -50 % | 3.00 | 4.00 | 25 % |" in page
    assert "1 intersections: plan goes where it is told | 100.0 %" in page
    assert "told to go the other way | 0.0 %" in page


def test_it_shows_what_is_said_instead_and_ten_of_the_worst(page: str) -> None:
    assert "| red_light | 12 | 9 | clear 3 |" in page
    assert page.count(f"| {RED} |") == 10


def test_its_tables_are_whole(page: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1, table


def test_the_shipped_card_has_the_headings_and_the_seeds_of_today(page: str) -> None:
    shipped = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall("^#+ .*", shipped, re.MULTILINE) == re.findall("^#+ .*", page, re.MULTILINE)
    assert f"seeds {SCORED_SEEDS[0]} to {SCORED_SEEDS[-1]}" in shipped
