"""Public peak figures: found by the name that a device gives itself."""

from __future__ import annotations

import pytest

from alpamayo_ros.devices.floor import Rates
from alpamayo_ros.devices.peaks import PEAKS, peak_of

# As torch.cuda.get_device_name and torch.npu.get_device_name print them; TFLOP/s, GB/s.
NAMES = {
    "Ascend910B2": (353.9, 1600),
    "Ascend910B3": (294.9, 1600),
    "Ascend910B4": (245.8, 800),
    "Ascend910_9362": (245.8, 1600),
    "Ascend910_9391": (363.7, 1600),
    "NVIDIA H100 80GB HBM3": (989.4, 3350),
    "NVIDIA H100 PCIe": (756.5, 2039),
    "NVIDIA H100 NVL": (835.5, 3900),
    "NVIDIA H200": (989.4, 4800),
}


@pytest.mark.parametrize("name", NAMES)
def test_each_form_of_a_device_has_its_own_figures(name: str) -> None:
    peak = peak_of(name)
    assert peak is not None
    assert peak.name == name
    flop, read = peak.rates.flop_per_s / 1e12, peak.rates.bytes_per_s / 1e9
    assert (round(flop, 1), round(read)) == NAMES[name]


def test_no_device_of_the_table_is_untested() -> None:
    assert [peak.name for peak in PEAKS] == list(NAMES)


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA A100-PCIE-40GB",
        "NVIDIA H200 NVL",
        "NVIDIA GH200 480GB",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA H100 64GB HBM2",
        "NVIDIA H100",
        "Ascend910B",
        "Ascend910B1",
        "Ascend910B4-1",
        "Ascend910_9999",
        "Ascend310P3",
        "",
    ],
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
    ascend, hopper = peak_of("Ascend910B3"), peak_of("NVIDIA H100 80GB HBM3")
    assert ascend.is_below(Rates(295e12, 1e12))
    assert not ascend.is_below(Rates(294e12, 1.7e12))  # its bandwidth is unverified
    assert hopper.is_below(Rates(900e12, 3.4e12))
    assert not hopper.is_below(Rates(900e12, 3.3e12))
    assert not peak_of("NVIDIA H100 NVL").is_below(Rates(900e12, 4e12))  # both are


def test_what_an_sxm_reaches_is_too_much_for_the_same_chip_on_a_card() -> None:
    reached = Rates(800e12, 2.5e12)
    assert not peak_of("NVIDIA H100 80GB HBM3").is_below(reached)
    assert peak_of("NVIDIA H100 PCIe").is_below(reached)


def test_a_decision_of_a_millisecond_is_under_the_floor_of_an_a3_die_by_hundreds() -> None:
    rates = peak_of("Ascend910_9362").rates
    # Vision, prefill, 20 tokens, ten flow steps of the released model (the tests of model/work).
    floor_s = sum(
        rates.floor_s(flop, read_bytes)
        for flop, read_bytes in ((11.4e12, 0), (43e12, 0), (0, 20 * 15.6e9), (0, 10 * 5.0e9))
    )
    assert floor_s > 300 * 0.99e-3
