"""One parameter of the node: what values it may have. No rclpy here: see parameter_table.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from alpamayo_ros.types import UserError


class ParameterError(UserError):
    """A parameter's name, type or value is not allowed; one line."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: what it is, what it may be, and whether a running node may change it."""

    name: str
    default: Any  # its type is the parameter's type: bool, int, float, str or list of float
    help: str
    unit: str = ""
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str, ...] = ()
    run_time: bool = False  # may change while the node is active

    def check(self, value: Any) -> Any:
        """The value as this parameter's type.

        Raises:
            ParameterError: wrong type, out of range, or not one of the choices.
        """
        if isinstance(self.default, list):
            return self._check_list(value)
        if isinstance(self.default, float) and _is_number(value):
            value = float(value)  # a YAML file may say 10 for 10.0
        if self.choices and value not in self.choices:
            # YAML reads off, no and on as truth values, which is how they get here.
            raise ParameterError(f"{self.name}: {value!r} is none of {', '.join(self.choices)}")
        if type(value) is not type(self.default):
            raise ParameterError(f"{self.name}: {value!r} is no {_kind(self.default)}")
        if _is_number(value) and not self.minimum <= value <= self.maximum:
            raise ParameterError(f"{self.name}: {value!r} is not {self.allowed()}")
        return value

    def allowed(self) -> str:
        """What values are allowed, in words."""
        if self.choices:
            return " or ".join(self.choices)
        if math.isfinite(self.minimum) and math.isfinite(self.maximum):
            return f"in {self.minimum:g} to {self.maximum:g}"
        if math.isfinite(self.minimum):
            return f"at least {self.minimum:g}"
        return f"any {_kind(self.default)}"

    def _check_list(self, value: Any) -> list[float]:
        try:
            numbers = [float(v) for v in value]
        except (TypeError, ValueError):
            numbers = []
        if isinstance(value, str) or len(numbers) != len(self.default):
            raise ParameterError(f"{self.name}: {value!r} is no {_kind(self.default)}")
        if not all(self.minimum <= v <= self.maximum for v in numbers):
            raise ParameterError(f"{self.name}: {value!r} is not all {self.allowed()}")
        return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(default: Any) -> str:
    if isinstance(default, list):
        return f"list of {len(default)} floats"
    return {bool: "true or false", int: "whole number", float: "number", str: "text"}[type(default)]
