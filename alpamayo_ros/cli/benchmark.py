"""alpamayo_benchmark: how long whole decisions take, stage by stage, beside the device's floor."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
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
from alpamayo_ros.cli.inference import add_source_options, load_named_model, load_snapshot
from alpamayo_ros.types import Plan, Snapshot

if TYPE_CHECKING:
    from alpamayo_ros.model import AlpamayoR1

UNDER_FLOOR = 1
STAGES = ("vision", "prefill", "reasoning", "expert", "total")


@dataclass(frozen=True)
class Figures:
    """Durations of one stage over all runs, in ms, and what it had to do."""

    avg: float
    min: float
    max: float
    p50: float
    p90: float
    p95: float
    floor: float
    flop: float
    read_bytes: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 1: a figure is under its floor, which is an error and no result."""
    return run(_main, argv)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = OneLineParser("alpamayo_benchmark", description=__doc__)
    add = options.add_argument
    add_source_options(options)
    add("--seed", type=int, default=0, help="of sampling and noise, the same in every run")
    add("--num-samples", type=int, default=1, help="trajectories (default: 1)")
    add("--max-new-tokens", type=int, default=256, help="longest reasoning (default: 256)")
    add("--warmup", type=int, default=3, help="decisions before the timed ones (default: 3)")
    add("--runs", type=int, default=10, help="timed decisions (default: 10)")
    add("--output", help="file for the JSON (default: the last line printed)")
    return options


def _main(argv: Sequence[str] | None) -> int:
    options = parser().parse_args(argv)
    check_output(options.output)
    if options.warmup < 0 or options.runs < 1:
        raise UsageError("--warmup must be >= 0 and --runs >= 1")
    from alpamayo_ros.model.samples import require_choices

    require_choices(options.num_samples, options.max_new_tokens, options.seed)
    snapshot = load_snapshot(options.snapshot, options.seed)
    model = load_named_model(options, options.num_samples, options.max_new_tokens)
    timings, plan = _timed_plans(model, snapshot, options)
    values = _values(model, snapshot, timings, plan, options.warmup)
    _print_table(values)
    write_json(values, options.output)
    under = [s for s, f in values["stages"].items() if f["min"] < f["floor"]]
    if under:
        stages = ", ".join(under)
        print(
            f"error: under the device's floor, so not a whole decision: {stages}", file=sys.stderr
        )
    return UNDER_FLOOR if under else 0


def _timed_plans(
    model: AlpamayoR1, snapshot: Snapshot, options: argparse.Namespace
) -> tuple[list[dict[str, float]], Plan]:
    """Durations of the stages of each timed run, in ms, and the plan, which is the same in all.

    Every image is encoded anew. The device is waited for before and after the whole decision.
    """
    from alpamayo_ros.devices.device import synchronize

    timings: list[dict[str, float]] = []
    for index in range(options.warmup + options.runs):
        say(f"decision {index + 1} of {options.warmup + options.runs}")
        model.reset()
        synchronize(model.device)
        start_s = perf_counter()
        plan = model.plan(
            snapshot,
            num_samples=options.num_samples,
            seed=options.seed,
            max_new_tokens=options.max_new_tokens,
        )
        synchronize(model.device)
        total_ms = (perf_counter() - start_s) * 1e3
        if index >= options.warmup:
            timings.append({**plan.timing_ms, "total": total_ms})
    return timings, plan


def _values(
    model: AlpamayoR1,
    snapshot: Snapshot,
    timings: list[dict[str, float]],
    plan: Plan,
    warmup: int,
) -> dict[str, Any]:
    """The object that the program writes."""
    from alpamayo_ros.devices.device import device_name, dtype_name
    from alpamayo_ros.devices.floor import measured_rates
    from alpamayo_ros.devices.peaks import peak_of
    from alpamayo_ros.model.verification import stage_floors_ms
    from alpamayo_ros.model.work import Work, work_of_plan

    rates = measured_rates(model.device, model.dtype)
    floors_ms = stage_floors_ms(model, snapshot, plan, rates)
    name = device_name(model.device)
    peak = peak_of(name)
    work = work_of_plan(model, snapshot, plan)
    work["total"] = Work(
        sum(w.flop for w in work.values()), sum(w.read_bytes for w in work.values())
    )
    stages = {
        stage: _figures([t[stage] for t in timings], floors_ms[stage], work[stage])
        for stage in STAGES
    }
    p50_s = stages["total"]["p50"] / 1e3
    images = np.stack(snapshot.frames)[0]
    return {
        "model": model.model_id,
        "device": model.device,
        "device_name": name,
        "dtype": dtype_name(model.dtype),
        "tuning": asdict(model.tuning),
        "inputs": {
            "image_input": [1, 16, 3, *images.shape[1:3]],
            "ego_history": [1, *snapshot.ego_history().shape],
            "reasoning_tokens": [len(row) for row in plan.token_ids],
        },
        "warmup": warmup,
        "runs": len(timings),
        "flop_per_s": rates.flop_per_s,
        "bytes_per_s": rates.bytes_per_s,
        "public_peak": None if peak is None else str(peak),
        "decisions_per_s": 1 / p50_s,
        "waypoints_per_s": len(plan.waypoints) / p50_s,
        "stages": stages,
    }


def _figures(durations_ms: list[float], floor_ms: float, work: Any) -> dict[str, float]:
    low, high = min(durations_ms), max(durations_ms)
    p50, p90, p95 = (float(p) for p in np.percentile(durations_ms, (50, 90, 95)))
    figures = Figures(
        float(np.mean(durations_ms)), low, high, p50, p90, p95, floor_ms, work.flop, work.read_bytes
    )
    return dict(vars(figures))


def _print_table(values: dict[str, Any]) -> None:
    """Print the figures for a person."""
    inputs, stages = values["inputs"], values["stages"]
    print(f"{values['model']} on {values['device']} ({values['device_name']}), {values['dtype']}")
    for name in ("image_input", "ego_history", "reasoning_tokens"):
        print(f"{name:17} {tuple(inputs[name])}")
    rates = f"{values['flop_per_s'] / 1e12:.3f} TFLOP/s, {values['bytes_per_s'] / 1e9:.1f} GB/s"
    print(f"{values['runs']} decisions after {values['warmup']}; the device at best: {rates}")
    print(f"public peak of {values['public_peak'] or 'this device: none is known'}")
    names = ("avg", "min", "max", "p50", "p90", "p95", "floor")
    print(f"{'ms':10}" + "".join(f"{name:>10}" for name in names) + "     GFLOP        MB")
    for stage, figures in stages.items():
        row = "".join(f"{figures[name]:10.2f}" for name in names)
        print(f"{stage:10}{row}{figures['flop'] / 1e9:10.2f}{figures['read_bytes'] / 1e6:10.1f}")
    per_s = f"{values['decisions_per_s']:.2f} decisions/s, {values['waypoints_per_s']:.1f}"
    print(f"{per_s} waypoints/s")
