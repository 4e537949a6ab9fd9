"""A recorded step of the flow decides as the steps that run one by one do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from alpamayo_ros.devices.graphs import CaptureError, Recording
from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.model.rollout import Rollout
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import Plan
from test.devices.recorded import record

ATOL_M = 1e-4  # seen: 2e-5; a mask over the rest of the cache is another order of additions
NEW_TOKENS = 9
# Words of each sample; the end token follows.
REASONING: dict[str, list[list[int]]] = {
    "none": [[]],
    "three words": [[40, 41, 42]],
    "to the limit": [list(range(40, 40 + NEW_TOKENS - 1))],
    "samples alike": [[50, 51], [60, 61]],
    "samples of several lengths": [[50], [60, 61, 62, 63], [70, 71]],
}


def tokens(model: AlpamayoR1, name: str) -> np.ndarray:
    rows = [[*words, model.rollout.end_token] for words in REASONING[name]]
    padded = np.full((len(rows), NEW_TOKENS), -1)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return padded


def plan(model: AlpamayoR1, name: str, seed: int = 0) -> Plan:
    given = tokens(model, name)
    return model.plan(fake_snapshot(seed), num_samples=len(given), seed=seed, tokens=given)


@pytest.fixture
def recordings() -> list[Recording]:
    """Each recording that was made."""
    return []


@pytest.fixture
def use(quick_model: AlpamayoR1, recordings: list[Recording]) -> Iterator[Callable[..., Any]]:
    """Has the model record its steps; taken back afterwards."""
    stepwise = quick_model.rollout

    def keep(work: Callable[[], Tensor]) -> Recording:
        recordings.append(record(work))
        return recordings[-1]

    def switch(capture: Any = keep) -> AlpamayoR1:
        quick_model.rollout = Rollout(
            quick_model.network,
            quick_model.config,
            stepwise.operators,
            stepwise.end_of_text,
            capture,
        )
        return quick_model

    yield switch
    quick_model.rollout = stepwise


@pytest.mark.parametrize("name", REASONING)
def test_a_recorded_step_decides_as_steps_one_by_one(
    quick_model: AlpamayoR1, use: Callable[..., Any], name: str
) -> None:
    expected = plan(quick_model, name)
    got = plan(use(), name)
    np.testing.assert_allclose(got.samples, expected.samples, atol=ATOL_M)


def test_one_recording_serves_decisions_of_every_length(
    quick_model: AlpamayoR1, use: Callable[..., Any], recordings: list[Recording]
) -> None:
    order = ["to the limit", "none", "three words", "none", "to the limit"]
    expected = [plan(quick_model, name, seed) for seed, name in enumerate(order)]
    model = use()
    for seed, (name, wanted) in enumerate(zip(order, expected)):
        got = plan(model, name, seed)
        np.testing.assert_allclose(got.samples, wanted.samples, atol=ATOL_M)
    assert len(recordings) == 1


def test_another_number_of_samples_is_recorded_anew(
    use: Callable[..., Any], recordings: list[Recording]
) -> None:
    model = use()
    for name in ("none", "samples alike", "none"):
        plan(model, name)
    assert len(recordings) == 3


def test_what_an_earlier_decision_left_in_the_cache_does_no_harm(
    quick_model: AlpamayoR1, use: Callable[..., Any]
) -> None:
    expected = plan(quick_model, "none")
    model = use()
    plan(model, "none")
    cache = model.rollout._cache
    assert cache is not None
    cache.data.fill_(torch.nan)
    np.testing.assert_allclose(plan(model, "none").samples, expected.samples, atol=ATOL_M)


def test_where_recording_fails_the_steps_run_one_by_one_after_one_line(
    quick_model: AlpamayoR1, use: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    tried = []

    def refuse(work: Callable[[], Tensor]) -> Recording:
        tried.append(work)
        raise CaptureError("operation not permitted when stream is capturing")

    expected = plan(quick_model, "three words")
    model = use(refuse)
    with caplog.at_level(logging.WARNING):
        plans = [plan(model, "three words") for _ in range(2)]
    for got in plans:
        np.testing.assert_array_equal(got.samples, expected.samples)
    assert len(tried) == 1
    assert [record.message for record in caplog.records] == [
        "graph_capture fails (operation not permitted when stream is capturing): "
        "the flow's steps run one by one"
    ]
