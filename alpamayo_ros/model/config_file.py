"""Reads config.json of a checkpoint, in the released schema, into the records of configuration.py.

A checkpoint names classes by import path (`_target_`): they are compared with the names known
here and never imported. Whatever does not fit is refused in one line, so that no nonsense becomes
an error inside the network, or an allocation.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from alpamayo_ros.model.config_section import MOST, Section, read_json
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
from alpamayo_ros.model.images import SIZE_FACTOR
from alpamayo_ros.types import STEP_S, WAYPOINTS

MODEL_TYPES = {"alpamayo_r1": "1", "alpamayo1_5": "1.5"}
TARGET_PACKAGES = ("alpamayo_r1", "alpamayo1_5")
PUBLIC_BACKBONES = ("Qwen/Qwen3-VL-8B-Instruct", "nvidia/Cosmos-Reason2-8B")
ATTENTIONS = ("flash_attention_2", "sdpa", "eager")  # all of them mean our own attention
DEFAULT_FLOW_STEPS = 10
HISTORY_TOKENS = 48  # three coordinates of sixteen poses
MOST_LAYERS = 256
MOST_IDS = 1 << 24  # sampling carries ids as float32, which is exact up to here
MOST_PIXELS = 1 << 24


def backbone_folder(folder: Path, tokenizer_folder: Path | None = None) -> Path | None:
    """Where the backbone's configuration lies: beside the checkpoint, else a folder the user names.

    None where `vlm_name_or_path` is one of the public names and no copy is at hand.
    """
    path = folder / "config.json"
    name = Section(read_json(path), str(path)).text("vlm_name_or_path")
    for candidate in (folder / name, tokenizer_folder):  # an absolute name replaces the folder
        # Not Path.is_file, which raises on a name that is too long.
        if candidate is not None and os.path.isfile(candidate / "config.json"):
            return candidate
    if name in PUBLIC_BACKBONES:
        return None
    raise ModelError(
        f"{path}: vlm_name_or_path {name[:200]!r} is no folder with a config.json; "
        f"name a copy with --tokenizer (model.tokenizer_path), or use {PUBLIC_BACKBONES[0]}"
    )


def load_config(folder: str | Path, tokenizer_folder: str | Path | None = None) -> ModelConfig:
    """Read and check the configuration of a checkpoint folder.

    Raises:
        ModelError: a file is missing or holds what this package does not know; one line.
    """
    folder = Path(folder)
    if not os.path.isdir(folder):
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
    """ModelConfig from the objects of config.json and of the backbone's (None: built-in values).

    Raises:
        ModelError: an entry is missing, unknown, out of range or at odds with another; one line.
    """
    root = Section(values, where)
    version = MODEL_TYPES[root.one_of("model_type", tuple(MODEL_TYPES))]
    root.one_of("attn_implementation", ATTENTIONS, ATTENTIONS[0])
    root.one_of("expert_non_causal_attention", (True,), True)
    first_id = root.integer("traj_token_start_idx", most=MOST_IDS)
    bins = root.integer("traj_vocab_size", most=MOST_IDS)
    vocab_size = root.integer("vocab_size", most=MOST_IDS)
    root.require(
        vocab_size >= first_id + bins + len(SPECIAL_TOKENS),
        f"vocab_size {vocab_size} is too small for traj_token_start_idx {first_id}, "
        f"{bins} bins and {len(SPECIAL_TOKENS)} special tokens",
    )
    _require_target(root.section("action_out_proj_cfg"), "torch.nn.Linear")
    backbone = PUBLIC_BACKBONE
    if backbone_values is not None:
        backbone = _backbone(Section(backbone_values, "backbone config.json"))
    for name in ("image_token_id", "vision_start_id", "vision_end_id"):
        token = getattr(backbone, name)
        root.require(
            token < first_id,
            f"the backbone's {name} {token} is none of the text tokens below "
            f"traj_token_start_idx {first_id}",
        )
    max_pixels = root.integer("max_pixels", least=SIZE_FACTOR**2, most=MOST_PIXELS)
    return ModelConfig(
        version=version,
        backbone=backbone,
        expert=_expert(root.section("expert_cfg"), backbone.text),
        action_in=_action_in(root.section("action_in_proj_cfg")),
        action_space=_action_space(root.section("action_space_cfg")),
        history=_history(root, first_id, bins),
        flow_steps=_flow_steps(root.section("diffusion_cfg")),
        min_pixels=root.integer("min_pixels", least=0, most=max_pixels),
        max_pixels=max_pixels,
        vocab_size=vocab_size,
        trajectory_first_id=first_id,
        trajectory_bins=bins,
        revision=_pin(root, "_commit_hash", r"[\w.-]{1,64}"),
        content_hash=_pin(root, "weights_sha256", r"[0-9a-f]{64}"),
        special_ids={token: first_id + bins + k for k, token in enumerate(SPECIAL_TOKENS)},
    )


def _pin(root: Section, key: str, pattern: str) -> str:
    """A revision or hash that the configuration pins; empty: none."""
    pinned = root.text(key, "")
    if pinned and not re.fullmatch(pattern, pinned, re.ASCII):
        raise root.error(key, f"must match {pattern}", pinned)
    return pinned


def _require_target(section: Section, known: str) -> None:
    """Refuse a `_target_` that is not the known class; without a path: of a released package."""
    target = section.text("_target_")
    package, _, _ = target.partition(".")
    _, _, name = target.rpartition(".")
    if target != known and (name, package in TARGET_PACKAGES) != (known, True):
        raise section.error(
            "_target_",
            f"must be {known} (nothing that a checkpoint names is imported)",
            target,
        )


def _backbone(root: Section) -> BackboneConfig:
    root.one_of("model_type", ("qwen3_vl",))
    text = _text(root.section("text_config"))
    return BackboneConfig(
        text=text,
        vision=_vision(root.section("vision_config"), text),
        image_token_id=root.integer("image_token_id", least=0, most=MOST_IDS),
        vision_start_id=root.integer("vision_start_token_id", least=0, most=MOST_IDS),
        vision_end_id=root.integer("vision_end_token_id", least=0, most=MOST_IDS),
    )


def _text(section: Section) -> DecoderConfig:
    section.one_of("hidden_act", ("silu",), "silu")
    section.one_of("attention_bias", (False,), False)
    rope = section.section("rope_scaling")
    rope.one_of("rope_type", ("default",), "default")
    rope.one_of("mrope_interleaved", (True,), True)
    heads, hidden = section.integer("num_attention_heads"), section.integer("hidden_size")
    text = DecoderConfig(
        hidden_size=hidden,
        intermediate_size=section.integer("intermediate_size"),
        num_layers=section.integer("num_hidden_layers", most=MOST_LAYERS),
        num_heads=heads,
        num_kv_heads=section.integer("num_key_value_heads"),
        head_dim=section.integer("head_dim", hidden // heads),
        rms_norm_eps=section.positive("rms_norm_eps", 1e-6, most=1.0),
        rope_theta=section.number("rope_theta", least=1.0),
        mrope_section=cast("tuple[int, int, int]", rope.integers("mrope_section", 0, MOST)),
    )
    rope.require(
        len(text.mrope_section) == 3 and sum(text.mrope_section) * 2 == text.head_dim,
        f"mrope_section {text.mrope_section} must be three numbers that sum to half of head_dim "
        f"{text.head_dim}",
    )
    _require_groups(section, text)
    return text


def _require_groups(section: Section, decoder: DecoderConfig) -> None:
    section.require(
        decoder.num_heads % decoder.num_kv_heads == 0,
        f"num_attention_heads {decoder.num_heads} is no multiple of num_key_value_heads "
        f"{decoder.num_kv_heads}",
    )


def _vision(section: Section, text: DecoderConfig) -> VisionConfig:
    section.one_of("hidden_act", ("gelu_pytorch_tanh",))
    depth = section.integer("depth", most=MOST_LAYERS)
    vision = VisionConfig(
        depth=depth,
        hidden_size=section.integer("hidden_size"),
        intermediate_size=section.integer("intermediate_size"),
        num_heads=section.integer("num_heads"),
        out_hidden_size=section.integer("out_hidden_size"),
        deepstack_layers=section.integers("deepstack_visual_indexes", 0, depth - 1),
        num_position_embeddings=section.integer("num_position_embeddings"),
        patch_size=section.one_of("patch_size", (16,), 16),
        merge_size=section.one_of("spatial_merge_size", (2,), 2),
        temporal_patch_size=section.one_of("temporal_patch_size", (2,), 2),
        in_channels=section.one_of("in_channels", (3,), 3),
    )
    section.require(
        vision.hidden_size % (4 * vision.num_heads) == 0,
        f"hidden_size {vision.hidden_size} is no multiple of 4 x num_heads {vision.num_heads}: a "
        "head's numbers turn in pairs by row and by column",
    )
    section.require(
        math.isqrt(vision.num_position_embeddings) ** 2 == vision.num_position_embeddings,
        f"num_position_embeddings {vision.num_position_embeddings} is no square",
    )
    section.require(
        vision.out_hidden_size == text.hidden_size,
        f"out_hidden_size {vision.out_hidden_size} is not the text model's hidden_size "
        f"{text.hidden_size}",
    )
    section.require(
        all(a < b for a, b in pairwise(vision.deepstack_layers))
        and len(vision.deepstack_layers) <= text.num_layers,
        f"deepstack_visual_indexes {vision.deepstack_layers} must rise and be no more than the "
        f"text model's {text.num_layers} layers",
    )
    return vision


def _expert(section: Section, text: DecoderConfig) -> DecoderConfig:
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
        section.require(
            getattr(expert, name) == getattr(text, name),
            f"{name} is {getattr(expert, name)}, but the expert reads the cache of a text model "
            f"with {getattr(text, name)}",
        )
    _require_groups(section, expert)
    return expert


def _action_in(section: Section) -> ActionInConfig:
    _require_target(section, "PerWaypointActionInProjV2")
    features = section.integer("num_fourier_feats", least=2)
    section.require(features % 2 == 0, f"num_fourier_feats {features} is odd: sines and cosines")
    return ActionInConfig(
        hidden_size=section.integer("hidden_size"),
        layers=section.integer("num_enc_layers", most=MOST_LAYERS),
        frequencies=features // 2,
        max_frequency=section.number("max_freq", least=1.0),
    )


def _action_space(section: Section) -> ActionSpaceConfig:
    _require_target(section, "UnicycleAccelCurvatureActionSpace")
    optional: dict[str, Any] = {
        entry.name: section.number(entry.name, cast("float", entry.default), least=0.0)
        for entry in fields(ActionSpaceConfig)
        if entry.name.endswith(("_lambda", "_ridge"))
    }
    return ActionSpaceConfig(
        accel_mean=section.number("accel_mean"),
        accel_std=section.positive("accel_std"),
        curvature_mean=section.number("curvature_mean"),
        curvature_std=section.positive("curvature_std"),
        accel_bounds=section.interval("accel_bounds"),
        curvature_bounds=section.interval("curvature_bounds"),
        # A plan's messages, and the history, have these steps wherever they go.
        dt_s=section.one_of("dt", (STEP_S,), STEP_S),
        waypoints=section.one_of("n_waypoints", (WAYPOINTS,), WAYPOINTS),
        **optional,
    )


def _history(root: Section, first_id: int, bins: int) -> HistoryBins:
    future = root.section("traj_tokenizer_cfg")
    _require_target(future, "DiscreteTrajectoryTokenizer")
    future_bins = future.integer("num_bins", most=MOST_IDS)
    section = root.section("hist_traj_tokenizer_cfg")
    _require_target(section, "DeltaTrajectoryTokenizer")
    history = HistoryBins(
        xyz_min_m=section.numbers("ego_xyz_min", 3),
        xyz_max_m=section.numbers("ego_xyz_max", 3),
        bins=section.integer("num_bins", least=2, most=MOST_IDS),
        tokens=root.one_of("tokens_per_history_traj", (HISTORY_TOKENS,)),
        first_id=first_id + future_bins,
    )
    section.require(
        all(low < high for low, high in zip(history.xyz_min_m, history.xyz_max_m)),
        f"ego_xyz_min {history.xyz_min_m} must lie below ego_xyz_max {history.xyz_max_m}",
    )
    root.require(
        future_bins + history.bins <= bins,
        f"{history.bins} history bins after {future_bins} future bins do not fit traj_vocab_size "
        f"{bins}",
    )
    return history


def _flow_steps(section: Section) -> int:
    _require_target(section, "FlowMatching")
    section.one_of("int_method", ("euler",), "euler")
    return section.integer("num_inference_steps", DEFAULT_FLOW_STEPS, most=1000)
