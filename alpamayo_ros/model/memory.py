"""What a model needs of a device's memory, known before anything is loaded."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from alpamayo_ros.devices.device import free_memory_bytes, resolve_dtype
from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model.checkpoint import stored_bytes
from alpamayo_ros.model.config_file import load_config
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.errors import ModelError
from alpamayo_ros.model.images import SIZE_FACTOR
from alpamayo_ros.model.network import empty_network
from alpamayo_ros.types import CAMERA_IDS, FRAMES_PER_CAMERA

GB = 1e9
MARGIN = 0.1  # for activations and what the device's allocator loses
PROMPT_TEXT_TOKENS = 400  # text, history, frame labels and a long navigation text


def weight_bytes(config: ModelConfig, dtype: torch.dtype) -> int:
    """Bytes of the weights in a type."""
    return stored_bytes(empty_network(config, Operators()), dtype)


def cache_bytes(
    config: ModelConfig, dtype: torch.dtype, num_samples: int, max_new_tokens: int
) -> int:
    """Bytes of the key/value cache of a decision: at full size 0.147 MB per token and sample."""
    images = len(CAMERA_IDS) * FRAMES_PER_CAMERA
    prompt = images * (config.max_pixels // SIZE_FACTOR**2) + PROMPT_TEXT_TOKENS
    tokens = prompt + max_new_tokens + 1 + config.action_space.waypoints
    return num_samples * tokens * config.cache_values_per_token * dtype.itemsize


def require_memory(
    folder: str | os.PathLike[str],
    tokenizer: str | os.PathLike[str] | None,
    device: str,
    dtype: str,
    num_samples: int,
    max_new_tokens: int,
) -> None:
    """Refuse a checkpoint that a resolved device has no room for, before a byte of it is read.

    Raises:
        ModelError: weights, cache and 10 % are more than is free; both numbers are in the line.
    """
    config = load_config(Path(folder), Path(tokenizer) if tokenizer else None)
    number_type = resolve_dtype(dtype)
    weights = weight_bytes(config, number_type)
    cache = cache_bytes(config, number_type, num_samples, max_new_tokens)
    needed, free = (1 + MARGIN) * (weights + cache), free_memory_bytes(device)
    if needed > free:
        raise ModelError(
            f"{device} has {free / GB:.1f} GB free, the model needs {needed / GB:.1f} GB "
            f"(weights {weights / GB:.1f}, cache {cache / GB:.1f}, and 10 %): "
            "free memory, take another device, or lower num_samples or sampling.max_new_tokens"
        )
