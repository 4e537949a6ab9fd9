"""A decision on cameras of two sizes, on the device and on the CPU."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from test.npu.emulator.hostnpu import HostNPU

import numpy as np  # isort: skip - after torch_npu
import torch

from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import Plan, Snapshot
from test.npu.programs.decisions import Models


def snapshot() -> Snapshot:
    """Four cameras; two are of another size, and not next to each other."""
    usual, other = fake_snapshot(0), fake_snapshot(1, 384, 512)
    frames = (usual.frames[0], other.frames[1], usual.frames[2], other.frames[3])
    return replace(usual, frames=frames)


def decide(model: AlpamayoR1) -> Plan:
    """Two samples, greedy."""
    return model.plan(snapshot(), num_samples=2, seed=0, greedy=True, max_new_tokens=4)


def main() -> None:
    """Print how far both decisions are apart."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        models = Models(Path(folder))
        expected = decide(models.load(1.0, "cpu", torch.float32))
        with HostNPU() as npu:
            model = models.load(1.0, "npu:0", torch.float32)
            npu.reset()
            got = decide(model)
            packed = [call.query[0] for call in npu.attention if call.layout == "TND"]
    gap = np.abs(got.samples - expected.samples)
    print(
        json.dumps(
            {
                "tokens_equal": got.token_ids == expected.token_ids,
                "error_m": float(gap[..., :2].max()),
                "device": got.device,
                "patches": packed,  # of each call of packed attention
            }
        )
    )


if __name__ == "__main__":
    main()
