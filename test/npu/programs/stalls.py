"""How often the host waits for the device, stage by stage, with the released model's layer counts.

36 layers of language model and expert, 27 vision blocks with three deepstack levels, 16 images;
narrow layers and small images, which change no count.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from test.npu.emulator.hostnpu import HostNPU

import torch  # isort: skip - after torch_npu

from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.model.features import FeatureCache
from alpamayo_ros.model.recipe import write_recipe_checkpoint
from alpamayo_ros.model.rollout import Rollout
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import Plan
from test.model.quick import write_quick_config

LAYERS, BLOCKS, DEEPSTACK = 36, 27, [8, 16, 24]


@dataclass
class Stage:
    """What one stage of a decision did."""

    stalls: int
    launches: int
    uploads: int
    attention: dict[str, int]  # calls of fused attention by layout


def deep_checkpoint(folder: Path) -> Path:
    """The smallest configuration that has every part, with the released model's layer counts."""
    source = write_quick_config(folder / "source")
    path = source / "backbone" / "config.json"
    values = json.loads(path.read_text())
    values["text_config"]["num_hidden_layers"] = LAYERS
    values["vision_config"] |= {"depth": BLOCKS, "deepstack_visual_indexes": DEEPSTACK}
    path.write_text(json.dumps(values))
    return write_recipe_checkpoint(folder / "deep", source)


class Observed:
    """Measures the stages of a model's decisions."""

    def __init__(self, npu: HostNPU) -> None:
        self.npu = npu
        self.stages: dict[str, Stage] = {}

    def wrap(self, owner: Any, name: str, stage: str) -> None:
        """Measure a method. The device has nothing to do before it, so that waits show."""
        method: Callable[..., Any] = getattr(owner, name)

        def measured(*args: Any, **kwargs: Any) -> Any:
            npu = self.npu
            before = npu.stalls(), npu.launches, npu.uploads, len(npu.attention)
            result = method(*args, **kwargs)
            calls = npu.attention[before[3] :]
            self.stages[stage] = Stage(
                npu.stalls() - before[0],
                npu.launches - before[1],
                npu.uploads - before[2],
                {name: sum(c.layout == name for c in calls) for name in ("BNSD", "TND")},
            )
            return result

        setattr(owner, name, measured)


def decide(model: AlpamayoR1, greedy: bool, samples: int, tokens: int) -> Plan:
    """A decision on images that were not seen before."""
    model.reset()
    return model.plan(
        fake_snapshot(0), num_samples=samples, greedy=greedy, max_new_tokens=tokens, seed=3
    )


def main() -> None:
    """Print the stages and totals of decisions: greedy or sampled, of one sample or three."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name, HostNPU() as npu:
        folder = Path(name)
        checkpoint = deep_checkpoint(folder)
        model = AlpamayoR1.from_pretrained(checkpoint, device="npu:0", dtype="bfloat16")
        observed = Observed(npu)
        observed.wrap(FeatureCache, "encode", "vision")
        observed.wrap(Rollout, "prefill", "prefill")
        observed.wrap(Rollout, "reason", "reasoning")
        observed.wrap(Rollout, "actions", "flow")
        results = []
        for greedy, samples, tokens in ((True, 1, 3), (False, 3, 3)):
            npu.reset()
            plan = decide(model, greedy, samples, tokens)
            results.append(
                {
                    "greedy": greedy,
                    "samples": samples,
                    "tokens": max(map(len, plan.token_ids)),
                    "total": npu.stalls(),
                    "stages": {k: asdict(v) for k, v in observed.stages.items()},
                }
            )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
