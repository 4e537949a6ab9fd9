"""How sure a mean is, when neighbouring decisions see the same seconds.

Futures of 6.4 s every 0.5 s overlap, so decisions are no independent draws. What is drawn are
stretches of 10 s of a bag, all decisions of a stretch together (a block bootstrap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BLOCK_S = 10.0
MIN_BLOCKS = 5  # of fewer an interval would say more than is known
RESAMPLES = 2000
LEVEL = 0.95
PICKS_AT_A_TIME = 2_000_000  # bounds memory: 100 hours are 36000 stretches, of 2000 resamples each


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval; None where there is nothing to say."""

    mean: float | None
    low: float | None
    high: float | None
    count: int  # decisions that the mean is over


def blocks(bags: np.ndarray, t_s: np.ndarray) -> np.ndarray:
    """Number of the stretch (N,), from 0, that each decision lies in.

    Args:
        bags: (N,) number of the bag.
        t_s: (N,) seconds since the bag's first message.
    """
    keys = np.column_stack([bags, np.floor(np.asarray(t_s) / BLOCK_S)])
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)


def estimate(values: np.ndarray, block: np.ndarray, seed: int) -> Estimate:
    """Mean of the values (N,) that are numbers, and its interval by 2000 resamples of blocks.

    Args:
        block: (N,) from `blocks`.
        seed: of the resampling; one seed gives one interval.
    """
    known = np.isfinite(values)
    count = int(known.sum())
    if count == 0:
        return Estimate(None, None, None, 0)
    mean = float(values[known].mean())
    sums, counts = _totals(values[known], block[known])
    if len(sums) < MIN_BLOCKS:
        return Estimate(mean, None, None, count)
    means = _resampled_means(sums, counts, seed)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Estimate(mean, float(low), float(high), count)


def sign_test(values: np.ndarray, block: np.ndarray) -> float | None:
    """Two-sided p-value that the blocks' means are as often above zero as below, exact.

    Blocks of mean zero are left out; None when no block remains.
    """
    known = np.isfinite(values)
    sums, _ = _totals(values[known], block[known])
    above, below = int((sums > 0).sum()), int((sums < 0).sum())
    trials = above + below
    if trials == 0:
        return None
    ways = tail = 1  # `ways` is trials over k; from one k to the next it is a single division
    for k in range(min(above, below)):
        ways = ways * (trials - k) // (k + 1)
        tail += ways
    return min(1.0, 2 * tail / 2**trials)


def _resampled_means(sums: np.ndarray, counts: np.ndarray, seed: int) -> np.ndarray:
    """Means (2000,) over as many blocks as there are, drawn with replacement."""
    blocks_there = len(sums)
    random = np.random.default_rng(seed)
    at_a_time = max(PICKS_AT_A_TIME // blocks_there, 1)
    means = []
    for start in range(0, RESAMPLES, at_a_time):
        resamples = min(at_a_time, RESAMPLES - start)
        picks = random.integers(0, blocks_there, (resamples, blocks_there))
        means.append(sums[picks].sum(axis=1) / counts[picks].sum(axis=1))
    return np.concatenate(means)


def _totals(values: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum and count of the values of each block that has any."""
    _, index = np.unique(block, return_inverse=True)
    return np.bincount(index, values), np.bincount(index).astype(float)
