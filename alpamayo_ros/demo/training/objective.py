"""What the small model learns from an example: to say the cause, and to drive what was driven.

The network is the one that plans, run over the same cache: the language part reads prompt and
sentence in one causal pass, the expert reads what that pass left behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from alpamayo_ros.demo.training.examples import Example
from alpamayo_ros.model.action_space import (
    actions_from_trajectory,
    history_bins,
    speed_at_t0,
)
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.expert import velocity
from alpamayo_ros.model.images import patch_rows
from alpamayo_ros.model.language import Additions, KeyValueCache, rotary_table
from alpamayo_ros.model.network import Network
from alpamayo_ros.model.prompt import CameraLayout, PromptBuilder
from alpamayo_ros.model.tokenizer import TextTokenizer
from alpamayo_ros.types import CAMERA_IDS

ACTION_LIMIT = 6.0  # deviations: near standstill the curvature is badly determined
REASONING_WEIGHT = 2.0  # few of a sentence's tokens are in doubt; those decide what is driven
FLOW_DRAWS = 4  # times and noises of one example: the expert is cheap beside what it reads


class GradientCache(KeyValueCache):
    """Keys and values that gradients flow through: nothing is written in place.

    What begins at token 0 is kept; what comes later sees it, once for each of its samples.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    def write(self, layer: int, start: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """As KeyValueCache.write; `start` is 0 or what was kept."""
        if start == 0:
            self._kept[layer] = key, value
            return key, value
        before, samples = self._kept[layer], key.shape[0]
        kept_key, kept_value = (kept.expand(samples, -1, -1, -1) for kept in before)
        return torch.cat((kept_key, key), dim=2), torch.cat((kept_value, value), dim=2)


@dataclass(frozen=True, eq=False)
class Lesson:
    """An example as numbers for the network."""

    images: Tensor  # uint8 (16, H, W, 3)
    ids: Tensor  # int64 (P + R,): prompt, then reasoning with the end tokens
    positions: Tensor  # int64 (3, P + R)
    image_indices: Tensor  # int64 (N,)
    prompt_length: int
    actions: Tensor  # float32 (64, 2), normalised


@dataclass(frozen=True, eq=False)
class Losses:
    """The two parts of the objective, each a scalar."""

    reasoning: Tensor  # cross-entropy per token, nat
    flow: Tensor  # mean squared error of the velocity, in deviations

    @property
    def total(self) -> Tensor:
        """What is minimised."""
        return REASONING_WEIGHT * self.reasoning + self.flow


class Teacher:
    """Turns examples into lessons."""

    def __init__(self, config: ModelConfig, tokenizer: TextTokenizer) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._prompts = PromptBuilder(config, tokenizer)

    def lesson(self, example: Example) -> Lesson:
        """What the network gets and what it should answer."""
        config = self._config
        factor = config.backbone.vision.size_factor
        height, width = example.images.shape[1:3]
        grid = height // factor, width // factor
        layout = [CameraLayout(camera_id, grid) for camera_id in CAMERA_IDS.values()]
        prompt = self._prompts.build(layout, example.navigation)
        history = config.history.first_id + history_bins(example.history_xyz, config.history)
        reasoning = self.reasoning_ids(example.sentence)
        after = prompt.next_position + np.arange(len(reasoning))
        return Lesson(
            images=torch.from_numpy(example.images),
            ids=torch.from_numpy(np.concatenate([prompt.with_history(history), reasoning])),
            positions=torch.from_numpy(
                np.concatenate([prompt.positions, np.tile(after, (3, 1))], axis=1)
            ),
            image_indices=torch.from_numpy(prompt.image_indices),
            prompt_length=len(prompt.ids),
            actions=self._actions(example),
        )

    def reasoning_ids(self, sentence: str) -> list[int]:
        """The tokens of a sentence with those that end it, as the rollout expects them."""
        ends = [self._config.special_ids[name] for name in ("cot_end", "traj_future_start")]
        return self._tokenizer.encode(sentence) + ends

    def _actions(self, example: Example) -> Tensor:
        space = self._config.action_space
        v0_m_s = speed_at_t0(example.history_xyz, example.history_rot, space)
        xy, yaw = example.future[:, :2], example.future[:, 2]
        actions = actions_from_trajectory(xy, yaw, v0_m_s, space)
        return torch.from_numpy(actions.clip(-ACTION_LIMIT, ACTION_LIMIT).astype(np.float32))


def flow_times_to_learn(count: int, generator: torch.Generator) -> Tensor:
    """Times float32 (count,) that the flow is learnt at: 0.999 * (1 - Beta(1.5, 1)).

    Beta(a, 1) has the distribution function u^a, so that u^(1/a) of a uniform u is drawn from it.
    """
    uniform = torch.rand(count, generator=generator)
    return 0.999 * (1 - uniform ** (1 / 1.5))


def losses(network: Network, config: ModelConfig, lesson: Lesson, rng: torch.Generator) -> Losses:
    """The objective for one lesson; noise and flow times come from rng."""
    cache = GradientCache()
    reasoning = _reasoning_loss(network, config, lesson, cache)
    return Losses(reasoning, _flow_loss(network, config, lesson, cache, rng))


def _reasoning_loss(
    network: Network, config: ModelConfig, lesson: Lesson, cache: GradientCache
) -> Tensor:
    """Cross-entropy of the reasoning's tokens; fills the cache."""
    patch = config.backbone.vision.patch_size
    count, height, width = lesson.images.shape[:3]
    rows = patch_rows(lesson.images, config.backbone.vision).flatten(0, 1)
    features = network.vlm.model.visual(rows, [(height // patch, width // patch)] * count)
    language = network.vlm.model.language_model
    embeddings = language.embed_tokens(lesson.ids)
    embeddings = embeddings.index_copy(0, lesson.image_indices, features.tokens)
    text = config.backbone.text
    rotary = rotary_table(lesson.positions[:, None], text, "cpu", torch.float32)
    additions = Additions(lesson.image_indices, features.deepstack)
    states = language.run(embeddings[None], rotary, cache, 0, causal=True, additions=additions)
    first = lesson.prompt_length
    logits = network.vlm.lm_head(states[0, first - 1 : -1])
    return F.cross_entropy(logits, lesson.ids[first:])


def _flow_loss(
    network: Network,
    config: ModelConfig,
    lesson: Lesson,
    cache: GradientCache,
    rng: torch.Generator,
) -> Tensor:
    """Squared error of the velocity at FLOW_DRAWS points between noise and the actions driven."""
    actions, length = lesson.actions, len(lesson.ids)
    waypoints = len(actions)
    noise = torch.randn(FLOW_DRAWS, *actions.shape, generator=rng)
    times = flow_times_to_learn(FLOW_DRAWS, rng)
    part = times[:, None, None]
    noisy = part * actions + (1 - part) * noise
    next_position = int(lesson.positions[0, -1]) + 1
    positions = (next_position + torch.arange(waypoints)).expand(3, 1, -1)
    predicted = velocity(
        network.expert,
        network.action_in_proj,
        network.action_out_proj,
        noisy,
        network.action_in_proj.time_features(times)[:, None],
        rotary_table(positions, config.expert, "cpu", torch.float32),
        cache,
        length,
        None,
    )
    return F.mse_loss(predicted, actions - noise)
