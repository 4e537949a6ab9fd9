"""The objective runs the network as planning does, and asks for what the flow needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.small_model import FOLDER
from alpamayo_ros.demo.training.examples import Example, Recipe, example_at
from alpamayo_ros.demo.training.objective import (
    ACTION_LIMIT,
    GradientCache,
    Lesson,
    Teacher,
    flow_times_to_learn,
    losses,
)
from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.model.action_space import drive, physical_actions, speed_at_t0
from alpamayo_ros.model.config_file import load_config
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.language import KeyValueCache
from alpamayo_ros.model.network import Network
from alpamayo_ros.model.recipe import recipe_network
from alpamayo_ros.model.tokenizer import TextTokenizer


@pytest.fixture(scope="module")
def config() -> ModelConfig:
    return load_config(FOLDER)


@pytest.fixture(scope="module")
def example(config: ModelConfig) -> Example:
    return example_at(Drive(3), 20.0, Recipe(1, config.min_pixels, config.max_pixels))


@pytest.fixture
def network(config: ModelConfig) -> Network:
    return recipe_network(config, "cpu", torch.float32).requires_grad_(True)


@pytest.fixture(scope="module")
def lesson(config: ModelConfig, example: Example) -> Lesson:
    return Teacher(config, TextTokenizer.load(FOLDER, config)).lesson(example)


def test_a_cache_with_gradients_holds_what_the_plain_one_holds(config):
    text = config.backbone.text
    plain = KeyValueCache(text, 2, 7, "cpu", torch.float32)
    learning = GradientCache()
    first = torch.randn(2, 2, 1, text.num_kv_heads, 5, text.head_dim)
    for key, value in first.transpose(0, 1):
        plain.first_row().write(0, 0, key, value)
        learning.write(0, 0, key, value)
    plain.copy_first_row(5)
    later = torch.randn(2, 2, text.num_kv_heads, 2, text.head_dim)
    last = first[:, -1]
    plain.first_row().write(0, 0, *last)
    plain.copy_first_row(5)
    for got, expected in zip(learning.write(0, 5, *later), plain.write(0, 5, *later)):
        assert torch.equal(got, expected)


def test_the_most_probable_sentence_is_the_one_with_the_least_loss(config, example, lesson):
    """The loss of the tokens that planning chooses is less than that of other ones."""
    network = recipe_network(config, "cpu", torch.float32)
    tokenizer = TextTokenizer.load(FOLDER, config)
    model = AlpamayoR1(network, config, tokenizer, "test", "cpu", torch.float32)
    plan = model.plan(
        example.snapshot(),
        greedy=True,
        max_new_tokens=6,
        navigation_text=example.navigation,
    )
    chosen = torch.tensor(plan.token_ids[0][:6])
    prompt = lesson.prompt_length
    ids = torch.cat([lesson.ids[:prompt], chosen])
    said = replace(lesson, ids=ids, positions=lesson.positions[:, : len(ids)])
    others = torch.cat([ids[:-1], (ids[-1:] + 1)])

    def loss(tokens: torch.Tensor) -> float:
        rng = torch.Generator().manual_seed(0)
        with torch.no_grad():
            return float(losses(network, config, replace(said, ids=tokens), rng).reasoning)

    assert loss(ids) < loss(others)


def test_an_untouched_velocity_of_zero_costs_the_variance_of_noise_and_actions(
    config, network, lesson
):
    with torch.no_grad():
        network.action_out_proj.weight.zero_()
        network.action_out_proj.bias.zero_()
        values = [
            float(losses(network, config, lesson, torch.Generator().manual_seed(seed)).flow)
            for seed in range(3)
        ]
    # E |x - noise|^2 = x^2 + 1 a number; 3 x 4 x 128 draws of chi-squared: 5 % is two sigma.
    assert np.mean(values) == pytest.approx(float(lesson.actions.square().mean()) + 1, rel=0.15)


def test_every_weight_that_planning_uses_gets_a_gradient(config, network, lesson):
    losses(network, config, lesson, torch.Generator().manual_seed(0)).total.backward()
    without = [n for n, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    # Of the last layer's queries, output and MLP the expert reads nothing, but the sentence does.
    assert without == []


def test_the_actions_of_a_lesson_drive_the_way_that_was_driven(config, example, lesson):
    space = config.action_space
    v0_m_s = speed_at_t0(example.history_xyz, example.history_rot, space)
    way = drive(physical_actions(lesson.actions.numpy(), space), v0_m_s, space.dt_s)
    assert abs(lesson.actions).max() < ACTION_LIMIT
    # The inverse of the action space smooths: a quarter of a metre over 6.4 s.
    assert np.abs(way.xy_m - example.future[:, :2]).max() < 0.25


def test_a_sentence_ends_as_the_rollout_expects(config, example, lesson):
    ends = [config.special_ids["cot_end"], config.special_ids["traj_future_start"]]
    assert lesson.ids[-2:].tolist() == ends
    text = TextTokenizer.load(FOLDER, config).decode(lesson.ids[lesson.prompt_length :].tolist())
    assert text == example.sentence


def test_flow_times_have_the_distribution_of_the_paper():
    times = flow_times_to_learn(200_000, torch.Generator().manual_seed(0))
    # Beta(1.5, 1): mean 0.6, variance 0.6 * 0.4 / 3.5
    assert float(times.mean()) == pytest.approx(0.999 * 0.4, abs=2e-3)
    assert float(times.var()) == pytest.approx(0.999**2 * 0.24 / 3.5, rel=0.02)
    assert float(times.min()) >= 0
    assert float(times.max()) < 0.999
