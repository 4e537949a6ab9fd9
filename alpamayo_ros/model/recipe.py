"""Weights from a recipe: reproducible random numbers by tensor name, for tests and benchmarks.

Each tensor's numbers come from its name alone, so that any implementation can make the same ones.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from alpamayo_ros.devices.operators import Operators, operators_for
from alpamayo_ros.model.checkpoint import SINGLE_NAME, assign
from alpamayo_ros.model.config_file import backbone_folder, load_config
from alpamayo_ros.model.configuration import ActionInConfig, ModelConfig
from alpamayo_ros.model.network import Network, empty_network
from alpamayo_ros.model.tokenizer import FILE_NAME

END_TOKEN = "traj_future_start"
FIRST_TRUNK_LAYER = "action_in_proj.encoder.trunk.0.weight"


def recipe_tensor(key: str, shape: tuple[int, ...], salt: str = "") -> np.ndarray:
    """float32 numbers of a parameter: near one for norms, small for biases, else 1/sqrt(inputs)."""
    generator = np.random.default_rng(zlib.crc32((salt + key).encode()))
    numbers = generator.standard_normal(shape)
    if len(shape) == 1:
        numbers = 1 + 0.1 * numbers if key.endswith("weight") else 0.02 * numbers
    else:
        numbers = numbers / math.sqrt(math.prod(shape[1:]))
    return numbers.astype(np.float32)


def conditioning(config: ActionInConfig) -> np.ndarray:
    """Column factors float32 of the first layer behind the Fourier features.

    Without them the features up to frequency 100 make the flow amplify rounding 1e8-fold, so that
    no two machines agree; with them about threefold.
    """
    falling = np.logspace(0, np.log10(config.max_frequency), config.frequencies) ** -2
    return np.tile(falling, 6).astype(np.float32)


def recipe_tensors(
    config: ModelConfig, end_token_boost: float = 1.0, salt: str = ""
) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and float32 tensor of every parameter; buffers keep their configured values.

    end_token_boost multiplies the head's row of the token that ends the reasoning, so that it
    comes after a few tokens.
    """
    network = empty_network(config, Operators())
    for key, parameter in network.named_parameters():
        numbers = recipe_tensor(key, tuple(parameter.shape), salt)
        if key == "vlm.lm_head.weight":
            numbers[config.special_ids[END_TOKEN]] *= np.float32(end_token_boost)
        if key == FIRST_TRUNK_LAYER:
            numbers *= conditioning(config.action_in)
        yield key, torch.from_numpy(numbers)
    yield from network.named_buffers()


def recipe_network(
    config: ModelConfig,
    device: str,
    dtype: torch.dtype,
    end_token_boost: float = 1.0,
    salt: str = "",
) -> Network:
    """A network with recipe weights on a device, without a folder."""
    network = empty_network(config, operators_for(device))
    for name, value in recipe_tensors(config, end_token_boost, salt):
        assign(network, name, value.to(device, dtype))
    return network


def write_recipe_checkpoint(
    folder: str | os.PathLike[str],
    config_folder: str | os.PathLike[str],
    end_token_boost: float = 1.0,
    salt: str = "",
) -> Path:
    """A checkpoint folder with recipe weights, to be read by the normal loader.

    config.json is config_folder's; its backbone's configuration and tokenizer are copied along, so
    that the folder stands on its own. Returns the folder.
    """
    source, target = Path(config_folder), Path(folder)
    config = load_config(source)
    target.mkdir(parents=True, exist_ok=True)
    values: dict[str, Any] = json.loads((source / "config.json").read_text(encoding="utf-8"))
    backbone = backbone_folder(source)
    if backbone is not None:
        values["vlm_name_or_path"] = "backbone"
        (target / "backbone").mkdir(exist_ok=True)
        for name in ("config.json", FILE_NAME):
            if (backbone / name).is_file():
                shutil.copyfile(backbone / name, target / "backbone" / name)
    (target / "config.json").write_text(json.dumps(values, indent=1), encoding="utf-8")
    save_file(dict(recipe_tensors(config, end_token_boost, salt)), target / SINGLE_NAME)
    return target
