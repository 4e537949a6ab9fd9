"""Switches that may make a device faster, all off by default: none was measured on an NPU yet.

Nothing here imports torch, so that parameters and options can be checked first.
"""

from __future__ import annotations

from dataclasses import dataclass

from alpamayo_ros.devices.device import DeviceError

PATCH_EMBEDDINGS = ("matmul", "convolution")
WEIGHT_FORMATS = ("plain", "nz")


@dataclass(frozen=True)
class Tuning:
    """What a model does differently on its device; the plans are the same but for rounding."""

    patch_embedding: str = "matmul"  # of PATCH_EMBEDDINGS; both compute the same product
    graph_capture: bool = False  # record a step of the flow once, then replay it
    weight_format: str = "plain"  # of WEIGHT_FORMATS; nz: the blocks that the NPU multiplies by

    def check(self, device: str) -> None:
        """Refuse what a resolved device does not have.

        Raises:
            DeviceError: a value is unknown, or not for this device; one line.
        """
        for name, allowed in (
            ("patch_embedding", PATCH_EMBEDDINGS),
            ("weight_format", WEIGHT_FORMATS),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise DeviceError(f"{name} {value!r} is not known; use {' or '.join(allowed)}")
        kind = device.partition(":")[0]
        if self.graph_capture and kind == "cpu":
            raise DeviceError("graph_capture is for cuda and npu, not for the cpu; leave it off")
        if self.weight_format == "nz" and kind != "npu":
            raise DeviceError(f"weight_format nz is for npu, not for {kind}; use plain")


UNTUNED = Tuning()
