"""Whole decisions on the device beside the same on the CPU: golden cases, float32 and bfloat16."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from test.npu.emulator.hostnpu import HostNPU

import numpy as np  # isort: skip - after torch_npu
import torch

from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.model.recipe import write_recipe_checkpoint
from alpamayo_ros.types import Plan
from test.model.golden import (
    TINY_CHECKPOINT,
    GoldenRollout,
    load_rollout,
    write_stand_in_tokenizer,
)

CASES = ("ends", "three_samples", "forced_lengths", "no_end_token")


@dataclass(frozen=True)
class Decision:
    """How one case went on the device."""

    case: str
    dtype: str
    tokens_equal: bool
    error_m: float  # largest difference to the CPU's waypoints
    yaw_error_rad: float
    finite: bool
    waypoint_type: str
    device: str
    float64: list[str]  # operators that met a float64 tensor on the device
    called: dict[str, int]  # torch_npu's own operators
    layouts: dict[str, int]  # calls of fused attention by layout
    masked_calls: int
    elsewhere: list[str]  # tensors of the network that are not on the device in the type


def plan(model: AlpamayoR1, golden: GoldenRollout, tokens: np.ndarray | None) -> Plan:
    """Decide on a golden case."""
    model.reset()
    return model.plan(
        golden.snapshot,
        num_samples=golden.num_samples,
        greedy=True,
        max_new_tokens=golden.max_new_tokens,
        noise=golden.arrays["noise"],
        tokens=tokens,
    )


def elsewhere(model: AlpamayoR1, dtype: torch.dtype) -> list[str]:
    """Parameters and buffers that are not on npu:0 in this type."""
    tensors = [*model.network.named_parameters(), *model.network.named_buffers()]
    return [
        name for name, tensor in tensors if str(tensor.device) != "npu:0" or tensor.dtype != dtype
    ]


class Models:
    """Checkpoints with recipe weights, loaded as a user would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_stand_in_tokenizer(folder / "tokenizer")

    def load(self, boost: float, device: str, dtype: torch.dtype) -> AlpamayoR1:
        """The golden configuration on a device."""
        checkpoint = self.folder / f"boost {boost}"
        if not checkpoint.is_dir():
            write_recipe_checkpoint(checkpoint, TINY_CHECKPOINT, boost)
        return AlpamayoR1.from_pretrained(checkpoint, self.folder / "tokenizer", device, dtype)


def decide(models: Models, case: str, dtype: torch.dtype) -> Decision:
    """One case on both devices; in bfloat16 with the reference's tokens."""
    golden = load_rollout(case)
    tokens = golden.tokens
    if dtype == torch.bfloat16 and tokens is None:
        tokens = forced(golden)
    expected = plan(models.load(golden.boost, "cpu", dtype), golden, tokens)
    with HostNPU() as npu:
        model = models.load(golden.boost, "npu:0", dtype)
        npu.reset()
        got = plan(model, golden, tokens)
        called = {k: n for k, n in npu.operators.items() if k.startswith("npu::")}
        layouts = {
            layout: sum(call.layout == layout for call in npu.attention)
            for layout in ("BNSD", "TND")
        }
        masked = sum(call.masked for call in npu.attention)
        float64 = sorted(npu.float64)
    gap = np.abs(got.samples - expected.samples)
    turn = np.abs(np.mod(gap[..., 2] + np.pi, 2 * np.pi) - np.pi)
    return Decision(
        case=case,
        dtype=got.dtype,
        tokens_equal=got.token_ids == expected.token_ids,
        error_m=float(gap[..., :2].max()),
        yaw_error_rad=float(turn.max()),
        finite=got.finite,
        waypoint_type=str(got.waypoints.dtype),
        device=got.device,
        float64=float64,
        called=called,
        layouts=layouts,
        masked_calls=masked,
        elsewhere=elsewhere(model, dtype),
    )


def forced(golden: GoldenRollout) -> np.ndarray:
    """The reference's tokens as given reasoning, int (S, n) padded with -1."""
    rows = [(*row, 155681) if 155681 not in row else row for row in golden.expected_tokens]
    tokens = np.full((len(rows), max(map(len, rows))), -1)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = row
    return tokens


def main() -> None:
    """Print every case in both types."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        models = Models(Path(folder))
        decisions = [
            decide(models, case, dtype)
            for dtype in (torch.float32, torch.bfloat16)
            for case in CASES
        ]
    print(json.dumps([asdict(decision) for decision in decisions]))


if __name__ == "__main__":
    main()
