"""The prompt: a template per set of cameras, into which history and navigation text go.

Text between two special tokens is tokenised as one piece, as a chat template would have it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.errors import ModelError
from alpamayo_ros.model.tokenizer import TextTokenizer
from alpamayo_ros.types import FRAMES_PER_CAMERA

SYSTEM = "You are a driving assistant that generates safe and accurate actions."
INSTRUCTION = (
    "output the chain-of-thought reasoning of the driving process, "
    "then output the future trajectory."
)
# Version 1.5 names the cameras by index; the released R1 names none.
CAMERA_LABELS = {
    0: "Front left camera",
    1: "Front camera",
    2: "Front right camera",
    3: "Rear left camera",
    4: "Rear camera",
    5: "Rear right camera",
    6: "Front telephoto camera",
}
MAX_TEXT_CHARACTERS = 2000  # of a navigation text or a question

Grid = tuple[int, int]  # rows and columns of an image's tokens


@dataclass(frozen=True)
class CameraLayout:
    """A camera of the prompt and the size of its images in tokens."""

    camera_id: int
    grid: Grid


@dataclass(frozen=True, eq=False)
class Prompt:
    """Token ids with their positions. Shared by decisions, so nobody writes into it."""

    ids: np.ndarray  # int64 (P,)
    positions: np.ndarray  # int64 (3, P): time, height, width
    image_indices: np.ndarray  # int64 (N,) where the images' tokens stand, in order
    history_index: int  # where the first of the history tokens stands; -1: there are none
    next_position: int  # of the first token after the prompt, on all axes

    @property
    def rope_delta(self) -> int:
        """Position minus index of every token after the prompt."""
        return self.next_position - len(self.ids)

    def with_history(self, history_ids: np.ndarray) -> np.ndarray:
        """The ids with the history's in their places, int64 (P,)."""
        ids = self.ids.copy()
        ids[self.history_index : self.history_index + len(history_ids)] = history_ids
        return ids


class PromptBuilder:
    """Builds prompts; the same arguments give the same object again."""

    def __init__(self, config: ModelConfig, tokenizer: TextTokenizer) -> None:
        self._config = config
        self._tokenizer = tokenizer
        # One layout and a few navigation texts are in use at a time.
        self._template = functools.lru_cache(maxsize=8)(self._make_template)
        self._routed = functools.lru_cache(maxsize=8)(self._make_routed)

    def build(self, cameras: Sequence[CameraLayout], navigation: str = "") -> Prompt:
        """The prompt for four frames of each camera, with placeholders for the history.

        Raises:
            ModelError: the navigation text is too long, or no text.
        """
        _require_text("navigation text", navigation)
        return self._routed(tuple(cameras), navigation)

    def question(self, cameras: Sequence[CameraLayout], text: str) -> Prompt:
        """Version 1.5's prompt for a question about the images; it holds no history.

        Raises:
            ModelError: the question is too long, or no text.
        """
        _require_text("question", text)
        ids = [
            *self._opening(tuple(cameras)),
            *self._pieces("<|question_start|>", (text,), "<|question_end|>"),
            *self._closing("<|answer_start|>"),
        ]
        return self._prompt(ids, tuple(cameras))

    def _make_routed(self, cameras: tuple[CameraLayout, ...], navigation: str) -> Prompt:
        """The template with the navigation text, if there is one, in its place."""
        before, after = self._template(cameras)
        route = self._pieces("<|route_start|>", (navigation,), "<|route_end|>")
        return self._prompt(before + (route if navigation else []) + after, cameras)

    def _make_template(self, cameras: tuple[CameraLayout, ...]) -> tuple[list[int], list[int]]:
        """The ids before and after the place of the navigation text."""
        history = ["<|traj_history|>"] * self._config.history.tokens
        before = [
            *self._opening(cameras),
            *self._pieces("<|traj_history_start|>", *history, "<|traj_history_end|>"),
        ]
        after = [*self._pieces((INSTRUCTION,)), *self._closing("<|cot_start|>")]
        return before, after

    def _opening(self, cameras: tuple[CameraLayout, ...]) -> list[int]:
        """System message and the images of the user's message."""
        labelled = self._config.version == "1.5"
        pieces: list[str | tuple[str]] = [
            *("<|im_start|>", (f"system\n{SYSTEM}",), "<|im_end|>", ("\n",)),
            *("<|im_start|>", ("user\n",)),
        ]
        for camera in cameras:
            for frame in range(FRAMES_PER_CAMERA):
                if labelled and frame == 0:
                    pieces.append((f"{CAMERA_LABELS[camera.camera_id]}: ",))
                if labelled:
                    pieces.append((f"frame {frame} ",))
                rows, columns = camera.grid
                pads = ["<|image_pad|>"] * (rows * columns)
                pieces += ["<|vision_start|>", *pads, "<|vision_end|>"]
        return self._pieces(*pieces)

    def _closing(self, prefix: str) -> list[int]:
        """End of the user's message and beginning of the assistant's."""
        return self._pieces(
            *("<|im_end|>", ("\n",), "<|im_start|>", ("assistant\n",), prefix),
        )

    def _pieces(self, *pieces: str | tuple[str]) -> list[int]:
        """Ids of special tokens (texts) and of plain text (1-tuples), adjoining text as one."""
        ids: list[int] = []
        text = ""
        for piece in pieces:
            if isinstance(piece, tuple):
                text += piece[0]
                continue
            ids += self._tokenizer.encode(text) if text else []
            text = ""
            ids.append(self._tokenizer.special(piece))
        return ids + (self._tokenizer.encode(text) if text else [])

    def _prompt(self, token_ids: list[int], cameras: tuple[CameraLayout, ...]) -> Prompt:
        ids = np.array(token_ids, np.int64)
        grids = [camera.grid for camera in cameras for _ in range(FRAMES_PER_CAMERA)]
        image_indices = np.flatnonzero(ids == self._config.backbone.image_token_id)
        positions = multimodal_positions(len(ids), image_indices, grids)
        history = np.flatnonzero(ids == self._tokenizer.special("<|traj_history|>"))
        return Prompt(
            ids=ids,
            positions=positions,
            image_indices=image_indices,
            history_index=int(history[0]) if len(history) else -1,
            next_position=int(positions.max()) + 1,
        )


def _require_text(name: str, text: str) -> None:
    if not isinstance(text, str):
        raise ModelError(f"the {name} must be a text, got {text!r}")
    if len(text) > MAX_TEXT_CHARACTERS:
        raise ModelError(
            f"the {name} has {len(text)} characters, at most {MAX_TEXT_CHARACTERS} are allowed"
        )
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ModelError(f"the {name} holds bytes that are no UTF-8: {text!a}")


def multimodal_positions(
    length: int, image_indices: np.ndarray, grids: Sequence[Grid]
) -> np.ndarray:
    """Positions int64 (3, length): time, height and width of each token.

    Text advances all three by one. Within an image time stands still while height and width run
    over its grid of tokens; what follows is one beyond the largest of them.
    """
    positions = np.empty((3, length), np.int64)
    index = position = used = 0
    for rows, columns in grids:
        first = int(image_indices[used])
        positions[:, index:first] = position + np.arange(first - index)
        position += first - index
        index = first + rows * columns
        inside = np.mgrid[0:1, 0:rows, 0:columns].reshape(3, -1)
        positions[:, first:index] = position + inside
        position += max(rows, columns)
        used += rows * columns
    positions[:, index:] = position + np.arange(length - index)
    return positions
