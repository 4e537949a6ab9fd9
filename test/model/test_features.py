"""Features of images are reused exactly, and only for the same image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from alpamayo_ros.model import AlpamayoR1, PlanCancelled
from alpamayo_ros.model.features import CAPACITY, CameraFrame
from alpamayo_ros.model.images import resize_frame
from alpamayo_ros.model.rollout import Rollout
from alpamayo_ros.types import FRAME_OFFSETS_NS, STEP_NS, Plan, Snapshot

T0_NS = 1_700_000_000_000_000_000
STOP = 10


@pytest.fixture(scope="module")
def model(quick_model: AlpamayoR1) -> AlpamayoR1:
    return quick_model


def camera_frame(camera: int, stamp_ns: int) -> np.ndarray:
    """A frame (64, 96, 3) that its camera and stamp alone determine."""
    generator = np.random.default_rng([camera, stamp_ns])
    return generator.integers(0, 256, (64, 96, 3)).astype(np.uint8)


def snapshot(tick: int) -> Snapshot:
    """The tick-th of a stream 0.1 s apart, on a straight at 8 m/s."""
    t0_ns = T0_NS + tick * STEP_NS
    stamps_ns = np.array([[t0_ns + offset for offset in FRAME_OFFSETS_NS]] * 4)
    xyz = np.zeros((16, 3))
    xyz[:, 0] = 0.8 * np.arange(-15, 1)
    return Snapshot(
        frames=tuple(
            np.stack([camera_frame(camera, int(stamp_ns)) for stamp_ns in stamps_ns[0]])
            for camera in range(4)
        ),
        camera_ids=(0, 1, 2, 6),
        frame_stamps_ns=stamps_ns,
        t0_ns=t0_ns,
        ego_history_xyz=xyz,
        ego_history_rot=np.tile(np.eye(3), (16, 1, 1)),
    )


@pytest.fixture
def images(model: AlpamayoR1) -> Iterator[list[int]]:
    """How many images each call of the vision model got: counted there, not by the cache."""
    calls: list[int] = []
    visual = model.network.vlm.model.visual
    hook = visual.register_forward_pre_hook(lambda _, arguments: calls.append(len(arguments[1])))
    yield calls
    hook.remove()


def test_ten_ticks_encode_four_images_each_and_plan_as_without_reuse(
    model: AlpamayoR1, images: list[int]
) -> None:
    def plan_and_count(tick: int) -> tuple[Plan, int]:
        before = sum(images)
        plan = model.plan(snapshot(tick), max_new_tokens=8)
        return plan, sum(images) - before

    model.reset()
    reused, counts = zip(*map(plan_and_count, range(STOP)))
    assert counts == (16,) + (4,) * (STOP - 1)
    for tick in range(STOP):
        model.reset()
        alone, count = plan_and_count(tick)
        assert count == 16
        assert alone.token_ids == reused[tick].token_ids
        np.testing.assert_allclose(alone.samples, reused[tick].samples, atol=1e-4, rtol=0)


def test_six_samples_prefill_once(model: AlpamayoR1, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    prefill = Rollout.prefill

    def counted(self: Rollout, *args: object) -> torch.Tensor:
        calls.append(1)
        return prefill(self, *args)

    monkeypatch.setattr(Rollout, "prefill", counted)
    model.plan(snapshot(0), num_samples=6, max_new_tokens=4)
    assert len(calls) == 1


def test_frames_encoded_as_they_arrive_leave_nothing_to_encode(model: AlpamayoR1) -> None:
    model.reset()
    expected = model.plan(snapshot(0), max_new_tokens=8)
    model.reset()
    arrived = [
        CameraFrame(camera, int(stamp_ns), rgb)
        for camera, stamps_ns, frames in zip(
            snapshot(0).camera_ids, snapshot(0).frame_stamps_ns, snapshot(0).frames
        )
        for stamp_ns, rgb in zip(stamps_ns, frames)
    ]
    assert model.encode_ahead(arrived[:10]) == 10
    assert model.encode_ahead(arrived) == 6
    before = model.features.encoded
    plan = model.plan(snapshot(0), max_new_tokens=8)
    assert model.features.encoded == before
    assert plan.token_ids == expected.token_ids
    np.testing.assert_allclose(plan.samples, expected.samples, atol=1e-4, rtol=0)


def test_encoding_ahead_is_given_up_before_the_next_image(model: AlpamayoR1) -> None:
    model.reset()
    calls = iter([False, False, True])
    before = model.features.encoded
    with pytest.raises(PlanCancelled):
        model.encode_ahead([frame(0, stamp_ns) for stamp_ns in range(5)], lambda: next(calls))
    assert model.features.encoded - before == 2


def test_a_frame_of_camera_size_is_resized_once(
    model: AlpamayoR1, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.reset()
    calls: list[tuple[int, ...]] = []

    def counted(rgb: np.ndarray, *limits: int) -> np.ndarray:
        calls.append(rgb.shape)
        return resize_frame(rgb, *limits)

    monkeypatch.setattr("alpamayo_ros.model.features.resize_frame", counted)
    large = CameraFrame(0, 5, np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8))
    assert encoded(model, large) == 1
    assert encoded(model, large) == 0
    assert calls == [(200, 300, 3)]


def frame(camera: int, stamp_ns: int, seed: int = 0) -> CameraFrame:
    rgb = np.random.default_rng(seed).integers(0, 256, (64, 96, 3)).astype(np.uint8)
    return CameraFrame(camera, stamp_ns, rgb)


def encoded(model: AlpamayoR1, *frames: CameraFrame) -> int:
    """How many of the frames were encoded anew."""
    before = model.features.encoded
    with torch.no_grad():
        model.features.encode(frames, lambda: None)
    return model.features.encoded - before


def test_another_camera_stamp_or_content_is_encoded_anew(model: AlpamayoR1) -> None:
    model.reset()
    assert encoded(model, frame(0, 5)) == 1
    assert encoded(model, frame(0, 5)) == 0
    assert encoded(model, frame(1, 5), frame(0, 6), frame(0, 5, seed=1)) == 3


def test_an_array_that_was_overwritten_is_encoded_anew(model: AlpamayoR1) -> None:
    model.reset()
    once = frame(0, 5)
    assert encoded(model, once) == 1
    once.rgb[0, 0, 0] ^= 255
    assert encoded(model, once) == 1


def test_reset_forgets(model: AlpamayoR1) -> None:
    encoded(model, frame(0, 5))
    model.reset()
    assert encoded(model, frame(0, 5)) == 1


def test_images_in_parts_have_the_features_of_the_batch(
    model: AlpamayoR1, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [frame(0, stamp_ns, seed=stamp_ns) for stamp_ns in range(5)]
    visual = model.network.vlm.model.visual
    features = []
    for limit in (None, 2 * 24 * 48):  # two images of 24 patches and the width 48
        monkeypatch.setattr(visual, "operators", replace(visual.operators, values_at_once=limit))
        model.reset()
        checks: list[int] = []
        with torch.no_grad():
            features.append(model.features.encode(frames, lambda: checks.append(1)))  # noqa: B023
        assert len(checks) == (1 if limit is None else 3)
    for whole, part in zip(*features):
        torch.testing.assert_close(part.tokens, whole.tokens, atol=1e-5, rtol=0)


def test_the_oldest_features_go_when_there_are_too_many(model: AlpamayoR1) -> None:
    model.reset()
    encoded(model, *(frame(0, stamp_ns) for stamp_ns in range(CAPACITY + 1)))
    assert encoded(model, frame(0, 1)) == 0
    assert encoded(model, frame(0, 0)) == 1
