"""The built-in small model: Alpamayo-R1's architecture at 7 M parameters, for demo and tests.

It is loaded only when a user asks for the model "demo": it must never drive a car because a
setting was forgotten. It has learnt from synthetic drives alone; small_model/README.md is its card.
"""

from __future__ import annotations

from pathlib import Path

import torch

from alpamayo_ros.devices.tuning import UNTUNED, Tuning
from alpamayo_ros.model import AlpamayoR1

FOLDER = Path(__file__).parent / "small_model"
PREFIX = "demo-"  # of the model's identity, whatever its weights are


def load_demo_model(
    device: str = "cpu",
    dtype: torch.dtype | str = torch.float32,
    tuning: Tuning = UNTUNED,
) -> AlpamayoR1:
    """The small model on a device (auto, cpu, cuda:0, npu:0) in a type.

    Raises:
        ModelError: there is no such device or type; one line.
    """
    model = AlpamayoR1.from_pretrained(FOLDER, device=device, dtype=dtype, tuning=tuning)
    model.model_id = PREFIX + model.model_id
    return model
