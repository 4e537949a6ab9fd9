"""Public peak figures of devices: no measurement on one of them can be above.

bfloat16 dense, without sparsity. A measured rate (floor.py) is the nearer bound; these catch a
clock that was stopped too early, and give a floor where nothing was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from alpamayo_ros.devices.floor import Rates

TERA = 1e12


@dataclass(frozen=True)
class Peak:
    """What a device's maker, or who measured it, says it can do."""

    name: str
    rates: Rates
    source: str


# Public tables of the 910B agree with each other, but no data sheet of the maker was found.
TABLES = "widely repeated public tables; no data sheet found"
PEAKS = (
    Peak("Ascend910B2", Rates(376 * TERA, 1.6 * TERA), TABLES),
    Peak("Ascend910B3", Rates(313 * TERA, 1.6 * TERA), TABLES),
    Peak("Ascend910B4", Rates(280 * TERA, 0.8 * TERA), TABLES),
    # The fastest die published; for the 910_9362 246 TFLOPS and 1.25 TB/s measured are reported.
    Peak("Ascend910_93", Rates(376 * TERA, 1.6 * TERA), "CloudMatrix384 paper: a die of Atlas A3"),
    Peak("H100", Rates(989 * TERA, 3.35 * TERA), "NVIDIA's H100 SXM data sheet, dense"),
    Peak("H200", Rates(989 * TERA, 4.8 * TERA), "NVIDIA's H200 SXM data sheet, dense"),
)


def peak_of(name: str) -> Peak | None:
    """The figures for a device that calls itself so, such as "NVIDIA H200" or "Ascend910B3"."""
    return next((peak for peak in PEAKS if peak.name.lower() in name.lower()), None)
