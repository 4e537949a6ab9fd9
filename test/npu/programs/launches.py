"""Kernels that one step of the flow launches at full size: counted on fake tensors, no memory."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from test.npu.emulator.hostnpu import full_name, launches

import torch  # isort: skip - after torch_npu
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from alpamayo_ros.devices.operators import operators_for
from alpamayo_ros.model.checkpoint import assign
from alpamayo_ros.model.config_file import parse_config
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.expert import velocity
from alpamayo_ros.model.language import KeyValueCache, Rotary
from alpamayo_ros.model.network import empty_network
from test.model.golden import TINY_CHECKPOINT

PROMPT, WAYPOINTS = 3020, 64
RELEASED_EXPERT = {
    "hidden_size": 2048,
    "intermediate_size": 8256,
    "num_attention_heads": 16,
    "head_dim": 128,
}


class Counted(TorchDispatchMode):
    """Counts the kernels that are launched within it."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if launches(func) and not func._schema.name.startswith("prim::"):
            self.kernels[full_name(func)] += 1
        return func(*args, **(kwargs or {}))


def released_config() -> ModelConfig:
    """The released model's configuration: the golden one's fields, at full size."""
    values = json.loads((TINY_CHECKPOINT / "config.json").read_text())
    values["expert_cfg"] = RELEASED_EXPERT
    values["action_in_proj_cfg"] |= {"hidden_size": 512}
    values["vlm_name_or_path"] = "Qwen/Qwen3-VL-8B-Instruct"
    return parse_config(values, None)


class Step:
    """One step of the flow: encode the actions, run the expert, decode, and the Euler step."""

    def __init__(self, config: ModelConfig, samples: int) -> None:
        kwargs: dict[str, Any] = {"device": "npu:0", "dtype": torch.bfloat16}
        self.operators = operators_for("npu:0")
        self.network = empty_network(config, self.operators)
        for name, tensor in [*self.network.state_dict().items()]:
            assign(self.network, name, torch.zeros(tensor.shape, **kwargs))
        self.network.eval().requires_grad_(False)
        self.network.merge()
        text = config.backbone.text
        self.cache = KeyValueCache(text, samples, PROMPT + WAYPOINTS, **kwargs)
        table = torch.zeros(samples, 1, WAYPOINTS, config.expert.head_dim, device="npu:0")
        self.rotary = Rotary(table, table.clone())
        self.x = torch.zeros(samples, WAYPOINTS, 2, device="npu:0")
        self.times = torch.zeros(2 * 10, device="npu:0")
        self.dt = torch.zeros((), device="npu:0")
        seen = torch.ones(samples, 1, 1, PROMPT + WAYPOINTS, dtype=torch.bool, device="npu:0")
        self.mask = None if samples == 1 else seen

    def __call__(self) -> torch.Tensor:
        network = self.network
        speed = velocity(
            network.expert,
            network.action_in_proj,
            network.action_out_proj,
            self.x,
            self.times,
            self.rotary,
            self.cache,
            PROMPT,
            self.mask,
        )
        return self.operators.euler_step(self.x, self.dt, speed)


def count(samples: int) -> dict[str, Any]:
    """Kernels of a step that is not the first: constants are made then."""
    with FakeTensorMode(), torch.no_grad():
        step = Step(released_config(), samples)
        step()
        with Counted() as counted:
            result = step()
        with Counted() as features:
            step.network.action_in_proj.features(step.x, step.times)
    return {
        "samples": samples,
        "launches": sum(counted.kernels.values()),
        "kernels": dict(counted.kernels),
        "features": dict(features.kernels),
        "result": str(result.dtype),
    }


def main() -> None:
    """Print the counts for one sample and for three of different lengths."""
    print(json.dumps([count(1), count(3)]))


if __name__ == "__main__":
    main()
