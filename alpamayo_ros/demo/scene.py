"""What there is to see at one instant, in map coordinates; the ground is the plane z = 0."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from alpamayo_ros.demo.look import Look
from alpamayo_ros.demo.shapes import Colour, Solid


@dataclass(frozen=True, eq=False)
class Surface:
    """Flat polygons of one colour on the ground."""

    outlines_m: tuple[np.ndarray, ...]  # each float64 (N, 2), simple, disjoint
    colour: Colour


@dataclass(frozen=True, eq=False)
class Scene:
    """The ego's pose and all that its cameras can see."""

    ego_xy_m: tuple[float, float]  # rear axle
    ego_yaw_rad: float
    surfaces: tuple[Surface, ...]  # a later one lies over an earlier one
    solids: tuple[Solid, ...]  # disjoint, in no order
    look: Look = field(default_factory=Look)
