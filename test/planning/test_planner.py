"""Frames that are encoded ahead are done once, are the plan's, and change nothing in it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.model import ModelError
from alpamayo_ros.planning.planner import (
    Planner,
    PlannerSettings,
    UnusableFrameError,
    load_model,
)
from alpamayo_ros.sensing.ahead import frames_ahead
from alpamayo_ros.sensing.sampler import Sampler, SamplerSettings
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import CAMERA_ROLES, Frame

from ..sensing.streams import MS, Circle, events, rig, stamps

SETTINGS = PlannerSettings(max_new_tokens=3)


def image(role: str, stamp_ns: int) -> Frame:
    """A camera's frame (64, 96, 3), which its role and stamp determine."""
    rng = np.random.default_rng([CAMERA_ROLES.index(role), stamp_ns])
    return Frame(stamp_ns, "rgb8", rng.bytes(64 * 96 * 3), 64, 96, 96 * 3)


class Drive:
    """Two plans a second on cameras of a rate, with what is encoded between them."""

    def __init__(self, ahead: bool, rate_hz: float) -> None:
        self.planner = Planner(load_demo_model(), SETTINGS)
        self.encoded_ahead: list[int] = []  # images, before each plan
        self.encoded_at_once: list[int] = []
        self.plans = []
        sampler = Sampler(SamplerSettings(period_ns=500 * MS))
        before = 0
        for message in events(rig(rate_hz, duration_s=3.2), stamps(50, duration_s=3.2)):
            now_ns, role = message.arrival_ns, message.source
            if role == "odometry":
                sampler.add_pose(Circle().pose(message.stamp_ns), "map", "base_link", now_ns)
            else:
                sampler.add_frame(role, image(role, message.stamp_ns), now_ns)
            selection = sampler.take(now_ns)
            if selection is not None:
                self.encoded_ahead.append(self.encoded - before)
                before = self.encoded
                self.plans.append(self.planner.decide(selection).plan)
                self.encoded_at_once.append(self.encoded - before)
                before = self.encoded
            while ahead and self.planner.encode_ahead(frames_ahead(sampler, now_ns)):
                pass
        self.planner.close()

    @property
    def encoded(self) -> int:
        return self.planner.model.features.encoded


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("rate_hz", [10, 30])
def test_a_plan_finds_its_frames_encoded_and_is_the_same(rate_hz: float) -> None:
    plain, ahead = Drive(False, rate_hz), Drive(True, rate_hz)
    count = len(plain.plans)
    assert count >= 3
    assert (plain.encoded_ahead, plain.encoded_at_once) == ([0] * count, [16] * count)
    # The first plan is not foreseen; of the others only the four frames at t0 are left. Of fast
    # cameras no frame is encoded that no plan uses.
    assert ahead.encoded_ahead == [0] + [12] * (count - 1)
    assert ahead.encoded_at_once == [16] + [4] * (count - 1)
    for without, with_ahead in zip(plain.plans, ahead.plans):
        assert without.t0_ns == with_ahead.t0_ns
        assert without.token_ids == with_ahead.token_ids
        # Bit-equal on the machine this was written on; other kernels may round a batch otherwise.
        np.testing.assert_allclose(without.samples, with_ahead.samples, rtol=0, atol=1e-4)


@pytest.fixture(scope="module")
def planner():
    planner = Planner(load_demo_model(), SETTINGS)
    yield planner
    planner.close()


def selection_of(frames: dict[str, tuple[Frame, ...]]) -> Selection:
    rotations = np.tile(np.eye(3), (16, 1, 1))
    return Selection(
        frames["front_wide"][-1].stamp_ns, frames, np.zeros((16, 3)), rotations, np.zeros(3),
        np.array([0.0, 0.0, 0.0, 1.0]), 0.0, "map", "base_link",
    )  # fmt: skip


def four_frames() -> dict[str, tuple[Frame, ...]]:
    return {role: tuple(image(role, k * 100 * MS) for k in range(1, 5)) for role in CAMERA_ROLES}


def test_each_call_encodes_one_frame_and_each_frame_once(planner: Planner) -> None:
    frames = [("front_wide", frame) for frame in four_frames()["front_wide"]]
    before = planner.model.features.encoded
    assert [planner.encode_ahead(frames) for _ in range(5)] == [True] * 4 + [False]
    assert planner.model.features.encoded == before + 4


def test_a_frame_that_is_no_image_is_tried_once_and_the_decision_names_it(
    planner: Planner,
) -> None:
    frames = four_frames()
    broken = Frame(400 * MS, "jpeg", b"\xff\xd8 no image")
    frames["front_tele"] = (*frames["front_tele"][:3], broken)
    before = planner.model.features.encoded
    assert planner.encode_ahead([("front_tele", broken)])
    assert not planner.encode_ahead([("front_tele", broken)])
    assert planner.model.features.encoded == before
    with pytest.raises(UnusableFrameError) as error:
        planner.decide(selection_of(frames))
    assert (error.value.role, error.value.frame) == ("front_tele", broken)


def test_a_reset_forgets_what_was_encoded_ahead(planner: Planner) -> None:
    frame = image("cross_left", 100 * MS)
    assert planner.encode_ahead([("cross_left", frame)])
    planner.reset()
    before = planner.model.features.encoded
    assert planner.encode_ahead([("cross_left", frame)])
    assert planner.model.features.encoded == before + 1


def test_the_demo_model_takes_no_other_tokenizer() -> None:
    with pytest.raises(ModelError, match="has a tokenizer of its own: leave out"):
        load_model("demo", "/a/folder", "cpu", "auto", SETTINGS)
