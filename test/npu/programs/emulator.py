"""What the emulator counts and refuses, on calls whose answer is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from test.npu.emulator.hostnpu import HostNPU

import torch  # isort: skip - after torch_npu
import torch_npu

from alpamayo_ros.devices.stalls import HostWaits


def counted(npu: HostNPU, call: Callable[[], Any]) -> list[int]:
    """Stalls, launches and uploads of a call; and the stalls that the product's counter sees."""
    npu.reset()
    with HostWaits() as waits:
        call()
    return [npu.stalls(), npu.launches, npu.uploads, waits.count]


def refused(call: Callable[[], Any]) -> str:
    """The error of a call, else ""."""
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


def main() -> None:
    """Print counts and refusals."""
    with HostNPU() as npu, torch.no_grad():
        x = torch.arange(6.0).view(2, 3).to("npu:0")
        half = x.bfloat16()
        wide = torch.ones(2, 3, dtype=torch.float64).to("npu:0")
        counts = {
            "a sum": counted(npu, lambda: x.sum()),
            "a view": counted(npu, lambda: x.t()[:2]),
            "a number is read": counted(npu, lambda: x.sum().item()),
            "a tensor is read": counted(npu, lambda: x.cpu()),
            "a list is made": counted(npu, lambda: x.tolist()),
            "a boolean index": counted(npu, lambda: x[x > 2]),
            "an explicit wait": counted(npu, lambda: torch.npu.synchronize()),
            "an upload": counted(npu, lambda: torch.ones(3).to("npu:0")),
        }
        npu.reset()
        (wide + 1).sum()
        float64 = sum(npu.float64.values())
        query = torch.zeros(1, 4, 3, 8, device="npu:0")
        mask = torch.zeros(1, 1, 3, 3, device="npu:0")
        fused = torch_npu.npu_fusion_attention_v3
        refusals = {
            "mixed devices": refused(lambda: x + torch.ones(2, 3)),
            "a float mask": refused(lambda: fused(query, query, query, 4, "BNSD", atten_mask=mask)),
            "head_num": refused(lambda: fused(query, query, query, 2, "BNSD")),
            "gamma": refused(lambda: torch_npu.npu_rms_norm(x, half[0])),
        }
        product = (x @ x.t()).cpu().tolist()
    print(
        json.dumps({"counts": counts, "float64": float64, "refusals": refusals, "product": product})
    )


if __name__ == "__main__":
    main()
