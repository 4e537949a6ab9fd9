"""Whole decisions with `device: npu:0`: the CPU's waypoints, everything on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(400)  # 16 decisions; 50 s on a free core

CASES = ("ends", "three_samples", "forced_lengths", "no_end_token")
LAYERS, BLOCKS, FLOW_STEPS = 4, 4, 10  # of the golden configuration
FLOAT32_ATOL_M = 1e-4
BFLOAT16_ATOL_M = 0.25  # two attentions of the CPU differ by 0.02 to 0.11 m


@pytest.fixture(scope="module")
def decisions(on_npu: Callable[..., Any]) -> dict[tuple[str, str], Any]:
    """By case and type."""
    return {(d["case"], d["dtype"]): d for d in on_npu("decisions")}


@pytest.mark.parametrize("case", CASES)
def test_float32_decides_as_the_cpu_does(decisions: Any, case: str) -> None:
    decision = decisions[case, "float32"]
    assert decision["tokens_equal"]
    assert decision["error_m"] <= FLOAT32_ATOL_M
    assert decision["yaw_error_rad"] <= FLOAT32_ATOL_M


@pytest.mark.parametrize("case", CASES)
def test_bfloat16_with_given_tokens_is_near_the_cpu(decisions: Any, case: str) -> None:
    decision = decisions[case, "bfloat16"]
    assert decision["tokens_equal"]
    assert decision["error_m"] <= BFLOAT16_ATOL_M


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_everything_is_on_the_device_in_its_type(decisions: Any, case: str, dtype: str) -> None:
    decision = decisions[case, dtype]
    assert decision["device"] == "npu:0"
    assert decision["elsewhere"] == []  # parameters and buffers on npu:0, in the type
    assert decision["float64"] == []  # no operator meets a float64 tensor on the device
    assert decision["finite"]
    assert decision["waypoint_type"] == "float32"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_every_layer_reaches_the_fused_kernels(decisions: Any, case: str, dtype: str) -> None:
    decision = decisions[case, dtype]
    called, layouts = decision["called"], decision["layouts"]
    assert layouts["TND"] == BLOCKS  # one call a vision block, over all images
    runs = layouts["BNSD"] // LAYERS  # of the language model and of the expert
    assert layouts["BNSD"] == runs * LAYERS
    assert runs > 1 + FLOW_STEPS
    assert called["npu::npu_fusion_attention"] == BLOCKS
    assert called["npu::npu_fusion_attention_v3"] == runs * LAYERS
    assert called["npu::npu_swiglu"] == runs * LAYERS
    # Queries and keys of a decoder layer, and of a vision block both in one call.
    assert called["npu::npu_rotary_mul"] == 2 * runs * LAYERS + BLOCKS
    # Two additions a layer; the three that deepstack adds to the prompt stand for themselves.
    assert called["npu::npu_add_rms_norm"] == 2 * runs * LAYERS - 3
    # Of queries and keys, the first of each run, those three, and two in the action's encoder.
    assert called["npu::npu_rms_norm"] == 2 * runs * LAYERS + runs + 3 + 2 * FLOW_STEPS


@pytest.mark.parametrize(("case", "expert"), [("ends", False), ("forced_lengths", True)])
def test_the_expert_is_masked_only_where_samples_end_at_different_places(
    decisions: Any, case: str, expert: bool
) -> None:
    causal = LAYERS - 1  # the prompt's; its last layer asks for the last token alone
    expected = causal + (FLOW_STEPS * LAYERS if expert else 0)
    assert decisions[case, "float32"]["masked_calls"] == expected
