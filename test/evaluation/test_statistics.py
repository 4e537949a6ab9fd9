"""Intervals and significance against slow, independent computations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from alpamayo_ros.evaluation import statistics
from alpamayo_ros.evaluation.statistics import MIN_BLOCKS, blocks, estimate, sign_test


def test_decisions_of_ten_seconds_of_one_bag_are_one_block():
    found = blocks(np.array([0, 0, 0, 1, 1]), np.array([1.5, 9.9, 10.0, 1.5, 2.0]))
    assert found.tolist() == [0, 0, 1, 2, 2]


def test_what_is_not_known_is_left_out_of_the_mean():
    found = estimate(np.array([1.0, np.nan, 3.0]), np.array([0, 0, 1]), seed=0)
    assert (found.mean, found.count) == (2.0, 2)


def test_a_few_blocks_give_no_interval():
    block = np.arange(MIN_BLOCKS - 1)
    found = estimate(block.astype(float), block, seed=0)
    assert (found.low, found.high) == (None, None)


def test_nothing_known_gives_nothing():
    found = estimate(np.full(3, np.nan), np.arange(3), seed=0)
    assert (found.mean, found.low, found.count) == (None, None, 0)


def test_equal_values_have_an_interval_of_no_width():
    found = estimate(np.full(60, 2.5), np.arange(60) // 6, seed=3)
    assert (found.low, found.high) == (2.5, 2.5)


def test_the_interval_of_independent_blocks_is_that_of_the_normal_distribution():
    """400 blocks of one decision: mean +- 1.96 s / sqrt(n), within the noise of 2000 resamples."""
    values = np.random.default_rng(1).normal(5, 2, 400)
    found = estimate(values, np.arange(400), seed=0)
    half = 1.96 * values.std() / 20
    assert found.low == pytest.approx(values.mean() - half, abs=0.03)
    assert found.high == pytest.approx(values.mean() + half, abs=0.03)


def test_decisions_that_repeat_each_other_make_nothing_surer():
    """Ten copies of each block's value: the interval stays as wide as that of the blocks alone."""
    values = np.random.default_rng(2).normal(0, 1, 50)
    alone = estimate(values, np.arange(50), seed=0)
    copied = estimate(np.repeat(values, 10), np.repeat(np.arange(50), 10), seed=0)
    assert copied.low == pytest.approx(alone.low, abs=1e-12)
    assert copied.high == pytest.approx(alone.high, abs=1e-12)


def test_one_seed_gives_one_interval():
    values, block = np.random.default_rng(4).normal(size=90), np.arange(90) // 3
    assert estimate(values, block, 7) == estimate(values, block, 7)
    assert estimate(values, block, 7) != estimate(values, block, 8)


def slow_interval(values: np.ndarray, block: np.ndarray, seed: int) -> tuple[float, float]:
    """The definition, spelt out: draw stretches, lay their decisions in a row, take the mean."""
    stretches = [values[block == number] for number in np.unique(block)]
    random = np.random.default_rng(seed)
    means = []
    for _ in range(2000):
        drawn = random.integers(0, len(stretches), len(stretches))
        means.append(np.concatenate([stretches[i] for i in drawn]).mean())
    means.sort()

    def quantile(share: float) -> float:  # linear between order statistics
        at = share * 1999
        below = int(at)
        return means[below] + (at - below) * (means[below + 1] - means[below])

    return quantile(0.025), quantile(0.975)


@pytest.mark.parametrize("at_a_time", [statistics.PICKS_AT_A_TIME, 40, 1])
def test_the_interval_is_that_of_a_bootstrap_over_stretches_of_unlike_length(
    monkeypatch, at_a_time
):
    """Also when the resamples are drawn piece by piece, as for many stretches."""
    monkeypatch.setattr(statistics, "PICKS_AT_A_TIME", at_a_time)
    random = np.random.default_rng(5)
    block = np.repeat(np.arange(9) * 3, random.integers(1, 20, 9))
    values = random.normal(size=len(block)) + block
    found = estimate(values, block, seed=11)
    assert (found.low, found.high) == pytest.approx(slow_interval(values, block, 11), abs=1e-12)


def test_a_hundred_hours_are_weighed_in_seconds_and_little_memory():
    values, block = np.random.default_rng(6).normal(0.01, 1, 36_000), np.arange(36_000)
    found = estimate(values, block, seed=0)
    assert found.high - found.low == pytest.approx(2 * 1.96 / np.sqrt(36_000), rel=0.1)
    p_value = sign_test(values, block)
    # Of the normal distribution that so many coins come to, with the half a coin between counts.
    above = int((values > 0).sum())
    z = (abs(above - 18_000) - 0.5) / np.sqrt(9_000)
    assert p_value == pytest.approx(math.erfc(z / np.sqrt(2)), rel=1e-3)


@pytest.mark.parametrize(("above", "below"), [(8, 2), (5, 5), (0, 6), (1, 0), (10, 1)])
def test_the_sign_test_counts_all_outcomes(above, below):
    """Slowly: of all sequences of coins the share that is as one-sided as this one."""
    trials = above + below
    extreme = [
        min(sum(coins), trials - sum(coins)) <= min(above, below)
        for coins in itertools.product((0, 1), repeat=trials)
    ]
    values = np.array([1.0] * above + [-1.0] * below)
    assert sign_test(values, np.arange(trials)) == pytest.approx(np.mean(extreme), abs=1e-12)


def test_the_sign_of_a_block_is_that_of_its_mean():
    values = np.array([3.0, -1.0, -1.0, -2.0, -2.0])
    assert sign_test(values, np.array([0, 0, 0, 1, 1])) == 1.0


def test_no_difference_is_no_evidence():
    assert sign_test(np.zeros(20), np.arange(20)) is None
