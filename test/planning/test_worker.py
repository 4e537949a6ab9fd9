"""The planning thread: newest wins, nothing stale is delivered, failures do not end it."""

from __future__ import annotations

import threading

import pytest

from alpamayo_ros.model import PlanCancelled
from alpamayo_ros.planning.worker import PlanWorker
from alpamayo_ros.ros.node_process import wait_until

DEADLINE_S = 10.0


class Bench:
    """A worker over numbers: `offered` is the newest selection, `decided` and `delivered` lists."""

    def __init__(self, decide=None, back_off_s=0.0, idle=lambda: False):
        self.offered: list[int] = []
        self.delivered: list[int] = []
        self.errors: list[Exception] = []
        self.working = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self._back_off_s = back_off_s
        self.worker = PlanWorker(
            self.take, decide or self.decide, self.delivered.append, self.failed, idle
        )

    def take(self):
        if not self.offered:
            return None
        newest = self.offered[-1]
        self.offered.clear()
        return newest

    def decide(self, selection, should_stop):
        self.working.set()
        assert self.go_on.wait(DEADLINE_S)
        return selection

    def failed(self, error):
        self.errors.append(error)
        return self._back_off_s

    def offer(self, number):
        self.offered.append(number)
        self.worker.wake()


@pytest.fixture
def bench():
    bench = Bench()
    bench.worker.start()
    yield bench
    bench.go_on.set()
    assert bench.worker.stop(DEADLINE_S)


def test_what_comes_while_it_works_is_replaced_by_the_newest(bench):
    bench.go_on.clear()
    bench.offer(1)
    assert bench.working.wait(DEADLINE_S)
    for number in (2, 3, 4):
        bench.offer(number)
    bench.go_on.set()
    assert wait_until(lambda: bench.delivered == [1, 4], DEADLINE_S), bench.delivered


def test_a_plan_in_flight_is_not_delivered_after_reset(bench):
    bench.go_on.clear()
    bench.offer(1)
    assert bench.working.wait(DEADLINE_S)
    bench.worker.reset()
    bench.go_on.set()
    bench.offer(2)
    assert wait_until(lambda: bench.delivered == [2], DEADLINE_S), bench.delivered


def test_a_plan_in_flight_is_not_delivered_after_stop():
    bench = Bench()
    bench.worker.start()
    bench.go_on.clear()
    bench.offer(1)
    assert bench.working.wait(DEADLINE_S)
    assert not bench.worker.stop(timeout_s=0.05)  # it still works
    bench.go_on.set()
    assert bench.worker.stop(DEADLINE_S)
    assert bench.delivered == []


def test_a_running_decision_is_told_to_stop():
    asked = threading.Event()

    def decide(selection, should_stop):
        asked.set()
        assert wait_until(should_stop, DEADLINE_S)
        raise PlanCancelled

    bench = Bench(decide)
    bench.worker.start()
    bench.offer(1)
    assert asked.wait(DEADLINE_S)
    assert bench.worker.stop(DEADLINE_S)
    assert bench.errors == []


def test_a_failure_is_reported_and_the_next_one_is_planned():
    def decide(selection, should_stop):
        if selection == 1:
            raise RuntimeError("device lost")
        return selection

    bench = Bench(decide)
    bench.worker.start()
    bench.offer(1)
    assert wait_until(lambda: len(bench.errors) == 1, DEADLINE_S)
    bench.offer(2)
    assert wait_until(lambda: bench.delivered == [2], DEADLINE_S)
    assert bench.worker.stop(DEADLINE_S)
    assert str(bench.errors[0]) == "device lost"


def test_stop_does_not_wait_for_the_back_off():
    def decide(selection, should_stop):
        raise RuntimeError("device lost")

    bench = Bench(decide, back_off_s=3600.0)
    bench.worker.start()
    bench.offer(1)
    assert wait_until(lambda: len(bench.errors) == 1, DEADLINE_S)
    assert bench.worker.stop(DEADLINE_S)


def test_idle_work_is_done_piece_by_piece_and_planning_comes_first_after_each():
    order: list[object] = []
    pieces = ["a", "b", "c"]

    def idle():
        if not pieces:
            return False
        order.append(pieces.pop(0))
        bench.offer(len(pieces))  # a selection comes while the piece is worked on
        return True

    bench = Bench(idle=idle)
    bench.worker._deliver = order.append
    bench.worker.start()
    assert wait_until(lambda: len(order) == 6, DEADLINE_S), order
    assert bench.worker.stop(DEADLINE_S)
    assert order == ["a", 2, "b", 1, "c", 0]


def test_idle_work_that_fails_is_reported_and_planning_goes_on():
    def idle():
        if not bench.errors:
            raise RuntimeError("device lost")
        return False

    bench = Bench(idle=idle)
    bench.worker.start()
    assert wait_until(lambda: len(bench.errors) == 1, DEADLINE_S)
    bench.offer(1)
    assert wait_until(lambda: bench.delivered == [1], DEADLINE_S)
    assert bench.worker.stop(DEADLINE_S)


def test_it_can_be_started_again_after_stop(bench):
    assert bench.worker.stop(DEADLINE_S)
    bench.worker.start()
    bench.offer(5)
    assert wait_until(lambda: bench.delivered == [5], DEADLINE_S)
