"""The counted work of the released model is the specification's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.model.config_file import parse_config
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.work import (
    Work,
    flow_step_work,
    head_work,
    prefill_work,
    token_work,
    vision_work,
    work_of_plan,
)
from alpamayo_ros.sensing.fake import fake_snapshot

from .test_configuration import released_config

BF16 = 2


@pytest.fixture(scope="module")
def released() -> ModelConfig:
    return parse_config(released_config(), None)


def test_sixteen_images_are_11_4_tflop(released: ModelConfig) -> None:
    assert vision_work(released, 16, 720, BF16).flop == pytest.approx(11.4e12, rel=0.01)


def test_the_prompt_is_44_4_tflop_less_most_of_its_last_layer(released: ModelConfig) -> None:
    last_layer = 44.4e12 / 36
    keys_and_values = 3006 * 2 * 2 * 4096 * 8 * 128
    expected = 44.4e12 - last_layer + keys_and_values
    assert prefill_work(released, 3006, BF16).flop == pytest.approx(expected, rel=0.005)


def test_a_token_reads_15_6_gb(released: ModelConfig) -> None:
    token = token_work(released, 1, 3006, BF16) + head_work(released, 1, BF16)
    assert token.read_bytes == pytest.approx(15.6e9, rel=0.01)


def test_a_step_of_the_expert_reads_5_gb(released: ModelConfig) -> None:
    assert flow_step_work(released, 1, 3006, BF16).read_bytes == pytest.approx(5.0e9, rel=0.01)


def test_samples_share_the_weights_and_not_the_cache(released: ModelConfig) -> None:
    one, six = (token_work(released, samples, 3006, BF16) for samples in (1, 6))
    assert six.flop == 6 * one.flop
    assert six.read_bytes - one.read_bytes == 5 * 3006 * 147_456
    assert one.times(3) == Work(3 * one.flop, 3 * one.read_bytes)


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_the_head_is_counted_as_often_as_it_runs(
    quick_model: AlpamayoR1, monkeypatch: pytest.MonkeyPatch, tokens: int, samples: int
) -> None:
    rows: list[int] = []

    def count(head: nn.Module, inputs: tuple, logits: object) -> None:
        rows.append(len(inputs[0]))

    config = quick_model.config
    end = config.special_ids["traj_future_start"]
    forced = np.array([[5] * (tokens - 1) + [end]] * samples)
    hook = quick_model.network.vlm.lm_head.register_forward_hook(count)
    plan = quick_model.plan(fake_snapshot(0), samples, tokens=forced)
    hook.remove()
    assert rows == [1] + [samples] * (tokens - 1)  # the prefill's is one for all samples

    # What is counted more with a wider head is what the head is counted for.
    wider = replace(config, vocab_size=config.vocab_size + 1000)
    narrow = work_of_plan(quick_model, fake_snapshot(0), plan)
    monkeypatch.setattr(quick_model, "config", wider)
    wide = work_of_plan(quick_model, fake_snapshot(0), plan)
    column = 1000 * config.backbone.text.hidden_size
    for stage, runs in (("prefill", rows[:1]), ("reasoning", rows[1:])):
        read_bytes = wide[stage].read_bytes - narrow[stage].read_bytes
        assert read_bytes == len(runs) * column * quick_model.dtype.itemsize
        assert wide[stage].flop - narrow[stage].flop == 2 * sum(runs) * column
