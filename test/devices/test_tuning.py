"""Switches that a device does not have are refused, each with its remedy."""

from __future__ import annotations

import pytest

from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.devices.device import DeviceError
from alpamayo_ros.devices.tuning import UNTUNED, Tuning
from alpamayo_ros.model import ModelError


def test_all_switches_are_off_by_default() -> None:
    assert Tuning() == UNTUNED == Tuning("matmul", False, "plain")


@pytest.mark.parametrize("device", ["cpu", "cuda:0", "npu:0"])
def test_every_device_has_both_patch_embeddings(device: str) -> None:
    Tuning().check(device)
    Tuning(patch_embedding="convolution").check(device)


@pytest.mark.parametrize(
    ("tuning", "device", "message"),
    [
        (Tuning("conv"), "npu:0", "patch_embedding 'conv' is not known; use matmul or convolution"),
        (Tuning(weight_format="ND"), "npu:0", "weight_format 'ND' is not known; use plain or nz"),
        (Tuning(weight_format="nz"), "cuda:0", "weight_format nz is for npu, not for cuda"),
        (Tuning(weight_format="nz"), "cpu", "weight_format nz is for npu, not for cpu; use plain"),
        (Tuning(graph_capture=True), "cpu", "graph_capture is for cuda and npu, not for the cpu"),
    ],
)
def test_a_switch_that_a_device_lacks_is_refused(tuning: Tuning, device: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        tuning.check(device)


def test_a_model_is_not_loaded_with_a_switch_that_would_do_nothing() -> None:
    with pytest.raises(ModelError, match="leave it off"):
        load_demo_model("cpu", tuning=Tuning(graph_capture=True))
