"""Encodes the images of a snapshot and reuses what an earlier snapshot had encoded already.

An image's features do not depend on its place in the prompt, so reuse is exact. It pays where
plans follow each other within the 0.3 s window of a snapshot: planning every 0.1 s encodes 4
images of 16. A decision slower than 0.3 s never finds one, unless an idle device has encoded the
frames as they arrived.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from alpamayo_ros.model.images import patch_rows, resize_frame
from alpamayo_ros.model.vision import Grid, ImageFeatures, VisionModel

# Two snapshots of four cameras: 32 images of 6 MB each at full size.
CAPACITY = 32

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CameraFrame:
    """A frame as the camera gave it, or already at the model's size."""

    camera_id: int
    stamp_ns: int
    rgb: np.ndarray  # uint8 (H, W, 3)


class FeatureCache:
    """Features by camera, stamp and content; the least recently used ones go first.

    A frame is resized when it is encoded, and so once. pixel_limits are those of `resize_frame`.
    """

    def __init__(
        self, visual: VisionModel, pixel_limits: tuple[int, int], capacity: int = CAPACITY
    ) -> None:
        self._visual = visual
        self._pixel_limits = pixel_limits
        self._capacity = capacity
        self._entries: OrderedDict[tuple[int, int], tuple[np.ndarray, ImageFeatures]] = (
            OrderedDict()
        )
        self.encoded = 0  # images encoded since the start, for tests and figures

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def encode(
        self, frames: Sequence[CameraFrame], check: Callable[[], None]
    ) -> list[ImageFeatures]:
        """Features of each frame; `check` is called before each part and may raise."""
        found = [self._find(frame) for frame in frames]
        missing = [index for index, features in enumerate(found) if features is None]
        images = [resize_frame(frames[index].rgb, *self._pixel_limits) for index in missing]
        # Images of one size beside each other: their patches are cut in one go.
        order = sorted(range(len(images)), key=lambda i: images[i].shape)
        parts = self._visual.parts([self._grid(image) for image in images])
        for part in _split(order, parts):
            check()
            for place, features in zip(part, self._encode([images[i] for i in part])):
                found[missing[place]] = features
                self._store(frames[missing[place]], features)
        return [features for features in found if features is not None]

    def _find(self, frame: CameraFrame) -> ImageFeatures | None:
        entry = self._entries.get((frame.camera_id, frame.stamp_ns))
        if entry is None or not np.array_equal(entry[0], frame.rgb):
            return None
        self._entries.move_to_end((frame.camera_id, frame.stamp_ns))
        return entry[1]

    def _store(self, frame: CameraFrame, features: ImageFeatures) -> None:
        # A copy, so that a caller who overwrites his array is not answered from the past.
        self._entries[frame.camera_id, frame.stamp_ns] = (frame.rgb.copy(), features)
        self._entries.move_to_end((frame.camera_id, frame.stamp_ns))
        while len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def _grid(self, rgb: np.ndarray) -> Grid:
        """Rows and columns of an image's patches."""
        patch = self._visual.config.patch_size
        return rgb.shape[0] // patch, rgb.shape[1] // patch

    def _encode(self, images: list[np.ndarray]) -> list[ImageFeatures]:
        """Features of images, those of one size beside each other."""
        visual = self._visual
        sizes = [
            torch.from_numpy(np.stack(list(group)))
            for _, group in itertools.groupby(images, key=lambda image: image.shape)
        ]
        rows = [
            patch_rows(pixels.to(visual.pos_embed.weight.device), visual.config).flatten(0, 1)
            for pixels in sizes
        ]
        grids = [self._grid(image) for image in images]
        features = visual(torch.cat(rows), grids)
        self.encoded += len(images)
        return [
            # Copies: a view of one image would keep all of them in memory.
            ImageFeatures(image.tokens.clone(), tuple(level.clone() for level in image.deepstack))
            for image in features.split([visual.tokens(grid) for grid in grids])
        ]


def _split(items: list[T], parts: int) -> Iterator[list[T]]:
    """Split into so many parts, whose lengths differ by one at most."""
    for part in range(parts):
        yield items[part * len(items) // parts : (part + 1) * len(items) // parts]


def join(features: Sequence[ImageFeatures]) -> ImageFeatures:
    """Features of several images as one sequence, in order."""
    tokens: Tensor = torch.cat([f.tokens for f in features])
    levels = zip(*(f.deepstack for f in features))
    return ImageFeatures(tokens, tuple(torch.cat(level) for level in levels))
