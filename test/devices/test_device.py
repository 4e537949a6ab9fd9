"""A device is what its name says, or a clear refusal; never a silent run on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from alpamayo_ros.devices import device as devices
from alpamayo_ros.devices.device import (
    DeviceError,
    free_memory_bytes,
    resolve_device,
    resolve_dtype,
)
from alpamayo_ros.devices.timing import StageClock


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """A machine with so many NPUs and GPUs."""

    def make(npus: int, gpus: int) -> None:
        backend = SimpleNamespace(npu=SimpleNamespace(device_count=lambda: npus))
        monkeypatch.setattr(devices, "_torch_npu", lambda: backend if npus else None)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)

    return make


@pytest.mark.parametrize(
    ("npus", "gpus", "expected"), [(2, 1, "npu:0"), (0, 1, "cuda:0"), (0, 0, "cpu")]
)
def test_auto_is_an_npu_else_a_gpu_else_the_cpu(machine, npus, gpus, expected) -> None:
    machine(npus, gpus)
    assert resolve_device("auto") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cpu", "cpu"), ("cpu:0", "cpu"), ("CUDA", "cuda:0"), ("cuda:1", "cuda:1"), ("npu", "npu:0")],
)
def test_a_device_that_is_there_is_resolved(machine, name, expected) -> None:
    machine(1, 2)
    assert resolve_device(name) == expected


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:-1", "npu0", "meta"])
def test_an_unknown_name_is_refused(name) -> None:
    with pytest.raises(DeviceError, match="is not known; use auto, cpu, cuda:0 or npu:0"):
        resolve_device(name)


def test_a_number_that_no_device_has_is_refused_in_a_short_line() -> None:
    with pytest.raises(DeviceError, match=r"device 'npu:.*' is not known; use auto") as caught:
        resolve_device("npu:" + "7" * 5000)
    assert len(str(caught.value)) < 100


def test_leading_zeros_are_the_same_device(machine) -> None:
    machine(2, 0)
    assert resolve_device("npu:01") == "npu:1"


def test_an_index_beyond_the_last_is_refused(machine) -> None:
    machine(0, 2)
    with pytest.raises(DeviceError, match="device cuda:2: there are only 2; use cuda:0 to cuda:1"):
        resolve_device("cuda:2")


def test_a_second_cpu_is_refused() -> None:
    with pytest.raises(DeviceError, match="device cpu:7: there is only one CPU; use cpu"):
        resolve_device("cpu:7")


def test_a_gpu_that_is_not_there_is_refused(machine) -> None:
    machine(0, 0)
    with pytest.raises(DeviceError, match="device cuda:0: no CUDA device is found"):
        resolve_device("cuda:0")


@pytest.mark.parametrize(
    ("installed", "cann", "message"),
    [
        (False, False, "torch_npu is not installed"),
        (True, False, "CANN is not found"),
        (True, True, "torch_npu sees no NPU"),
    ],
)
def test_an_npu_that_is_not_there_is_refused_with_the_reason(
    machine, monkeypatch, installed, cann, message
) -> None:
    machine(0, 0)
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: installed or None)
    monkeypatch.setattr(devices, "has_cann", lambda: cann)
    with pytest.raises(DeviceError, match=message):
        resolve_device("npu:0")


def test_types_are_known_by_name_and_by_themselves() -> None:
    assert resolve_dtype("bfloat16") is torch.bfloat16
    assert resolve_dtype(torch.float32) is torch.float32
    for wrong in ("float16", "bf16", torch.float64, [], {}, None, 32):
        with pytest.raises(DeviceError, match="use float32 or bfloat16"):
            resolve_dtype(wrong)


def environment_after_preparing(**variables: str) -> str:
    program = (
        "import os, sys; from alpamayo_ros.devices.device import prepare_environment;"
        "prepare_environment();"
        "print(os.environ.get('TORCH_DEVICE_BACKEND_AUTOLOAD'), 'torch' in sys.modules)"
    )
    clean = {k: v for k, v in os.environ.items() if k not in
             ("ASCEND_HOME_PATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")}  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", program], env=clean | variables, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize("home", ["", "/usr/local/Ascend"])
def test_torch_is_kept_from_loading_torch_npu_by_itself(home: str) -> None:
    assert environment_after_preparing(ASCEND_HOME_PATH=home) == "0 False"


def test_a_user_may_have_torch_load_torch_npu() -> None:
    assert environment_after_preparing(TORCH_DEVICE_BACKEND_AUTOLOAD="1") == "1 False"


@pytest.mark.parametrize(("given", "expected"), [({}, "5000"), ({"GOMP_SPINCOUNT": "7"}, "7")])
def test_threads_wait_awake_for_a_while_unless_the_user_says_otherwise(given, expected) -> None:
    program = (
        "import os; from alpamayo_ros.devices.device import prepare_environment;"
        "prepare_environment(); print(os.environ['GOMP_SPINCOUNT'])"
    )
    clean = {k: v for k, v in os.environ.items() if k != "GOMP_SPINCOUNT"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=clean | given, capture_output=True, text=True
    )
    assert result.stdout.strip() == expected


def test_the_cpu_has_free_memory() -> None:
    assert 2**20 < free_memory_bytes("cpu") < 2**50


def test_stages_follow_each_other_and_sum_to_the_total() -> None:
    clock = StageClock("cpu")
    clock.mark("one")
    clock.mark("two")
    durations = clock.durations_ms()
    assert list(durations) == ["one", "two", "total"]
    assert min(durations.values()) >= 0
    assert durations["total"] == pytest.approx(durations["one"] + durations["two"])
