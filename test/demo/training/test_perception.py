"""What the image encoder is asked, and what its first lesson leaves to the others."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.small_model import FOLDER
from alpamayo_ros.demo.training.examples import Recipe, example_at, moments
from alpamayo_ros.demo.training.perception import (
    CATEGORIES,
    HEADING_SCALE_RAD,
    Reader,
    make_sights,
    questions,
    sight_loss,
)
from alpamayo_ros.model.config_file import load_config
from alpamayo_ros.model.recipe import recipe_network

RECIPE = Recipe(per_drive=6, min_pixels=10240, max_pixels=16640)


def circle(radius_m: float, speed_m_s: float) -> np.ndarray:
    yaw = speed_m_s * 0.1 * np.arange(1, 65) / radius_m
    return np.column_stack([radius_m * np.sin(yaw), radius_m * (1 - np.cos(yaw)), yaw])


def test_headings_are_asked_where_they_are_driven_and_distances_where_they_are_named():
    asked = questions(circle(40.0, 4.0), "A vehicle stands 15 m ahead in the lane; stop behind it.")
    assert asked[0] == pytest.approx(0.5)
    # 25.6 m are driven: beyond nothing is known.
    assert asked[1:4] == pytest.approx(np.array([8, 16, 24]) / 40 / HEADING_SCALE_RAD, rel=1e-3)
    assert math.isnan(asked[4])
    assert math.isnan(questions(circle(40.0, 4.0), "The road is clear; speed up.")[0])


def test_a_sight_is_the_newest_front_views_of_the_example_at_that_moment(tmp_path):
    sights = make_sights(tmp_path, [7], RECIPE, workers=1)
    times_s = list(moments(Drive(7), RECIPE.per_drive))
    assert len(sights) == len(times_s) > 0
    for k, t_s in enumerate(times_s):
        example = example_at(Drive(7), t_s, RECIPE)
        assert np.array_equal(sights[k].images.numpy(), example.images[[7, 15]])
        assert CATEGORIES[sights[k].category] == example.category
        expected = questions(example.future, example.sentence)
        assert np.array_equal(sights[k].asked, expected, equal_nan=True)


def test_the_loss_of_a_silent_reader_is_that_of_a_guess_and_teaches_only_the_encoder(tmp_path):
    config = load_config(FOLDER)
    network = recipe_network(config, "cpu", torch.float32).requires_grad_(True)
    visual = network.vlm.model.visual
    reader = Reader(config, visual.tokens((6, 10)))
    for parameter in reader.parameters():
        torch.nn.init.zeros_(parameter)
    sights = list(make_sights(tmp_path, [7], RECIPE, workers=1))
    loss, right = sight_loss(visual, reader, sights)
    asked = np.concatenate([sight.asked for sight in sights])
    squares = np.square(asked[np.isfinite(asked)]).mean()
    assert loss.item() == pytest.approx(math.log(len(CATEGORIES)) + squares, rel=1e-4)
    assert right == pytest.approx(np.mean([sight.category == 0 for sight in sights]))
    torch.nn.init.normal_(reader.levels[0].weight)
    sight_loss(visual, reader, sights)[0].backward()
    taught = {name for name, p in network.named_parameters() if p.grad is not None}
    assert taught
    assert all(name.startswith("vlm.model.visual.") for name in taught)
