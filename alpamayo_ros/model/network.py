"""All weights of Alpamayo in one module, named as the released checkpoint names them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model.configuration import ActionSpaceConfig, ModelConfig
from alpamayo_ros.model.expert import ACTION_SIZE, ActionInProjection, Expert
from alpamayo_ros.model.language import LanguageModel
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


def empty_network(config: ModelConfig, operators: Operators) -> Network:
    """The module with parameters that have a shape and no memory, and with its buffers."""
    with torch.device("meta"):
        network = Network(config, operators)
    # The buffers are constants of the configuration: a checkpoint may leave them out.
    network.action_space = ActionScale(config.action_space)
    encoder = network.action_in_proj
    real = ActionInProjection(config.action_in, 1, operators)
    encoder.sinus, encoder.timestep_fourier_encoder = real.sinus, real.timestep_fourier_encoder
    return network
