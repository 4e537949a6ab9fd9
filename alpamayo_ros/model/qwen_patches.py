"""Gives transformers' own Qwen3-VL the operators of this package, in place of its classes' methods.

For programs that are built on `Qwen3VLForConditionalGeneration`; `AlpamayoR1` needs none of this.
Written against transformers 4.57. What stays is the stock forward around it, with its
`masked_scatter` of the images' features.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, PreTrainedModel
from transformers.models.qwen3_vl import modeling_qwen3_vl as stock

from alpamayo_ros.devices.operators import Operators, operators_for

ATTENTION = "alpamayo"  # the name of our attention in a configuration's attn_implementation


def apply_qwen3vl_patches(model: PreTrainedModel | None = None) -> None:
    """Patch the Qwen3-VL of this process, whether its models exist already or not.

    Attention goes by a model's configuration: a given model is switched to ours; one made later
    takes it with `attn_implementation="alpamayo"`. A second call changes nothing.
    """
    for owner, name, replacement in PATCHES:
        setattr(owner, name, replacement)
    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, attention)
    # A name that is missing here gets no mask at all.
    ALL_MASK_ATTENTION_FUNCTIONS.register(ATTENTION, sdpa_mask)
    if model is not None:
        model.set_attn_implementation(ATTENTION)


def patched_get_placeholder_mask(
    self: Any,
    input_ids: Tensor | None,
    inputs_embeds: Tensor,
    image_features: Tensor | None = None,
    video_features: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Where images' and videos' features go: two bool masks of the shape of inputs_embeds.

    The stock method indexes the embeddings with each mask to learn how many there are. Here the
    ids are counted on the host, after one transfer, and nothing is indexed.

    Raises:
        ValueError: there are not as many features as placeholders.
    """
    config = self.config
    if input_ids is None:
        found = [_equal_rows(self, inputs_embeds, token) for token in
                 (config.image_token_id, config.video_token_id)]  # fmt: skip
    else:
        ids = input_ids.cpu()
        found = [ids == config.image_token_id, ids == config.video_token_id]
    hidden = inputs_embeds.shape[-1]
    for mask, features, names in (
        (found[0], image_features, ("Image", "image")),
        (found[1], video_features, ("Videos", "video")),
    ):
        count = int(mask.sum())
        if features is not None and count * hidden != features.numel():
            raise ValueError(
                f"{names[0]} features and {names[1]} tokens do not match: tokens: {count}, "
                f"features {features.shape[0]}"
            )
    image, video = (mask.to(inputs_embeds.device)[..., None] for mask in found)
    return image.expand_as(inputs_embeds), video.expand_as(inputs_embeds)


def _equal_rows(model: Any, embeddings: Tensor, token: int) -> Tensor:
    """Which embeddings (B, S, hidden) are those of a token: bool (B, S)."""
    row = model.get_input_embeddings()(torch.tensor(token, device=embeddings.device))
    return (embeddings == row).all(-1)


def patched_deepstack_process(
    self: Any, hidden_states: Tensor, visual_pos_masks: Tensor, visual_embeds: Tensor
) -> Tensor:
    """hidden_states (B, S, hidden) with visual_embeds (N, hidden) added where the mask is True.

    The n-th place takes the n-th row, found by counting on the device: boolean indexing would
    have the host wait for the number of places.
    """
    mask = visual_pos_masks.to(hidden_states.device)
    rows = (mask.flatten().cumsum(0) - 1).clamp(min=0).view(mask.shape)
    features = visual_embeds.to(hidden_states.device, hidden_states.dtype)[rows]
    return hidden_states + features * mask[..., None]


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    is_causal: bool | None = None,
    **unused: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface: (B, heads, S, D) to (B, S, heads, D), scaled by 1/sqrt(D).

    attention_mask is bool, True where a key is seen; without one a single query sees everything.
    """
    causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
    causal = bool(causal) and attention_mask is None and query.shape[2] > 1
    operators = _operators(query)
    seen = operators.attention(query, key, value, mask=attention_mask, causal=causal)
    return seen.transpose(1, 2), None


def patched_rms_norm(self: Any, hidden_states: Tensor) -> Tensor:
    """Qwen3VLTextRMSNorm.forward."""
    operators = _operators(hidden_states)
    return operators.rms_norm(hidden_states, self.weight, self.variance_epsilon)


def patched_mlp(self: Any, x: Tensor) -> Tensor:
    """Qwen3VLTextMLP.forward."""
    gate_up = torch.cat((self.gate_proj(x), self.up_proj(x)), dim=-1)
    return self.down_proj(_operators(x).swiglu(gate_up))


def patched_rotary(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    position_ids: Tensor | None = None,
    unsqueeze_dim: int = 1,
) -> tuple[Tensor, Tensor]:
    """apply_rotary_pos_emb of the language model; cos and sin (B, S, D)."""
    rotary = _operators(q).rotary
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return rotary(q, cos, sin), rotary(k, cos, sin)


def patched_vision_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """apply_rotary_pos_emb_vision; q and k (S, heads, D), computed in float32."""
    rotary = _operators(q).rotary
    cos, sin = cos[:, None].float(), sin[:, None].float()
    return rotary(q, cos, sin), rotary(k, cos, sin)


_operators_of = functools.lru_cache(operators_for)


def _operators(x: Tensor) -> Operators:
    """The table of a tensor's device."""
    return _operators_of(str(x.device))


# What is replaced, by what.
PATCHES: tuple[tuple[Any, str, Any], ...] = (
    (stock.Qwen3VLModel, "get_placeholder_mask", patched_get_placeholder_mask),
    (stock.Qwen3VLTextModel, "_deepstack_process", patched_deepstack_process),
    (stock.Qwen3VLTextRMSNorm, "forward", patched_rms_norm),
    (stock.Qwen3VLTextMLP, "forward", patched_mlp),
    (stock, "apply_rotary_pos_emb", patched_rotary),
    (stock, "apply_rotary_pos_emb_vision", patched_vision_rotary),
)
