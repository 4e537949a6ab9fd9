"""The active node's heart: from inputs through the planning thread to outputs."""

from __future__ import annotations

import concurrent.futures
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rclpy.node import Node

from alpamayo_ros.devices.device import free_memory_bytes
from alpamayo_ros.model import PlanCancelled
from alpamayo_ros.planning.planner import Decision, Planner, UnusableFrameError
from alpamayo_ros.planning.watchdog import (
    HANG_DECISIONS,
    MIN_HANG_S,
    Watchdog,
    timeout_s,
)
from alpamayo_ros.planning.worker import PlanWorker
from alpamayo_ros.ros import faults
from alpamayo_ros.ros.evidence import Evidence, one_line
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.outputs import Outputs
from alpamayo_ros.ros.parameters import NodeSettings
from alpamayo_ros.ros.statistics import Statistics
from alpamayo_ros.sensing.blackbox import BlackBox
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import NS_PER_S, Reason, Refusal

FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 10.0
WAITING_S = 30.0  # between two lines that say what the node waits for
STOP_S = 10.0  # longest wait for a running stage of the model
STOP_HANGING_S = 0.5  # and for one that hangs already: whoever asked shall get an answer


class PlanRequest:
    """A plan_once that waits: for a selection, then for the decision on it."""

    def __init__(self) -> None:
        self.answer: concurrent.futures.Future[Decision | Refusal] = concurrent.futures.Future()
        self.selection: Selection | None = None


class PlanningLoop:
    """Runs while the node is active.

    Args:
        warm_up_s: how long a decision takes, from which the watchdog's times follow.
        black_box: gets the snapshots of rejected plans.
        report: publishes the status; called after every decision and failure.
    """

    def __init__(
        self,
        node: Node,
        settings: NodeSettings,
        inputs: Inputs,
        outputs: Outputs,
        planner: Planner,
        statistics: Statistics,
        warm_up_s: float,
        black_box: BlackBox | None,
        report: Callable[[], None],
    ) -> None:
        self._node = node
        self._settings = settings
        self._inputs = inputs
        self._outputs = outputs
        self._planner = planner
        self._statistics = statistics
        self._warm_up_s = warm_up_s
        self._report = report
        self._back_off_s = FIRST_BACK_OFF_S
        self._forget = False  # the planning thread has caches to clear
        self._request: PlanRequest | None = None
        self._request_lock = threading.Lock()
        self._stopped = False
        self._last_tick_ns = 0
        self._hangs = False
        self._evidence = Evidence(node, black_box)
        self._worker = PlanWorker(
            self._take, self._decide, self._deliver, self._failed, self._encode_ahead
        )
        self.watchdog = Watchdog(
            timeout_ns=0,
            hang_ns=round(max(MIN_HANG_S, HANG_DECISIONS * warm_up_s) * NS_PER_S),
            since_ns=self._now_ns(),
        )
        self.apply(settings)

    def start(self) -> None:
        """Begin to plan."""
        self.watchdog.restart(self._now_ns())
        if not self._settings.enforce:
            self._node.get_logger().warning("gate REPORT ONLY: rejected plans go out on path too")
        self._worker.start()

    def stop(self, timeout_s: float = STOP_S) -> bool:
        """Stop planning and forget what was seen; from now on nothing is delivered.

        Returns:
            False when the running stage of the model did not end in time.
        """
        self._stopped = True
        if self.watchdog.hangs(time.monotonic_ns()):
            timeout_s = min(timeout_s, STOP_HANGING_S)
        ended = self._worker.stop(timeout_s)
        if ended:
            self._planner.reset()
        self._discard_request("the node was deactivated")
        self._evidence.close()
        return ended

    def wake(self) -> None:
        """Something was received."""
        self._worker.wake()

    def reset(self) -> None:
        """Forget everything seen so far and discard the plan in flight."""
        self._inputs.reset()
        self._worker.reset()
        self._forget = True
        self._discard_request("the node was reset")
        with self._worker.exclusive():
            now_ns = self._last_tick_ns = self._now_ns()
            self.watchdog.restart(now_ns)
            self._outputs.publish_no_plan(now_ns)

    def apply(self, settings: NodeSettings) -> None:
        """Take over changed settings."""
        self._settings = settings
        self._planner.settings = settings.planner
        self.watchdog.timeout_ns = round(
            timeout_s(settings.watchdog_timeout_s, self._warm_up_s) * NS_PER_S
        )
        self._inputs.apply(settings)

    def plan_once(self) -> Decision | Refusal:
        """Plan on the newest snapshot now, whatever the rate and even while paused. Blocks.

        Raises:
            concurrent.futures.TimeoutError: the decision hangs.
            Exception: what the decision raised.
        """
        request = PlanRequest()
        with self._request_lock:
            if self._stopped:
                return Refusal(Reason.BUSY, 0, "the node was deactivated")
            self._request = request
        self._worker.wake()
        try:
            return request.answer.result(2 * self.watchdog.hang_ns / NS_PER_S)
        finally:
            self._finish(request)

    def tick(self) -> None:
        """Look after the plan in force; called several times a second."""
        self._look_for_hang()
        now_ns, before_ns = self._now_ns(), self._last_tick_ns
        self._last_tick_ns = now_ns
        if now_ns < before_ns:
            # /clock's jumps are told to the node at once; those of the wall clock are seen here.
            self._node.get_logger().warning("the clock went back: starting afresh")
            self.reset()
        elif now_ns <= 0:
            self._say_waiting("waiting for the first /clock (use_sim_time is true)")
        elif self.watchdog.since_ns <= 0:
            self.watchdog.restart(now_ns)  # activated before the first /clock
        else:
            self._check_watchdog(now_ns)

    def _look_for_hang(self) -> None:
        """Say once of each decision that hangs that it does."""
        before, self._hangs = self._hangs, self.watchdog.hangs(time.monotonic_ns())
        if self._hangs and not before:
            error = f"a decision hangs for over {self.watchdog.hang_ns / NS_PER_S:g} s"
            self._statistics.last_error = error
            self._node.get_logger().error(error)
            self._report()

    def _say_waiting(self, what: str) -> None:
        self._node.get_logger().warning(what, throttle_duration_sec=WAITING_S)

    def _check_watchdog(self, now_ns: int) -> None:
        with self._worker.exclusive():  # or an empty path could follow a fresh plan
            if not self.watchdog.check(now_ns):
                return
            self._outputs.publish_no_plan(now_ns, stale=True)
        silent = self._inputs.silent()
        if silent:
            self._say_waiting("nothing was received on " + ", ".join(silent))
        _, refusal = self._inputs.refusals()
        last = f"; the last refusal: {refusal.detail}" if refusal and not silent else ""
        self._node.get_logger().error(
            f"no accepted plan for {self.watchdog.timeout_ns / NS_PER_S:g} s: "
            f"an empty path was published{last}",
            throttle_duration_sec=10.0,
        )
        self._report()

    def _take(self) -> Selection | None:
        if self._forget:
            self._forget = False
            self._planner.reset()
        selection = self._requested()
        if selection is None:
            selection = self._inputs.take(self._settings, self._now_ns())
        if selection is not None:
            self._statistics.snapshots += 1
        return selection

    def _requested(self) -> Selection | None:
        """The newest selection, for a plan_once that has none yet."""
        request = self._request
        if request is None or request.selection is not None:
            return None
        outcome = self._inputs.newest(self._now_ns())
        if isinstance(outcome, Refusal):
            self._finish(request, outcome)
            return None
        request.selection = outcome
        return outcome

    def _decide(self, selection: Selection, should_stop: Callable[[], bool]) -> Decision:
        with self._watched():
            try:
                faults.strike_decision(lambda: self._node.settings.test_fault)
                text = self._inputs.navigation_text(self._settings, self._now_ns())
                decision = self._planner.decide(selection, text, should_stop)
                # Asked where a device that hangs is seen to, and holds up nobody else.
                self._statistics.device_free_bytes = free_memory_bytes(decision.plan.device)
                return decision
            except PlanCancelled:
                raise
            except Exception as error:
                request = self._request
                if request is not None and request.selection is selection:
                    self._finish(request, error)
                raise

    def _encode_ahead(self) -> bool:
        """With nothing to plan on: encode one frame of the next t0, if there is one."""
        if not self._settings.encode_ahead:
            return False
        frames = self._inputs.frames_ahead(self._settings, self._now_ns())
        with self._watched():
            encoded = self._planner.encode_ahead(frames)
        self._statistics.encoded_ahead += encoded
        return encoded

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Work of the model, which may hang."""
        self.watchdog.decision_since_ns = time.monotonic_ns()
        try:
            yield
        finally:
            self.watchdog.decision_since_ns = None

    def _deliver(self, decision: Decision) -> None:
        self._back_off_s = FIRST_BACK_OFF_S
        t0_ns, accepted = decision.plan.t0_ns, decision.verdict.accepted
        fresh = self.watchdog.fresh(t0_ns, self._now_ns())
        drive = fresh and (accepted or not self._settings.enforce)
        self._statistics.count(decision, time.monotonic())
        self._outputs.publish(decision, drive, self._settings.sampler.to_rear_axle)
        if drive:
            self.watchdog.published(t0_ns, accepted)
        elif not fresh:
            self._node.get_logger().warning(
                "a plan took longer than watchdog.timeout_s and is not on path",
                throttle_duration_sec=10.0,
            )
        if not accepted:
            self._evidence.keep(decision)
        request = self._request
        if request is not None and request.selection is decision.selection:
            self._finish(request, decision)
        self._report()

    def _failed(self, error: Exception) -> float:
        if isinstance(error, UnusableFrameError):
            self._inputs.drop_frame(error)
            return 0.0  # the next t0 has other frames
        self._statistics.failures += 1
        self._statistics.last_error = one_line(error)
        self._recover_from(error)
        wait_s = self._back_off_s
        self._back_off_s = min(2 * wait_s, LONGEST_BACK_OFF_S)
        self._node.get_logger().error(
            f"planning failed, next try in {wait_s:g} s: {self._statistics.last_error}",
            throttle_duration_sec=1.0,
        )
        self._report()
        return wait_s

    def _recover_from(self, error: Exception) -> None:
        """Free what a failed decision holds, which may be the memory that the next one needs."""
        traceback.clear_frames(error.__traceback__)  # their variables are the model's tensors
        try:
            with self._watched():
                self._planner.recover()
        except Exception as lost:  # of a device that is lost, and the thread must live on
            self._node.get_logger().error(f"freeing memory failed: {one_line(lost)}")

    def _discard_request(self, why: str) -> None:
        request = self._request
        if request is not None:
            self._finish(request, Refusal(Reason.BUSY, 0, why))

    def _finish(
        self, request: PlanRequest, outcome: Decision | Refusal | Exception | None = None
    ) -> None:
        """Answer a plan_once, once, and forget it."""
        with self._request_lock:
            if self._request is request:
                self._request = None
            if outcome is None or request.answer.done():
                return
            if isinstance(outcome, Exception):
                request.answer.set_exception(outcome)
            else:
                request.answer.set_result(outcome)

    def _now_ns(self) -> int:
        return self._node.get_clock().now().nanoseconds
