"""The first lesson: seeing. The image encoder alone learns to tell from two images what matters.

Learnt through the sentence alone, an encoder takes long to find the red lamp; a linear reader of
its tokens tells it at a fraction of the cost, as the other fourteen images are left out. The
reader is thrown away afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from alpamayo_ros.demo.causes import Category
from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.training.examples import (
    SMALL_RIG,
    Recipe,
    Stored,
    make_drives,
    moments,
    views,
)
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.images import patch_rows
from alpamayo_ros.model.vision import ImageFeatures, VisionModel

LOOKED_AT = ("front_wide", "front_tele")
CATEGORIES = tuple(category.value for category in Category)
PLACES_M = (8.0, 16.0, 24.0, 32.0)  # along the way driven, where its heading is asked for
DISTANCE_SCALE_M = 30.0
HEADING_SCALE_RAD = 0.3


@dataclass(frozen=True, eq=False)
class Sight:
    """What the reader has to tell of a moment; NaN: not asked."""

    images: Tensor  # uint8 (2, H, W, 3), the newest of LOOKED_AT
    category: int
    asked: np.ndarray  # (5,) distance of the cause in DISTANCE_SCALE_M, headings at PLACES_M


class Sights(Stored[Sight]):
    """Sights of several drives."""

    def _item(self, images: np.ndarray, arrays: dict[str, np.ndarray], k: int) -> Sight:
        return Sight(torch.from_numpy(images), int(arrays["category"][k]), arrays["asked"][k])


def make_sights(folder: Path, seeds: Sequence[int], recipe: Recipe, workers: int) -> Sights:
    """Sights of these drives: two views instead of sixteen, so many more drives can be shown."""
    return Sights(make_drives(folder / "sights", seeds, recipe, workers, _sights))


def _sights(drive: Drive, recipe: Recipe) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    cameras = [camera for camera in SMALL_RIG if camera.role in LOOKED_AT]
    times_s = list(moments(drive, recipe.per_drive))
    images = [views(drive, [t_s], cameras, recipe) for t_s in times_s]
    causes = [drive.cause_at(t_s) for t_s in times_s]
    asked = [questions(drive.future_xyyaw(t_s), c.sentence) for t_s, c in zip(times_s, causes)]
    category = np.array([CATEGORIES.index(c.category.value) for c in causes])
    return np.stack(images), {"category": category, "asked": np.array(asked)}


def questions(future: np.ndarray, sentence: str) -> np.ndarray:
    """The numbers that are asked for: distance of the cause, then headings of the way driven."""
    way_m = np.hypot(*np.diff(future[:, :2], axis=0, prepend=0.0).T).cumsum()
    yaw_rad = np.unwrap(future[:, 2])
    headings = np.interp(PLACES_M, way_m, yaw_rad, right=np.nan) / HEADING_SCALE_RAD
    named = re.search(r"(\d+) m ahead", sentence)
    return np.array([float(named[1]) / DISTANCE_SCALE_M if named else np.nan, *headings])


class Reader(nn.Module):
    """Linear in the tokens and deepstack features of both images."""

    def __init__(self, config: ModelConfig, tokens: int) -> None:
        super().__init__()
        vision = config.backbone.vision
        levels = 1 + len(vision.deepstack_layers)
        width = len(LOOKED_AT) * tokens * vision.out_hidden_size
        answers = len(CATEGORIES) + 1 + len(PLACES_M)
        self.levels = nn.ModuleList(nn.Linear(width, answers) for _ in range(levels))

    def start_quietly(self) -> None:
        """Small weights: at first it says next to nothing."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.normal_(parameter, std=0.01)

    def forward(self, features: ImageFeatures, examples: int) -> Tensor:
        """Answers (examples, categories + 1 + places)."""
        levels = (features.tokens, *features.deepstack)
        flat = [F.rms_norm(x, x.shape[-1:]).reshape(examples, -1) for x in levels]
        return torch.stack([read(x) for read, x in zip(self.levels, flat)]).mean(0)


def sight_loss(
    visual: VisionModel, reader: Reader, sights: Sequence[Sight]
) -> tuple[Tensor, float]:
    """Cross-entropy of the category plus squared errors of what else is asked; part right."""
    images = torch.cat([sight.images for sight in sights])
    patch = visual.config.patch_size
    grid = images.shape[1] // patch, images.shape[2] // patch
    rows = patch_rows(images, visual.config).flatten(0, 1)
    answers = reader(visual(rows, [grid] * len(images)), len(sights))
    categories = torch.tensor([sight.category for sight in sights])
    asked = torch.tensor(np.stack([sight.asked for sight in sights]), dtype=torch.float32)
    known = asked.isfinite()
    numbers = answers[:, len(CATEGORIES) :]
    errors = (numbers - asked.nan_to_num()).square()[known]
    told = answers[:, : len(CATEGORIES)]
    right = (told.argmax(1) == categories).float().mean()
    return F.cross_entropy(told, categories) + errors.mean(), float(right)
