"""What numbers a user may give: one set for the model, the programs and the node's parameters.

No torch here, so that a program can refuse a mistake before it loads anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any


@dataclass(frozen=True)
class Limits:
    """The least and the most that a number may be."""

    least: float
    most: float

    def __contains__(self, value: Any) -> bool:
        """Whether it is a number that is allowed; NaN, True and texts are not."""
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return is_number and bool(self.least <= value <= self.most)

    def __str__(self) -> str:
        return f"{number_text(self.least)} to {number_text(self.most)}"


def number_text(value: float) -> str:
    """A number for a message: whole ones with all their digits."""
    return str(value) if isinstance(value, int) else f"{value:g}"


NUM_SAMPLES = Limits(1, 64)
MAX_NEW_TOKENS = Limits(1, 1024)  # four times what the public example allows
SEED = Limits(0, 2**63 - 1)
TEMPERATURE = Limits(0.01, 10.0)  # colder, logits leave float32; hotter, all tokens are alike
TOP_P = Limits(0.01, 1.0)
TO_REAR_AXLE = Limits(-100.0, 100.0)  # m and rad: no vehicle is longer
