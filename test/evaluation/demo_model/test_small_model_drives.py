"""The small model drives, on roads that it has not learnt from. Its card has the whole figures."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.evaluation.demo_model.figures import Figures, figures
from alpamayo_ros.evaluation.demo_model.score import SCORED_SEEDS, TURN_SEEDS, Scorer, Scores


@pytest.fixture(scope="module")
def scores() -> Scores:
    scorer = Scorer(load_demo_model(), greedy=False)
    scores = Scores()
    for seed in (*SCORED_SEEDS[:3], *TURN_SEEDS[:8]):
        scores.add(scorer.drive(seed))
    return scores


@pytest.fixture(scope="module")
def found(scores: Scores) -> Figures:
    return figures(scores)


def test_it_plans_nearer_to_what_was_driven_than_going_on_as_before(found: Figures) -> None:
    everything, slowing_or_turning = found.groups[:2]
    assert everything.count == 24
    assert everything.less[0] > 0.2
    assert slowing_or_turning.less[0] > 0.35


def test_it_names_the_cause(found: Figures) -> None:
    assert found.right.mean is not None
    assert found.right.mean > found.most_frequent + 0.2


def test_it_does_what_it_says(found: Figures) -> None:
    assert found.kept.mean is not None
    assert found.kept.mean > 0.75


def test_it_goes_where_it_is_told(scores: Scores, found: Figures) -> None:
    assert len(scores.turns) >= 5
    assert found.turned > 0.6


def test_it_needs_its_cameras(found: Figures) -> None:
    seeing, (blank, exchanged) = found.groups[0], found.groups[-2:]
    assert blank.ade_m[0] > 1.2 * seeing.ade_m[0]
    assert exchanged.ade_m[0] > 1.2 * seeing.ade_m[0]


def test_its_plans_can_be_driven(scores: Scores) -> None:
    assert np.mean([not scored.reasons for scored in scores.seeing]) > 0.8
