"""What can be asserted of a device by running on it: the checks of alpamayo_verify.

The same assertions hold in the tests on the emulated NPU, so that a person with the hardware can
repeat them in one command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import torch

from alpamayo_ros.devices.device import DeviceError, device_name, dtype_name
from alpamayo_ros.devices.floor import Rates, measured_rates
from alpamayo_ros.devices.peaks import peak_of
from alpamayo_ros.devices.self_test import check_operators
from alpamayo_ros.devices.stalls import HostWaits
from alpamayo_ros.devices.tuning import Tuning
from alpamayo_ros.model.alpamayo import AlpamayoR1
from alpamayo_ros.model.features import FeatureCache
from alpamayo_ros.model.rollout import Rollout
from alpamayo_ros.model.work import work_of_plan
from alpamayo_ros.types import Plan, Snapshot

Load = Callable[..., AlpamayoR1]  # (device, dtype) or (device, dtype, tuning) -> the model

PARITY_ATOL_M = {"float32": 1e-3, "bfloat16": 0.25}
VISION_AND_PREFILL_WAITS = 2
SAMPLES, NEW_TOKENS, SEED = 3, 6, 0
SWITCHES = {
    "patch_embedding convolution": Tuning(patch_embedding="convolution"),
    "graph_capture": Tuning(graph_capture=True),
    "weight_format nz": Tuning(weight_format="nz"),
}
# Less than this may be read from a cache, faster than from memory.
LARGEST_CACHE_BYTES = 1 << 28


class Outcome(str, Enum):
    """What a check came to."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"  # nothing was found, where not all could be: the detail says why


@dataclass(frozen=True)
class Check:
    """One line of the table."""

    name: str
    outcome: Outcome
    detail: str


@dataclass
class Waits:
    """How often the host waited in each stage of a decision."""

    stages: dict[str, int] = field(default_factory=dict)


def verify(device: str, load: Load, snapshot: Snapshot) -> Iterator[Check]:
    """All checks of a resolved device, one after the other."""
    for operator in check_operators(device):
        detail = f"error {operator.error:.1e}, at most {operator.allowed:.0e}"
        if operator.judged_by_itself:
            detail += " (the CPU's operator is the judge itself)"
        outcome = _outcome(operator.within, tells=not operator.judged_by_itself)
        yield Check(f"operator {operator.name} in {operator.dtype}", outcome, detail)
    for dtype in PARITY_ATOL_M:
        model = load(device, dtype)
        yield _placement(model)
        plan = _decide(model, snapshot)
        yield _parity(plan, _decide(load("cpu", dtype), snapshot, plan))
    yield from _stalls(model, snapshot)
    yield from _floors(model, snapshot)


def _outcome(holds: bool, tells: bool = True) -> Outcome:
    """A fault is one anywhere; that none was found counts only where the device tells of them."""
    if not holds:
        return Outcome.FAILED
    return Outcome.PASSED if tells else Outcome.NOT_CHECKED


def verify_switches(device: str, load: Load, snapshot: Snapshot) -> Iterator[Check]:
    """Each switch that a resolved device has, by itself: the plan is the one without it."""
    plain = load(device, "float32")
    plan = _decide(plain, snapshot)
    allowed_m = PARITY_ATOL_M["float32"]
    for name, tuning in SWITCHES.items():
        try:
            tuning.check(device)
        except DeviceError:
            continue
        model = load(device, "float32", tuning)
        error_m = _gap_m(_decide(model, snapshot, plan), plan)
        detail = f"waypoints differ by {error_m:.1e} m, at most {allowed_m:g}"
        works = not tuning.graph_capture or model.rollout.captured
        if not works:
            detail = "the device does not record: leave it off"
        yield Check(f"switch {name}", _outcome(works and error_m <= allowed_m), detail)


def _gap_m(plan: Plan, expected: Plan) -> float:
    return float(np.abs(plan.samples[..., :2] - expected.samples[..., :2]).max())


def _decide(model: AlpamayoR1, snapshot: Snapshot, forced: Plan | None = None) -> Plan:
    """A decision on images that are all new, with the reasoning of another one if given."""
    model.reset()
    tokens = None if forced is None else _padded(forced.token_ids)
    return model.plan(
        snapshot, num_samples=SAMPLES, seed=SEED, max_new_tokens=NEW_TOKENS, tokens=tokens
    )


def _padded(rows: tuple[tuple[int, ...], ...]) -> np.ndarray:
    tokens = np.full((len(rows), max(map(len, rows))), -1)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = row
    return tokens


def _placement(model: AlpamayoR1) -> Check:
    """Every parameter and buffer is on the device in the type."""
    tensors = [*model.network.named_parameters(), *model.network.named_buffers()]
    wanted, dtype = (torch.device(model.device), model.dtype), dtype_name(model.dtype)
    others = [name for name, tensor in tensors if (tensor.device, tensor.dtype) != wanted]
    detail = f"{len(tensors)} tensors are {dtype} on {model.device}"
    if others:
        detail = f"{len(others)} of {len(tensors)} tensors are not {dtype} there: {others[0]}"
    return Check(f"placement in {dtype}", _outcome(not others), detail)


def _parity(plan: Plan, expected: Plan) -> Check:
    """The CPU comes to the same waypoints by the same tokens."""
    error_m = _gap_m(plan, expected)
    allowed_m = PARITY_ATOL_M[plan.dtype]
    on_cpu = plan.device == "cpu"
    itself = " (the CPU with itself, which says nothing)" if on_cpu else ""
    return Check(
        f"parity with the CPU in {plan.dtype}",
        _outcome(plan.finite and error_m <= allowed_m, tells=not on_cpu),
        f"waypoints differ by {error_m:.1e} m, at most {allowed_m:g}{itself}",
    )


def _stalls(model: AlpamayoR1, snapshot: Snapshot) -> Iterator[Check]:
    """The host keeps ahead of the device."""
    waits = Waits()
    stages = (
        (FeatureCache, "encode", "vision"),
        (Rollout, "prefill", "prefill"),
        (Rollout, "reason", "reasoning"),
        (Rollout, "actions", "flow"),
    )
    originals = [getattr(owner, method) for owner, method, _ in stages]
    for (owner, method, stage), original in zip(stages, originals):
        setattr(owner, method, _counted(original, stage, waits))
    try:
        plan = _decide(model, snapshot)
    finally:
        for (owner, method, _), original in zip(stages, originals):
            setattr(owner, method, original)
    tokens = max(map(len, plan.token_ids))
    on_cpu = model.device == "cpu"
    unseen = " (on the CPU a copy to the host cannot be seen)" if on_cpu else ""
    for name, count, allowed in (
        ("vision, prefill", waits.stages["vision"] + waits.stages["prefill"],
         VISION_AND_PREFILL_WAITS),
        (f"{tokens} tokens", waits.stages["reasoning"], tokens),
        (f"{model.config.flow_steps} flow steps", waits.stages["flow"], 0),
    ):  # fmt: skip
        detail = f"the host waited {count} times, at most {allowed}{unseen}"
        yield Check(f"stalls of {name}", _outcome(count <= allowed, tells=not on_cpu), detail)


def _counted(method: Callable[..., Any], stage: str, waits: Waits) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        with HostWaits() as mode:
            result = method(*args, **kwargs)
        waits.stages[stage] = mode.count
        return result

    return counted


def _floors(model: AlpamayoR1, snapshot: Snapshot) -> Iterator[Check]:
    """No rate is above the device's peak, no stage under the floor that the rates give it."""
    rates = measured_rates(model.device, model.dtype)
    peak = peak_of(device_name(model.device))
    measured = f"{rates.flop_per_s / 1e12:.2f} TFLOP/s, {rates.bytes_per_s / 1e9:.1f} GB/s"
    if peak is None:
        detail = f"{measured} (no public peak is known for this device)"
        yield Check("rates", Outcome.NOT_CHECKED, detail)
    else:
        outcome = _outcome(not peak.is_below(rates), tells=not peak.unverified)
        yield Check("rates", outcome, f"{measured}; at best {peak}")
    plan = _decide(model, snapshot)
    floors_ms = stage_floors_ms(model, snapshot, plan, rates)
    for stage, floor_ms in floors_ms.items():
        took_ms = plan.timing_ms[stage]
        detail = f"{took_ms:.2f} ms, floor {floor_ms:.2f} ms"
        yield Check(f"floor of {stage}", _outcome(took_ms >= floor_ms), detail)


def stage_floors_ms(
    model: AlpamayoR1, snapshot: Snapshot, plan: Plan, rates: Rates
) -> dict[str, float]:
    """The least duration of each stage of a plan at these rates, and of their total."""
    floors = {
        stage: 1e3
        * rates.floor_s(work.flop, work.read_bytes * (work.read_bytes > LARGEST_CACHE_BYTES))
        for stage, work in work_of_plan(model, snapshot, plan).items()
    }
    return {**floors, "total": sum(floors.values())}
