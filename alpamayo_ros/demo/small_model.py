"""The built-in small model: Alpamayo-R1's architecture at 7 M parameters, for demo and tests.

It is loaded only when a user asks for the model "demo": it must never drive a car because a
setting was forgotten. Until the folder holds trained weights they come from a fixed recipe: the
plans are finite and repeatable, and mean nothing.
"""

from __future__ import annotations

from pathlib import Path

import torch

from alpamayo_ros.devices.device import DeviceError, resolve_device, resolve_dtype
from alpamayo_ros.devices.tuning import UNTUNED, Tuning
from alpamayo_ros.model import AlpamayoR1, ModelError
from alpamayo_ros.model.checkpoint import SINGLE_NAME
from alpamayo_ros.model.config_file import load_config
from alpamayo_ros.model.recipe import recipe_network
from alpamayo_ros.model.tokenizer import TextTokenizer

FOLDER = Path(__file__).parent / "small_model"
PREFIX = "demo-"  # of the model's identity, whatever its weights are
# With these numbers the reasoning of the untrained weights ends after 1 to 7 tokens.
SALT = "small"
END_TOKEN_BOOST = -4.0


def load_demo_model(
    device: str = "cpu",
    dtype: torch.dtype | str = torch.float32,
    tuning: Tuning = UNTUNED,
) -> AlpamayoR1:
    """The small model on a device (auto, cpu, cuda:0, npu:0) in a type.

    Raises:
        ModelError: there is no such device or type; one line.
    """
    if (FOLDER / SINGLE_NAME).is_file():
        model = AlpamayoR1.from_pretrained(FOLDER, device=device, dtype=dtype, tuning=tuning)
        model.model_id = PREFIX + model.model_id
        return model
    try:
        device, weight_type = resolve_device(device), resolve_dtype(dtype)
        tuning.check(device)
    except DeviceError as error:
        raise ModelError(str(error)) from None
    config = load_config(FOLDER)
    network = recipe_network(config, device, weight_type, END_TOKEN_BOOST, SALT)
    tokenizer = TextTokenizer.load(FOLDER, config)
    name = f"{PREFIX}untrained"
    return AlpamayoR1(network, config, tokenizer, name, device, weight_type, tuning)
