"""Our layers against transformers' Qwen3-VL at another small configuration, images of two sizes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from alpamayo_ros.devices.operators import Operators, operators_for
from alpamayo_ros.model.checkpoint import assign
from alpamayo_ros.model.config_file import parse_config
from alpamayo_ros.model.network import empty_network
from alpamayo_ros.model.prompt import Prompt, multimodal_positions
from alpamayo_ros.model.recipe import recipe_tensor
from alpamayo_ros.model.rollout import Rollout
from alpamayo_ros.model.vision import ImageFeatures

from .golden import TINY_CHECKPOINT

VOCABULARY, IMAGE, VISION_START, VISION_END = 1000, 12, 10, 11
TEXT = {
    "hidden_size": 96,
    "intermediate_size": 200,
    "num_hidden_layers": 5,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 24,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000,
    "rope_scaling": {
        "rope_type": "default",
        "mrope_interleaved": True,
        "mrope_section": [6, 3, 3],
    },
    "vocab_size": VOCABULARY,
    "pad_token_id": 0,
}
VISION = {
    "depth": 4,
    "hidden_size": 60,
    "intermediate_size": 100,
    "num_heads": 5,
    "out_hidden_size": 96,
    "deepstack_visual_indexes": [0, 3],
    "hidden_act": "gelu_pytorch_tanh",
    "num_position_embeddings": 49,
}
BACKBONE = {
    "model_type": "qwen3_vl",
    "image_token_id": IMAGE,
    "vision_start_token_id": VISION_START,
    "vision_end_token_id": VISION_END,
    "video_token_id": 13,
    "text_config": TEXT,
    "vision_config": VISION,
}
# Rows and columns of tokens of each image; other heights, widths and orders than the golden ones.
GRIDS = [(3, 5), (3, 5), (6, 2), (1, 4)]


def our_rollout(operators: Operators) -> Rollout:
    values: dict[str, Any] = json.loads((TINY_CHECKPOINT / "config.json").read_text())
    values |= {
        "traj_token_start_idx": 500,
        "traj_vocab_size": 400,
        "vocab_size": VOCABULARY,
        "traj_tokenizer_cfg": values["traj_tokenizer_cfg"] | {"num_bins": 100},
        "hist_traj_tokenizer_cfg": values["hist_traj_tokenizer_cfg"] | {"num_bins": 300},
        "expert_cfg": {"hidden_size": 48, "intermediate_size": 64, "num_attention_heads": 3},
    }
    config = parse_config(values, BACKBONE)
    network = empty_network(config, operators)
    for name, parameter in list(network.named_parameters()):
        assign(network, name, torch.from_numpy(recipe_tensor(name, tuple(parameter.shape))))
    return Rollout(network, config, operators, end_of_text=1)


TABLES = {
    "plain": Operators(),
    "cpu": operators_for("cpu"),
    "in parts": replace(operators_for("cpu"), values_at_once=700),
}


@pytest.fixture(scope="module", params=TABLES)
def ours(request: pytest.FixtureRequest) -> Rollout:
    return our_rollout(TABLES[request.param])


def stock_model(ours: Rollout) -> Any:
    """transformers' model with our weights."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    config = Qwen3VLConfig(**{k: v for k, v in BACKBONE.items() if k != "model_type"})
    model = Qwen3VLForConditionalGeneration(config).eval()
    weights = ours.network.vlm.state_dict()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert (missing, unexpected) == ([], [])
    return model


@pytest.fixture(scope="module")
def theirs(ours: Rollout) -> Any:
    return stock_model(ours)


def prompt_ids() -> np.ndarray:
    rng = np.random.default_rng(11)

    def words(count: int) -> list[int]:
        return rng.integers(20, 500, count).tolist()

    ids = words(7)
    for rows, columns in GRIDS:
        ids += [VISION_START, *[IMAGE] * (rows * columns), VISION_END, *words(3)]
    return np.array(ids + words(9), np.int64)


def make_prompt() -> Prompt:
    ids = prompt_ids()
    indices = np.flatnonzero(ids == IMAGE)
    positions = multimodal_positions(len(ids), indices, GRIDS)
    return Prompt(ids, positions, indices, -1, int(positions.max()) + 1)


def patches(grid: tuple[int, int]) -> torch.Tensor:
    generator = torch.Generator().manual_seed(grid[0] * 100 + grid[1])
    return torch.randn(grid[0] * grid[1] * 4, 1536, generator=generator)


def our_features(ours: Rollout) -> ImageFeatures:
    rows = torch.cat([patches(grid) for grid in GRIDS])
    return ours.network.vlm.model.visual(rows, [(2 * r, 2 * c) for r, c in GRIDS])


GRID_THW = torch.tensor([[1, 2 * rows, 2 * columns] for rows, columns in GRIDS])


def test_vision_tokens_and_deepstack_features_are_theirs(ours: Rollout, theirs: Any) -> None:
    rows = torch.cat([patches(grid) for grid in GRIDS])
    with torch.no_grad():
        tokens, deepstack = theirs.model.visual(rows, grid_thw=GRID_THW)
        features = our_features(ours)
    torch.testing.assert_close(features.tokens, tokens, atol=1e-5, rtol=0)
    assert len(features.deepstack) == len(deepstack) == 2
    for our_level, their_level in zip(features.deepstack, deepstack):
        torch.testing.assert_close(our_level, their_level, atol=1e-5, rtol=0)


def test_encoding_together_is_encoding_one_by_one(ours: Rollout) -> None:
    visual = ours.network.vlm.model.visual
    grids = [(3, 5), (3, 5), (4, 3)]
    images = [patches(grid) for grid in grids]
    with torch.no_grad():
        together = visual(torch.cat(images), [(2 * r, 2 * c) for r, c in grids])
        split = together.split([r * c for r, c in grids])
        for image, grid, features in zip(images, grids, split):
            alone = visual(image, [(2 * grid[0], 2 * grid[1])])
            torch.testing.assert_close(features.tokens, alone.tokens, atol=1e-5, rtol=0)
            for level, alone_level in zip(features.deepstack, alone.deepstack):
                torch.testing.assert_close(level, alone_level, atol=1e-5, rtol=0)


def test_positions_and_their_delta_are_theirs(theirs: Any) -> None:
    prompt = make_prompt()
    positions, delta = theirs.model.get_rope_index(torch.from_numpy(prompt.ids)[None], GRID_THW)
    np.testing.assert_array_equal(prompt.positions, positions[:, 0].numpy())
    assert prompt.rope_delta == int(delta)


def test_logits_of_prompt_and_of_every_decoded_token_are_theirs(ours: Rollout, theirs: Any) -> None:
    prompt = make_prompt()
    decoded = [33, 444, 21, 499, 77]
    whole = np.concatenate([prompt.ids, decoded])
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.from_numpy(whole)[None],
            pixel_values=torch.cat([patches(grid) for grid in GRIDS]),
            image_grid_thw=GRID_THW,
        ).logits[0, len(prompt.ids) - 1 :]
        logits = our_logits(ours, prompt, decoded)
    # The trajectory bins are masked in ours.
    expected[:, 500:900] = -torch.inf
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)


def our_logits(ours: Rollout, prompt: Prompt, decoded: list[int]) -> torch.Tensor:
    """Logits after the prompt and after each token, through the cache of three samples."""
    cache = ours.cache(3, len(prompt.ids) + len(decoded) + 2)
    rows = [ours.prefill(prompt, prompt.ids, our_features(ours), cache)]

    def choose(step: int, logits: torch.Tensor) -> list[int]:
        rows.append(logits[1:2])
        return [decoded[step]] * 3

    # The first logits come twice: from the prefill, and handed to the choice of token 0.
    ours.reason(prompt, rows[0], cache, choose, len(decoded), lambda: None)
    assert torch.equal(rows[0], rows[1])
    final = rows[2:]
    # The logits after the last token are those the appended end token would be chosen from.
    more = ours.cache(1, len(prompt.ids) + len(decoded) + 3)
    first = ours.prefill(prompt, prompt.ids, our_features(ours), more)
    last: list[torch.Tensor] = []

    def choose_once_more(step: int, logits: torch.Tensor) -> list[int]:
        if step == len(decoded):
            last.append(logits)
        return [(decoded + [ours.end_token])[step]]

    ours.reason(prompt, first, more, choose_once_more, len(decoded) + 1, lambda: None)
    return torch.cat([rows[0], *final, *last])
