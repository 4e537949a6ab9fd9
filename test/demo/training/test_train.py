"""A training that was interrupted ends as one that was not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from alpamayo_ros.demo.training import train
from alpamayo_ros.demo.training.train import Numbers, Worker, order

PLAN = Numbers(
    drives=1, sight_drives=1, per_drive=8, sight_steps=2, steps=3, batch=2, seed=5, workers=1
)


class Interrupted(Exception):
    """The power goes."""


@pytest.fixture(scope="module", autouse=True)
def small_batches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "SIGHT_BATCH", 4)
        patch.setattr(train, "CHECK_SEEDS", range(1, 2))
        patch.setattr(train, "CHECK_EVERY", 2)
        patch.setattr(train, "CHECKED", 2)
        patch.setattr(train, "CHECKPOINT_EVERY_S", 0.0)  # after every step
        yield


@pytest.fixture(scope="module")
def examples(tmp_path_factory, small_batches) -> Path:
    return tmp_path_factory.mktemp("examples")


def folder_with(examples: Path, folder: Path) -> Path:
    folder.mkdir()
    (folder / "examples").symlink_to(examples)
    return folder


@pytest.fixture(scope="module")
def uninterrupted(examples, tmp_path_factory) -> Worker:
    worker = Worker(folder_with(examples, tmp_path_factory.mktemp("a") / "run"), PLAN, 0)
    worker.run()
    return worker


@pytest.mark.parametrize("step", [2, 4])  # steps done: in the middle of driving; all of seeing
def test_an_interrupted_training_ends_as_an_uninterrupted_one(
    step, examples, uninterrupted, tmp_path, monkeypatch
):
    folder = folder_with(examples, tmp_path / "run")
    steps = 0

    def power_goes(*_: object) -> None:
        nonlocal steps
        steps += 1
        if steps > step:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(train, "gather_gradients", power_goes)
        with pytest.raises(Interrupted):
            Worker(folder, PLAN, 0).run()
    again = Worker(folder, PLAN, 0)
    again.run()
    for name, value in uninterrupted.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[name], value), name
    assert again.log == uninterrupted.log
    whole = load_file(uninterrupted.folder / "model" / "model.safetensors")
    pieces = load_file(folder / "model" / "model.safetensors")
    assert all(torch.equal(pieces[name], value) for name, value in whole.items())
    assert {value.dtype for value in whole.values()} == {torch.bfloat16}


def test_it_learns_and_looks_at_what_it_has_not_learnt_from(uninterrupted):
    log = uninterrupted.log
    assert [step for step, _ in log.reasoning] == [0, 1, 2]
    assert log.reasoning[-1][1] < log.reasoning[0][1]
    assert [step for step, _ in log.held_out_sight] == [1]
    assert [step for step, _ in log.held_out_reasoning] == [1]
    assert (uninterrupted.folder / "loss.png").stat().st_size > 10_000


def test_a_folder_with_another_training_is_refused(uninterrupted):
    other = Worker(uninterrupted.folder, replace(PLAN, batch=3), 0)
    with pytest.raises(SystemExit, match="holds a training with other numbers"):
        other.run()


def test_every_epoch_shows_all_once_in_another_order_from_any_step_on():
    batches = order(count=10, batch=5, seed=0, first_step=0)
    epochs = [np.concatenate([next(batches), next(batches)]) for _ in range(2)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert not np.array_equal(*epochs)
    assert np.array_equal(next(order(10, 5, 0, first_step=3)), epochs[1][5:])


def test_fewer_examples_than_a_batch_are_one_batch():
    assert sorted(next(order(count=3, batch=8, seed=0, first_step=4))) == [0, 1, 2]
