"""What a checkpoint's configuration says, as frozen records; config_file.py reads them.

Sizes and token ids all come from here; nothing further down knows the size of a vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# The checkpoint's own tokens, in the order of their ids, which follow the trajectory bins.
SPECIAL_TOKENS = (
    *("prompt_start", "prompt_end", "image_start", "image_pre_tkn", "image_end"),
    *("traj_history_start", "traj_history_pre_tkn", "traj_history_end", "cot_start", "cot_end"),
    *("meta_action_start", "meta_action_end"),
    *("traj_future_start", "traj_future_pre_tkn", "traj_future_end"),
    *("traj_history", "traj_future"),
    *("vectorized_wm", "vectorized_wm_start", "vectorized_wm_end", "vectorized_wm_pre_tkn"),
    *("route_start", "route_pad", "route_end"),
    *("question_start", "question_end", "answer_start", "answer_end"),
)


@dataclass(frozen=True)
class DecoderConfig:
    """A stack of decoder layers: the language model, or the expert."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    mrope_section: tuple[int, int, int]  # rotary frequencies of time, height and width


@dataclass(frozen=True)
class VisionConfig:
    """The image encoder."""

    depth: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    out_hidden_size: int
    deepstack_layers: tuple[int, ...]  # blocks whose output also goes to the language layers
    num_position_embeddings: int
    patch_size: int = 16
    merge_size: int = 2
    temporal_patch_size: int = 2
    in_channels: int = 3

    @property
    def patch_values(self) -> int:
        """Numbers in one row of patches: channels x time x height x width."""
        return self.in_channels * self.temporal_patch_size * self.patch_size**2

    @property
    def size_factor(self) -> int:
        """What both sides of an image must be a multiple of, in pixels."""
        return self.patch_size * self.merge_size


@dataclass(frozen=True)
class BackboneConfig:
    """The vision-language model that the checkpoint is built on."""

    text: DecoderConfig
    vision: VisionConfig
    image_token_id: int
    vision_start_id: int
    vision_end_id: int


@dataclass(frozen=True)
class ActionSpaceConfig:
    """Unicycle with acceleration (m/s2) and curvature (1/m) as actions, normalised."""

    accel_mean: float
    accel_std: float
    curvature_mean: float
    curvature_std: float
    accel_bounds: tuple[float, float]
    curvature_bounds: tuple[float, float]
    dt_s: float = 0.1
    waypoints: int = 64
    theta_lambda: float = 1e-6
    theta_ridge: float = 1e-8
    v_lambda: float = 1e-6
    v_ridge: float = 1e-4
    a_lambda: float = 1e-4
    a_ridge: float = 1e-4
    kappa_lambda: float = 1e-4
    kappa_ridge: float = 1e-4


@dataclass(frozen=True)
class ActionInConfig:
    """The encoder of noisy actions."""

    hidden_size: int
    layers: int
    frequencies: int  # half of num_fourier_feats: a sine and a cosine each
    max_frequency: float


@dataclass(frozen=True)
class HistoryBins:
    """How the ego history becomes tokens: uniform bins of the step from pose to pose."""

    xyz_min_m: tuple[float, float, float]
    xyz_max_m: tuple[float, float, float]
    bins: int
    tokens: int  # places in the prompt
    first_id: int  # id of bin 0


@dataclass(frozen=True)
class ModelConfig:
    """All of a checkpoint's configuration that inference needs."""

    version: str
    backbone: BackboneConfig
    expert: DecoderConfig
    action_in: ActionInConfig
    action_space: ActionSpaceConfig
    history: HistoryBins
    flow_steps: int
    min_pixels: int
    max_pixels: int
    vocab_size: int
    trajectory_first_id: int  # size of the base tokenizer
    trajectory_bins: int
    revision: str = ""  # pinned by the configuration, else empty
    content_hash: str = ""  # sha256 of the weights, pinned by the configuration, else empty
    special_ids: dict[str, int] = field(default_factory=dict)  # name without <| |> to id

    @property
    def cache_values_per_token(self) -> int:
        """Numbers that one token keeps in the key/value cache of one sample."""
        text = self.backbone.text
        return 2 * text.num_layers * text.num_kv_heads * text.head_dim


# Qwen3-VL-8B-Instruct; Cosmos-Reason2-8B has the same architecture and tokenizer.
PUBLIC_BACKBONE = BackboneConfig(
    text=DecoderConfig(4096, 12288, 36, 32, 8, 128, 1e-6, 5e6, (24, 20, 20)),
    vision=VisionConfig(27, 1152, 4304, 16, 4096, (8, 16, 24), 2304),
    image_token_id=151655,
    vision_start_id=151652,
    vision_end_id=151653,
)
