"""The first lesson: seeing. The image encoder alone learns to tell from two images what matters.

Learnt through the sentence alone, an encoder takes long to find the red lamp; a linear reader of
its tokens tells it at a fraction of the cost, as the other fourteen images are left out. The
reader is thrown away afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from alpamayo_ros.demo.causes import Category
from alpamayo_ros.demo.training.examples import Example
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.images import patch_rows
from alpamayo_ros.model.vision import ImageFeatures, VisionModel
from alpamayo_ros.types import CAMERA_ROLES, FRAMES_PER_CAMERA

LOOKED_AT = ("front_wide", "front_tele")
CATEGORIES = tuple(category.value for category in Category)
PLACES_M = (8.0, 16.0, 24.0, 32.0)  # along the way driven, where its heading is asked for
DISTANCE_SCALE_M = 30.0
HEADING_SCALE_RAD = 0.3


@dataclass(frozen=True, eq=False)
class Sight:
    """What the reader has to tell of an example; NaN: not asked."""

    images: Tensor  # uint8 (2, H, W, 3), the newest of LOOKED_AT
    category: int
    distance: float  # of the cause, in DISTANCE_SCALE_M
    headings: np.ndarray  # (4,) at PLACES_M, in HEADING_SCALE_RAD


def sight(example: Example) -> Sight:
    """The questions an example asks of the encoder."""
    newest = [(CAMERA_ROLES.index(role) + 1) * FRAMES_PER_CAMERA - 1 for role in LOOKED_AT]
    way = np.hypot(*np.diff(example.future[:, :2], axis=0, prepend=0.0).T).cumsum()
    yaw = np.unwrap(example.future[:, 2])
    headings = np.interp(PLACES_M, way, yaw, right=np.nan) / HEADING_SCALE_RAD
    named = re.search(r"(\d+) m ahead", example.sentence)
    return Sight(
        images=torch.from_numpy(example.images[newest]),
        category=CATEGORIES.index(example.category),
        distance=float(named[1]) / DISTANCE_SCALE_M if named else float("nan"),
        headings=headings,
    )


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


def sight_loss(visual: VisionModel, reader: Reader, sights: list[Sight]) -> Tensor:
    """Cross-entropy of the category plus squared errors of what else is asked."""
    images = torch.cat([sight.images for sight in sights])
    patch = visual.config.patch_size
    grid = images.shape[1] // patch, images.shape[2] // patch
    rows = patch_rows(images, visual.config).flatten(0, 1)
    answers = reader(visual(rows, [grid] * len(images)), len(sights))
    categories = torch.tensor([sight.category for sight in sights])
    asked = torch.tensor(
        np.array([[sight.distance, *sight.headings] for sight in sights]), dtype=torch.float32
    )
    known = asked.isfinite()
    numbers = answers[:, len(CATEGORIES) :]
    errors = (numbers - asked.nan_to_num()).square()[known]
    return F.cross_entropy(answers[:, : len(CATEGORIES)], categories) + errors.mean()
