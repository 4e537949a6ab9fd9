"""Nonsense in a checkpoint's JSON files is one line, never another exception or an allocation."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from alpamayo_ros.demo.small_model import FOLDER as SMALL
from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model import ModelError
from alpamayo_ros.model.config_file import load_config, parse_config
from alpamayo_ros.model.network import empty_network
from alpamayo_ros.model.tokenizer import TextTokenizer

CONFIG = json.loads((SMALL / "config.json").read_text())
BACKBONE = json.loads((SMALL / "backbone" / "config.json").read_text())
LARGEST_BYTES = 1 << 20
LONGEST_LINE = 500


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE = [
    *(0, 1, -1, 3, 10**7, 10**18, 10**400, 0.5, 1e18, 1e308, 1e-300, float("nan"), float("inf")),
    *("", "x" * 10**5, "two\nlines", "nul\0", "\ud800", None, True, False),
    *([], [None], [-1], [1e308] * 3, [float("nan")] * 2, {}, {"": {}}, nested(50), nested(100_000)),
]


def leaves(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path to every entry, those that hold others too."""
    for key, value in values.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))


def replaced(values: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(values)
    place = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return result


class Largest(TorchDispatchMode):
    """Notes the largest tensor that is made with memory of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            if isinstance(value, torch.Tensor) and value.device.type != "meta":
                self.bytes = max(self.bytes, value.nbytes)
        return result


def refusal(load: Callable[[], object]) -> str:
    """The line that loading is refused with; empty: it is not."""
    try:
        load()
    except ModelError as error:
        return str(error)
    return ""


def assert_loads_or_is_one_line(config: dict[str, Any], backbone: dict[str, Any]) -> bool:
    """Whether it loads, on the meta device."""
    with Largest() as largest:
        line = refusal(lambda: empty_network(parse_config(config, backbone), Operators()))
    assert line.isprintable(), line
    assert len(line) < LONGEST_LINE
    assert largest.bytes <= LARGEST_BYTES
    return not line


@pytest.mark.parametrize("path", list(leaves(CONFIG)), ids=".".join)
def test_any_value_anywhere_in_config_json_loads_or_is_one_line(path: tuple[str, ...]) -> None:
    for value in HOSTILE:
        assert_loads_or_is_one_line(replaced(CONFIG, path, value), BACKBONE)


@pytest.mark.parametrize("path", list(leaves(BACKBONE)), ids=".".join)
def test_any_value_anywhere_in_the_backbones_config_loads_or_is_one_line(
    path: tuple[str, ...],
) -> None:
    for value in HOSTILE:
        assert_loads_or_is_one_line(CONFIG, replaced(BACKBONE, path, value))


def test_what_is_not_hostile_loads_and_the_check_of_memory_sees_real_tensors() -> None:
    assert assert_loads_or_is_one_line(CONFIG, BACKBONE)
    with Largest() as largest:
        torch.zeros(100)
        torch.zeros(1000, device="meta")
    assert largest.bytes == 400


@pytest.mark.parametrize("value", [v for v in HOSTILE if isinstance(v, str)], ids=range(5))
def test_any_name_of_a_backbone_is_one_line(tmp_path: Path, value: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"vlm_name_or_path": value}))
    with pytest.raises(ModelError) as error:
        load_config(tmp_path)
    assert "\n" not in str(error.value)


DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000


@pytest.mark.parametrize("content", [DEEP, "9" * 10_000, '"\ud83d', "\x00", "[1]"])
def test_a_json_file_that_no_parser_takes_is_one_line(tmp_path: Path, content: str) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes(content.encode("utf-8", "surrogatepass"))
    config = parse_config(CONFIG, BACKBONE)
    for load in (lambda: load_config(tmp_path), lambda: TextTokenizer.load(tmp_path, config)):
        with pytest.raises(ModelError) as error:
            load()
        assert "\n" not in str(error.value)


TOKENIZER = json.loads((SMALL / "tokenizer.json").read_text())


@pytest.mark.parametrize("path", list(leaves(TOKENIZER | {"model": {"type": "BPE"}})), ids=".".join)
def test_any_value_in_a_tokenizer_loads_or_is_one_line(
    tmp_path: Path, path: tuple[str, ...]
) -> None:
    config = parse_config(CONFIG, BACKBONE)
    for value in (0, -1, "", None, [], [1], {}, {"type": "x"}, [{"id": -1, "content": "a"}]):
        (tmp_path / "tokenizer.json").write_text(json.dumps(replaced(TOKENIZER, path, value)))
        assert "\n" not in refusal(lambda: TextTokenizer.load(tmp_path, config))


@pytest.mark.parametrize("added", [[], [{"id": -7, "content": "<|im_start|>"}]])
def test_a_tokenizer_without_text_or_with_negative_ids_is_refused(
    tmp_path: Path, added: list
) -> None:
    empty = {"model": {"type": "BPE", "vocab": {}, "merges": []}, "added_tokens": added}
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER | empty))
    assert refusal(lambda: TextTokenizer.load(tmp_path, parse_config(CONFIG, BACKBONE)))
