"""Why the ego drives as it does, in words: few templates, each read back without a doubt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Category(str, Enum):
    """What the ego reacts to."""

    CLEAR = "clear"
    CURVE_LEFT = "curve_left"
    CURVE_RIGHT = "curve_right"
    SLOWER_VEHICLE = "slower_vehicle"
    STOPPED_VEHICLE = "stopped_vehicle"
    PEDESTRIAN = "pedestrian"
    RED_LIGHT = "red_light"
    TURN_LEFT = "turn_left"
    TURN_RIGHT = "turn_right"


class Action(str, Enum):
    """What the words say is done."""

    KEEP = "keep"
    SPEED_UP = "speed_up"
    SLOW = "slow"
    STOP = "stop"
    WAIT = "wait"
    TURN_LEFT = "turn_left"
    TURN_RIGHT = "turn_right"


@dataclass(frozen=True)
class Cause:
    """A category, an action, and the sentence that says both."""

    category: Category
    action: Action
    sentence: str


# {d} is a distance in metres: 5, 10, .. 60.
_C, _A = Category, Action
TEMPLATES: dict[tuple[Category, Action], str] = {
    (_C.CLEAR, _A.KEEP): "The road is clear; keep the speed.",
    (_C.CLEAR, _A.SPEED_UP): "The road is clear; speed up.",
    (_C.CURVE_LEFT, _A.SLOW): "The road bends left; slow down and follow it.",
    (_C.CURVE_LEFT, _A.KEEP): "The road bends left; keep the speed and follow it.",
    (_C.CURVE_LEFT, _A.SPEED_UP): "The road bends left; speed up and follow it.",
    (_C.CURVE_RIGHT, _A.SLOW): "The road bends right; slow down and follow it.",
    (_C.CURVE_RIGHT, _A.KEEP): "The road bends right; keep the speed and follow it.",
    (_C.CURVE_RIGHT, _A.SPEED_UP): "The road bends right; speed up and follow it.",
    (_C.SLOWER_VEHICLE, _A.SLOW): (
        "A slower vehicle is {d} m ahead in the lane; slow down to keep distance."
    ),
    (_C.SLOWER_VEHICLE, _A.KEEP): (
        "A slower vehicle is {d} m ahead in the lane; keep the speed and follow it."
    ),
    (_C.SLOWER_VEHICLE, _A.SPEED_UP): (
        "The vehicle {d} m ahead in the lane drives on; speed up and follow it."
    ),
    (_C.STOPPED_VEHICLE, _A.SLOW): "A vehicle stands {d} m ahead in the lane; slow down for it.",
    (_C.STOPPED_VEHICLE, _A.STOP): "A vehicle stands {d} m ahead in the lane; stop behind it.",
    (_C.STOPPED_VEHICLE, _A.WAIT): "A vehicle stands {d} m ahead in the lane; wait behind it.",
    (_C.PEDESTRIAN, _A.SLOW): "A pedestrian is at the crossing {d} m ahead; slow down for them.",
    (_C.PEDESTRIAN, _A.STOP): "A pedestrian is at the crossing {d} m ahead; stop for them.",
    (_C.PEDESTRIAN, _A.WAIT): "A pedestrian is at the crossing {d} m ahead; wait for them.",
    (_C.RED_LIGHT, _A.SLOW): "The light is red {d} m ahead; slow down for it.",
    (_C.RED_LIGHT, _A.STOP): "The light is red {d} m ahead; stop at the line.",
    (_C.RED_LIGHT, _A.WAIT): "The light is red {d} m ahead; wait at the line.",
    (_C.TURN_LEFT, _A.TURN_LEFT): "The route turns left at the intersection; turn left.",
    (_C.TURN_RIGHT, _A.TURN_RIGHT): "The route turns right at the intersection; turn right.",
}
_SHOWS: tuple[tuple[str, Category], ...] = (
    (r"red light|light is red", Category.RED_LIGHT),
    (r"pedestrian", Category.PEDESTRIAN),
    (r"vehicle stands|stopped vehicle", Category.STOPPED_VEHICLE),
    (r"vehicle", Category.SLOWER_VEHICLE),
    (r"turns? left", Category.TURN_LEFT),
    (r"turns? right", Category.TURN_RIGHT),
    (r"bends left", Category.CURVE_LEFT),
    (r"bends right", Category.CURVE_RIGHT),
    (r"road is clear", Category.CLEAR),
)
_SAYS: tuple[tuple[str, Action], ...] = (
    (r"turn left", Action.TURN_LEFT),
    (r"turn right", Action.TURN_RIGHT),
    (r"wait", Action.WAIT),
    (r"stop (at|behind|for)", Action.STOP),
    (r"slow down", Action.SLOW),
    (r"speed up", Action.SPEED_UP),
    (r"keep the speed", Action.KEEP),
)


def cause(category: Category, action: Action, distance_m: float = 0.0) -> Cause:
    """The cause in words, its distance rounded to 5 m between 5 and 60.

    Raises:
        KeyError: no sentence joins this category and this action.
    """
    rounded = min(max(5 * round(distance_m / 5), 5), 60)
    return Cause(category, action, TEMPLATES[category, action].format(d=rounded))


def category_of(text: str) -> Category | None:
    """What a sentence, perhaps a generated one, reacts to; None where it says nothing known."""
    words = text.lower()
    return next((category for pattern, category in _SHOWS if re.search(pattern, words)), None)


def action_of(text: str) -> Action | None:
    """What a sentence says is done: read after its last semicolon; None if nothing known."""
    words = text.lower().rpartition(";")[2]
    return next((action for pattern, action in _SAYS if re.search(pattern, words)), None)
