"""Public peak figures: found by the name that a device gives itself."""

from __future__ import annotations

import pytest

from alpamayo_ros.devices.peaks import PEAKS, peak_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ascend910B3", "Ascend910B3"),
        ("Ascend910_9362", "Ascend910_93"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
    ],
)
def test_a_device_is_known_by_its_name(name: str, expected: str) -> None:
    peak = peak_of(name)
    assert peak is not None
    assert peak.name == expected


def test_an_unknown_device_has_no_peak() -> None:
    assert peak_of("cpu") is None


def test_every_figure_names_its_source() -> None:
    assert all(peak.source for peak in PEAKS)


def test_a_decision_of_a_millisecond_is_under_the_floor_of_an_a3_die_by_hundreds() -> None:
    rates = peak_of("Ascend910_9362").rates
    # Vision, prefill, 20 tokens, ten flow steps of the released model (the tests of model/work).
    floor_s = sum(
        rates.floor_s(flop, read_bytes)
        for flop, read_bytes in ((11.4e12, 0), (43e12, 0), (0, 20 * 15.6e9), (0, 10 * 5.0e9))
    )
    assert floor_s > 300 * 0.99e-3
