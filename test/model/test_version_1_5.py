"""Version 1.5: any set of cameras, and questions about the images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from alpamayo_ros.model import AlpamayoR1, ModelError, PlanCancelled
from alpamayo_ros.model.features import CameraFrame, join
from alpamayo_ros.model.prompt import Prompt
from alpamayo_ros.model.sampling import forced
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import Snapshot

QUESTION = "What is ahead?"


@pytest.fixture(scope="module")
def model(quick_model_1_5: AlpamayoR1) -> AlpamayoR1:
    return quick_model_1_5


def snapshot(*camera_ids: int) -> Snapshot:
    """Of these cameras; the frames of a camera do not depend on the others."""
    whole = fake_snapshot(0)
    count = len(camera_ids)
    frames = tuple(fake_snapshot(camera_id).frames[0] for camera_id in camera_ids)
    stamps_ns = np.repeat(whole.frame_stamps_ns[:1], count, axis=0)
    return replace(whole, frames=frames, camera_ids=camera_ids, frame_stamps_ns=stamps_ns)


@pytest.mark.parametrize("camera_ids", [(1,), (0, 1), (0, 1, 2, 6), (0, 1, 2, 3, 4, 5, 6)])
def test_a_plan_is_made_for_any_set_of_cameras(model: AlpamayoR1, camera_ids: tuple) -> None:
    model.reset()
    before = model.features.encoded
    plan = model.plan(snapshot(*camera_ids), max_new_tokens=4)
    assert plan.finite
    assert model.features.encoded - before == 4 * len(camera_ids)


def test_the_same_images_of_another_camera_are_another_scene(model: AlpamayoR1) -> None:
    front, rear = snapshot(1), replace(snapshot(1), camera_ids=(4,))
    plans = [model.plan(s, greedy=True, max_new_tokens=4) for s in (front, rear)]
    assert np.abs(plans[0].samples - plans[1].samples).max() > 1e-4


def test_a_camera_that_has_no_name_is_refused(model: AlpamayoR1) -> None:
    with pytest.raises(ModelError, match=r"wants some of the cameras \(0, .*, 6\), got \(1, 7\)"):
        model.plan(snapshot(1, 7))


def logits_without_a_cache(
    model: AlpamayoR1, cameras: Snapshot, token_ids: tuple[int, ...]
) -> list[torch.Tensor]:
    """The logits that each token was chosen from, with the whole sequence anew for each."""
    frames = [
        CameraFrame(camera_id, int(stamp_ns), rgb)
        for camera_id, images, stamps_ns in zip(
            cameras.camera_ids, cameras.frames, cameras.frame_stamps_ns
        )
        for rgb, stamp_ns in zip(images, stamps_ns)
    ]
    prompt = model.prompts.question(model._layout(frames), QUESTION)
    logits = []
    with torch.no_grad():
        features = join(model.features.encode(frames, lambda: None))
        for count in range(len(token_ids)):
            row = np.array(token_ids[:count], np.int64)
            places = prompt.next_position + np.tile(np.arange(count), (3, 1))
            longer = Prompt(
                np.append(prompt.ids, row),
                np.concatenate([prompt.positions, places], axis=1),
                prompt.image_indices,
                -1,
                prompt.next_position + count,
            )
            cache = model.rollout.cache(1, len(longer.ids))
            logits.append(model.rollout.prefill(longer, longer.ids, features, cache))
    return logits


def test_an_answer_is_the_one_of_the_whole_sequence_token_by_token(
    model: AlpamayoR1, monkeypatch: pytest.MonkeyPatch
) -> None:
    cameras, seen = snapshot(0, 1), []

    def greedy(step: int, logits: torch.Tensor) -> list[int]:
        seen.append(logits.clone())
        return logits.argmax(-1).tolist()

    monkeypatch.setattr("alpamayo_ros.model.sampling.greedy", greedy)
    answer = model.answer(cameras, QUESTION, greedy=True, max_new_tokens=5)
    assert len(answer.token_ids) == 5
    expected = logits_without_a_cache(model, cameras, answer.token_ids)
    torch.testing.assert_close(torch.cat(seen), torch.cat(expected), atol=1e-5, rtol=0)
    assert answer.text == model.tokenizer.decode(answer.token_ids).strip()


@pytest.mark.parametrize("name", ["answer_end", "im_end"])
def test_an_answer_ends_with_its_end_token(
    model: AlpamayoR1, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = model.config.special_ids.get(name, model.rollout.end_of_text)
    words = model.tokenizer.encode("Two cars.")
    given = np.array([[*words, end, 300]])
    monkeypatch.setattr("alpamayo_ros.model.sampling.greedy", forced(given))
    answer = model.answer(snapshot(1), QUESTION, greedy=True, max_new_tokens=20)
    assert answer.token_ids == (*words, end)
    assert (answer.text, answer.truncated) == ("Two cars.", False)


def test_an_answer_that_is_cut_off_is_flagged(
    model: AlpamayoR1, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alpamayo_ros.model.sampling.greedy", forced(np.full((1, 9), 300)))
    answer = model.answer(snapshot(1), QUESTION, greedy=True, max_new_tokens=3)
    assert answer.token_ids == (300, 300, 300)
    assert answer.truncated


def test_the_answer_depends_on_the_question_and_the_seed(model: AlpamayoR1) -> None:
    cameras = snapshot(1)
    one, same, other, reseeded = (
        model.answer(cameras, question, seed=seed, max_new_tokens=8).token_ids
        for question, seed in ((QUESTION, 0), (QUESTION, 0), ("Who yields?", 0), (QUESTION, 1))
    )
    assert one == same
    assert one != other
    assert one != reseeded


def test_r1_answers_no_questions(quick_model: AlpamayoR1) -> None:
    with pytest.raises(ModelError, match=r"answers no questions: load one of version 1\.5"):
        quick_model.answer(fake_snapshot(0), QUESTION)


def test_a_question_without_end_is_refused(model: AlpamayoR1) -> None:
    with pytest.raises(ModelError, match="the question has 2001 characters, at most 2000"):
        model.answer(snapshot(1), "?" * 2001)


def test_an_answer_can_be_given_up(model: AlpamayoR1) -> None:
    with pytest.raises(PlanCancelled):
        model.answer(snapshot(1), QUESTION, should_stop=lambda: True)
