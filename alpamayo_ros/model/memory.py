"""What a model needs of a device's memory, known before anything is loaded."""

from __future__ import annotations

import torch

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model.checkpoint import stored_bytes
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.images import SIZE_FACTOR
from alpamayo_ros.model.network import empty_network
from alpamayo_ros.types import CAMERA_IDS, FRAMES_PER_CAMERA

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
