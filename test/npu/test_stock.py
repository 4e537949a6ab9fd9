"""transformers' own layers beside ours: the numbers that docs/ascend.md quotes, counted anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

DEEPSTACK_LEVELS = 3
SIDES = ("npu:0", "cpu")  # where the images' grids lie


@pytest.mark.parametrize("form", ["stock", "patched"])
@pytest.mark.parametrize("grid_on", SIDES)
def test_it_computes_on_the_device_what_it_does_on_the_cpu(
    on_npu: Callable[..., Any], form: str, grid_on: str
) -> None:
    seen = on_npu("stock")[form][grid_on]
    assert seen["error"] <= 1e-5
    assert seen["tokens_equal"]


@pytest.mark.parametrize("grid_on", SIDES)
def test_the_patches_take_waits_and_launches_away(on_npu: Callable[..., Any], grid_on: str) -> None:
    stock, patched = (on_npu("stock")[form][grid_on] for form in ("stock", "patched"))
    # Of the mask one wait is left, the ids' transfer in place of a boolean index: the host cannot
    # count what it does not have. Boolean indices of three deepstack levels, two each, are gone.
    assert (stock["placeholder_mask"], patched["placeholder_mask"]) == ([1], [1])
    assert patched["waits"] == stock["waits"] - 2 * DEEPSTACK_LEVELS
    assert patched["launches"] < stock["launches"] / 1.5


def test_the_stock_model_waits_as_often_as_the_documents_say(on_npu: Callable[..., Any]) -> None:
    stock, patched = (on_npu("stock")[form] for form in ("stock", "patched"))
    assert [stock[side]["waits"] for side in SIDES] == [387, 31]
    assert [patched[side]["waits"] for side in SIDES] == [381, 25]
    assert stock["npu:0"]["a_token"] == patched["npu:0"]["a_token"] == 5


def test_a_flow_step_in_stock_layers_launches_as_often_as_the_documents_say(
    on_npu: Callable[..., Any],
) -> None:
    counts = on_npu("stock_launches")
    assert counts["bfloat16"]["launches"] == 2252
    assert counts["float32"]["launches"] == 2356
    # All that ours needs, the encoder of the actions and the Euler step included.
    assert on_npu("launches")[0]["launches"] < counts["bfloat16"]["launches"] / 3
