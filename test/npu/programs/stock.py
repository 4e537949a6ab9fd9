"""transformers' own Qwen3-VL on the emulated device, as it is and patched: waits and logits.

The released model's layer counts, narrow layers, 16 small images; widths change no count.
"""

from __future__ import annotations

import json
from typing import Any

from test.npu.emulator.hostnpu import HostNPU

import torch  # isort: skip - after torch_npu
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLModel

from alpamayo_ros.model.qwen_patches import apply_qwen3vl_patches

LAYERS, BLOCKS, DEEPSTACK = 36, 27, [8, 16, 24]
IMAGES, GRID, IMAGE_TOKENS = 16, (1, 4, 6), 6
IMAGE, VIDEO, VISION_START, VISION_END = 490, 491, 492, 493
NEW_TOKENS = (2, 4)  # the difference of both runs is what two tokens cost


def model() -> Any:
    """A stock model with random weights, on the CPU."""
    torch.manual_seed(0)
    text = {
        "vocab_size": 500,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2]},
    }
    vision = {
        "depth": BLOCKS,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": DEEPSTACK,
    }
    config = Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=IMAGE,
        video_token_id=VIDEO,
        vision_start_token_id=VISION_START,
        vision_end_token_id=VISION_END,
        attn_implementation="sdpa",
    )
    return Qwen3VLForConditionalGeneration(config).eval()


def inputs(device: str, grid_on: str) -> dict[str, torch.Tensor]:
    """A prompt of words, images and words; the images' grids may lie on another device."""
    image = [VISION_START, *[IMAGE] * IMAGE_TOKENS, VISION_END]
    patches = torch.randn(
        IMAGES * GRID[1] * GRID[2], 1536, generator=torch.Generator().manual_seed(0)
    )
    return {
        "input_ids": torch.tensor([[1, 2, *image * IMAGES, *range(3, 20)]]).to(device),
        "pixel_values": patches.to(device),
        "image_grid_thw": torch.tensor([GRID] * IMAGES).to(grid_on),
    }


class Observed:
    """What a model on the device does, beside its logits on the CPU."""

    def __init__(self, npu: HostNPU) -> None:
        self.npu = npu
        self.model = model()
        self.expected = self.model(**inputs("cpu", "cpu")).logits
        self.tokens = self.generate("cpu", "cpu", NEW_TOKENS[-1])
        self.model.to("npu:0")

    def generate(self, device: str, grid_on: str, count: int) -> list[int]:
        """Greedy tokens after the prompt."""
        given = inputs(device, grid_on)
        out = self.model.generate(
            **given, do_sample=False, min_new_tokens=count, max_new_tokens=count, pad_token_id=0
        )
        return out[0, -count:].tolist()

    def measure(self, grid_on: str) -> dict[str, Any]:
        """Waits of a forward, of its placeholder mask, and of a token."""
        given = inputs("npu:0", grid_on)
        in_mask: list[int] = []
        placeholder_mask = Qwen3VLModel.get_placeholder_mask

        def counted(*args: Any, **kwargs: Any) -> Any:
            before = self.npu.stalls()
            result = placeholder_mask(*args, **kwargs)
            in_mask.append(self.npu.stalls() - before)
            return result

        Qwen3VLModel.get_placeholder_mask = counted
        self.npu.reset()
        logits = self.model(**given).logits
        waits, launches = self.npu.stalls(), self.npu.launches
        Qwen3VLModel.get_placeholder_mask = placeholder_mask
        runs = []
        for count in NEW_TOKENS:
            self.npu.reset()
            tokens = self.generate("npu:0", grid_on, count)
            runs.append(self.npu.stalls() - 1)  # without the one that reads the tokens
        return {
            "waits": waits,
            "placeholder_mask": in_mask,
            "a_token": (runs[1] - runs[0]) / (NEW_TOKENS[1] - NEW_TOKENS[0]),
            "launches": launches,
            "error": float((logits.cpu() - self.expected).abs().max()),
            "tokens_equal": tokens == self.tokens,
        }


def main() -> None:
    """Print the counts of the stock model and of the patched one, with grids on either side."""
    torch.set_num_threads(1)
    with HostNPU() as npu, torch.no_grad():
        observed = Observed(npu)
        results = {"stock": {g: observed.measure(g) for g in ("npu:0", "cpu")}}
        apply_qwen3vl_patches(observed.model)
        results["patched"] = {g: observed.measure(g) for g in ("npu:0", "cpu")}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
