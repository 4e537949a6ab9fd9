"""Each switch by itself decides as the device does without it.

The emulator computes as the CPU does: what a layout or a recording is worth, and whether a driver
records these kernels, only hardware shows. What is shown: which calls are made, that a replay
depends on nothing but what lies at the recorded addresses, and what happens where it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

FLOW_STEPS, DECISIONS = 10, 3
ATOL_M = {"float32": 1e-4, "bfloat16": 0.25}  # as beside the CPU: another order of additions


@pytest.fixture(params=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def switch(on_npu: Callable[..., Any], dtype: str) -> Callable[[str], Any]:
    return lambda name: on_npu("switches")[dtype][name]


def test_the_convolution_embeds_patches_as_the_product_does(
    switch: Callable[[str], Any], dtype: str
) -> None:
    seen = switch("convolution")
    assert seen["convolutions"] > 0
    assert seen["error_m"] <= ATOL_M[dtype]


def test_matrices_are_cast_once_and_decide_the_same(switch: Callable[[str], Any]) -> None:
    seen = switch("weight_format")
    layers, blocks, deepstack = (seen[name] for name in ("layers", "blocks", "deepstack"))
    # A layer has four matrices, merged; queries, keys and values of the last one stay apart.
    language, expert, head_and_actions = 4 * layers - 1, 4 * layers, 2
    vision = 4 * blocks + 2 * (1 + deepstack)
    assert seen["casts"] == language + expert + vision + head_and_actions
    assert seen["error_m"] == 0


def test_a_recorded_step_is_replayed_in_every_decision(
    switch: Callable[[str], Any], dtype: str
) -> None:
    seen = switch("capture")
    assert seen["replays"] == [DECISIONS * FLOW_STEPS]  # of one recording
    assert seen["error_m"] <= ATOL_M[dtype]


def test_beside_replays_the_host_launches_little_and_does_not_wait(
    switch: Callable[[str], Any],
) -> None:
    seen = switch("capture")
    # A step copies its input and the features of its time, and adds: 4. Uploads and the cache's
    # rest come once.
    assert seen["launches_beside"] <= 4 * FLOW_STEPS + 12
    assert seen["stalls"] == 0


def test_where_the_runtime_has_no_graphs_the_steps_run_one_by_one_after_one_line(
    switch: Callable[[str], Any],
) -> None:
    seen = switch("capture_refused")  # the real NPUGraph, on a runtime without
    assert seen["lines"] == [
        "graph_capture fails (Failed to find function aclmdlRICaptureBegin): "
        "the flow's steps run one by one"
    ]
    assert seen["error_m"] == 0


def test_verify_says_which_switches_a_device_has(on_npu: Callable[..., Any]) -> None:
    assert on_npu("switches")["verify"] == {
        "switch patch_embedding convolution": "passed",
        "switch graph_capture": "failed",  # this runtime has no graphs
        "switch weight_format nz": "passed",
    }
