"""The host keeps ahead of the device: waits and launches, at the released model's layer counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

LAYERS, BLOCKS, FLOW_STEPS = 36, 27, 10
MOST_LAUNCHES = 720  # of an expert step; transformers' layers launch 2,252


@pytest.fixture(scope="module", params=["greedy", "sampled, three samples"])
def decision(request: pytest.FixtureRequest, on_npu: Callable[..., Any]) -> Any:
    greedy, sampled = on_npu("stalls")
    assert (greedy["greedy"], sampled["greedy"], sampled["samples"]) == (True, False, 3)
    return greedy if request.param == "greedy" else sampled


def test_vision_and_prefill_do_not_wait(decision: Any) -> None:
    assert decision["stages"]["vision"]["stalls"] == 0
    assert decision["stages"]["prefill"]["stalls"] == 0


def test_each_token_waits_once(decision: Any) -> None:
    assert decision["tokens"] > 2
    assert decision["stages"]["reasoning"]["stalls"] <= decision["tokens"]


def test_the_flow_does_not_wait_and_uploads_only_what_it_starts_from(decision: Any) -> None:
    assert decision["stages"]["flow"]["stalls"] == 0
    # Noise, cosines, sines, and a mask where samples end at different places; none a step.
    assert decision["stages"]["flow"]["uploads"] <= 4


def test_a_whole_decision_waits_for_vision_prefill_each_token_and_the_result(
    decision: Any,
) -> None:
    # Stages are timed by waiting at the end of vision, prefill and reasoning.
    assert decision["total"] <= 2 + (decision["tokens"] + 1) + 1


def test_every_layer_and_block_attends_in_one_call(decision: Any) -> None:
    stages = decision["stages"]
    assert stages["vision"]["attention"] == {"BNSD": 0, "TND": BLOCKS}
    assert stages["prefill"]["attention"] == {"BNSD": LAYERS, "TND": 0}
    assert stages["reasoning"]["attention"] == {"BNSD": LAYERS * decision["tokens"], "TND": 0}
    assert stages["flow"]["attention"] == {"BNSD": LAYERS * FLOW_STEPS, "TND": 0}


def test_an_expert_step_at_full_size_launches_few_kernels(on_npu: Callable[..., Any]) -> None:
    one, three = on_npu("launches")
    for step in (one, three):
        assert step["result"] == "torch.float32"
        assert step["kernels"]["npu::npu_fusion_attention_v3"] == LAYERS
        assert step["kernels"]["npu::npu_add_rms_norm"] == 2 * LAYERS
        assert step["launches"] <= MOST_LAUNCHES, step["kernels"]
    assert three["launches"] == one["launches"]


def test_action_features_are_encoded_in_one_batch_of_eight_kernels(
    on_npu: Callable[..., Any],
) -> None:
    kernels = on_npu("launches")[0]["features"]
    assert sum(kernels.values()) <= 8, kernels
