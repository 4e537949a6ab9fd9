"""The table's self-tests, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from test.npu.emulator.hostnpu import HostNPU

import torch  # isort: skip - after torch_npu

from alpamayo_ros.devices.operators import operators_for
from alpamayo_ros.devices.self_test import check_operators


def refusal(call: Callable[[], Any]) -> str:
    """What a call is refused with, else ""."""
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


def refusals() -> dict[str, str]:
    """What the table says to arguments that torch_npu would take and compute nonsense of."""
    table = operators_for("npu:0")

    def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device="npu:0")

    query, key, other = tensor(1, 4, 3, 8), tensor(1, 2, 5, 8), tensor(1, 3, 5, 8)
    masks = {"float mask": tensor(1, 1, 1, 5), "short mask": tensor(1, 1, 1, 4, dtype=torch.bool)}
    calls: dict[str, Callable[[], Any]] = {
        name: lambda mask=mask: table.attention(query, key, key, mask=mask)
        for name, mask in masks.items()
    }
    packed = tensor(6, 2, 8)
    calls |= {
        "head counts": lambda: table.attention(query, other, other),
        "types": lambda: table.attention(query, key, key.bfloat16()),
        "causal with a prefix": lambda: table.attention(query, key, key, causal=True),
        "lengths": lambda: table.packed_attention(packed, packed, packed, (2, 3)),
        "packed heads": lambda: table.packed_attention(packed, tensor(6, 1, 8), packed, (2, 4)),
        "packed types": lambda: table.packed_attention(packed, packed.bfloat16(), packed, (2, 4)),
        "an empty sequence": lambda: table.packed_attention(packed, packed, packed, (0, 6)),
        "three axes": lambda: table.attention(packed, packed, packed),
        "a mask of heads": lambda: table.attention(
            query, key, key, mask=tensor(1, 4, 3, 5, dtype=torch.bool)
        ),
        "whole numbers": lambda: table.attention(*[tensor(1, 2, 3, 8, dtype=torch.int8)] * 3),
        "a norm's width": lambda: table.rms_norm(query, tensor(4), 1e-6),
        "a residual of another shape": lambda: table.add_rms_norm(
            query[:, :, :1], query, tensor(8), 1e-6
        ),
        "an odd width": lambda: table.swiglu(tensor(2, 7)),
        "tables": lambda: table.rotary(query, tensor(3, 8), tensor(3, 8)),
    }
    return {name: refusal(call) for name, call in calls.items()}


def main() -> None:
    """Print checks, refusals and what the checks called."""
    with HostNPU() as npu:
        checks = check_operators("npu:0")
        attention = [asdict(call) for call in npu.attention]
        called = sorted({name for name in npu.operators if name.startswith("npu::")})
        npu.reset()
        refused = refusals()
    print(
        json.dumps(
            {
                "checks": [asdict(check) | {"within": check.within} for check in checks],
                "refusals": refused,
                "attention": attention,
                "called": called,
            }
        )
    )


if __name__ == "__main__":
    main()
