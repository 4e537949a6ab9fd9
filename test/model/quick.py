"""The smallest configuration that has every part: two layers each, images of 64 x 96 pixels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from alpamayo_ros.demo.small_model import FOLDER as SMALL

TEXT = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
VISION = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_heads": 2,
    "out_hidden_size": 64,
    "deepstack_visual_indexes": [0, 1],
}


def write_quick_config(folder: Path, model_type: str = "alpamayo_r1") -> Path:
    """Write config.json, the backbone's and its tokenizer: the small model's, made smaller."""
    (folder / "backbone").mkdir(parents=True)
    values = json.loads((SMALL / "config.json").read_text())
    values |= {"min_pixels": 5120, "max_pixels": 7680, "model_type": model_type}
    values["expert_cfg"] |= {"hidden_size": 48, "intermediate_size": 64}
    (folder / "config.json").write_text(json.dumps(values))
    backbone = json.loads((SMALL / "backbone" / "config.json").read_text())
    backbone["text_config"] |= TEXT
    backbone["vision_config"] |= VISION
    (folder / "backbone" / "config.json").write_text(json.dumps(backbone))
    shutil.copyfile(SMALL / "tokenizer.json", folder / "backbone" / "tokenizer.json")
    return folder
