"""The middle size beside transformers' own Qwen3-VL, stage by stage: same weights, same inputs.

    python benchmarks/stock.py [--rounds 7] [--threads 2]

Stages: 16 images; a prompt of 3009 tokens with the head for its last one; 15 tokens with the head
over the whole vocabulary; ten steps of the expert (transformers' text model on 64 embeddings, which
see the cache and each other; what encodes and decodes the actions is ours in both). Results are
compared first. In each round both run every stage, in turns. The last line is JSON; the exit code
is 1 when a stage of ours is the slower one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

from model import TOKENS, Bench, spread, stream  # prepares the environment, so before torch

import numpy as np  # isort: skip
import torch  # isort: skip
from torch import Tensor  # isort: skip
from transformers import DynamicCache, Qwen3VLForConditionalGeneration  # isort: skip
from transformers.models.qwen3_vl import Qwen3VLConfig  # isort: skip
from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3_vl  # isort: skip

from alpamayo_ros.model.configuration import DecoderConfig, VisionConfig  # isort: skip
from alpamayo_ros.model.features import CameraFrame, join  # isort: skip
from alpamayo_ros.model.flow_matching import integrate  # isort: skip
from alpamayo_ros.model.images import patch_rows  # isort: skip
from alpamayo_ros.model.prompt import Prompt  # isort: skip
from alpamayo_ros.model.rollout import Reasoning  # isort: skip
from alpamayo_ros.model.vision import ImageFeatures  # isort: skip

STAGES = ("vision", "prefill", "decode", "expert")
ATOL = 1e-3


@dataclass(frozen=True, eq=False)
class Inputs:
    """What both get."""

    frames: list[CameraFrame]  # 16, at the model's size
    prompt: Prompt
    ids: np.ndarray  # int64 (P,)
    features: ImageFeatures
    tokens: list[int]  # of the reasoning
    noise: np.ndarray  # float32 (1, 64, 2)


class Ours:
    """The stages of a decision as AlpamayoR1 runs them."""

    def __init__(self, bench: Bench, inputs: Inputs) -> None:
        self.model, self.inputs = bench.model, inputs
        length = len(inputs.ids) + TOKENS + 64
        self.cache = self.model.rollout.cache(1, length)

    def vision(self) -> Tensor:
        self.model.features.clear()
        return join(self.model.features.encode(self.inputs.frames, lambda: None)).tokens

    def prefill(self) -> Tensor:
        inputs = self.inputs
        return self.model.rollout.prefill(inputs.prompt, inputs.ids, inputs.features, self.cache)

    def decode(self) -> Tensor:
        rollout, start = self.model.rollout, len(self.inputs.ids)
        table = rollout._text_rotary(self.inputs.prompt.next_position, TOKENS)
        for k, token in enumerate(self.inputs.tokens):
            states = rollout._decode([token], table.span(k, k + 1), self.cache, start + k)
            logits = rollout._logits(states)
        return logits

    def expert(self) -> Tensor:
        reasoning = Reasoning((tuple(self.inputs.tokens),), (False,))
        noise = self.inputs.noise
        return self.model.rollout.actions(
            self.inputs.prompt, reasoning, noise, self.cache, lambda: None
        )


class Stock:
    """The same stages by transformers' classes."""

    def __init__(self, bench: Bench, inputs: Inputs) -> None:
        network, config = bench.model.network, bench.model.config
        self.inputs, self.network, self.rollout = inputs, network, bench.model.rollout
        backbone = config.backbone
        text = text_values(backbone.text, config.vocab_size)
        stock_config = Qwen3VLConfig(
            text_config=text,
            vision_config=vision_values(backbone.vision),
            image_token_id=backbone.image_token_id,
        )
        self.model = Qwen3VLForConditionalGeneration(stock_config).eval()
        self.model.load_state_dict(network.vlm.state_dict())
        expert_config = Qwen3VLConfig(text_config=text_values(config.expert, 1)).text_config
        self.decoder = qwen3_vl.Qwen3VLTextModel(expert_config).eval()
        weights = network.expert.state_dict()
        missing, unexpected = self.decoder.load_state_dict(weights, strict=False)
        if (missing, unexpected) != (["embed_tokens.weight"], []):
            raise SystemExit(f"the expert's weights do not fit: {missing} {unexpected}")
        for layer in self.decoder.layers:
            layer.self_attn.is_causal = False
        self.cache = DynamicCache()

    def vision(self) -> Tensor:
        visual = self.model.model.visual
        pixels = torch.from_numpy(np.stack([frame.rgb for frame in self.inputs.frames]))
        rows, columns = (side // visual.config.patch_size for side in pixels.shape[1:3])
        patches = patch_rows(pixels, self.network.vlm.model.visual.config).flatten(0, 1)
        return visual(patches, grid_thw=torch.tensor([[1, rows, columns]] * len(pixels)))[0]

    def prefill(self) -> Tensor:
        inputs, model = self.inputs, self.model.model.language_model
        self.cache = DynamicCache()
        ids = torch.from_numpy(inputs.ids)[None]
        places = ids == self.model.config.image_token_id
        embeddings = model.embed_tokens(ids)
        embeddings = embeddings.masked_scatter(places[..., None], inputs.features.tokens)
        states = model(
            inputs_embeds=embeddings,
            position_ids=torch.from_numpy(inputs.prompt.positions)[:, None],
            past_key_values=self.cache,
            use_cache=True,
            visual_pos_masks=places,
            deepstack_visual_embeds=list(inputs.features.deepstack),
        ).last_hidden_state
        return self._logits(states)

    def decode(self) -> Tensor:
        model = self.model.model.language_model
        self.cache.crop(len(self.inputs.ids))
        for k, token in enumerate(self.inputs.tokens):
            states = model(
                input_ids=torch.tensor([[token]]),
                position_ids=torch.full((3, 1, 1), self.inputs.prompt.next_position + k),
                past_key_values=self.cache,
                use_cache=True,
            ).last_hidden_state
            logits = self._logits(states)
        return logits

    def expert(self) -> Tensor:
        network, inputs, rollout = self.network, self.inputs, self.rollout
        length = len(inputs.ids) + TOKENS
        waypoints = inputs.noise.shape[1]
        first = length + inputs.prompt.rope_delta
        positions = torch.arange(first, first + waypoints).expand(3, 1, -1)

        def velocity(x: Tensor, step: int) -> Tensor:
            states = self.decoder(
                inputs_embeds=network.action_in_proj(x, rollout._time_features[step]),
                position_ids=positions,
                past_key_values=self.cache,
                use_cache=True,
            ).last_hidden_state
            self.cache.crop(length)
            return network.action_out_proj(states)

        # Without a mask every token sees every other, which is what the expert does.
        with mock.patch.object(qwen3_vl, "create_causal_mask", return_value=None):
            noise = torch.from_numpy(inputs.noise)
            return integrate(noise, rollout._times, velocity, rollout.operators.euler_step)

    def _logits(self, states: Tensor) -> Tensor:
        logits = self.model.lm_head(states[:, -1]).float()
        first = self.rollout.config.trajectory_first_id
        logits[:, first : first + self.rollout.config.trajectory_bins] = -torch.inf
        return logits


def text_values(config: DecoderConfig, vocab_size: int) -> dict[str, object]:
    """A decoder as transformers' configuration names it."""
    return {
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "rope_scaling": {"rope_type": "default", "mrope_section": list(config.mrope_section)},
        "vocab_size": vocab_size,
        "pad_token_id": 0,
    }


def vision_values(config: VisionConfig) -> dict[str, object]:
    """The image encoder as transformers' configuration names it."""
    return {
        "depth": config.depth,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_heads": config.num_heads,
        "out_hidden_size": config.out_hidden_size,
        "deepstack_visual_indexes": list(config.deepstack_layers),
        "num_position_embeddings": config.num_position_embeddings,
    }


def make_inputs(bench: Bench) -> Inputs:
    """The first snapshot of the stream, with its images encoded."""
    model, snapshot = bench.model, stream(0)
    frames = model._frames(snapshot)
    prompt = model.prompts.build(model._layout(frames))
    ids = prompt.with_history(model.config.history.first_id + np.full(48, 500))
    features = join(model.features.encode(frames, lambda: None))
    return Inputs(frames, prompt, ids, features, bench.tokens[0].tolist(), bench.noise[:1])


def seconds(stage: Callable[[], Tensor]) -> float:
    """How long a stage takes."""
    start_s = time.perf_counter()
    stage()
    return time.perf_counter() - start_s


def require_equal_results(ours: Ours, stock: Stock) -> None:
    """Both compute the same; this is the warm-up too."""
    for stage in STAGES:
        got, expected = getattr(ours, stage)(), getattr(stock, stage)()
        finite = torch.isfinite(expected)
        error = float((got - expected)[finite].abs().max())
        print(f"{stage:8} {tuple(expected.shape)} differs by {error:.1e}")
        if not error <= ATOL:
            raise SystemExit(f"{stage}: results differ by {error}, not compared further")


def main() -> int:
    """Run the benchmark; 1 when a stage of ours is slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="runs of each stage")
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    bench = Bench()
    inputs = make_inputs(bench)
    ours, stock = Ours(bench, inputs), Stock(bench, inputs)
    require_equal_results(ours, stock)
    took: dict[str, list[tuple[float, float]]] = {stage: [] for stage in STAGES}
    for number in range(arguments.rounds):
        for stage in STAGES:
            pair = [getattr(ours, stage), getattr(stock, stage)]
            first = number % 2  # in turns, so that none always runs in the other's wake
            times = {first: seconds(pair[first]), 1 - first: seconds(pair[1 - first])}
            took[stage].append((times[0], times[1]))
    print(
        f"\nprompt of {len(inputs.ids)} tokens, {TOKENS} tokens, {arguments.threads} threads, "
        f"{arguments.rounds} rounds, load {os.getloadavg()[0]:.1f}, torch {torch.__version__}"
    )
    print("s            ours     min     max    stock     min     max    stock / ours, min, max")
    medians = {}
    for stage, pairs in took.items():
        columns = [spread([pair[side] for pair in pairs]) for side in (0, 1)]
        ratio = spread([theirs / own for own, theirs in pairs])
        cells = "  ".join("".join(f"{value:8.3f}" for value in column) for column in columns)
        print(f"{stage:9}{cells}   " + "".join(f"{value:8.2f}" for value in ratio))
        medians[stage] = {"ours": columns[0][0], "stock": columns[1][0], "ratio": ratio[0]}
    passed = all(stage["ratio"] >= 1 for stage in medians.values())
    print(json.dumps({"median_s": medians, "passed": passed}))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
