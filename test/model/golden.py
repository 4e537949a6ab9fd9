"""The golden data: numbers that the public reference computed, and what they were computed from."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from alpamayo_ros.types import FRAME_OFFSETS_NS, Snapshot

GOLDEN = Path(__file__).parents[1] / "golden"
TINY_CHECKPOINT = GOLDEN / "tiny_checkpoint"

# The tolerances of the specification. A larger difference is a mistake, not rounding.
FEATURE_ATOL = 1e-4  # vision features and logits
TRAJECTORY_ATOL_M = 1e-3
YAW_ATOL_RAD = 1e-3
ACTION_ATOL = 1e-3

T0_NS = 1_700_000_000_000_000_000

# The text of R1's prompt, token by token, as the tokenizer of Qwen3 splits it.
PROMPT_TEXT = (
    *("system", "\n", "You", " are", " a", " driving", " assistant", " that", " generates"),
    *(" safe", " and", " accurate", " actions", ".", "\n", "user", "\n"),
    *("output", " the", " chain", "-of", "-th", "ought", " reasoning", " of", " the", " driving"),
    *(" process", ",", " then", " output", " the", " future", " trajectory", ".", "\n"),
    *("assistant", "\n"),
)
TEXT_IDS = 151643  # below: text; the added tokens of Qwen3 from here on


@dataclass(frozen=True, eq=False)
class GoldenRollout:
    """One rollout of the reference."""

    name: str
    num_samples: int
    max_new_tokens: int
    boost: float  # of the head's row of the end token
    arrays: dict[str, np.ndarray]
    snapshot: Snapshot

    @property
    def tokens(self) -> np.ndarray | None:
        """The reasoning that was given to the reference, if it was."""
        return self.arrays.get("forced_tokens")

    @property
    def expected_tokens(self) -> tuple[tuple[int, ...], ...]:
        """Up to and with each sample's end token; the reference's runs on until all have it."""
        rows = self.arrays["generated"].tolist()
        return tuple(tuple(r[: r.index(155681) + 1] if 155681 in r else r) for r in rows)

    @property
    def expected_yaw(self) -> np.ndarray:
        """(S, 64) rad."""
        rotations = self.arrays["pred_rot"]
        return np.arctan2(rotations[..., 1, 0], rotations[..., 0, 0])


def golden_image(seed: int, height: int, width: int) -> np.ndarray:
    """uint8 (H, W, 3): random blocks of 8 x 8 pixels."""
    blocks = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3))
    return blocks.astype(np.uint8).repeat(8, axis=0).repeat(8, axis=1)


def load_rollout(name: str) -> GoldenRollout:
    """The golden case rollout_NAME with the snapshot it was made from."""
    values = json.loads((GOLDEN / f"rollout_{name}.json").read_text())
    with np.load(GOLDEN / f"rollout_{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    images = [golden_image(values["image_seed"] + i, *values["image_hw"]) for i in range(16)]
    snapshot = Snapshot(
        frames=tuple(np.stack(images[4 * camera : 4 * camera + 4]) for camera in range(4)),
        camera_ids=(0, 1, 2, 6),
        frame_stamps_ns=np.array([[T0_NS + offset for offset in FRAME_OFFSETS_NS]] * 4),
        t0_ns=T0_NS,
        ego_history_xyz=arrays["ego_history_xyz"].astype(np.float64),
        ego_history_rot=arrays["ego_history_rot"].astype(np.float64),
    )
    return GoldenRollout(
        name=name,
        num_samples=values["num_samples"],
        max_new_tokens=values["max_new_tokens"],
        boost=values["lm_head_row_155681_boost"],
        arrays=arrays,
        snapshot=snapshot,
    )


def write_stand_in_tokenizer(folder: Path) -> None:
    """A tokenizer.json that knows the words of R1's prompt by the ids of the real one.

    The real one has 11 MB. Ids of words are read off the golden prompt, in whose order they stand.
    """
    with np.load(GOLDEN / "prompts.npz") as file:
        ids = file["r1"]
    vocabulary = dict(zip(PROMPT_TEXT, (int(i) for i in ids[ids < TEXT_IDS])))
    words = sorted(vocabulary, key=len, reverse=True)
    pattern = "|".join(word.replace(".", r"\.") for word in words)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="."))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    values = json.loads(tokenizer.to_str())
    values["added_tokens"] = [
        {"id": TEXT_IDS + 1 + k, "content": content, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for k, content in enumerate(("<|im_start|>", "<|im_end|>"))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(values))


def real_tokenizer_folder() -> Path | None:
    """The folder with Qwen3's tokenizer among the full golden data, where that is at hand."""
    beside = Path(__file__).parents[3] / "shared" / "golden"
    folder = Path(os.environ.get("ALPAMAYO_GOLDEN", beside)) / "qwen3_vl_tiny"
    return folder if (folder / "tokenizer.json").is_file() else None
