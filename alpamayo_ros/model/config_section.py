"""One object of a JSON configuration: entries by name, type and range, errors in one line."""

from __future__ import annotations

import json
import reprlib
from pathlib import Path
from typing import Any

from alpamayo_ros.model.errors import ModelError

# Far beyond any model of this kind, so that a wrong number is named instead of allocated.
MOST = 1 << 18
MOST_REAL = 1e12

# A value may be as long and as deep as a file makes it; a message is one line.
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 120
_short.maxlist, _short.maxlevel = 8, 2


class Section:
    """One object of a configuration file.

    Every method raises ModelError for an entry that is missing (or null) without having a default,
    or that is not what the method's name says.
    """

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise ModelError(f"{where} must be an object, got {type(values).__name__}")
        self.values: dict[str, Any] = values
        self.where = where

    def integer(
        self, key: str, default: int | None = None, least: int = 1, most: int = MOST
    ) -> int:
        """A whole number from least to most."""
        value = self._get(key, default)
        if not _is_integer(value) or not least <= value <= most:
            raise self.error(key, f"must be a whole number from {least} to {most}", value)
        return value

    def integers(self, key: str, least: int, most: int) -> tuple[int, ...]:
        """A list of whole numbers from least to most."""
        value = self._get(key, None)
        if not isinstance(value, list) or not all(
            _is_integer(v) and least <= v <= most for v in value
        ):
            raise self.error(key, f"must be a list of whole numbers from {least} to {most}", value)
        return tuple(value)

    def number(
        self,
        key: str,
        default: float | None = None,
        least: float = -MOST_REAL,
        most: float = MOST_REAL,
    ) -> float:
        """A number from least to most."""
        value = self._get(key, default)
        if not _is_number(value) or not least <= value <= most:
            raise self.error(key, f"must be a number from {least:g} to {most:g}", value)
        return float(value)

    def positive(self, key: str, default: float | None = None, most: float = MOST_REAL) -> float:
        """A number above zero; float32 computes with it, so not one that vanishes there."""
        return self.number(key, default, least=1e-30, most=most)

    def numbers(self, key: str, count: int) -> tuple[Any, ...]:
        """A list of so many numbers."""
        value = self._get(key, None)
        if (
            not isinstance(value, list)
            or len(value) != count
            or not all(_is_number(v) and abs(v) <= MOST_REAL for v in value)
        ):
            raise self.error(key, f"must be a list of {count} finite numbers", value)
        return tuple(value)

    def interval(self, key: str) -> tuple[float, float]:
        """Two rising numbers."""
        low, high = self.numbers(key, 2)
        if not low < high:
            raise self.error(key, "must be two rising numbers", [low, high])
        return low, high

    def text(self, key: str, default: str | None = None) -> str:
        """A text."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.error(key, "must be a text", value)
        return value

    def one_of(self, key: str, allowed: tuple[Any, ...], default: Any = None) -> Any:
        """One of the allowed values, and of their type: 1 is not true."""
        value = self._get(key, default)
        if not any(type(value) is type(known) and value == known for known in allowed):
            names = ", ".join(str(name) for name in allowed)
            raise ModelError(f"{self.where}: {key} is {_short.repr(value)}, known: {names}")
        return value

    def section(self, key: str) -> Section:
        """The object of that name."""
        return Section(self._get(key, None), f"{self.where}: {key}")

    def require(self, holds: bool, message: str) -> None:
        """Raise a ModelError of this object unless a condition on its entries holds."""
        if not holds:
            raise ModelError(f"{self.where}: {message}")

    def error(self, key: str, wanted: str, value: Any) -> ModelError:
        """The error that an entry is not what is wanted."""
        return ModelError(f"{self.where}: {key} {wanted}, got {_short.repr(value)}")

    def _get(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is None:
            value = default
        if value is None:
            raise ModelError(f"{self.where} lacks {key}")
        return value


def read_json(path: Path) -> dict[str, Any]:
    """An object from a JSON file.

    Raises:
        ModelError: there is no such file, or no object in it.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except RecursionError:
        raise ModelError(f"{path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise ModelError(f"{path} must hold a JSON object")
    return values


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Comparing a NaN with a bound is false, so that bounds refuse it."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
