"""The emulated device counts and refuses what a real one would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="module")
def observed(on_npu: Callable[..., Any]) -> Any:
    return on_npu("emulator")


def test_it_computes(observed: Any) -> None:
    assert observed["product"] == [[5.0, 14.0], [14.0, 50.0]]


@pytest.mark.parametrize(
    ("call", "stalls", "launches", "uploads"),
    [
        ("a sum", 0, 1, 0),
        ("a view", 0, 0, 0),
        ("a number is read", 1, 2, 0),
        ("a tensor is read", 1, 1, 0),
        ("a list is made", 1, 1, 0),
        ("a boolean index", 1, 2, 0),
        ("an explicit wait", 1, 0, 0),
        ("an upload", 0, 1, 1),
    ],
)
def test_waits_kernels_and_uploads_are_counted(
    observed: Any, call: str, stalls: int, launches: int, uploads: int
) -> None:
    assert observed["counts"][call][:3] == [stalls, launches, uploads]


def test_the_products_own_counter_sees_every_wait_but_the_explicit_one(observed: Any) -> None:
    for call, (stalls, _, _, seen) in observed["counts"].items():
        assert seen == (0 if call == "an explicit wait" else stalls), call


def test_float64_on_the_device_is_noticed(observed: Any) -> None:
    assert observed["float64"] > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("mixed devices", "Expected all tensors to be on the same device"),
        ("a float mask", "atten_mask must be bool or uint8"),
        ("head_num", "head_num 2 is not the query's 4 heads"),
        ("gamma", "npu_rms_norm takes no torch.float32 input with a torch.bfloat16 gamma"),
    ],
)
def test_what_a_device_would_refuse_is_refused(observed: Any, call: str, message: str) -> None:
    assert message in observed["refusals"][call]
