"""How much a decision has to compute and read, stage by stage, from the configuration alone.

A multiplication and an addition are two operations. Norms, activations and sampling are left out:
with the device's rates the numbers give a floor that no implementation is under.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alpamayo_ros.model.configuration import DecoderConfig, ModelConfig
from alpamayo_ros.model.prompt import CameraLayout
from alpamayo_ros.types import FRAMES_PER_CAMERA, Plan, Snapshot

if TYPE_CHECKING:
    from alpamayo_ros.model.alpamayo import AlpamayoR1


@dataclass(frozen=True)
class Work:
    """Operations, and bytes of weights and cache that must be read at least once."""

    flop: float
    read_bytes: float

    def times(self, count: int) -> Work:
        """The same so many times over."""
        return Work(count * self.flop, count * self.read_bytes)

    def __add__(self, other: Work) -> Work:
        """One after the other."""
        return Work(self.flop + other.flop, self.read_bytes + other.read_bytes)


def work_of_plan(model: AlpamayoR1, snapshot: Snapshot, plan: Plan) -> dict[str, Work]:
    """Stage to work of a plan that a model without reused features has made of a snapshot."""
    cameras = model._layout(model._frames(snapshot))
    prompt = model.prompts.build(cameras, plan.navigation_text)
    tokens = max(map(len, plan.token_ids))
    return decision_work(
        model.config, cameras, len(prompt.ids), tokens, len(plan.samples), model.dtype.itemsize
    )


def decision_work(
    config: ModelConfig,
    cameras: Sequence[CameraLayout],
    prompt_tokens: int,
    new_tokens: int,
    samples: int,
    value_bytes: int,
) -> dict[str, Work]:
    """Stage to work of a decision on images that are all new.

    new_tokens: of the reasoning that is longest, with its end token.
    """
    per_token = config.backbone.vision.merge_size**2
    patches = [rows * columns * per_token for rows, columns in (c.grid for c in cameras)]
    parts = [vision_work(config, FRAMES_PER_CAMERA, count, value_bytes) for count in patches]
    vision = Work(sum(part.flop for part in parts), parts[0].read_bytes)  # weights: once for all
    context = prompt_tokens + new_tokens
    step = flow_step_work(config, samples, context, value_bytes)
    return {
        "vision": vision,
        "prefill": prefill_work(config, prompt_tokens, value_bytes),
        "reasoning": reasoning_work(config, samples, prompt_tokens, new_tokens, value_bytes),
        "expert": step.times(config.flow_steps),
    }


def vision_work(config: ModelConfig, images: int, patches: int, value_bytes: int) -> Work:
    """Encoding images of so many patches each."""
    vision = config.backbone.vision
    hidden, joined = vision.hidden_size, vision.hidden_size * vision.merge_size**2
    layer = 4 * hidden**2 + 2 * hidden * vision.intermediate_size
    merger = joined * (joined + vision.out_hidden_size)
    mergers = 1 + len(vision.deepstack_layers)
    embedding = vision.patch_values * hidden
    weights = vision.depth * layer + mergers * merger + embedding
    tokens = patches // vision.merge_size**2
    products = patches * (vision.depth * layer + embedding) + tokens * mergers * merger
    attention = vision.depth * 2 * patches**2 * hidden
    return Work(2 * images * (products + attention), weights * value_bytes)


def prefill_work(config: ModelConfig, tokens: int, value_bytes: int) -> Work:
    """The prompt, causal; of the last layer, keys and values, and the rest for the last token."""
    text = config.backbone.text
    layer, keys = _layer_weights(text), _key_value_weights(text)
    whole = text.num_layers - 1
    attention = whole * tokens**2 * text.num_heads * text.head_dim  # half of 2 * tokens^2 * ...
    products = tokens * (whole * layer + keys) + layer - keys + _head(config)
    weights = text.num_layers * layer + _head(config)
    return Work(2 * (products + attention), weights * value_bytes)


def reasoning_work(
    config: ModelConfig, samples: int, context: int, new_tokens: int, value_bytes: int
) -> Work:
    """So many tokens of each sample after a context: the head runs between them.

    The prefill's head has given the first token, and none follows the last one.
    """
    layers = token_work(config, samples, context, value_bytes)
    head = head_work(config, samples, value_bytes)
    return layers.times(new_tokens) + head.times(new_tokens - 1)


def head_work(config: ModelConfig, samples: int, value_bytes: int) -> Work:
    """Logits of one token of each sample."""
    return Work(2 * samples * _head(config), _head(config) * value_bytes)


def token_work(config: ModelConfig, samples: int, context: int, value_bytes: int) -> Work:
    """One token of each sample through the layers, after a context of so many tokens."""
    text = config.backbone.text
    weights = text.num_layers * _layer_weights(text)
    attention = text.num_layers * 2 * context * text.num_heads * text.head_dim
    read = weights + samples * context * config.cache_values_per_token
    return Work(2 * samples * (weights + attention), read * value_bytes)


def flow_step_work(config: ModelConfig, samples: int, context: int, value_bytes: int) -> Work:
    """One step of the expert for each sample; it reads the cache of so many tokens."""
    expert, waypoints = config.expert, config.action_space.waypoints
    weights = expert.num_layers * _layer_weights(expert)
    attention = expert.num_layers * 2 * (context + waypoints) * expert.num_heads * expert.head_dim
    read = weights + samples * context * config.cache_values_per_token
    return Work(2 * samples * waypoints * (weights + attention), read * value_bytes)


def _layer_weights(config: DecoderConfig) -> int:
    """Numbers in the matrices of one decoder layer."""
    query = config.hidden_size * config.num_heads * config.head_dim
    mlp = 3 * config.hidden_size * config.intermediate_size
    return 2 * query + _key_value_weights(config) + mlp


def _key_value_weights(config: DecoderConfig) -> int:
    return 2 * config.hidden_size * config.num_kv_heads * config.head_dim


def _head(config: ModelConfig) -> int:
    return config.backbone.text.hidden_size * config.vocab_size
