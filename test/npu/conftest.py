"""Programs that run in a process of their own, on the emulated NPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from test.npu.emulator import runtime

ROOT = Path(__file__).parents[2]
TORCH_NPU = ROOT / ".npu" / f"python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="session")
def torch_npu_folder() -> Path:
    """Where scripts/setup_npu.sh puts torch-npu."""
    folder = Path(os.environ.get("ALPAMAYO_TORCH_NPU", TORCH_NPU))
    if not (folder / "torch_npu").is_dir():
        pytest.skip("torch-npu is not at hand: run scripts/setup_npu.sh")
    return folder


@pytest.fixture(scope="session")
def npu_environment(
    torch_npu_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Variables of a process that has the emulated device."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not at hand: it builds the emulated runtime")
    libraries = tmp_path_factory.mktemp("hostnpu")
    runtime.build(libraries)
    return {**os.environ, **runtime.environment(libraries, torch_npu_folder)}


@pytest.fixture(scope="session")
def on_npu(npu_environment: dict[str, str]) -> Callable[..., Any]:
    """Runs `python -m test.npu.programs.NAME ARGUMENTS...` once; the JSON of its last line."""

    @cache
    def run(name: str, *arguments: str) -> Any:
        result = subprocess.run(
            [sys.executable, "-m", f"test.npu.programs.{name}", *arguments],
            cwd=ROOT,
            env=npu_environment,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
        return json.loads(result.stdout.splitlines()[-1])

    return run
