"""What a person with the hardware runs passes on the emulated device too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_verify_passes_on_the_device(on_npu: Callable[..., Any]) -> None:
    result = on_npu("verify")
    assert (result["device"], result["device_name"]) == ("npu:0", "Ascend910B3")
    assert (result["failed"], result["not_checked"]) == ([], [])
    names = {check["name"] for check in result["checks"]}
    assert {"rates", "floor of total", "parity with the CPU in bfloat16"} <= names
    assert "Ascend910B3" in next(c["detail"] for c in result["checks"] if c["name"] == "rates")
