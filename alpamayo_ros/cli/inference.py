"""alpamayo_inference: one plan for one snapshot, as JSON."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alpamayo_ros.cli.common import (
    OneLineParser,
    UsageError,
    check_output,
    run,
    say,
    write_json,
)
from alpamayo_ros.devices.tuning import PATCH_EMBEDDINGS, WEIGHT_FORMATS, Tuning
from alpamayo_ros.limits import MAX_NEW_TOKENS
from alpamayo_ros.types import Plan, Snapshot

if TYPE_CHECKING:
    from alpamayo_ros.model import AlpamayoR1

DEMO = "demo"  # as a model: the built-in small one; as a snapshot: one made from the seed


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    return run(_main, argv)


def add_source_options(options: argparse.ArgumentParser) -> None:
    """Which model plans on which snapshot, and where."""
    add = options.add_argument
    add("--model", default=DEMO, help="checkpoint folder, or demo: the built-in small model")
    add("--tokenizer", help="folder with tokenizer.json, where the checkpoint ships none")
    add("--snapshot", default=DEMO, help="snapshot file (.npz), or demo: one made from the seed")
    add("--device", default="auto", help="auto, cpu, cuda:0 or npu:0 (default: auto)")
    add("--dtype", choices=("float32", "bfloat16"), help="default: float32 on the CPU, else bf16")
    add(
        "--patch-embedding",
        choices=PATCH_EMBEDDINGS,
        default=PATCH_EMBEDDINGS[0],
        help="form of the images' first layer (default: matmul)",
    )
    add(
        "--graph-capture",
        action="store_true",
        help="record a step of the flow once, then replay it (cuda, npu)",
    )
    add(
        "--weight-format",
        choices=WEIGHT_FORMATS,
        default=WEIGHT_FORMATS[0],
        help="nz: the NPU's own layout of matrices (default: plain)",
    )


def parser() -> argparse.ArgumentParser:
    """The options, as DESIGN names them."""
    options = OneLineParser("alpamayo_inference", description=__doc__)
    add = options.add_argument
    add_source_options(options)
    add("--seed", type=int, default=0, help="of sampling and noise, with the snapshot's t0")
    add("--num-samples", type=int, help="trajectories (default: as --noise or --tokens, else 1)")
    add("--greedy", action="store_true", help="take the most probable token, no sampling")
    add("--temperature", type=float, help="of the sampling (default: 0.6)")
    add("--top-p", type=float, help="mass of tokens that are sampled from (default: 0.98)")
    add("--max-new-tokens", type=int, default=256, help="longest reasoning (default: 256)")
    add("--noise", help="float32 (S, 64, 2) .npy in place of the flow's noise")
    add("--tokens", help="int32 (S, n) .npy, padded with -1: reasoning in place of sampling it")
    add("--navigation", help="instruction of a route planner")
    add("--output", help="file for the JSON (default: standard output)")
    return options


def _main(argv: Sequence[str] | None) -> int:
    options = parser().parse_args(argv)
    check_output(options.output)
    if options.greedy and (options.temperature, options.top_p) != (None, None):
        raise UsageError("--greedy does not sample: leave out --temperature and --top-p")
    from alpamayo_ros.model.samples import require_choices

    noise, tokens = _array("--noise", options.noise), _array("--tokens", options.tokens)
    choices = {
        "num_samples": _num_samples(options.num_samples, noise, tokens),
        "seed": options.seed,
        "temperature": 0.6 if options.temperature is None else options.temperature,
        "top_p": 0.98 if options.top_p is None else options.top_p,
        "max_new_tokens": options.max_new_tokens,
    }
    require_choices(**choices)  # before a checkpoint of 22 GB is loaded
    snapshot = load_snapshot(options.snapshot, options.seed)
    model = load_named_model(options, choices["num_samples"], _longest(options, tokens))
    say(f"planning with {model.model_id} on {model.device} in {model.dtype}")
    plan = model.plan(
        snapshot,
        **choices,
        greedy=options.greedy,
        noise=noise,
        tokens=tokens,
        navigation_text=options.navigation or snapshot.navigation_text or None,
    )
    write_json(as_json(plan), options.output)
    return 0


def as_json(plan: Plan) -> dict[str, Any]:
    """A plan as the object that the program writes."""
    return {
        "waypoints": plan.waypoints.tolist(),
        "samples": plan.samples.tolist(),
        "chosen": plan.chosen,
        "spread": plan.spread_m,
        "reasoning": plan.reasoning,
        "token_ids": plan.token_ids,
        "truncated": plan.truncated,
        "finite": plan.finite,
        "seed": plan.seed,
        "t0_ns": int(plan.t0_ns),
        "device": plan.device,
        "dtype": plan.dtype,
        "model": plan.model_id,
        "run_id": str(uuid.uuid4()),
        "timing_ms": plan.timing_ms,
    }


def load_snapshot(name: str, seed: int) -> Snapshot:
    """The snapshot of a file, or one made from the seed (>= 0) where the name is "demo"."""
    if name != DEMO:
        return Snapshot.load(name)
    from alpamayo_ros.sensing.fake import fake_snapshot

    return fake_snapshot(seed)


def load_named_model(
    options: argparse.Namespace, num_samples: int, max_new_tokens: int
) -> AlpamayoR1:
    """The model that `add_source_options` names, where there is room for plans of this kind."""
    from alpamayo_ros.planning.planner import PlannerSettings, load_model

    if not options.model:
        raise UsageError(f'--model is empty: give the folder of a checkpoint, or "{DEMO}"')
    say(f"loading {options.model}")
    return load_model(
        options.model,
        options.tokenizer or "",
        options.device,
        options.dtype or "auto",
        PlannerSettings(num_samples=num_samples, max_new_tokens=max_new_tokens),
        Tuning(options.patch_embedding, options.graph_capture, options.weight_format),
    )


def _array(option: str, path: str | None) -> np.ndarray | None:
    if path is None:
        return None
    try:
        loaded = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise UsageError(f"{option} {path}: there is no such file") from None
    except Exception as error:  # numpy raises a dozen kinds on damage, MemoryError among them
        reason = str(error) or type(error).__name__
        raise UsageError(f"{option} {path} is no .npy file: {reason}") from None
    if not isinstance(loaded, np.ndarray) or loaded.ndim < 2:
        raise UsageError(f"{option} {path} must hold one array, its first axis the samples")
    return loaded


def _longest(options: argparse.Namespace, tokens: np.ndarray | None) -> int:
    """How long the reasoning may become; too many tokens are refused by the model, in its words."""
    if tokens is None:
        return options.max_new_tokens
    return min(tokens.shape[1], int(MAX_NEW_TOKENS.most))


def _num_samples(given: int | None, *arrays: np.ndarray | None) -> int:
    lengths = [len(array) for array in arrays if array is not None]
    return given if given is not None else (lengths or [1])[0]
