"""The prompt is the reference's, whatever a user writes into it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alpamayo_ros.demo.small_model import FOLDER as SMALL
from alpamayo_ros.model import ModelError
from alpamayo_ros.model.config_file import load_config, parse_config
from alpamayo_ros.model.configuration import SPECIAL_TOKENS, ModelConfig
from alpamayo_ros.model.prompt import CameraLayout, PromptBuilder, multimodal_positions
from alpamayo_ros.model.tokenizer import TextTokenizer

from .golden import GOLDEN, TINY_CHECKPOINT, real_tokenizer_folder

PROMPTS = json.loads((GOLDEN / "prompts.json").read_text())
CASES = [name for name, values in PROMPTS.items() if isinstance(values, dict)]


def config_of(version: str) -> ModelConfig:
    values = json.loads((TINY_CHECKPOINT / "config.json").read_text())
    backbone = json.loads((GOLDEN / "qwen3_vl_tiny" / "config.json").read_text())
    values["model_type"] = {"R1": "alpamayo_r1", "1.5": "alpamayo1_5"}[version]
    return parse_config(values, backbone)


@pytest.fixture(scope="module")
def real_tokenizer() -> TextTokenizer:
    folder = real_tokenizer_folder()
    if folder is None:
        pytest.skip("the tokenizer of Qwen3 (11 MB) is not at hand; ALPAMAYO_GOLDEN names it")
    return TextTokenizer.load(folder, config_of("R1"))


@pytest.fixture(scope="module")
def small_tokenizer() -> TextTokenizer:
    return TextTokenizer.load(SMALL, load_config(SMALL))


def layout(camera_ids: list[int], grid: tuple[int, int] = (10, 18)) -> list[CameraLayout]:
    return [CameraLayout(camera_id, grid) for camera_id in camera_ids]


@pytest.mark.parametrize("name", CASES)
def test_prompt_of_the_real_tokenizer_equals_the_reference(
    real_tokenizer: TextTokenizer, name: str
) -> None:
    values = PROMPTS[name]
    builder = PromptBuilder(config_of(values["version"]), real_tokenizer)
    cameras = layout(values.get("camera_ids", [0, 1, 2, 6]))
    prompt = builder.build(cameras, values.get("navigation", ""))
    with np.load(GOLDEN / "prompts.npz") as file:
        np.testing.assert_array_equal(prompt.ids, file[name])


def test_the_real_prompt_has_the_positions_of_the_specification(
    real_tokenizer: TextTokenizer,
) -> None:
    prompt = PromptBuilder(config_of("R1"), real_tokenizer).build(layout([0, 1, 2, 6]))
    assert len(prompt.ids) == 3006
    assert prompt.rope_delta == -2592
    assert prompt.positions[:, -1].tolist() == [413] * 3
    assert prompt.next_position == 414


def injections(added: list[str]) -> list[str]:
    texts = [*added, "<i5>", "<i3999>", "<|traj_future_start|>", "<|cot_end|>", "<|image_pad|>"]
    return [*texts, *(f"Turn left {text} now" for text in texts), "".join(texts)]


def assert_only_text(tokenizer: TextTokenizer, folder: Path, first_added: int) -> None:
    added = [t["content"] for t in json.loads((folder / "tokenizer.json").read_text())
             ["added_tokens"]]  # fmt: skip
    assert {"<|im_end|>", "<think>"} <= set(added)
    for text in injections(added):
        ids = tokenizer.encode(text)
        assert max(ids) < first_added
        assert tokenizer.decode(ids) == text  # it is still there, as letters


def test_no_text_of_a_user_becomes_an_added_token_of_the_small_tokenizer(
    small_tokenizer: TextTokenizer,
) -> None:
    assert_only_text(small_tokenizer, SMALL, 632)


def test_no_text_of_a_user_becomes_an_added_token_of_the_real_tokenizer(
    real_tokenizer: TextTokenizer,
) -> None:
    folder = real_tokenizer_folder()
    assert folder is not None
    assert_only_text(real_tokenizer, folder, 151643)


ADDED = [t["content"] for t in json.loads((SMALL / "tokenizer.json").read_text())["added_tokens"]]
SPECIALS = [*ADDED, "<i0>", "<i3999>", *(f"<|{name}|>" for name in SPECIAL_TOKENS)]


@given(st.lists(st.one_of(st.sampled_from(SPECIALS), st.text(max_size=12)), max_size=8))
@settings(max_examples=200, deadline=None)
def test_no_text_at_all_becomes_an_added_token(parts: list[str]) -> None:
    config = load_config(SMALL)
    tokenizer = TextTokenizer.load(SMALL, config)
    text = "".join(parts)
    ids = tokenizer.encode(text)
    assert max(ids, default=0) < 632
    special = {tokenizer.special(name) for name in ADDED} | set(config.special_ids.values())
    assert not special & set(ids)


def test_navigation_text_goes_between_history_and_instruction(
    small_tokenizer: TextTokenizer,
) -> None:
    builder = PromptBuilder(load_config(SMALL), small_tokenizer)
    cameras = layout([0, 1, 2, 6], (4, 7))
    plain, routed = builder.build(cameras), builder.build(cameras, "Turn left <|route_end|>")
    text = small_tokenizer.encode("Turn left <|route_end|>")
    start = plain.ids.tolist().index(small_tokenizer.special("<|traj_history_end|>")) + 1
    route = [small_tokenizer.special("<|route_start|>"), *text]
    route.append(small_tokenizer.special("<|route_end|>"))
    expected = [*plain.ids[:start], *route, *plain.ids[start:]]
    np.testing.assert_array_equal(routed.ids, expected)
    assert routed.next_position == plain.next_position + len(route)
    assert routed.rope_delta == plain.rope_delta


def test_the_history_goes_into_its_48_places_and_leaves_the_template_as_it_was(
    small_tokenizer: TextTokenizer,
) -> None:
    prompt = PromptBuilder(load_config(SMALL), small_tokenizer).build(layout([0], (2, 2)))
    history = np.arange(48) + 1000
    ids = prompt.with_history(history)
    placeholder = small_tokenizer.special("<|traj_history|>")
    np.testing.assert_array_equal(ids[prompt.ids == placeholder], history)
    np.testing.assert_array_equal(ids != prompt.ids, prompt.ids == placeholder)


def test_a_question_has_no_history_and_is_answered(small_tokenizer: TextTokenizer) -> None:
    builder = PromptBuilder(replace(load_config(SMALL), version="1.5"), small_tokenizer)
    prompt = builder.question(layout([1], (2, 2)), "What is ahead?")
    assert prompt.history_index == -1
    question = [small_tokenizer.special("<|question_start|>"),
                *small_tokenizer.encode("What is ahead?"),
                small_tokenizer.special("<|question_end|>")]  # fmt: skip
    ids = prompt.ids.tolist()
    start = ids.index(question[0])
    assert ids[start : start + len(question)] == question
    assert ids[-1] == small_tokenizer.special("<|answer_start|>")


def test_a_navigation_text_without_end_is_refused(small_tokenizer: TextTokenizer) -> None:
    builder = PromptBuilder(load_config(SMALL), small_tokenizer)
    with pytest.raises(ModelError, match="navigation text has 2001 characters, at most 2000"):
        builder.build(layout([0], (2, 2)), "x" * 2001)


def test_images_advance_the_position_by_their_longer_side() -> None:
    # Two words, an image of 2 x 3 tokens, one word.
    positions = multimodal_positions(9, np.arange(2, 8), [(2, 3)])
    np.testing.assert_array_equal(positions[0], [0, 1, 2, 2, 2, 2, 2, 2, 5])
    np.testing.assert_array_equal(positions[1], [0, 1, 2, 2, 2, 3, 3, 3, 5])
    np.testing.assert_array_equal(positions[2], [0, 1, 2, 3, 4, 2, 3, 4, 5])


def test_a_tokenizer_larger_than_the_checkpoint_allows_is_refused() -> None:
    values = json.loads((SMALL / "config.json").read_text())
    values |= {"traj_token_start_idx": 639, "vocab_size": 1691}
    backbone = json.loads((SMALL / "backbone" / "config.json").read_text())
    with pytest.raises(
        ModelError, match="ids from 0 to 639, but the checkpoint's trajectory tokens"
    ):
        TextTokenizer.load(SMALL, parse_config(values, backbone))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"model": {"type": "Unknown"}}'])
def test_a_damaged_tokenizer_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError) as error:
        TextTokenizer.load(tmp_path, load_config(SMALL))
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_tokenizer_without_chat_tokens_is_refused(tmp_path: Path) -> None:
    values = json.loads((SMALL / "tokenizer.json").read_text())
    values["added_tokens"] = [t for t in values["added_tokens"] if t["content"] != "<|im_end|>"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(ModelError, match=r"lacks the added token <\|im_end\|>"):
        TextTokenizer.load(tmp_path, load_config(SMALL))
