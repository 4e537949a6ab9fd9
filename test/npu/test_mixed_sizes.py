"""Cameras of two sizes, whose images are sequences of two lengths in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BLOCKS = 4  # of the golden configuration
PATCHES = 4 * (2 * 20 * 36 + 2 * 24 * 32)  # four frames each, two cameras of either size


def test_a_decision_on_cameras_of_two_sizes_is_the_cpus(on_npu: Callable[..., Any]) -> None:
    decision = on_npu("mixed_sizes")
    assert decision["device"] == "npu:0"
    assert decision["tokens_equal"]
    assert decision["error_m"] <= 1e-4
    assert decision["patches"] == [PATCHES] * BLOCKS  # one call a block
