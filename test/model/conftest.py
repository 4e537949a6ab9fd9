"""Checkpoints and models that many tests share, made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.model.recipe import write_recipe_checkpoint

from .golden import TINY_CHECKPOINT, write_stand_in_tokenizer
from .quick import write_quick_config


@pytest.fixture(scope="session", autouse=True)
def two_threads() -> None:
    torch.set_num_threads(2)


@pytest.fixture(scope="session")
def stand_in_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_stand_in_tokenizer(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float], Path]:
    """Checkpoint folder of the golden configuration with recipe weights and this boost."""

    @cache
    def folder(boost: float) -> Path:
        target = tmp_path_factory.mktemp("checkpoint") / "tiny"
        return write_recipe_checkpoint(target, TINY_CHECKPOINT, boost)

    return folder


@pytest.fixture(scope="session")
def tiny_model(
    tiny_checkpoint: Callable[[float], Path], stand_in_tokenizer: Path
) -> Callable[..., AlpamayoR1]:
    """The golden configuration, read back through the normal loader."""

    @cache
    def model(boost: float, dtype: torch.dtype = torch.float32) -> AlpamayoR1:
        return AlpamayoR1.from_pretrained(tiny_checkpoint(boost), stand_in_tokenizer, dtype=dtype)

    return model


@pytest.fixture(scope="session")
def quick_model(tmp_path_factory: pytest.TempPathFactory) -> AlpamayoR1:
    """The whole model in its smallest form, for tests that need many plans."""
    folder = tmp_path_factory.mktemp("quick")
    config = write_quick_config(folder / "config")
    checkpoint = write_recipe_checkpoint(folder / "checkpoint", config, end_token_boost=-3.0)
    return AlpamayoR1.from_pretrained(checkpoint)


@pytest.fixture(scope="session")
def quick_model_1_5(tmp_path_factory: pytest.TempPathFactory) -> AlpamayoR1:
    """The same as version 1.5."""
    folder = tmp_path_factory.mktemp("quick_1_5")
    config = write_quick_config(folder / "config", "alpamayo1_5")
    return AlpamayoR1.from_pretrained(write_recipe_checkpoint(folder / "checkpoint", config))


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(2)
