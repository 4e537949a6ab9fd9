"""Decisions with each switch beside the same without it, on the emulated device."""

from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path
from typing import Any

from test.npu.emulator.hostnpu import HostNPU

import numpy as np  # isort: skip - after torch_npu
import torch

from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.devices.tuning import UNTUNED, Tuning
from alpamayo_ros.model import AlpamayoR1
from alpamayo_ros.model.recipe import write_recipe_checkpoint
from alpamayo_ros.model.rollout import Rollout
from alpamayo_ros.model.verification import verify_switches
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import Plan
from test.devices.recorded import Recorder
from test.model.quick import write_quick_config

# Words of each sample of three decisions in a row; the end token follows.
DECISIONS = ([[], []], [[40, 41, 42, 43], [50]], [[60, 61], [70, 71]])
NEW_TOKENS = 6
CAST = "npu::npu_format_cast"


class Graph(Recorder):
    """Stands in for torch.npu.NPUGraph: recorded within `graph`; counts what it launches."""

    def __init__(self, npu: HostNPU) -> None:
        super().__init__()
        self.npu = npu
        self.replays = 0
        self.launches = 0

    def replay(self) -> None:
        """Run it again."""
        before = self.npu.launches
        super().replay()
        self.replays += 1
        self.launches += self.npu.launches - before


def decide(model: AlpamayoR1, seed: int) -> Plan:
    """One of the decisions, of samples whose reasoning is given."""
    rows = [[*words, model.rollout.end_token] for words in DECISIONS[seed]]
    tokens = np.full((len(rows), NEW_TOKENS), -1)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = row
    return model.plan(fake_snapshot(seed), num_samples=len(rows), seed=seed, tokens=tokens)


class Observed:
    """What decisions with a switch did."""

    def __init__(self, npu: HostNPU, checkpoint: Path, dtype: str) -> None:
        self.npu = npu
        self.checkpoint = checkpoint
        self.dtype = dtype
        self.expected = self.plans(self.load(UNTUNED))

    def load(self, tuning: Tuning) -> AlpamayoR1:
        """The model with switches."""
        return AlpamayoR1.from_pretrained(self.checkpoint, None, "npu:0", self.dtype, tuning)

    @staticmethod
    def plans(model: AlpamayoR1) -> list[Plan]:
        """All decisions, one after the other."""
        return [decide(model, seed) for seed in range(len(DECISIONS))]

    def error_m(self, plans: list[Plan]) -> float:
        """The largest difference to the decisions without the switch."""
        gaps = [np.abs(a.samples - b.samples)[..., :2].max() for a, b in zip(plans, self.expected)]
        return float(max(gaps))

    def convolution(self) -> dict[str, Any]:
        """The patch embedding's other form."""
        model = self.load(Tuning(patch_embedding="convolution"))
        self.npu.reset()
        plans = self.plans(model)
        convolutions = sum(n for name, n in self.npu.operators.items() if "conv" in name)
        return {"error_m": self.error_m(plans), "convolutions": convolutions}

    def weight_format(self) -> dict[str, Any]:
        """The device's own layout: how many matrices are cast, how many there are."""
        self.npu.reset()
        model = self.load(Tuning(weight_format="nz"))
        casts = self.npu.operators[CAST]
        return {
            "error_m": self.error_m(self.plans(model)),
            "casts": casts,
            "layers": model.config.backbone.text.num_layers,
            "blocks": model.config.backbone.vision.depth,
            "deepstack": len(model.config.backbone.vision.deepstack_layers),
        }

    def capture(self) -> dict[str, Any]:
        """A recorded step: its replays, and what the host does beside them."""
        graphs: list[Graph] = []

        def make() -> Graph:
            graphs.append(Graph(self.npu))
            return graphs[-1]

        real = torch.npu.NPUGraph, torch.npu.graph, Rollout.actions
        beside: list[tuple[int, int]] = []  # launches and stalls of a flow beside its replays

        def actions(*args: Any, **kwargs: Any) -> Any:
            before = self.npu.launches, self.npu.stalls(), sum(g.launches for g in graphs)
            result = real[2](*args, **kwargs)
            launched = self.npu.launches - before[0]
            replayed = sum(g.launches for g in graphs) - before[2]
            beside.append((launched - replayed, self.npu.stalls() - before[1]))
            return result

        torch.npu.NPUGraph, torch.npu.graph = make, lambda graph: graph
        Rollout.actions = actions  # type: ignore[method-assign]
        try:
            plans = self.plans(self.load(Tuning(graph_capture=True)))
        finally:
            torch.npu.NPUGraph, torch.npu.graph = real[:2]
            Rollout.actions = real[2]  # type: ignore[method-assign]
        return {
            "error_m": self.error_m(plans),
            "replays": [graph.replays for graph in graphs],
            # The first flow records.
            "launches_beside": max(launches for launches, _ in beside[1:]),
            "stalls": max(stalls for _, stalls in beside[1:]),
        }

    def capture_refused(self) -> dict[str, Any]:
        """The emulated runtime knows no graphs: the real NPUGraph fails."""
        lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("alpamayo_ros")
        logger.addHandler(handler)
        plans = self.plans(self.load(Tuning(graph_capture=True)))
        logger.removeHandler(handler)
        return {"error_m": self.error_m(plans), "lines": lines}


def main() -> None:
    """Print what each switch did, in both types."""
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, HostNPU() as npu:
        source = write_quick_config(Path(name) / "source")
        checkpoint = write_recipe_checkpoint(Path(name) / "quick", source)
        for dtype in ("float32", "bfloat16"):
            observed = Observed(npu, checkpoint, dtype)
            results[dtype] = {
                "convolution": observed.convolution(),
                "weight_format": observed.weight_format(),
                "capture": observed.capture(),
                "capture_refused": observed.capture_refused(),
            }
        checks = verify_switches("npu:0", load_demo_model, fake_snapshot(0))
        results["verify"] = {check.name: check.outcome for check in checks}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
