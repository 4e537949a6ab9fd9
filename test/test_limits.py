"""One set of limits for the model, the programs and the node."""

from __future__ import annotations

import pytest

from alpamayo_ros import limits
from alpamayo_ros.cli import evaluate, inference
from alpamayo_ros.limits import Limits
from alpamayo_ros.model import ModelError
from alpamayo_ros.model.samples import require_choices
from alpamayo_ros.ros.parameter import ParameterError
from alpamayo_ros.ros.parameter_table import BY_NAME, TABLE

DEFAULTS = {
    "num_samples": 1, "seed": 0, "temperature": 0.6, "top_p": 0.98, "max_new_tokens": 256,
}  # fmt: skip
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
        assert f"{name} must be" in inferred(name, value, capsys)


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


def inferred(name: str, value: float, capsys: pytest.CaptureFixture) -> str:
    """What alpamayo_inference says to a value, before it looks for the model."""
    option = f"--{name.replace('_', '-')}={value!r}"
    assert inference.main(["--model", "/no/such", option]) == 2
    return capsys.readouterr().err


def test_no_number_is_within_no_limits() -> None:
    assert float("nan") not in Limits(0, 1)
    assert str(Limits(0.01, 10.0)) == "0.01 to 10"
