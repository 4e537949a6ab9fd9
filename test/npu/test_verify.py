"""What a person with the hardware runs passes on the emulated device too; the CPU needs no CANN."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def test_verify_passes_on_the_device(on_npu: Callable[..., Any]) -> None:
    result = on_npu("verify")
    assert (result["device"], result["failed"]) == ("npu:0", [])
    names = {check["name"] for check in result["checks"]}
    assert {"rates", "floor of total", "parity with the CPU in bfloat16"} <= names
    assert "Ascend910B3" in next(c["detail"] for c in result["checks"] if c["name"] == "rates")


@pytest.fixture(scope="module")
def without_cann(torch_npu_folder: Path) -> dict[str, str]:
    """An environment with torch-npu installed and no CANN."""
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(torch_npu_folder))))
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ASCEND", "TORCH_DEVICE"))}
    return {**clean, "PYTHONPATH": path}


def inference(environment: dict[str, str], device: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "inference.py", "--device", device, "--max-new-tokens", "4"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_with_torch_npu_and_no_cann_the_cpu_works(without_cann: dict[str, str]) -> None:
    result = inference(without_cann, "auto")
    assert result.returncode == 0, result.stderr
    assert '"device": "cpu"' in result.stdout or '"device": "cuda:0"' in result.stdout


def test_an_npu_without_cann_is_one_clear_line(without_cann: dict[str, str]) -> None:
    result = inference(without_cann, "npu:0")
    assert result.returncode == 2
    assert result.stderr == (
        "error: device npu:0: CANN is not found (source its set_env.sh first); use cpu or auto\n"
    )
