"""Whole decisions equal the public reference's, stage by stage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.model.action_space import history_bins
from alpamayo_ros.model.features import CameraFrame, join
from alpamayo_ros.model.images import patch_rows
from alpamayo_ros.model.language import Decoder
from alpamayo_ros.model.prompt import CameraLayout, Prompt
from alpamayo_ros.model.rollout import Reasoning, Rollout
from alpamayo_ros.model.vision import ImageFeatures
from alpamayo_ros.types import Plan

from .golden import (
    FEATURE_ATOL,
    TRAJECTORY_ATOL_M,
    YAW_ATOL_RAD,
    GoldenRollout,
    load_rollout,
)

Model = Callable[..., AlpamayoR1]
ENDING = ["ends", "three_samples", "forced_lengths"]
ALL = [*ENDING, "no_end_token"]


def plan(model: AlpamayoR1, golden: GoldenRollout) -> Plan:
    return model.plan(
        golden.snapshot,
        num_samples=golden.num_samples,
        greedy=True,
        max_new_tokens=golden.max_new_tokens,
        noise=golden.arrays["noise"],
        tokens=golden.tokens,
    )


def trajectory_error_m(plan: Plan, golden: GoldenRollout) -> float:
    return float(np.abs(plan.samples[..., :2] - golden.arrays["pred_xyz"][..., :2]).max())


def yaw_error_rad(plan: Plan, golden: GoldenRollout) -> float:
    turns = (plan.samples[..., 2] - golden.expected_yaw) / (2 * np.pi)
    return float(np.abs(turns - np.round(turns)).max() * 2 * np.pi)


@pytest.mark.parametrize("name", ENDING)
def test_tokens_and_waypoints_equal_the_reference(
    tiny_model: Model, name: str, threads: int
) -> None:
    golden = load_rollout(name)
    model = tiny_model(golden.boost)
    model.reset()
    decided = plan(model, golden)
    assert decided.token_ids == golden.expected_tokens
    assert decided.samples.dtype == np.float32
    assert trajectory_error_m(decided, golden) <= TRAJECTORY_ATOL_M
    assert yaw_error_rad(decided, golden) <= YAW_ATOL_RAD


def test_reasoning_without_an_end_is_closed_and_flagged(tiny_model: Model, threads: int) -> None:
    golden = load_rollout("no_end_token")
    decided = plan(tiny_model(golden.boost), golden)
    assert decided.token_ids == tuple((*row, 155681) for row in golden.expected_tokens)
    assert decided.truncated == (True,)
    assert decided.finite


class Stages:
    """The stages of a golden decision, one by one."""

    def __init__(self, model: AlpamayoR1, golden: GoldenRollout) -> None:
        self.model, self.golden = model, golden
        snapshot = golden.snapshot
        layout = [CameraLayout(camera_id, (10, 18)) for camera_id in snapshot.camera_ids]
        self.prompt: Prompt = model.prompts.build(layout)
        bins = history_bins(snapshot.ego_history_xyz, model.config.history)
        self.ids = self.prompt.with_history(model.config.history.first_id + bins)
        self.frames = [
            CameraFrame(camera_id, int(stamp_ns), rgb)
            for camera_id, frames, stamps_ns in zip(
                snapshot.camera_ids, snapshot.frames, snapshot.frame_stamps_ns
            )
            for rgb, stamp_ns in zip(frames, stamps_ns)
        ]

    def features(self) -> list[ImageFeatures]:
        self.model.reset()
        with torch.no_grad():
            return self.model.features.encode(self.frames, lambda: None)

    def first_logits(self) -> torch.Tensor:
        rollout = self.model.rollout
        cache = rollout.cache(1, len(self.ids) + 65)
        with torch.no_grad():
            return rollout.prefill(self.prompt, self.ids, join(self.features()), cache)


@pytest.mark.parametrize("name", ALL)
def test_prompt_with_history_equals_the_reference(tiny_model: Model, name: str) -> None:
    golden = load_rollout(name)
    stages = Stages(tiny_model(golden.boost), golden)
    np.testing.assert_array_equal(stages.prompt.ids, golden.arrays["input_ids"][0])
    np.testing.assert_array_equal(stages.ids, golden.arrays["fused_ids"][0])


@pytest.mark.parametrize("name", ["ends", "no_end_token"])
def test_pixels_equal_the_reference_bit_by_bit(tiny_model: Model, name: str) -> None:
    golden = load_rollout(name)
    model = tiny_model(golden.boost)
    images = torch.from_numpy(np.concatenate(golden.snapshot.frames))
    rows = patch_rows(images, model.config.backbone.vision).flatten(0, 1)
    np.testing.assert_array_equal(rows[::240].numpy(), golden.arrays["pixel_values_rows"])


@pytest.mark.parametrize("name", ["ends", "no_end_token"])
def test_vision_features_equal_the_reference(tiny_model: Model, name: str, threads: int) -> None:
    golden = load_rollout(name)
    features = Stages(tiny_model(golden.boost), golden).features()
    for index, expected in ((0, "vision_tokens_image0"), (15, "vision_tokens_image15")):
        got = features[index].tokens.numpy()
        np.testing.assert_allclose(got, golden.arrays[expected], atol=FEATURE_ATOL, rtol=0)
    got = features[0].deepstack[0].numpy()
    np.testing.assert_allclose(got, golden.arrays["deepstack0_image0"], atol=FEATURE_ATOL, rtol=0)


@pytest.mark.parametrize("name", ["ends", "no_end_token"])
def test_first_logits_equal_the_reference(tiny_model: Model, name: str, threads: int) -> None:
    golden = load_rollout(name)
    best = Stages(tiny_model(golden.boost), golden).first_logits()[0].topk(32)
    np.testing.assert_array_equal(best.indices.numpy(), golden.arrays["first_logits_top32_ids"])
    expected = golden.arrays["first_logits_top32"]
    np.testing.assert_allclose(best.values.numpy(), expected, atol=FEATURE_ATOL, rtol=0)


@pytest.mark.parametrize("name", ENDING)
def test_every_step_of_the_flow_equals_the_reference(
    tiny_model: Model, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = load_rollout(name)
    states: list[torch.Tensor] = []
    actions = Rollout.actions

    def recorded(self: Rollout, *args: object) -> torch.Tensor:
        return actions(self, *args, on_step=lambda step, x: states.append(x.clone()))

    monkeypatch.setattr(Rollout, "actions", recorded)
    plan(tiny_model(golden.boost), golden)
    got = torch.stack(states, dim=1)
    assert got.dtype == torch.float32
    # 1e-4 of an action is about 1e-3 m of a trajectory: 0.68 m/s2 * (6.4 s)^2 / 2 * 1e-4.
    np.testing.assert_allclose(got.numpy(), golden.arrays["flow_states"], atol=1e-4, rtol=0)


@pytest.mark.parametrize("mistake", ["no mask", "causal expert", "same offset", "one token early"])
def test_a_mistake_in_the_expert_shows(
    tiny_model: Model, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = load_rollout("forced_lengths")
    run, actions = Decoder.run, Rollout.actions
    if mistake == "no mask":
        monkeypatch.setattr(Rollout, "_expert_mask", lambda *args: None)
    elif mistake == "causal expert":

        def causal(self: Decoder, x: torch.Tensor, rotary: object, cache: object, start: int,
                   mask: torch.Tensor | None = None, **rest: object) -> torch.Tensor:  # fmt: skip
            if x.shape[1] == 64:
                own = torch.ones(64, 64, dtype=torch.bool).tril()
                prefix = mask[:, :, :, :start].expand(-1, -1, 64, -1)
                mask = torch.cat((prefix, own.expand(len(x), 1, 64, 64)), -1)
            return run(self, x, rotary, cache, start, mask, **rest)

        monkeypatch.setattr(Decoder, "run", causal)
    else:

        def shifted(self: Rollout, prompt: Prompt, reasoning: Reasoning, *rest: object) -> object:
            rows = reasoning.token_ids
            longest = max(rows, key=len)
            wrong = (longest,) * len(rows) if mistake == "same offset" else [r[:-1] for r in rows]
            return actions(self, prompt, Reasoning(tuple(wrong), reasoning.closed), *rest)

        monkeypatch.setattr(Rollout, "actions", shifted)
    decided = plan(tiny_model(golden.boost), golden)
    assert trajectory_error_m(decided, golden) > 4 * TRAJECTORY_ATOL_M
