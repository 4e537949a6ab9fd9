"""A stock transformers model with our operators computes what it did, and what ours computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model import qwen_patches
from alpamayo_ros.model.qwen_patches import PATCHES, apply_qwen3vl_patches
from alpamayo_ros.model.rollout import Rollout

from .test_transformers_oracle import (
    GRID_THW,
    GRIDS,
    IMAGE,
    make_prompt,
    our_logits,
    our_rollout,
    patches,
    prompt_ids,
    stock_model,
)

DECODED = [33, 444, 21, 499, 77]


@pytest.fixture(scope="module")
def ours() -> Rollout:
    return our_rollout(Operators())


@pytest.fixture(scope="module")
def stock_logits(ours: Rollout) -> torch.Tensor:
    """Of the model before any patch."""
    return logits_of(stock_model(ours))


@pytest.fixture
def patched(ours: Rollout, stock_logits: torch.Tensor) -> Iterator[Any]:
    """The stock model with the patches; they are taken back, for the tests that want it stock."""
    before = [getattr(owner, name) for owner, name, _ in PATCHES]
    model = stock_model(ours)
    apply_qwen3vl_patches(model)
    yield model
    for (owner, name, _), original in zip(PATCHES, before):
        setattr(owner, name, original)


def logits_of(model: Any, ids: np.ndarray | None = None) -> torch.Tensor:
    """Logits (S, V) after each token of prompt and decoded tokens."""
    ids = np.concatenate([prompt_ids(), DECODED]) if ids is None else ids
    with torch.no_grad():
        return model(
            input_ids=torch.from_numpy(ids)[None],
            pixel_values=torch.cat([patches(grid) for grid in GRIDS]),
            image_grid_thw=GRID_THW,
        ).logits[0]


def test_the_patched_model_computes_what_the_stock_one_did(
    patched: Any, stock_logits: torch.Tensor
) -> None:
    torch.testing.assert_close(logits_of(patched), stock_logits, atol=2e-5, rtol=0)


def test_the_patched_model_computes_what_ours_does(patched: Any, ours: Rollout) -> None:
    prompt = make_prompt()
    theirs = logits_of(patched)[len(prompt.ids) - 1 :]
    theirs[:, 500:900] = -torch.inf  # the trajectory bins, masked in ours
    torch.testing.assert_close(our_logits(ours, prompt, DECODED), theirs, atol=2e-5, rtol=0)


def test_tokens_decoded_through_its_cache_are_those_of_the_whole(patched: Any) -> None:
    ids = torch.from_numpy(prompt_ids())[None]
    pixels = torch.cat([patches(grid) for grid in GRIDS])
    generated = patched.generate(
        input_ids=ids, pixel_values=pixels, image_grid_thw=GRID_THW,
        do_sample=False, max_new_tokens=4, min_new_tokens=4,
    )[0].numpy()  # fmt: skip
    whole = logits_of(patched, generated)
    np.testing.assert_array_equal(
        whole[len(ids[0]) - 1 : -1].argmax(-1).numpy(), generated[len(ids[0]) :]
    )


def test_a_padded_batch_is_masked_as_in_the_stock_model(patched: Any, ours: Rollout) -> None:
    ids = torch.randint(20, 500, (2, 9), generator=torch.Generator().manual_seed(0))
    seen = torch.ones_like(ids)
    seen[0, :4] = 0  # left padding
    with torch.no_grad():
        batch = patched(input_ids=ids, attention_mask=seen).logits[0, 4:]
        alone = patched(input_ids=ids[:1, 4:]).logits[0]
    torch.testing.assert_close(batch, alone, atol=2e-5, rtol=0)


def test_every_operator_of_the_table_is_reached(
    patched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, reached = Operators(), set()

    def counted(name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            reached.add(name)
            return getattr(table, name)(*args, **options)

        return call

    spies = Operators(**{field.name: counted(field.name) for field in fields(Operators)})
    monkeypatch.setattr(qwen_patches, "_operators_of", lambda device: spies)
    logits_of(patched)
    assert reached == {"attention", "rms_norm", "rotary", "swiglu"}


@pytest.mark.parametrize("change", [-1, 1])
def test_features_that_do_not_match_the_placeholders_are_refused(patched: Any, change: int) -> None:
    ids = prompt_ids()
    count = int((ids == IMAGE).sum())
    ids = ids[np.flatnonzero(ids == IMAGE)[0] + 1 :] if change < 0 else np.append(ids, IMAGE)
    message = f"Image features and image tokens do not match: tokens: {count + change}, "
    with pytest.raises(ValueError, match=message + f"features {count}"):
        patched.model.get_placeholder_mask(
            torch.from_numpy(ids)[None], torch.zeros(1, len(ids), 96), torch.zeros(count, 96)
        )


def test_placeholders_are_found_in_embeddings_too(patched: Any) -> None:
    ids = torch.from_numpy(prompt_ids())[None]
    by_ids, _ = patched.model.get_placeholder_mask(ids, patched.get_input_embeddings()(ids))
    by_rows, _ = patched.model.get_placeholder_mask(None, patched.get_input_embeddings()(ids))
    assert torch.equal(by_ids, by_rows)
    assert int(by_ids[..., 0].sum()) == sum(rows * columns for rows, columns in GRIDS)
