"""Latencies of the last minute, held against numbers worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from alpamayo_ros.ros.statistics import Statistics
from alpamayo_ros.types import Verdict


def decision(**timing_ms: float):
    """As much of a decision as is counted."""
    return SimpleNamespace(verdict=Verdict(), plan=SimpleNamespace(timing_ms=timing_ms))


def counted(count: int, period_s: float, total_ms) -> Statistics:
    """Statistics of decisions that ended at 0, period_s, 2 * period_s, ..."""
    statistics = Statistics()
    for k in range(count):
        statistics.count(decision(vision=1.0 + k % 2, total=total_ms(k)), k * period_s)
    return statistics


def test_there_are_no_latencies_before_the_first_decision():
    assert Statistics().latencies(5.0) is None


def test_each_stage_has_its_median_and_the_duration_that_one_in_a_hundred_exceeds():
    latencies = counted(101, 0.1, lambda k: float(k)).latencies(10.0)
    assert latencies.p50_ms["total"] == 50.0
    assert latencies.p99_ms["total"] == 99.0
    assert latencies.p50_ms["vision"] == 1.0  # 51 of 1 ms, 50 of 2 ms
    assert latencies.p99_ms["vision"] == 2.0


def test_decisions_older_than_a_minute_no_longer_count():
    """Of decisions that were slow for the first 30 s, after 80 and after 100 s."""

    def total_ms(k: int) -> float:
        return 900.0 if k < 300 else 100.0

    assert counted(800, 0.1, total_ms).latencies(79.9).p99_ms["total"] == 900.0
    late = counted(1000, 0.1, total_ms)
    assert late.latencies(99.9).p99_ms["total"] == 100.0
    assert late.latencies(99.9 + 61.0) is None


@pytest.mark.parametrize("rate_hz", [0.5, 2.0, 10.0])
def test_the_rate_is_that_of_the_decisions_and_falls_once_they_stop(rate_hz):
    statistics = counted(21, 1 / rate_hz, lambda k: 10.0)
    end_s = 20 / rate_hz
    assert statistics.latencies(end_s).plans_per_s == pytest.approx(rate_hz)
    assert statistics.latencies(end_s + 10.0).plans_per_s == pytest.approx(20 / (end_s + 10.0))


def test_a_minute_at_the_highest_rate_is_kept():
    statistics = counted(7000, 0.01, lambda k: 10.0)
    assert statistics.latencies(69.99).plans_per_s == pytest.approx(100.0, rel=1e-3)
