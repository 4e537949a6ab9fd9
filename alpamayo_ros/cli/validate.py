"""alpamayo_validate: compare two results of alpamayo_inference, of two devices for example."""

from __future__ import annotations

import argparse
import json
import math
import re
import reprlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alpamayo_ros.cli.common import (
    OneLineParser,
    UsageError,
    check_output,
    run,
    write_json,
)
from alpamayo_ros.limits import NUM_SAMPLES, SEED
from alpamayo_ros.types import WAYPOINTS

NOT_PASSED = 1
DEVICES = ("cpu", "cuda:N", "npu:N")
DEVICE = r"cpu|(cuda|npu):(0|[1-9][0-9]*)"
WAYPOINTS_WANTED = f"{WAYPOINTS} rows of 3 numbers or nulls"
TOKENS_WANTED = f"{NUM_SAMPLES} rows of one or more whole numbers >= 0"


@dataclass(frozen=True, eq=False)
class Result:
    """What is compared of one run."""

    path: str
    run_id: str
    device: str
    model: str  # "NAME@WHAT": what follows the @ stands for the weights and the configuration
    seed: int
    t0_ns: int | None  # None: an earlier version wrote the file
    finite: bool  # every number of every sample, says the run
    waypoints: np.ndarray  # float64 (64, 3) x m, y m, yaw rad; nan where the file has null
    token_ids: list[list[int]]  # a row a sample


@dataclass(frozen=True)
class Comparison:
    """How far a candidate is from its reference."""

    count: int  # numbers compared
    finite: bool  # all of both, samples that were not chosen too
    max_abs: float  # m or rad; nan when nothing can be compared
    max_rel: float  # of numbers whose reference is not zero
    tokens_equal: bool
    passed: bool  # finite, and each number within atol + rtol * |reference|


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0: passed, 1: not passed."""
    return run(_main, argv)


def parser() -> argparse.ArgumentParser:
    """The options; --cpu and --npu are other names of the two files."""
    options = OneLineParser("alpamayo_validate", description=__doc__)
    add = options.add_argument
    add("--reference", "--cpu", required=True, help="JSON of alpamayo_inference to compare with")
    add("--candidate", "--npu", required=True, help="JSON of alpamayo_inference to judge")
    add("--atol", type=float, default=5e-3, help="in m and rad (default: 5e-3)")
    add("--rtol", type=float, default=5e-2, help="of the reference's number (default: 5e-2)")
    add("--allow-same-device", action="store_true", help="both runs may be of one device")
    add("--output", help="file for the JSON (default: standard output)")
    return options


def _main(argv: Sequence[str] | None) -> int:
    options = parser().parse_args(argv)
    check_output(options.output)
    for name in ("atol", "rtol"):
        value = getattr(options, name)
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"--{name} must be a finite number >= 0, got {value}")
    reference, candidate = read_result(options.reference), read_result(options.candidate)
    if reference.run_id == candidate.run_id:
        raise UsageError(
            f"{reference.path} and {candidate.path} are of one run ({reference.run_id}): "
            "a run says nothing about itself; run alpamayo_inference twice"
        )
    if reference.device == candidate.device and not options.allow_same_device:
        raise UsageError(
            f"both runs are of device {reference.device}; give runs of two devices, or "
            "--allow-same-device"
        )
    require_one_decision(reference, candidate)
    comparison = compare(reference, candidate, options.atol, options.rtol)
    write_json(asdict(comparison), options.output)
    return 0 if comparison.passed else NOT_PASSED


def require_one_decision(reference: Result, candidate: Result) -> None:
    """Refuse results that differ by what was asked for, and not by the device or type alone.

    Raises:
        UsageError: they are of two models, whatever their names, of two seeds or of two t0s.
    """
    unknown_t0 = None in (reference.t0_ns, candidate.t0_ns)
    for name, differs in (
        ("model", _after_name(reference.model) != _after_name(candidate.model)),
        ("seed", reference.seed != candidate.seed),
        ("t0_ns", reference.t0_ns != candidate.t0_ns and not unknown_t0),
    ):
        if differs:
            raise UsageError(
                f"{reference.path} is of {name} {getattr(reference, name)}, {candidate.path} of "
                f"{getattr(candidate, name)}: give two runs of one model, seed and snapshot"
            )


def _after_name(model: str) -> str:
    """What a model is known by, without the name of the folder it was loaded from."""
    return model.rpartition("@")[2]


def compare(reference: Result, candidate: Result, atol: float, rtol: float) -> Comparison:
    """Compare waypoints number by number; yaw modulo 2 pi, so that -pi is pi."""
    expected = reference.waypoints
    with np.errstate(invalid="ignore", over="ignore"):  # such numbers are left out, and said
        error = np.abs(candidate.waypoints - expected)
        error[:, 2] = np.abs(np.mod(error[:, 2] + np.pi, 2 * np.pi) - np.pi)
        relative = (error / np.where(expected == 0, np.nan, np.abs(expected)))[expected != 0]
        within = error <= atol + rtol * np.abs(expected)
    known = error[np.isfinite(error)]
    relative = relative[np.isfinite(relative)]
    finite = len(known) == expected.size and reference.finite and candidate.finite
    return Comparison(
        count=expected.size,
        finite=finite,
        max_abs=float(known.max()) if len(known) else math.nan,
        max_rel=float(relative.max()) if len(relative) else math.nan,
        tokens_equal=reference.token_ids == candidate.token_ids,
        passed=finite and bool(within.all()),
    )


def read_result(path: str) -> Result:
    """What alpamayo_inference wrote.

    Raises:
        UsageError: the file is missing, or not of alpamayo_inference; one line.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from None
    try:
        return Result(
            path,
            run_id=_entry(values, "run_id", _is_text, "a text that is not empty"),
            device=_entry(values, "device", _is_device, f"one of {', '.join(DEVICES)}"),
            model=_entry(values, "model", _is_text, "a text that is not empty"),
            seed=_entry(values, "seed", _is_seed, f"a whole number from {SEED}"),
            t0_ns=_entry({"t0_ns": None} | values, "t0_ns", _is_stamp, "a whole number >= 0"),
            finite=_entry(values, "finite", _is_bool, "true or false"),
            waypoints=np.array(
                _entry(values, "waypoints", _are_waypoints, WAYPOINTS_WANTED), float
            ),
            token_ids=_entry(values, "token_ids", _are_tokens, TOKENS_WANTED),
        )
    except UsageError as error:
        raise UsageError(f"{path} is no result of alpamayo_inference: {error}") from None


def _entry(values: Any, name: str, fits: Callable[[Any], bool], wanted: str) -> Any:
    """An entry of the object that a run has written, which must be what is wanted."""
    if not isinstance(values, dict):
        raise UsageError("it is no JSON object")
    if name not in values:
        raise UsageError(f"it lacks {name!r}")
    if not fits(values[name]):
        raise UsageError(f"{name} must be {wanted}, got {reprlib.repr(values[name])}")
    return values[name]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_seed(value: Any) -> bool:
    return type(value) is int and value in SEED


def _is_stamp(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_device(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(DEVICE, value, re.ASCII) is not None


def _are_waypoints(value: Any) -> bool:
    """Rows of x, y and yaw. Null, and what JSON should not hold, NaN and Infinity, may be there."""
    return (
        isinstance(value, list)
        and len(value) == WAYPOINTS
        and all(isinstance(row, list) and len(row) == 3 for row in value)
        and all(number is None or _is_float(number) for row in value for number in row)
    )


def _is_float(value: Any) -> bool:
    """Whether a number can be a float64; JSON's whole numbers may be too large for it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, float)


def _are_tokens(value: Any) -> bool:
    """A row of token ids for each of one or more samples; every sample has its end token."""
    return (
        isinstance(value, list)
        and len(value) in NUM_SAMPLES
        and all(isinstance(row, list) and row for row in value)
        and all(type(token) is int and token >= 0 for row in value for token in row)
    )
