"""Reads config.json of a checkpoint, in the released schema, into the records of configuration.py.

A checkpoint names classes by import path (`_target_`): they are compared with the names known
here and never imported. Whatever does not fit is refused in one line.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from alpamayo_ros.model.configuration import (
    PUBLIC_BACKBONE,
    SPECIAL_TOKENS,
    ActionInConfig,
    ActionSpaceConfig,
    BackboneConfig,
    DecoderConfig,
    HistoryBins,
    ModelConfig,
    VisionConfig,
)
from alpamayo_ros.model.errors import ModelError

MODEL_TYPES = {"alpamayo_r1": "1", "alpamayo1_5": "1.5"}
TARGET_PACKAGES = ("alpamayo_r1", "alpamayo1_5")
PUBLIC_BACKBONES = ("Qwen/Qwen3-VL-8B-Instruct", "nvidia/Cosmos-Reason2-8B")
ATTENTIONS = ("flash_attention_2", "sdpa", "eager")  # all of them mean our own attention
DEFAULT_FLOW_STEPS = 10


class _Section:
    """One object of a configuration file; what is wrong in it is said in one line."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise ModelError(f"{where} must be an object, got {type(values).__name__}")
        self.values: dict[str, Any] = values
        self.where = where

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def _get(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is None:
            value = default
        if value is None:
            raise ModelError(f"{self.where} lacks {key}")
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ModelError(f"{self.where}: {key} must be a whole number >= 0, got {value!r}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        valid = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not valid or not math.isfinite(value):
            raise ModelError(f"{self.where}: {key} must be a finite number, got {value!r}")
        return float(value)

    def numbers(self, key: str, count: int | None = None) -> tuple[Any, ...]:
        value = self._get(key, None)
        valid = isinstance(value, list) and all(
            isinstance(v, (int, float)) and not isinstance(v, bool) for v in value
        )
        if not valid or count not in (None, len(value)):
            length = "numbers" if count is None else f"{count} numbers"
            raise ModelError(f"{self.where}: {key} must be a list of {length}, got {value!r}")
        return tuple(value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise ModelError(f"{self.where}: {key} must be a text, got {value!r}")
        return value

    def one_of(self, key: str, allowed: tuple[Any, ...], default: Any = None) -> Any:
        value = self._get(key, default)
        if value not in allowed:
            names = ", ".join(str(name) for name in allowed)
            raise ModelError(f"{self.where}: {key} is {value!r}, known: {names}")
        return value

    def section(self, key: str) -> _Section:
        return _Section(self._get(key, None), f"{self.where}: {key}")

    def require_target(self, *class_names: str) -> None:
        """Refuse a `_target_` that is not a known class of a known package."""
        target = self.text("_target_")
        package, _, _ = target.partition(".")
        _, _, name = target.rpartition(".")
        if name not in class_names or package not in TARGET_PACKAGES:
            known = ", ".join(class_names)
            raise ModelError(
                f"{self.where}: _target_ {target!r} is not known, only {known} of "
                f"{TARGET_PACKAGES[0]}; nothing that a checkpoint names is imported"
            )


def read_json(path: Path) -> dict[str, Any]:
    """An object from a JSON file.

    Raises:
        ModelError: there is no such file, or no object in it.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise ModelError(f"{path} must hold a JSON object")
    return values


def backbone_folder(folder: Path, tokenizer_folder: Path | None = None) -> Path | None:
    """Where the backbone's configuration lies: beside the checkpoint, else a folder the user names.

    None where `vlm_name_or_path` is one of the public names and no copy is at hand.
    """
    name = _Section(read_json(folder / "config.json"), str(folder / "config.json")).text(
        "vlm_name_or_path"
    )
    for candidate in (folder / name, tokenizer_folder):  # an absolute name replaces the folder
        if candidate is not None and (candidate / "config.json").is_file():
            return candidate
    if name in PUBLIC_BACKBONES:
        return None
    raise ModelError(
        f"{folder / 'config.json'}: vlm_name_or_path {name!r} is no folder with a config.json; "
        f"name a copy with --tokenizer (model.tokenizer_path), or use {PUBLIC_BACKBONES[0]}"
    )


def load_config(folder: str | Path, tokenizer_folder: str | Path | None = None) -> ModelConfig:
    """Read and check the configuration of a checkpoint folder.

    Raises:
        ModelError: a file is missing or holds what this package does not know; one line.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ModelError(f"model folder {folder}: there is no such folder")
    named = Path(tokenizer_folder) if tokenizer_folder else None
    source = backbone_folder(folder, named)
    backbone = None if source is None else read_json(source / "config.json")
    return parse_config(read_json(folder / "config.json"), backbone, str(folder / "config.json"))


def parse_config(
    values: dict[str, Any],
    backbone_values: dict[str, Any] | None,
    where: str = "config.json",
) -> ModelConfig:
    """ModelConfig from the objects of config.json and of the backbone's (None: built-in values)."""
    root = _Section(values, where)
    version = MODEL_TYPES[root.one_of("model_type", tuple(MODEL_TYPES))]
    root.one_of("attn_implementation", ATTENTIONS, ATTENTIONS[0])
    root.one_of("expert_non_causal_attention", (True,), True)
    first_id, bins = root.integer("traj_token_start_idx"), root.integer("traj_vocab_size")
    special_ids = {token: first_id + bins + k for k, token in enumerate(SPECIAL_TOKENS)}
    vocab_size = root.integer("vocab_size")
    if vocab_size < first_id + bins + len(SPECIAL_TOKENS):
        raise ModelError(
            f"{where}: vocab_size {vocab_size} is too small for traj_token_start_idx {first_id}, "
            f"{bins} bins and {len(SPECIAL_TOKENS)} special tokens"
        )
    backbone = (
        PUBLIC_BACKBONE
        if backbone_values is None
        else _backbone(_Section(backbone_values, "backbone config.json"))
    )
    _require_unbiased_linear(root)
    return ModelConfig(
        version=version,
        backbone=backbone,
        expert=_expert(root.section("expert_cfg"), backbone.text),
        action_in=_action_in(root.section("action_in_proj_cfg")),
        action_space=_action_space(root.section("action_space_cfg")),
        history=_history(root, first_id, bins),
        flow_steps=_flow_steps(root.section("diffusion_cfg")),
        min_pixels=root.integer("min_pixels"),
        max_pixels=root.integer("max_pixels"),
        vocab_size=vocab_size,
        trajectory_first_id=first_id,
        trajectory_bins=bins,
        revision=root.text("_commit_hash", ""),
        content_hash=root.text("weights_sha256", ""),
        special_ids=special_ids,
    )


def _require_unbiased_linear(root: _Section) -> None:
    target = root.section("action_out_proj_cfg").text("_target_")
    if target != "torch.nn.Linear":
        raise ModelError(
            f"{root.where}: action_out_proj_cfg: _target_ {target!r} is not known, only "
            "torch.nn.Linear; nothing that a checkpoint names is imported"
        )


def _backbone(root: _Section) -> BackboneConfig:
    root.one_of("model_type", ("qwen3_vl",))
    return BackboneConfig(
        text=_text(root.section("text_config")),
        vision=_vision(root.section("vision_config")),
        image_token_id=root.integer("image_token_id"),
        vision_start_id=root.integer("vision_start_token_id"),
        vision_end_id=root.integer("vision_end_token_id"),
    )


def _text(section: _Section) -> DecoderConfig:
    section.one_of("hidden_act", ("silu",), "silu")
    section.one_of("attention_bias", (False,), False)
    heads = section.integer("num_attention_heads")
    hidden = section.integer("hidden_size")
    rope = section.section("rope_scaling")
    rope.one_of("rope_type", ("default",), "default")
    rope.one_of("mrope_interleaved", (True,), True)
    head_dim = section.integer("head_dim", hidden // max(heads, 1))
    mrope_section = rope.numbers("mrope_section", 3)
    if sum(mrope_section) * 2 != head_dim:
        raise ModelError(
            f"{rope.where}: mrope_section {mrope_section} must sum to half of head_dim {head_dim}"
        )
    return DecoderConfig(
        hidden_size=hidden,
        intermediate_size=section.integer("intermediate_size"),
        num_layers=section.integer("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=section.integer("num_key_value_heads"),
        head_dim=head_dim,
        rms_norm_eps=section.number("rms_norm_eps", 1e-6),
        rope_theta=section.number("rope_theta"),
        mrope_section=mrope_section,
    )


def _vision(section: _Section) -> VisionConfig:
    section.one_of("hidden_act", ("gelu_pytorch_tanh",))
    return VisionConfig(
        depth=section.integer("depth"),
        hidden_size=section.integer("hidden_size"),
        intermediate_size=section.integer("intermediate_size"),
        num_heads=section.integer("num_heads"),
        out_hidden_size=section.integer("out_hidden_size"),
        deepstack_layers=section.numbers("deepstack_visual_indexes"),
        num_position_embeddings=section.integer("num_position_embeddings"),
        patch_size=section.integer("patch_size", 16),
        merge_size=section.integer("spatial_merge_size", 2),
        temporal_patch_size=section.integer("temporal_patch_size", 2),
        in_channels=section.integer("in_channels", 3),
    )


def _expert(section: _Section, text: DecoderConfig) -> DecoderConfig:
    """The expert: what expert_cfg does not name is the text model's."""
    expert = DecoderConfig(
        hidden_size=section.integer("hidden_size", text.hidden_size),
        intermediate_size=section.integer("intermediate_size", text.intermediate_size),
        num_layers=section.integer("num_hidden_layers", text.num_layers),
        num_heads=section.integer("num_attention_heads", text.num_heads),
        num_kv_heads=section.integer("num_key_value_heads", text.num_kv_heads),
        head_dim=section.integer("head_dim", text.head_dim),
        rms_norm_eps=text.rms_norm_eps,
        rope_theta=text.rope_theta,
        mrope_section=text.mrope_section,
    )
    for name in ("num_layers", "num_kv_heads", "head_dim"):
        if getattr(expert, name) != getattr(text, name):
            raise ModelError(
                f"{section.where}: {name} is {getattr(expert, name)}, but the expert reads the "
                f"cache of a text model with {getattr(text, name)}"
            )
    return expert


def _action_in(section: _Section) -> ActionInConfig:
    section.require_target("PerWaypointActionInProjV2")
    return ActionInConfig(
        hidden_size=section.integer("hidden_size"),
        layers=section.integer("num_enc_layers"),
        frequencies=section.integer("num_fourier_feats") // 2,
        max_frequency=section.number("max_freq"),
    )


def _action_space(section: _Section) -> ActionSpaceConfig:
    section.require_target("UnicycleAccelCurvatureActionSpace")
    optional: dict[str, Any] = {
        entry.name: section.number(entry.name, cast("float", entry.default))
        for entry in fields(ActionSpaceConfig)
        if entry.name.endswith(("_lambda", "_ridge"))
    }
    waypoints = section.integer("n_waypoints", 64)
    if waypoints != 64:
        raise ModelError(f"{section.where}: n_waypoints is {waypoints}, a plan here has 64")
    return ActionSpaceConfig(
        accel_mean=section.number("accel_mean"),
        accel_std=section.number("accel_std"),
        curvature_mean=section.number("curvature_mean"),
        curvature_std=section.number("curvature_std"),
        accel_bounds=section.numbers("accel_bounds", 2),
        curvature_bounds=section.numbers("curvature_bounds", 2),
        dt_s=section.number("dt", 0.1),
        waypoints=waypoints,
        **optional,
    )


def _history(root: _Section, first_id: int, bins: int) -> HistoryBins:
    future = root.section("traj_tokenizer_cfg")
    future.require_target("DiscreteTrajectoryTokenizer")
    section = root.section("hist_traj_tokenizer_cfg")
    section.require_target("DeltaTrajectoryTokenizer")
    history = HistoryBins(
        xyz_min_m=section.numbers("ego_xyz_min", 3),
        xyz_max_m=section.numbers("ego_xyz_max", 3),
        bins=section.integer("num_bins"),
        tokens=root.integer("tokens_per_history_traj"),
        first_id=first_id + future.integer("num_bins"),
    )
    if history.first_id + history.bins > first_id + bins or history.tokens != 48:
        raise ModelError(
            f"{root.where}: {history.bins} history bins after {future.integer('num_bins')} future "
            f"bins do not fit traj_vocab_size {bins}, or tokens_per_history_traj is not 48"
        )
    return history


def _flow_steps(section: _Section) -> int:
    section.require_target("FlowMatching")
    section.one_of("int_method", ("euler",), "euler")
    return section.integer("num_inference_steps", DEFAULT_FLOW_STEPS)
