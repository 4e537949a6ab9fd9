"""Kernels of a flow step in transformers' own layers at full size: counted on fake tensors."""

from __future__ import annotations

import json
from typing import Any

from test.npu.programs.launches import PROMPT, RELEASED_EXPERT, WAYPOINTS, Counted

import torch  # isort: skip - after torch_npu
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import DynamicCache
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLTextConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextModel

CONFIG = {
    "vocab_size": 8,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20]},
    **RELEASED_EXPERT,
}


def count(residual: torch.dtype) -> dict[str, Any]:
    """Kernels of the layers for 64 tokens behind a prompt, each seeing all others."""
    config = Qwen3VLTextConfig(**CONFIG, attn_implementation="sdpa")
    with FakeTensorMode(), torch.no_grad():
        kwargs: dict[str, Any] = {"device": "npu:0", "dtype": torch.bfloat16}
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("npu:0"):
            model = Qwen3VLTextModel(config).eval()
        torch.set_default_dtype(torch.float32)
        cache = DynamicCache(config=config)
        for layer in range(config.num_hidden_layers):
            past = torch.zeros(1, 8, PROMPT, config.head_dim, **kwargs)
            cache.update(past, past, layer)
        positions = torch.zeros(3, 1, WAYPOINTS, dtype=torch.long, device="npu:0")
        tokens = torch.zeros(1, WAYPOINTS, 2048, device="npu:0", dtype=residual)
        everything = torch.zeros(1, 1, WAYPOINTS, PROMPT + WAYPOINTS, **kwargs)
        with (
            torch.autocast("npu", torch.bfloat16, enabled=residual == torch.float32),
            Counted() as counted,
        ):
            model(
                inputs_embeds=tokens,
                position_ids=positions,
                past_key_values=cache,
                attention_mask=everything,
                use_cache=True,
            )
    return {"launches": sum(counted.kernels.values()), "kernels": dict(counted.kernels)}


def main() -> None:
    """Print the counts with the residual in float32, as the reference has it, and in bfloat16."""
    print(json.dumps({"float32": count(torch.float32), "bfloat16": count(torch.bfloat16)}))


if __name__ == "__main__":
    main()
