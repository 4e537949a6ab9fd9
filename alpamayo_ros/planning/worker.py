"""The planning thread: newest wins, nothing queues, stale work is thrown away.

The thread asks its source for the newest selection whenever it is free; while it works, newer
snapshots simply become the newest. A generation number, raised by reset() and stop(), tells a plan
in flight that nobody wants it any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from alpamayo_ros.model import PlanCancelled
from alpamayo_ros.planning.planner import Decision
from alpamayo_ros.sensing.selection import Selection

IDLE_S = 0.05  # how often an idle thread looks for t0s that have expired undecided


class PlanWorker:
    """One thread that turns the newest selection into a decision, again and again.

    Args:
        take: gives the newest selection, or None. Called by the thread.
        decide: selection and `should_stop` to a decision; may raise.
        deliver: gets each decision that is still wanted. Called by the thread, with the worker's
            generation held fixed, so that nothing is delivered after reset() or stop() returned.
        failed: gets what the others raised; returns how many seconds to wait before the next try.
        idle: a small piece of work that may be done while there is nothing to plan on; returns
            whether there was one. Planning comes first again after each.
    """

    def __init__(
        self,
        take: Callable[[], Selection | None],
        decide: Callable[[Selection, Callable[[], bool]], Decision],
        deliver: Callable[[Decision], None],
        failed: Callable[[Exception], float],
        idle: Callable[[], bool] = lambda: False,
    ) -> None:
        self._take = take
        self._decide = decide
        self._deliver = deliver
        self._failed = failed
        self._idle = idle
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._generation = 0
        self._delivery = threading.RLock()  # held while delivering and while a generation ends
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start planning."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="planning", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float | None = None) -> bool:
        """End the thread; a plan in flight is cancelled at its next stage and not delivered.

        Returns:
            Whether the thread has ended within the timeout.
        """
        self._stopping.set()
        self.reset()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        ended = not self._thread.is_alive()
        if ended:
            self._thread = None
        return ended

    def wake(self) -> None:
        """Say that something new has arrived."""
        self._wake.set()

    def reset(self) -> None:
        """Discard the plan in flight; planning goes on with the next selection."""
        with self._delivery:
            self._generation += 1
        self._wake.set()

    def exclusive(self) -> AbstractContextManager[bool]:
        """While this is held nothing is delivered."""
        return self._delivery

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(IDLE_S)
            self._wake.clear()
            try:
                # As long as there is something to plan on, do not wait for a wake-up.
                while not self._stopping.is_set() and (self._plan_once() or self._idle()):
                    pass
            except Exception as error:
                self._stopping.wait(self._failed(error))

    def _plan_once(self) -> bool:
        generation = self._generation
        selection = self._take()
        if selection is None:
            return False
        try:
            decision = self._decide(selection, lambda: self._generation != generation)
        except PlanCancelled:
            return True
        with self._delivery:
            if self._generation == generation:
                self._deliver(decision)
        return True
