"""All weights of Alpamayo in one module, named as the released checkpoint names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.devices.tuning import Tuning
from alpamayo_ros.model.configuration import ActionSpaceConfig, ModelConfig
from alpamayo_ros.model.expert import ACTION_SIZE, ActionInProjection, Expert, FourierFrequencies
from alpamayo_ros.model.language import DecoderLayer, GatedMLP, LanguageModel, SelfAttention
from alpamayo_ros.model.layers import Linear
from alpamayo_ros.model.vision import VisionModel


class Backbone(nn.Module):
    """vlm.model: the vision and the language part."""

    def __init__(self, config: ModelConfig, operators: Operators) -> None:
        super().__init__()
        self.visual = VisionModel(config.backbone.vision, operators)
        self.language_model = LanguageModel(config.backbone.text, config.vocab_size, operators)


class VisionLanguageModel(nn.Module):
    """vlm: the backbone and the untied head."""

    def __init__(self, config: ModelConfig, operators: Operators) -> None:
        super().__init__()
        self.model = Backbone(config, operators)
        self.lm_head = Linear(config.backbone.text.hidden_size, config.vocab_size, operators)


class ActionScale(nn.Module):
    """action_space: mean and deviation of the actions, which R1 stores and version 1.5 does not."""

    accel_mean: Tensor
    accel_std: Tensor
    curvature_mean: Tensor
    curvature_std: Tensor

    def __init__(self, config: ActionSpaceConfig) -> None:
        super().__init__()
        for name in ("accel_mean", "accel_std", "curvature_mean", "curvature_std"):
            self.register_buffer(name, torch.tensor(getattr(config, name), dtype=torch.float32))


class Network(nn.Module):
    """Everything that a checkpoint holds."""

    def __init__(self, config: ModelConfig, operators: Operators) -> None:
        super().__init__()
        hidden = config.expert.hidden_size
        self.vlm = VisionLanguageModel(config, operators)
        self.expert = Expert(config, operators)
        self.action_in_proj = ActionInProjection(config.action_in, hidden, operators)
        self.action_out_proj = Linear(hidden, ACTION_SIZE, operators, bias=True)
        self.action_space = ActionScale(config.action_space)

    def merge(self) -> None:
        """Merge the projections that read one input, for inference."""
        self.vlm.model.language_model.merge()
        self.expert.merge()
        self.action_in_proj.merge()

    def tune(self, tuning: Tuning) -> None:
        """Do as the device's switches say; a merged network."""
        self.vlm.model.visual.patch_embed.as_convolution = tuning.patch_embedding == "convolution"
        if tuning.weight_format == "nz":
            from alpamayo_ros.devices.npu import fractal_nz

            self.cast_weights(fractal_nz)

    def cast_weights(self, change: Callable[[Tensor], Tensor]) -> None:
        """Put the matrices of a merged network into the form that `change` gives them.

        Merged matrices lose their parts, which would be a second copy. The last layer of the
        language model keeps its own: the prompt's last token takes them one by one. So does the
        encoder of the actions, whose matrices are small.
        """
        kept = cast("DecoderLayer", self.vlm.model.language_model.layers[-1]).self_attn
        parts: set[nn.Module] = {kept.q_proj, kept.k_proj, kept.v_proj}
        for module in self.modules():
            if isinstance(module, (SelfAttention, GatedMLP)) and module is not kept:
                module.stacked.cast(change)
                parts.update(module.stacked.layers)
        parts.update(self.action_in_proj.modules())
        for module in self.modules():
            if isinstance(module, Linear) and module not in parts:
                module.weight.data = change(module.weight.data)


def empty_network(config: ModelConfig, operators: Operators) -> Network:
    """The module with parameters that have a shape and no memory, and with its buffers."""
    with torch.device("meta"):
        network = Network(config, operators)
    # The buffers are constants of the configuration: a checkpoint may leave them out.
    network.action_space = ActionScale(config.action_space)
    encoder = network.action_in_proj
    for encoder_of_one in (*encoder.sinus, encoder.timestep_fourier_encoder):
        encoder_of_one.freqs = FourierFrequencies(config.action_in).freqs
    return network
