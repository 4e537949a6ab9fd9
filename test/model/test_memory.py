"""A checkpoint that a device has no room for is refused before a byte of it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from alpamayo_ros.model import ModelError, memory
from alpamayo_ros.model.config_file import load_config
from alpamayo_ros.model.memory import cache_bytes, require_memory, weight_bytes

from .quick import write_quick_config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a configuration and no weights at all."""
    return write_quick_config(tmp_path_factory.mktemp("memory") / "quick")


def needed_bytes(folder: Path, samples: int, tokens: int) -> float:
    config = load_config(folder, None)
    weights = weight_bytes(config, torch.float32)
    return 1.1 * (weights + cache_bytes(config, torch.float32, samples, tokens))


@pytest.mark.parametrize(("spare_bytes", "refused"), [(1, False), (-1, True)])
def test_ten_percent_more_than_weights_and_cache_must_be_free(
    folder: Path, monkeypatch: pytest.MonkeyPatch, spare_bytes: int, refused: bool
) -> None:
    free = round(needed_bytes(folder, 6, 256)) + spare_bytes
    monkeypatch.setattr(memory, "free_memory_bytes", lambda device: free)
    if not refused:
        require_memory(folder, None, "cpu", "float32", 6, 256)
        return
    with pytest.raises(ModelError, match=r"cpu has .* GB free, the model needs .* GB"):
        require_memory(folder, None, "cpu", "float32", 6, 256)
    require_memory(folder, None, "cpu", "float32", 5, 256)


def test_this_machines_memory_is_enough_for_a_small_model(folder: Path) -> None:
    require_memory(folder, None, "cpu", "float32", 1, 256)
