"""config.json is read as released, and what does not fit is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model import ModelError
from alpamayo_ros.model.config_file import load_config, parse_config
from alpamayo_ros.model.memory import cache_bytes, weight_bytes
from alpamayo_ros.model.network import empty_network

from .golden import TINY_CHECKPOINT

TINY = json.loads((TINY_CHECKPOINT / "config.json").read_text())
BACKBONE = json.loads((TINY_CHECKPOINT.parent / "qwen3_vl_tiny" / "config.json").read_text())


def released_config() -> dict[str, Any]:
    """The released checkpoint's config.json, as far as the specification gives it."""
    changes = {
        "vlm_name_or_path": "Qwen/Qwen3-VL-8B-Instruct",
        "attn_implementation": "flash_attention_2",
        "expert_cfg": {
            "hidden_size": 2048,
            "intermediate_size": 8256,
            "num_attention_heads": 16,
            "head_dim": 128,
        },
        "action_in_proj_cfg": TINY["action_in_proj_cfg"] | {"hidden_size": 512},
        "diffusion_cfg": {
            "_target_": "alpamayo_r1.diffusion.flow_matching.FlowMatching",
            "int_method": "euler",
        },
    }
    return TINY | changes


def changed(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the entry at a dotted path replaced."""
    copy = json.loads(json.dumps(values))
    *folders, leaf = path.split(".")
    place = copy
    for folder in folders:
        place = place[folder]
    if value is None:
        del place[leaf]
    else:
        place[leaf] = value
    return copy


def test_token_ids_of_the_released_vocabulary_are_the_specifications() -> None:
    config = parse_config(released_config(), None)
    expected = {
        "prompt_start": 155669,
        "image_end": 155673,
        "traj_history_start": 155674,
        "traj_history_end": 155676,
        "cot_start": 155677,
        "cot_end": 155678,
        "meta_action_start": 155679,
        "traj_future_start": 155681,
        "traj_future_end": 155683,
        "traj_history": 155684,
        "vectorized_wm": 155686,
        "vectorized_wm_pre_tkn": 155689,
        "route_start": 155690,
        "route_end": 155692,
        "question_start": 155693,
        "answer_end": 155696,
    }
    assert {name: config.special_ids[name] for name in expected} == expected
    assert config.history.first_id == 154669
    assert config.trajectory_first_id == 151669


def test_the_released_model_has_its_11078526194_parameters() -> None:
    network = empty_network(parse_config(released_config(), None), Operators())

    def count(module: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    assert count(network) == 11_078_526_194
    assert count(network.vlm.model.visual) == 576_388_336
    assert count(network.vlm.model.language_model) == 7_583_810_560
    assert count(network.vlm.lm_head) == 637_734_912
    assert count(network.expert) == 2_279_238_656
    assert count(network.action_in_proj) == 1_349_632
    assert count(network.action_out_proj) == 4_098
    vlm = [name for name in network.state_dict() if name.startswith("vlm.")]
    expert = [name for name in network.state_dict() if name.startswith("expert.")]
    assert (len(vlm), len(expert)) == (750, 397)


def test_names_and_shapes_of_the_tensors_are_the_references() -> None:
    network = empty_network(load_config(TINY_CHECKPOINT), Operators())
    expected = json.loads((TINY_CHECKPOINT / "state_dict_keys.json").read_text())
    got = {name: [list(value.shape), str(value.dtype)] for name, value in
           network.state_dict().items()}  # fmt: skip
    assert got == expected


def test_the_memory_of_the_released_model_is_22_gb_and_0_147_mb_a_token() -> None:
    config = parse_config(released_config(), None)
    assert weight_bytes(config, torch.bfloat16) == 2 * 11_078_526_194
    one, two = (cache_bytes(config, torch.bfloat16, 1, tokens) for tokens in (100, 101))
    assert two - one == 147_456
    assert cache_bytes(config, torch.bfloat16, 6, 100) == 6 * one


def test_number_of_flow_steps_is_ten_where_it_is_not_given() -> None:
    assert parse_config(released_config(), None).flow_steps == 10


def test_the_expert_inherits_what_it_does_not_name() -> None:
    config = parse_config(released_config(), None)
    assert (config.expert.num_layers, config.expert.num_kv_heads) == (36, 8)
    assert config.expert.mrope_section == (24, 20, 20)


def test_version_1_5_is_known_by_its_model_type() -> None:
    values = changed(released_config(), "model_type", "alpamayo1_5")
    values = changed(values, "vlm_name_or_path", "nvidia/Cosmos-Reason2-8B")
    assert parse_config(values, None).version == "1.5"


@pytest.mark.parametrize(
    "place", ["action_in_proj_cfg", "action_space_cfg", "diffusion_cfg", "traj_tokenizer_cfg",
              "hist_traj_tokenizer_cfg", "action_out_proj_cfg"]
)  # fmt: skip
@pytest.mark.parametrize("target", ["os.system", "evil.FlowMatching", "alpamayo_r1.x.Unknown"])
def test_a_hostile_target_is_refused_and_not_imported(place: str, target: str) -> None:
    with pytest.raises(ModelError, match="nothing that a checkpoint names is imported") as error:
        parse_config(changed(TINY, f"{place}._target_", target), BACKBONE)
    assert target in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model_type", "llama", "model_type is 'llama', known: alpamayo_r1, alpamayo1_5"),
        ("attn_implementation", "magic", "attn_implementation is 'magic', known:"),
        ("expert_non_causal_attention", False, "expert_non_causal_attention is False"),
        ("traj_vocab_size", None, "lacks traj_vocab_size"),
        ("traj_vocab_size", 3999, "do not fit traj_vocab_size 3999"),
        ("vocab_size", 155696, "vocab_size 155696 is too small"),
        ("min_pixels", "many", "min_pixels must be a whole number from 0 to 196608, got"),
        ("diffusion_cfg.int_method", "heun", "int_method is 'heun', known: euler"),
        (
            "action_space_cfg.accel_std",
            float("nan"),
            "accel_std must be a number from 1e-30 to 1e+12",
        ),
        ("action_space_cfg.accel_bounds", [1], "accel_bounds must be a list of 2 finite"),
        ("action_space_cfg.accel_bounds", [9, -9], "must be two rising numbers, got [9, -9]"),
        ("action_space_cfg.dt", 0.2, "dt is 0.2, known: 0.1"),
        ("diffusion_cfg.num_inference_steps", 10**9, "whole number from 1 to 1000"),
        ("hist_traj_tokenizer_cfg.num_bins", 1, "num_bins must be a whole number from 2 to"),
        ("hist_traj_tokenizer_cfg.ego_xyz_min", [5, -4, -10], "must lie below ego_xyz_max"),
        ("max_pixels", 1, "max_pixels must be a whole number from 1024 to 16777216, got 1"),
        ("min_pixels", 200000, "min_pixels must be a whole number from 0 to 196608, got 200000"),
        ("traj_token_start_idx", 151655, "image_token_id 151655 is none of the text tokens below"),
        ("weights_sha256", "abc", "weights_sha256 must match [0-9a-f]{64}, got 'abc'"),
        ("action_space_cfg.n_waypoints", 32, "n_waypoints is 32, known: 64"),
        ("expert_cfg.num_key_value_heads", 4, "num_kv_heads is 4, but the expert reads"),
        ("expert_cfg", [], "expert_cfg must be an object, got list"),
    ],
)
def test_a_wrong_entry_is_refused_in_one_line(path: str, value: Any, message: str) -> None:
    with pytest.raises(ModelError) as error:
        parse_config(changed(TINY, path, value), BACKBONE)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model_type", "qwen2_vl", "model_type is 'qwen2_vl', known: qwen3_vl"),
        ("text_config.hidden_act", "gelu", "hidden_act is 'gelu', known: silu"),
        ("text_config.attention_bias", True, "attention_bias is True, known: False"),
        ("text_config.rope_scaling.rope_type", "yarn", "rope_type is 'yarn', known: default"),
        ("text_config.rope_scaling.mrope_section", [4, 2, 1], "sum to half of head_dim 16"),
        ("text_config.num_key_value_heads", 3, "num_attention_heads 8 is no multiple of"),
        ("vision_config.num_heads", 0, "num_heads must be a whole number from 1 to 262144, got 0"),
        ("vision_config.num_heads", 5, "is no multiple of 4 x num_heads 5"),
        ("vision_config.deepstack_visual_indexes", [0, 99], "whole numbers from 0 to"),
        ("vision_config.deepstack_visual_indexes", [1, 0], "(1, 0) must rise"),
        ("vision_config.out_hidden_size", 63, "out_hidden_size 63 is not the text model's"),
        ("vision_config.num_position_embeddings", 8, "num_position_embeddings 8 is no square"),
        ("vision_config.patch_size", 14, "patch_size is 14, known: 16"),
        ("vision_config.hidden_act", "relu", "hidden_act is 'relu', known: gelu_pytorch_tanh"),
        ("vision_config.depth", None, "lacks depth"),
    ],
)
def test_a_wrong_entry_of_the_backbone_is_refused(path: str, value: Any, message: str) -> None:
    with pytest.raises(ModelError) as error:
        parse_config(TINY, changed(BACKBONE, path, value))
    assert message in str(error.value)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such folder"):
        load_config(tmp_path / "nothing")


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        load_config(tmp_path)


def test_an_unknown_backbone_is_never_downloaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY | {"vlm_name_or_path": "some/model"}))
    with pytest.raises(ModelError, match=r"is no folder with a config\.json; name a copy"):
        load_config(tmp_path)


def test_a_copy_that_the_user_names_replaces_an_unknown_backbone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY | {"vlm_name_or_path": "some/model"}))
    config = load_config(tmp_path, TINY_CHECKPOINT.parent / "qwen3_vl_tiny")
    assert config.backbone.text.hidden_size == 64
