"""From a camera's frame to rows of patches, equal to the reference's image processor.

The resize must be PyTorch's bicubic with antialias on uint8: on floats it is up to 14 grey levels
off, and 2 grey levels cost 7 mm in the plan.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from alpamayo_ros.model.configuration import VisionConfig
from alpamayo_ros.model.errors import ModelError

SIZE_FACTOR = 32  # patch 16, and 2 x 2 patches make a token
MAX_ASPECT = 200


def model_size(
    height: int, width: int, min_pixels: int, max_pixels: int, factor: int = SIZE_FACTOR
) -> tuple[int, int]:
    """Height and width, in pixels, at which the model sees a frame.

    Both become multiples of `factor` (halves to even) and the area comes between the limits with
    the aspect about kept.

    Raises:
        ModelError: the frame is empty or more than 200 times as long as wide.
    """
    if min(height, width) <= 0 or max(height, width) > MAX_ASPECT * min(height, width):
        raise ModelError(
            f"a frame of {height} x {width} pixels cannot be used: both sides must be positive "
            f"and within a factor of {MAX_ASPECT}"
        )
    rows, columns = (max(factor, round(side / factor) * factor) for side in (height, width))
    if rows * columns > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        rows, columns = (
            max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width)
        )
    elif rows * columns < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        rows, columns = (math.ceil(side * grow / factor) * factor for side in (height, width))
    return rows, columns


def resize_frame(
    rgb: np.ndarray, min_pixels: int, max_pixels: int, factor: int = SIZE_FACTOR
) -> np.ndarray:
    """A frame uint8 (H, W, 3) at the model's size; the same array when it already has it."""
    height, width = rgb.shape[:2]
    size = model_size(height, width, min_pixels, max_pixels, factor)
    if (height, width) == size:
        return rgb
    planes = torch.from_numpy(np.ascontiguousarray(rgb)).permute(2, 0, 1)[None]
    resized = F.interpolate(planes, size=size, mode="bicubic", antialias=True)
    return np.ascontiguousarray(resized[0].permute(1, 2, 0).numpy())


def patch_rows(frames: Tensor, config: VisionConfig) -> Tensor:
    """Patch rows float32 (B, H/16 * W/16, C * T * 16 * 16) of frames uint8 (B, H, W, 3).

    Values are in [-1, 1]; a row holds channel, time (the frame twice), row and column of a patch;
    the four patches of a token follow each other.
    """
    batch, height, width, channels = frames.shape
    patch, merge = config.patch_size, config.merge_size
    rows, columns = height // config.size_factor, width // config.size_factor
    scaled = (frames.float() - 127.5) / 127.5  # bit-equal to the reference; x/255 first is not
    split = scaled.view(batch, rows, merge, patch, columns, merge, patch, channels)
    ordered = split.permute(0, 1, 4, 2, 5, 7, 3, 6)  # token row, column, 2, 2, C, 16, 16
    flat = ordered.reshape(batch, rows * columns * merge**2, channels, 1, patch**2)
    return flat.expand(-1, -1, -1, config.temporal_patch_size, -1).flatten(2)
