"""Public peak figures: found by the name that a device gives itself."""

from __future__ import annotations

import pytest

from alpamayo_ros.devices.floor import Rates
from alpamayo_ros.devices.peaks import PEAKS, peak_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ascend910B3", "Ascend910B3"),
        ("Ascend910_9362", "Ascend910_9362"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
    ],
)
def test_a_device_is_known_by_its_name(name: str, expected: str) -> None:
    peak = peak_of(name)
    assert peak is not None
    assert peak.name == expected


@pytest.mark.parametrize(
    "name",
    ["cpu", "NVIDIA A100-SXM4-80GB", "NVIDIA GH200 480GB", "Ascend910B4-1", "Ascend910_9999"],
)
def test_nothing_is_guessed_of_a_device_without_figures(name: str) -> None:
    assert peak_of(name) is None


def test_every_figure_names_its_source_or_says_that_it_has_none() -> None:
    assert all(peak.flop_source and peak.bytes_source for peak in PEAKS)
    line = str(peak_of("Ascend910B3"))
    assert line == (
        "Ascend910B3: 294.9 TFLOP/s (CANN runtime, platform_config/Ascend910B3.ini: "
        "20 cube cores at 1800 MHz), 1600 GB/s (unverified)"
    )


def test_only_a_figure_with_a_source_proves_a_measurement_wrong() -> None:
    ascend, hopper = peak_of("Ascend910B3"), peak_of("NVIDIA H100")
    assert ascend.is_below(Rates(295e12, 1e12))
    assert not ascend.is_below(Rates(294e12, 1.7e12))  # its bandwidth is unverified
    assert hopper.is_below(Rates(900e12, 3.4e12))
    assert not hopper.is_below(Rates(900e12, 3.3e12))


def test_a_decision_of_a_millisecond_is_under_the_floor_of_an_a3_die_by_hundreds() -> None:
    rates = peak_of("Ascend910_9362").rates
    # Vision, prefill, 20 tokens, ten flow steps of the released model (the tests of model/work).
    floor_s = sum(
        rates.floor_s(flop, read_bytes)
        for flop, read_bytes in ((11.4e12, 0), (43e12, 0), (0, 20 * 15.6e9), (0, 10 * 5.0e9))
    )
    assert floor_s > 300 * 0.99e-3
