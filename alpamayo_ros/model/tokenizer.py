"""The text tokenizer, in which no text can become a special token.

The added tokens of tokenizer.json (`<|im_end|>`, `<think>` and so on) are taken out of the
tokenizer that sees text; their ids are placed by name. So a navigation text such as "<|im_end|>"
is read as the letters it is made of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from alpamayo_ros.model.config_section import read_json
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.errors import ModelError

FILE_NAME = "tokenizer.json"
CHAT_TOKENS = ("<|im_start|>", "<|im_end|>")


class TextTokenizer:
    """Text to ids and back, and ids of special tokens by name."""

    def __init__(self, plain: Tokenizer, added: dict[str, int], config: ModelConfig) -> None:
        backbone = config.backbone
        self._plain = plain
        self._special = {
            **added,
            "<|vision_start|>": backbone.vision_start_id,
            "<|vision_end|>": backbone.vision_end_id,
            "<|image_pad|>": backbone.image_token_id,
            **{f"<|{name}|>": token for name, token in config.special_ids.items()},
        }
        for name in CHAT_TOKENS:
            if name not in self._special:
                raise ModelError(f"{FILE_NAME} lacks the added token {name}: no Qwen3 tokenizer")

    @classmethod
    def load(cls, folder: Path, config: ModelConfig) -> TextTokenizer:
        """From the tokenizer.json of a folder.

        Raises:
            ModelError: it is missing, damaged, or larger than traj_token_start_idx allows.
        """
        path = folder / FILE_NAME
        values = read_json(path)
        try:
            added = {str(t["content"]): int(t["id"]) for t in values.pop("added_tokens", [])}
            # What wraps text in special tokens goes too: ids are placed here, by name.
            values.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
            plain = Tokenizer.from_str(json.dumps(values))
        except Exception as error:  # the tokenizers library raises bare Exception
            reason = " ".join(str(error).split())
            raise ModelError(
                f"{path} is no tokenizer of the tokenizers library: {reason}"
            ) from None
        ids = [*plain.get_vocab().values(), *added.values()]
        low, high = min(ids, default=0), max(ids, default=0)
        if low < 0 or high >= config.trajectory_first_id:
            raise ModelError(
                f"{path} holds ids from {low} to {high}, but the checkpoint's trajectory tokens "
                f"begin at {config.trajectory_first_id}: it is another tokenizer"
            )
        return cls(plain, added, config)

    def special(self, name: str) -> int:
        """Id of a special token such as "<|im_start|>"."""
        return self._special[name]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, never one of an added token."""
        return self._plain.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; those of special and trajectory tokens are left out."""
        return self._plain.decode([i for i in ids if self._plain.id_to_token(i) is not None])


def tokenizer_folder(model_folder: Path, backbone: Path | None, named: Path | None) -> Path:
    """The folder with tokenizer.json: the one the user names, the checkpoint's, the backbone's.

    Raises:
        ModelError: none has one.
    """
    for folder in (named, model_folder, backbone):
        if folder is not None and (folder / FILE_NAME).is_file():
            return folder
        if folder is named and named is not None:
            raise ModelError(f"tokenizer folder {named} has no {FILE_NAME}")
    raise ModelError(
        f"{model_folder} has no {FILE_NAME} and its backbone none either: the released checkpoint "
        "ships none; name a folder with Qwen3-VL's by --tokenizer (model.tokenizer_path)"
    )
