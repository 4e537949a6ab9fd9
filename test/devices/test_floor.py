"""A floor is what the slower of computing and reading takes."""

from __future__ import annotations

import pytest
import torch

from alpamayo_ros.devices import floor
from alpamayo_ros.devices.floor import Rates, best_s, measured_rates

NOTHING = torch.zeros(0)


def test_the_floor_is_the_longer_of_computing_and_reading() -> None:
    rates = Rates(flop_per_s=1e9, bytes_per_s=1e6)
    assert rates.floor_s(2e9, 1e6) == 2.0
    assert rates.floor_s(1e9, 3e6) == 3.0


def test_of_two_measurements_the_higher_rates_hold() -> None:
    assert Rates(1.0, 5.0).best_of(Rates(2.0, 3.0)) == Rates(2.0, 5.0)


def test_measured_rates_are_those_of_a_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "READ_VALUES", 1 << 20)
    monkeypatch.setattr(floor, "SIDE", 256)
    monkeypatch.setattr(floor, "MOST_SIDE", 512)
    monkeypatch.setattr(floor, "MOST_READ_VALUES", 1 << 21)
    rates = measured_rates("cpu", torch.float32)
    assert 1e8 < rates.flop_per_s < 1e14
    assert 1e7 < rates.bytes_per_s < 1e13


class Machine:
    """A device with a clock of its own: calls queue up and are worked off behind the host."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, start_s: float, wait_s: float) -> None:
        self.now_s = self.free_s = 0.0
        self.start_s, self.wait_s = start_s, wait_s
        monkeypatch.setattr(floor, "synchronize", self.synchronize)
        monkeypatch.setattr(floor.time, "perf_counter", lambda: self.now_s)

    def call(self, duration_s: float) -> torch.Tensor:
        self.now_s += self.start_s
        self.free_s = max(self.free_s, self.now_s) + duration_s
        return NOTHING

    def synchronize(self, device: str) -> None:
        self.now_s = max(self.now_s, self.free_s) + self.wait_s


@pytest.mark.parametrize("duration_s", [2e-5, 1e-4, 1e-3])
def test_starting_and_waiting_are_not_taken_for_work(
    monkeypatch: pytest.MonkeyPatch, duration_s: float
) -> None:
    machine = Machine(monkeypatch, start_s=1e-5, wait_s=5e-5)
    got_s = best_s(lambda: machine.call(duration_s), "npu:0")
    assert duration_s < got_s < 1.05 * duration_s + 1e-6


def test_shapes_grow_until_a_call_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, start_s=1e-5, wait_s=5e-5)

    def of_size(size: int) -> floor.Call:
        return lambda: machine.call(size * 1e-6)

    size, duration_s = floor._grown(of_size, 16, 1 << 20, "npu:0")
    assert (size, duration_s) == (256, pytest.approx(256e-6, rel=0.05))
    assert floor._grown(of_size, 16, 64, "npu:0")[0] == 64  # as large as allowed
    assert floor._grown(of_size, 1000, 1 << 20, "npu:0")[0] == 1000


def test_many_calls_in_a_row_never_lower_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    durations_s = iter([1e-3, 1e-3, 3e-4, *[1e-3] * 1000])  # one call that nobody disturbed
    machine = Machine(monkeypatch, start_s=0.0, wait_s=0.0)
    assert best_s(lambda: machine.call(next(durations_s)), "cpu") == pytest.approx(3e-4)


def test_on_the_cpu_calls_in_a_row_reach_what_single_ones_do() -> None:
    matrix = torch.full((128, 128), 0.5)
    counted: list[int] = []

    def work() -> torch.Tensor:
        counted.append(1)
        return matrix @ matrix

    alone_s = min(floor._call_s(work, 1, "cpu") for _ in range(floor.REPEATS))
    counted.clear()
    assert best_s(work, "cpu") < 2 * alone_s  # others may use the machine meanwhile
    assert len(counted) > 1 + 2 * floor.REPEATS  # there were calls in a row
