"""The built-in small model: the same architecture, small, and only by its name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from alpamayo_ros.demo import small_tokenizer
from alpamayo_ros.demo.causes import TEMPLATES
from alpamayo_ros.demo.small_model import FOLDER, load_demo_model
from alpamayo_ros.demo.training.objective import Teacher
from alpamayo_ros.model import AlpamayoR1, ModelError
from alpamayo_ros.model.images import model_size
from alpamayo_ros.sensing.fake import fake_snapshot

ROOT = Path(__file__).parents[2]
MAX_PARAMETERS = 9_000_000


@pytest.fixture(scope="module")
def model() -> AlpamayoR1:
    return load_demo_model()


def test_it_is_small(model: AlpamayoR1) -> None:
    assert sum(p.numel() for p in model.network.parameters()) <= MAX_PARAMETERS


@pytest.mark.parametrize("size", [(320, 576), (1080, 1920), (720, 1280)])
def test_a_wide_frame_becomes_96_by_160(model: AlpamayoR1, size: tuple) -> None:
    assert model_size(*size, *model.pixel_limits) == (96, 160)


def test_its_identity_begins_with_demo(model: AlpamayoR1) -> None:
    assert model.model_id.startswith("demo-")


def test_plans_are_finite_and_their_reasoning_ends_by_itself(model: AlpamayoR1) -> None:
    end = model.config.special_ids["traj_future_start"]
    for seed in range(3):
        plan = model.plan(fake_snapshot(seed), seed=seed, max_new_tokens=64)
        assert plan.finite
        assert len(plan.token_ids[0]) < 64
        assert plan.token_ids[0].count(end) == 1


def test_two_loads_plan_alike(model: AlpamayoR1) -> None:
    plan, again = (m.plan(fake_snapshot(1)) for m in (model, load_demo_model()))
    assert plan.token_ids == again.token_ids
    np.testing.assert_allclose(plan.samples, again.samples, atol=1e-5, rtol=0)


def test_its_weights_are_named_by_their_content(model: AlpamayoR1) -> None:
    assert re.fullmatch(r"demo-small_model@[0-9a-f]{12}\+[0-9a-f]{12}", model.model_id)


def test_its_folder_is_small_and_its_weights_are_bfloat16() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("**/*")) < 20e6
    assert {value.dtype for value in load_file(FOLDER / "model.safetensors").values()} == {
        torch.bfloat16
    }


def test_it_says_one_of_the_demos_sentences_and_fits_the_demos_limit(model: AlpamayoR1) -> None:
    limits = yaml.safe_load((ROOT / "config" / "demo.yaml").read_text())
    most = limits["/**"]["ros__parameters"]["sampling.max_new_tokens"]
    teacher = Teacher(model.config, model.tokenizer)
    longest = max(len(teacher.reasoning_ids(text.format(d=60))) for text in TEMPLATES.values())
    assert longest < most


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ModelError, match="device 'tpu' is not known"):
        load_demo_model(device="tpu")


def test_the_tokenizer_is_the_one_its_sentences_make() -> None:
    made = small_tokenizer.with_added_tokens(small_tokenizer.make_tokenizer())
    assert made == (FOLDER / "tokenizer.json").read_text(encoding="utf-8")


def test_ids_of_tokenizer_and_configuration_join_without_a_gap() -> None:
    tokenizer = json.loads((FOLDER / "tokenizer.json").read_text())
    ids = sorted([*tokenizer["model"]["vocab"].values(), *(t["id"] for t in
                  tokenizer["added_tokens"])])  # fmt: skip
    config = json.loads((FOLDER / "config.json").read_text())
    assert ids == list(range(config["traj_token_start_idx"]))


@pytest.mark.parametrize(
    "text",
    [
        "Slow down because the vehicle ahead is slower in 25 m.",
        "Turn left onto De La Cruz Boulevard in 40m",
        "Grüße, 東京!",
    ],
)
def test_any_text_survives_the_tokenizer(model: AlpamayoR1, text: str) -> None:
    assert model.tokenizer.decode(model.tokenizer.encode(text)) == text


def test_a_driving_sentence_is_about_a_token_a_word(model: AlpamayoR1) -> None:
    words = "Keep the lane because the road bends to the left."
    assert len(model.tokenizer.encode(words)) == len(words.split()) + 1  # and the full stop
