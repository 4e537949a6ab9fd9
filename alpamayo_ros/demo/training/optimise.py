"""How the weights start and how they change: Muon for the matrices between layers, AdamW else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from alpamayo_ros.model.network import Network

MUON_RATE = 3e-3
ADAM_RATE = 1.5e-3
WEIGHT_DECAY = 0.05
MAX_GRADIENT = 1.0
WARM_UP = 0.03  # part of the steps
DECAY = 0.5  # part of the steps, at the end, in which the rate falls to nothing
INSIDE = ("blocks.", "layers.", "linear_fc", "trunk.3.")  # where Muon's matrices are
OUT_OF_BRANCH = ("o_proj.weight", "down_proj.weight", "attn.proj.weight", "mlp.linear_fc2.weight")


@torch.no_grad()
def prepare_weights(network: Network) -> None:
    """Make recipe weights a good start: quiet branches, no opinion about words and actions yet."""
    vlm = network.vlm
    depth = max(len(vlm.model.visual.blocks), len(vlm.model.language_model.layers))
    for name, parameter in network.named_parameters():
        if name.endswith(OUT_OF_BRANCH):
            parameter.mul_(1 / math.sqrt(2 * depth))
    vlm.lm_head.weight.mul_(0.1)
    network.action_out_proj.weight.zero_()
    network.action_out_proj.bias.zero_()


class Optimiser:
    """Both optimisers with their schedule, over named parameters."""

    def __init__(self, named: Sequence[tuple[str, nn.Parameter]], steps: int) -> None:
        inside = [p for name, p in named if _in_muon(name, p)]
        outside = [p for name, p in named if not _in_muon(name, p)]
        self._steps = steps
        self._all = [p for _, p in named]
        self._both: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(
                inside, MUON_RATE, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"
            ),
            torch.optim.AdamW(outside, ADAM_RATE, betas=(0.9, 0.98), weight_decay=WEIGHT_DECAY),
        )
        self._rates = (MUON_RATE, ADAM_RATE)

    def step(self, step: int) -> None:
        """Change the weights by their gradients, which it clips and clears."""
        nn.utils.clip_grad_norm_(self._all, MAX_GRADIENT)
        for optimiser, rate in zip(self._both, self._rates):
            for group in optimiser.param_groups:
                group["lr"] = rate * schedule(step, self._steps)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def state(self) -> list[dict]:
        """What a checkpoint keeps."""
        return [optimiser.state_dict() for optimiser in self._both]

    def load(self, state: list[dict]) -> None:
        """Go on from a checkpoint."""
        for optimiser, values in zip(self._both, state):
            optimiser.load_state_dict(values)


def schedule(step: int, steps: int) -> float:
    """Part of the full rate at a step: up, level, and down to nothing."""
    done = (step + 1) / steps
    return min(1.0, done / WARM_UP, (1 - step / steps) / DECAY)


def gather_gradients(parameters: Sequence[nn.Parameter], workers: int) -> None:
    """Give every worker the mean of all workers' gradients."""
    if workers == 1:
        return
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
    flat: Tensor = torch.cat([gradient.reshape(-1) for gradient in gradients])
    torch.distributed.all_reduce(flat)
    flat /= workers
    parts = flat.split([p.numel() for p in parameters])
    for parameter, part in zip(parameters, parts):
        parameter.grad = part.view_as(parameter)


def _in_muon(name: str, parameter: nn.Parameter) -> bool:
    return parameter.ndim == 2 and any(place in name for place in INSIDE)
