"""Light and weather of a drive."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Tint = tuple[float, float, float]  # RGB, 0 .. 255


@dataclass(frozen=True)
class Look:
    """What the sky, the light and the ground are like; hashable, as backdrops are kept by it."""

    zenith: Tint = (74, 128, 196)
    horizon: Tint = (206, 221, 232)
    haze: Tint = (168, 188, 184)
    haze_m: float = 420.0  # distance at which 63 % of a thing's own light is gone
    grass: Tint = (112, 142, 74)
    ground_light: float = 1.0  # of flat ground, sun and sky together
    ambient: float = 0.62
    diffuse: float = 0.42
    sun: Tint = (-0.35, 0.5, 0.79)  # direction towards it, map frame; length 1 within 1 %


def random_look(rng: np.random.Generator) -> Look:
    """Bright, overcast or dusky, with the sun anywhere."""
    clouds, dusk = float(rng.random()) ** 2, max(0.0, float(rng.uniform(-1.0, 0.9)))
    bright = float(rng.uniform(0.88, 1.08)) * (1 - 0.3 * dusk)
    warm = np.array([1 + 0.12 * dusk, 1.0 - 0.03 * dusk, 1.0 - 0.1 * dusk])

    def tint(clear: Tint, covered: Tint) -> Tint:
        mixed = (np.array(clear) * (1 - clouds) + np.array(covered) * clouds) * bright * warm
        red, green, blue = (float(c) for c in np.clip(mixed, 0, 255))
        return red, green, blue

    grass: Tint = ((112, 142, 74), (136, 140, 84), (96, 128, 80))[int(rng.integers(3))]
    azimuth, height = float(rng.uniform(-math.pi, math.pi)), float(rng.uniform(0.3, 1.2))
    across = math.cos(height)
    return Look(
        zenith=tint((74, 128, 196), (158, 166, 174)),
        horizon=tint((206, 221, 232), (204, 208, 210)),
        haze=tint((168, 188, 184), (180, 184, 186)),
        haze_m=float(rng.uniform(220, 520)),
        grass=grass,
        ground_light=bright * (1 - 0.12 * clouds),
        ambient=(0.62 + 0.2 * clouds) * bright,
        diffuse=0.42 * (1 - 0.9 * clouds) * bright,
        sun=(across * math.cos(azimuth), across * math.sin(azimuth), math.sin(height)),
    )
