"""One set of limits for the model, the programs and the node."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from alpamayo_ros import limits
from alpamayo_ros.cli import benchmark, evaluate, inference
from alpamayo_ros.limits import Limits
from alpamayo_ros.model import ModelError
from alpamayo_ros.model.samples import require_choices
from alpamayo_ros.ros.parameter import ParameterError
from alpamayo_ros.ros.parameter_table import BY_NAME, TABLE

DEFAULTS = {
    "num_samples": 1, "seed": 0, "temperature": 0.6, "top_p": 0.98, "max_new_tokens": 256,
}  # fmt: skip
ROOT = Path(__file__).parents[1]
PROGRAMS: dict[str, tuple[Callable, list[str]]] = {
    "alpamayo_ros.cli.inference": (inference.main, ["--model", "/no/such"]),
    "alpamayo_ros.cli.benchmark": (benchmark.main, ["--model", "/no/such"]),
    "alpamayo_ros.cli.evaluate": (evaluate.main, ["/no/such.mcap", "--output", "/dev/null"]),
}
PARAMETERS = {parameter.name.removeprefix("sampling."): parameter for parameter in TABLE}


def border(name: str) -> tuple[list[float], list[float]]:
    """The outermost values that are allowed, and those just beyond."""
    allowed: Limits = getattr(limits, name.upper())
    step = 1 if isinstance(DEFAULTS[name], int) else 1e-6
    return [allowed.least, allowed.most], [allowed.least - step, allowed.most + step]


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_model_the_node_and_the_evaluation_allow_the_same(
    name: str, capsys: pytest.CaptureFixture
) -> None:
    inside, outside = border(name)
    for value in inside:
        require_choices(**{**DEFAULTS, name: value})
        assert PARAMETERS[name].check(value) == value
        assert evaluated(name, value, capsys).startswith("error: --output /dev/null")
    for value in outside:
        with pytest.raises(ModelError, match=f"{name} must be"):
            require_choices(**{**DEFAULTS, name: value})
        with pytest.raises(ParameterError):
            PARAMETERS[name].check(value)
        option = "--" + name.replace("_", "-")
        assert evaluated(name, value, capsys).startswith(f"error: {option}")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", DEFAULTS)
def test_every_program_refuses_a_number_before_it_looks_for_a_model(
    name: str, program: str, capsys: pytest.CaptureFixture
) -> None:
    main, command = PROGRAMS[program]
    option = "--" + name.replace("_", "-")
    if option not in source(program):
        assert name in ("temperature", "top_p")  # alpamayo_benchmark samples as the model does
        return
    for value in border(name)[1]:
        assert main([*command, f"{option}={value!r}"]) == 2
        error = capsys.readouterr().err
        assert error.startswith((f"error: {option} ", f"error: {name} must be "))


def test_no_other_program_has_such_options() -> None:
    lines = (ROOT / "resource" / "executables.txt").read_text().splitlines()
    modules = [line.partition(" = ")[2].partition(":")[0] for line in lines if line]
    assert {m for m in modules if '"--max-new-tokens"' in source(m)} == set(PROGRAMS)


def source(module: str) -> str:
    """The text of a program's module."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e39, 1e300, -100.1, 100.1])
def test_no_origin_of_the_model_lies_outside_of_a_vehicle(
    value: float, capsys: pytest.CaptureFixture
) -> None:
    for place in range(4):
        numbers = [0.0] * 4
        numbers[place] = value
        with pytest.raises(ParameterError, match="is not all in -100 to 100"):
            BY_NAME["odometry.to_rear_axle"].check(numbers)
        command = ["/no/such.mcap", "--output", "/dev/null", "--to-rear-axle", *map(str, numbers)]
        assert evaluate.main(command) == 2
        assert capsys.readouterr().err.endswith("allowed are -100 to 100\n")


@pytest.mark.parametrize("at_s", ["nan", "inf", "-1", "1e300"])
def test_no_time_of_a_clip_is_before_its_start_or_no_number(
    at_s: str, capsys: pytest.CaptureFixture
) -> None:
    command = ["/no/such.mcap", "--output", "/dev/null", "--at", "5.1", f"--at={at_s}"]
    assert evaluate.main(command) == 2
    assert capsys.readouterr().err.startswith("error: --at ")


def evaluated(name: str, value: float, capsys: pytest.CaptureFixture) -> str:
    """What alpamayo_evaluate says to a value, and to an output that is no folder."""
    option = f"--{name.replace('_', '-')}={value!r}"
    assert evaluate.main(["/no/such.mcap", "--output", "/dev/null", option]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("value", [float("nan"), "0.5", None, True, [0.5], 1j])
def test_what_is_no_number_is_within_no_limits(value: object) -> None:
    assert value not in Limits(0, 1)


def test_limits_are_written_with_all_their_digits() -> None:
    assert str(Limits(0.01, 10.0)) == "0.01 to 10"
    assert str(limits.SEED) == "0 to 9223372036854775807"
