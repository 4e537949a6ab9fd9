"""What a caller of `plan` may count on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from alpamayo_ros.model import AlpamayoR1, ModelError, PlanCancelled
from alpamayo_ros.model.language import Decoder
from alpamayo_ros.model.rollout import Rollout
from alpamayo_ros.model.samples import medoid
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import Snapshot

from .golden import load_rollout


@pytest.fixture(scope="module")
def model(quick_model: AlpamayoR1) -> AlpamayoR1:
    return quick_model


SNAPSHOT = fake_snapshot(0)
STAGES = ["prepare", "vision", "prefill", "reasoning", "expert", "total"]


def test_a_plan_says_how_it_came_about(model: AlpamayoR1) -> None:
    plan = model.plan(SNAPSHOT, num_samples=3, seed=5, max_new_tokens=8)
    assert plan.samples.shape == (3, 64, 3)
    assert plan.actions.shape == (3, 64, 2)
    assert plan.samples.dtype == plan.actions.dtype == np.float32
    assert plan.finite
    assert (plan.t0_ns, plan.seed, plan.device, plan.dtype) == (SNAPSHOT.t0_ns, 5, "cpu", "float32")
    assert plan.model_id == model.model_id
    assert list(plan.timing_ms) == STAGES
    stages = sum(plan.timing_ms[stage] for stage in STAGES[:-1])
    assert plan.timing_ms["total"] == pytest.approx(stages)
    assert all(ids[-1] == model.config.special_ids["traj_future_start"] for ids in plan.token_ids)
    np.testing.assert_array_equal(plan.waypoints, plan.samples[plan.chosen])


def test_a_decision_does_not_depend_on_earlier_ones(model: AlpamayoR1) -> None:
    first = model.plan(SNAPSHOT, num_samples=2, seed=1, max_new_tokens=8)
    model.plan(fake_snapshot(1), num_samples=1, seed=2, max_new_tokens=20)
    again = model.plan(SNAPSHOT, num_samples=2, seed=1, max_new_tokens=8)
    assert again.token_ids == first.token_ids
    np.testing.assert_allclose(again.samples, first.samples, atol=1e-5, rtol=0)


def test_seed_and_t0_change_the_decision(model: AlpamayoR1) -> None:
    plan = model.plan(SNAPSHOT, seed=0, max_new_tokens=4)
    other = model.plan(SNAPSHOT, seed=1, max_new_tokens=4)
    assert np.abs(plan.samples - other.samples).max() > 1e-2


def test_samples_stay_in_the_order_of_their_noise(model: AlpamayoR1) -> None:
    noise = np.random.default_rng(0).normal(size=(3, 64, 2)).astype(np.float32)
    end = model.config.special_ids["traj_future_start"]
    plan = model.plan(SNAPSHOT, 3, noise=noise, tokens=np.full((3, 1), end))
    for sample in range(3):
        single = model.plan(SNAPSHOT, noise=noise[sample : sample + 1], tokens=np.array([[end]]))
        np.testing.assert_allclose(single.samples[0], plan.samples[sample], atol=1e-4, rtol=0)


def test_samples_of_unequal_reasoning_are_what_each_would_be_alone(model: AlpamayoR1) -> None:
    noise = np.random.default_rng(0).normal(size=(2, 64, 2)).astype(np.float32)
    end = model.config.special_ids["traj_future_start"]
    tokens = np.array([[300, end, -1, -1], [301, 302, 303, end]])
    plan = model.plan(SNAPSHOT, 2, noise=noise, tokens=tokens)
    short = model.plan(SNAPSHOT, noise=noise[:1], tokens=tokens[:1, :2])
    long = model.plan(SNAPSHOT, noise=noise[1:], tokens=tokens[1:])
    np.testing.assert_allclose(plan.samples[0], short.samples[0], atol=1e-4, rtol=0)
    np.testing.assert_allclose(plan.samples[1], long.samples[0], atol=1e-4, rtol=0)
    assert plan.token_ids == ((300, end), (301, 302, 303, end))


def test_forced_reasoning_without_an_end_is_closed_and_flagged(model: AlpamayoR1) -> None:
    end, cot_end = (model.config.special_ids[n] for n in ("traj_future_start", "cot_end"))
    plan = model.plan(SNAPSHOT, 2, tokens=np.array([[300, cot_end, -1], [301, cot_end, end]]))
    assert plan.token_ids == ((300, cot_end, end), (301, cot_end, end))
    assert plan.truncated == (True, False)


def test_the_chat_end_token_ends_the_text_and_is_flagged(model: AlpamayoR1) -> None:
    end = model.config.special_ids["traj_future_start"]
    im_end = model.tokenizer.special("<|im_end|>")
    plan = model.plan(SNAPSHOT, 2, tokens=np.array([[300, im_end, -1], [302, 303, end]]))
    assert plan.token_ids == ((300, im_end, end), (302, 303, end))
    assert plan.truncated[0]


@pytest.mark.parametrize("more", [301, 302])
def test_given_tokens_behind_an_end_are_refused_by_name(model: AlpamayoR1, more: int) -> None:
    end = model.config.special_ids["traj_future_start"]
    im_end = model.tokenizer.special("<|im_end|>")
    for ending in (end, im_end):
        message = f"tokens: a row goes on behind the token {ending}, which ends it: pad with -1"
        with pytest.raises(ModelError, match=message):
            model.plan(SNAPSHOT, 2, tokens=np.array([[300, ending, more], [302, 303, end]]))
    with pytest.raises(ModelError, match=f"behind the token {end}"):
        model.plan(SNAPSHOT, tokens=np.array([[300, end, end]]))
    written_out = model.plan(SNAPSHOT, tokens=np.array([[300, im_end, end]]))
    assert written_out.token_ids == ((300, im_end, end),)


def test_the_text_ends_at_the_end_of_the_chain_of_causation(model: AlpamayoR1) -> None:
    end, cot_end = (model.config.special_ids[n] for n in ("traj_future_start", "cot_end"))
    text = model.tokenizer.encode("Slow down because the road is wet.")
    more = model.tokenizer.encode(" never said")
    plan = model.plan(SNAPSHOT, tokens=np.array([[*text, cot_end, *more, end]]))
    assert plan.reasoning == "Slow down because the road is wet."
    assert plan.truncated == (False,)


def test_reasoning_without_its_own_end_token_is_flagged(model: AlpamayoR1) -> None:
    end = model.config.special_ids["traj_future_start"]
    assert model.plan(SNAPSHOT, tokens=np.array([[300, end]])).truncated == (True,)


def test_navigation_text_changes_the_plan_and_is_recorded(model: AlpamayoR1) -> None:
    plain = model.plan(SNAPSHOT, greedy=True, max_new_tokens=4)
    routed = model.plan(SNAPSHOT, greedy=True, max_new_tokens=4, navigation_text="Turn left")
    assert routed.navigation_text == "Turn left"
    assert np.abs(plain.samples - routed.samples).max() > 1e-5


def test_frames_may_come_at_any_size_and_the_cameras_differ_in_it(model: AlpamayoR1) -> None:
    large = fake_snapshot(0, 720, 1280)
    mixed = Snapshot(
        frames=(*SNAPSHOT.frames[:3], large.frames[3][:, :600, :700]),
        camera_ids=SNAPSHOT.camera_ids,
        frame_stamps_ns=SNAPSHOT.frame_stamps_ns,
        t0_ns=SNAPSHOT.t0_ns,
        ego_history_xyz=SNAPSHOT.ego_history_xyz,
        ego_history_rot=SNAPSHOT.ego_history_rot,
    )
    assert model.plan(large, max_new_tokens=2).finite
    assert model.plan(mixed, max_new_tokens=2).finite


@pytest.mark.parametrize("number", [0, 1, 2, 5, 9])
def test_a_plan_is_given_up_wherever_it_is_asked_to_stop(model: AlpamayoR1, number: int) -> None:
    calls = 0

    def should_stop() -> bool:
        nonlocal calls
        calls += 1
        return calls > number

    model.reset()
    with pytest.raises(PlanCancelled):
        model.plan(SNAPSHOT, max_new_tokens=4, should_stop=should_stop)
    assert calls == number + 1
    assert model.plan(SNAPSHOT, max_new_tokens=4).finite


def test_being_asked_without_stopping_changes_nothing(model: AlpamayoR1) -> None:
    asked: list[int] = []
    plan = model.plan(SNAPSHOT, max_new_tokens=4, should_stop=lambda: bool(asked.append(1)))
    tokens = len(plan.token_ids[0])
    # Before the prefill, before each token and before each step of the flow; the vision batch
    # was encoded by an earlier test or asks once more.
    assert len(asked) in (1 + tokens + 10, 2 + tokens + 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_samples": 0}, "num_samples must be 1 to 64, got 0"),
        ({"max_new_tokens": 0}, "max_new_tokens must be 1 to 1024, got 0"),
        ({"seed": -1}, "seed must be 0 to 9223372036854775807, got -1"),
        ({"num_samples": 2.5}, "num_samples must be a whole number, 1 to 64, got 2.5"),
        ({"num_samples": True}, "num_samples must be 1 to 64, got True"),
        ({"num_samples": "2"}, "num_samples must be 1 to 64, got '2'"),
        ({"max_new_tokens": 1.5}, "max_new_tokens must be a whole number, 1 to 1024, got 1.5"),
        ({"seed": 1.5}, "seed must be a whole number, 0 to 9223372036854775807, got 1.5"),
        ({"temperature": "0.6"}, "temperature must be 0.01 to 10, got '0.6'"),
        ({"top_p": None}, "top_p must be 0.01 to 1, got None"),
        ({"navigation_text": 5}, "the navigation text must be a text, got 5"),
        ({"navigation_text": 0}, "the navigation text must be a text, got 0"),
        ({"noise": np.full((1, 64, 2), 100.1)}, "as standard normal numbers are, got 100.1"),
        ({"temperature": 0.0}, "temperature must be 0.01 to 10, got 0.0"),
        ({"top_p": 2.0}, "top_p must be 0.01 to 1, got 2.0"),
        ({"noise": np.zeros((2, 64, 2), np.float32)}, "noise must be finite float32 (1, 64, 2)"),
        ({"noise": np.zeros((1, 64, 2), int)}, "noise must be finite float32 (1, 64, 2), got int"),
        *(
            ({"noise": np.full((1, 64, 2), value)}, "noise must be finite float32 within 100, as")
            for value in (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e30, 100.1)
        ),
        ({"tokens": np.zeros((1, 0), int)}, "tokens must be of shape (1, n) for 1 samples"),
        ({"tokens": np.zeros((1, 3))}, "tokens must be whole numbers from 0 to 1691"),
        ({"tokens": np.array([[1692]])}, "tokens must be whole numbers from 0 to 1691"),
        ({"tokens": np.array([[-1, 5]])}, "each row needs a token and only its end may be -1"),
        ({"tokens": np.array([[5, -1, 6]])}, "each row needs a token and only its end may be -1"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(
    model: AlpamayoR1, arguments: dict, message: str
) -> None:
    with pytest.raises(ModelError) as error:
        model.plan(SNAPSHOT, **arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_r1_wants_exactly_its_four_cameras(model: AlpamayoR1) -> None:
    three = Snapshot(
        frames=SNAPSHOT.frames[:3],
        camera_ids=SNAPSHOT.camera_ids[:3],
        frame_stamps_ns=SNAPSHOT.frame_stamps_ns[:3],
        t0_ns=SNAPSHOT.t0_ns,
        ego_history_xyz=SNAPSHOT.ego_history_xyz,
        ego_history_rot=SNAPSHOT.ego_history_rot,
    )
    with pytest.raises(ModelError, match=r"wants exactly the cameras \(0, 1, 2, 6\), got"):
        model.plan(three)


def test_the_gates_bounds_are_the_checkpoints(model: AlpamayoR1) -> None:
    assert model.accel_bounds == (-9.8, 9.8)
    assert model.curvature_bounds == (-0.33, 0.33)


def test_memory_grows_with_samples_and_tokens(model: AlpamayoR1) -> None:
    assert model.checkpoint_bytes == sum(p.numel() * 4 for p in model.network.parameters())
    more = model.memory_bytes(6, 256) - model.memory_bytes(6, 255)
    assert more == 6 * 2 * 2 * 2 * 32 * 4  # samples, keys and values, layers, heads, width, bytes


def test_the_medoid_is_chosen_and_the_spread_is_the_mean_distance_to_it() -> None:
    offsets = np.array([0.0, 1.0, 5.0])
    xy = np.zeros((3, 64, 2))
    xy[:, :, 1] = offsets[:, None]
    assert medoid(xy) == (1, pytest.approx((1.0 + 4.0) / 2))


def test_a_sample_that_is_not_finite_is_never_chosen_beside_finite_ones() -> None:
    xy = np.zeros((3, 64, 2))
    xy[0, 3, 0] = np.nan
    xy[2] += 2.0
    chosen, spread_m = medoid(xy)
    assert chosen == 1
    assert spread_m == pytest.approx(2 * 2**0.5)


def test_one_sample_has_no_spread() -> None:
    assert medoid(np.ones((1, 64, 2))) == (0, 0.0)


class TestBfloat16:
    """The released type, with forced tokens: random weights have too small margins for greedy."""

    def test_waypoints_and_logits_stay_near_those_of_float32(
        self, tiny_model: Callable[..., AlpamayoR1], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        golden = load_rollout("forced_lengths")
        model = tiny_model(golden.boost, torch.bfloat16)
        logits: list[torch.Tensor] = []
        prefill = Rollout.prefill

        def recorded(self: Rollout, *args: object) -> torch.Tensor:
            logits.append(prefill(self, *args))
            return logits[-1]

        monkeypatch.setattr(Rollout, "prefill", recorded)
        plan = model.plan(golden.snapshot, 3, noise=golden.arrays["noise"], tokens=golden.tokens)
        top = golden.arrays["first_logits_top32_ids"][0]
        assert float(logits[0][0, top]) == pytest.approx(
            float(golden.arrays["first_logits_top32"][0]), abs=5e-2
        )
        expected = golden.arrays["pred_xyz"][..., :2]
        extent_m = np.linalg.norm(expected, axis=-1).max()
        error_m = np.linalg.norm(plan.samples[..., :2] - expected, axis=-1).max()
        assert error_m <= 0.05 * extent_m

    def test_flow_and_residual_of_the_expert_are_float32(
        self, tiny_model: Callable[..., AlpamayoR1], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        golden = load_rollout("forced_lengths")
        model = tiny_model(golden.boost, torch.bfloat16)
        states: list[torch.dtype] = []
        residuals: dict[str, set[torch.dtype]] = {"LanguageModel": set(), "Expert": set()}
        results: set[torch.dtype] = set()
        rotations: dict[str, set[torch.dtype]] = {"LanguageModel": set(), "Expert": set()}
        actions, run = Rollout.actions, Decoder.run

        def recorded_actions(self: Rollout, *args: object) -> torch.Tensor:
            return actions(self, *args, on_step=lambda step, x: states.append(x.dtype))

        def recorded_run(self: Decoder, embeddings: torch.Tensor, *args: object,
                         **rest: object) -> torch.Tensor:  # fmt: skip
            residuals[type(self).__name__].add(embeddings.dtype)
            rotations[type(self).__name__].add(args[0].cos.dtype)
            result = run(self, embeddings, *args, **rest)
            results.add(result.dtype)
            return result

        monkeypatch.setattr(Rollout, "actions", recorded_actions)
        monkeypatch.setattr(Decoder, "run", recorded_run)
        plan = model.plan(golden.snapshot, 3, noise=golden.arrays["noise"], tokens=golden.tokens)
        assert set(states) == {torch.float32}
        assert len(states) == 11
        assert residuals == {"LanguageModel": {torch.bfloat16}, "Expert": {torch.float32}}
        assert rotations == residuals
        assert results == {torch.bfloat16}
        assert plan.samples.dtype == np.float32
