"""torch-npu is there, CANN is missing or broken: the CPU works, an NPU is one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from test.npu.emulator import runtime

ROOT = Path(__file__).parents[2]
Result = subprocess.CompletedProcess[str]
COMMANDS = {
    "inference": ("--max-new-tokens", "4"),
    "benchmark": ("--max-new-tokens", "4", "--warmup", "0", "--runs", "1"),
    "verify": (),
}
# torch-npu 2.9 puts advice of its own before it.
REMEDIES = ("; source CANN's set_env.sh and install the torch-npu", "; use cpu or auto")
# What is wrong with CANN, and what a user is told who asks for the NPU.
BROKEN = {
    "no CANN": "device npu:0: CANN is not found (source its set_env.sh first); use cpu or auto",
    "an empty folder": "torch_npu cannot be loaded: libhccl.so: cannot open shared object file: "
    "No such file or directory",
    "a damaged library": "torch_npu cannot be loaded: libhccl.so: file too short",
    "empty libraries": "torch_npu cannot be loaded: ",  # and the symbol that it misses first
}


@pytest.fixture(params=BROKEN)
def fault(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def environment(fault: str, torch_npu_folder: Path, tmp_path: Path) -> dict[str, str]:
    """Of a process that finds torch-npu, and CANN in this state."""
    unset = ("ASCEND", "TORCH_DEVICE", "LD_LIBRARY_PATH")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(unset)}
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(torch_npu_folder))))
    if fault != "no CANN":
        clean["ASCEND_HOME_PATH"] = str(tmp_path)
    libraries = (os.environ.get("LD_LIBRARY_PATH"), str(tmp_path))
    clean["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, libraries))
    if fault == "a damaged library":
        (tmp_path / "libhccl.so").write_bytes(b"")
    if fault == "empty libraries":
        for name in runtime.LIBRARIES:
            library = runtime.library(tmp_path, name)
            subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    return {**clean, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def run(environment: dict[str, str], command: str, device: str) -> Result:
    """A command; on its standard error the damaged library has its name alone."""
    result = subprocess.run(
        [sys.executable, "-m", "test.npu.programs.command", command, "--device", device]
        + list(COMMANDS[command]),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    folder = environment["LD_LIBRARY_PATH"].split(os.pathsep)[-1]
    result.stderr = result.stderr.replace(f"{folder}/", "")
    return result


def assert_one_clear_line(result: Result, fault: str) -> None:
    assert result.returncode == 2
    *rest, last = result.stderr.splitlines()
    assert last.startswith(f"error: {BROKEN[fault]}")
    assert any(remedy in last for remedy in REMEDIES)
    assert len(rest) <= 1  # torch_npu's own warning that ASCEND_HOME_PATH leads nowhere


def test_an_npu_is_one_clear_line(environment: dict[str, str], fault: str) -> None:
    assert_one_clear_line(run(environment, "inference", "npu:0"), fault)


def test_auto_works_without_the_npu_and_says_so(environment: dict[str, str], fault: str) -> None:
    result = run(environment, "inference", "auto")
    assert result.returncode == 0, result.stderr
    assert '"device": "cpu"' in result.stdout or '"device": "cuda:0"' in result.stdout
    told = [line for line in result.stderr.splitlines() if "auto" in line]
    assert len(told) == (fault != "no CANN")  # there, no NPU is to be expected
    for line in told:
        assert line.startswith(f"device auto takes no NPU: {BROKEN[fault]}")


@pytest.mark.parametrize("fault", ["a damaged library"], indirect=True)
@pytest.mark.parametrize("command", ["benchmark", "verify"])
def test_the_other_commands_do_the_same(
    environment: dict[str, str], fault: str, command: str
) -> None:
    assert_one_clear_line(run(environment, command, "npu:0"), fault)
    result = run(environment, command, "cpu")
    assert result.returncode == 0, result.stderr + result.stdout
