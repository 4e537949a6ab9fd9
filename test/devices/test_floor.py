"""A floor is what the slower of computing and reading takes."""

from __future__ import annotations

import pytest
import torch

from alpamayo_ros.devices import floor
from alpamayo_ros.devices.floor import Rates, measured_rates


def test_the_floor_is_the_longer_of_computing_and_reading() -> None:
    rates = Rates(flop_per_s=1e9, bytes_per_s=1e6)
    assert rates.floor_s(2e9, 1e6) == 2.0
    assert rates.floor_s(1e9, 3e6) == 3.0


def test_of_two_measurements_the_higher_rates_hold() -> None:
    assert Rates(1.0, 5.0).best_of(Rates(2.0, 3.0)) == Rates(2.0, 5.0)


def test_measured_rates_are_those_of_a_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "READ_VALUES", 1 << 20)
    monkeypatch.setattr(floor, "SIDE", 256)
    rates = measured_rates("cpu", torch.float32)
    assert 1e8 < rates.flop_per_s < 1e14
    assert 1e7 < rates.bytes_per_s < 1e13
