"""Frames that should have come are told from the stamps of those that did."""

from __future__ import annotations

import numpy as np
import pytest

from alpamayo_ros.sensing.losses import Arrivals

from .streams import MS, START_NS, stamps


def losses_of(stamps_ns):
    arrivals = Arrivals()
    for stamp_ns in stamps_ns:
        arrivals.add(stamp_ns)
    return arrivals.losses()


@pytest.mark.parametrize("rate_hz", [10, 15, 20, 30, 60])
def test_a_whole_stream_has_lost_nothing(rate_hz):
    losses = losses_of(stamps(rate_hz, duration_s=8.0))
    assert losses.received == losses.expected == 8 * rate_hz
    assert losses.share == 0.0


@pytest.mark.parametrize("rate_hz", [10, 30, 60])
@pytest.mark.parametrize("lost_share", [0.01, 0.1, 0.3, 0.6])
def test_lost_frames_are_counted_exactly_between_the_first_and_the_last(rate_hz, lost_share):
    rng = np.random.default_rng(round(100 * lost_share) + rate_hz)
    sent = stamps(rate_hz, duration_s=10.0)
    kept = rng.uniform(size=len(sent)) >= lost_share
    kept[0] = kept[-1] = True
    losses = losses_of([stamp for stamp, keep in zip(sent, kept) if keep])
    assert losses.received == kept.sum()
    assert losses.expected == len(sent)


@pytest.mark.parametrize("jitter_ms", [1, 10, 20])
def test_jitter_is_no_loss(jitter_ms):
    rng = np.random.default_rng(jitter_ms)
    moved = [t + int(rng.uniform(-jitter_ms, jitter_ms) * MS) for t in stamps(10, duration_s=10)]
    assert losses_of(moved).share == 0.0


def test_frames_of_unsteady_order_and_twice_are_no_loss():
    sent = stamps(30, duration_s=5.0)
    sent[10], sent[11] = sent[11], sent[10]
    losses = losses_of(sent + sent[-1:])
    assert losses.received == losses.expected == 150


def test_only_the_last_ten_seconds_count():
    """A seek forward by a minute is in the window no more once 10 s lie behind it."""
    losses = losses_of(stamps(10, duration_s=2.0) + [t + 60_000 * MS for t in stamps(10)])
    assert losses.received == losses.expected == 30


def test_nothing_is_said_of_a_handful_of_frames_or_of_stamps_that_stand_still():
    assert losses_of(stamps(10, duration_s=0.9)) is None
    assert losses_of([START_NS] * 500) is None


def test_after_a_jump_the_count_begins_anew():
    arrivals = Arrivals()
    for stamp_ns in stamps(10):
        arrivals.add(stamp_ns)
    arrivals.clear()
    assert arrivals.losses() is None
