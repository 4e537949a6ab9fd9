"""The active node's heart: from inputs through the planning thread to outputs."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable

from rclpy.node import Node

from alpamayo_ros.planning.planner import Decision, Planner
from alpamayo_ros.planning.watchdog import (
    HANG_DECISIONS,
    MIN_HANG_S,
    Watchdog,
    timeout_s,
)
from alpamayo_ros.planning.worker import PlanWorker
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.outputs import Outputs
from alpamayo_ros.ros.parameters import NodeSettings
from alpamayo_ros.ros.statistics import Statistics
from alpamayo_ros.sensing.blackbox import BlackBox
from alpamayo_ros.sensing.images import MalformedImageError
from alpamayo_ros.sensing.sampler import Selection
from alpamayo_ros.types import Reason, Refusal

FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 10.0
STOP_S = 10.0  # longest wait for a running stage of the model
NS_PER_S = 1_000_000_000


def one_line(error: BaseException) -> str:
    """The first line of an error's text, with its kind where the text alone says too little."""
    text = (str(error).splitlines() or [""])[0]
    known = isinstance(error, ValueError | OSError) and text
    return text if known else f"{type(error).__name__}: {text}"


class PlanningLoop:
    """Runs while the node is active.

    Args:
        warm_up_s: how long a decision takes, from which the watchdog's times follow.
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
        self._once: concurrent.futures.Future[Decision | Refusal] | None = None
        self._writer = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="blackbox")
        self._writing: concurrent.futures.Future | None = None
        self._worker = PlanWorker(self._take, self._decide, self._deliver, self._failed)
        self.watchdog = Watchdog(
            timeout_ns=0,
            hang_ns=round(max(MIN_HANG_S, HANG_DECISIONS * warm_up_s) * NS_PER_S),
            since_ns=self._now_ns(),
        )
        self.apply(settings)

    def start(self) -> None:
        """Begin to plan."""
        self.watchdog.restart(self._now_ns())
        self._worker.start()

    def stop(self) -> bool:
        """Stop planning; from now on nothing is delivered.

        Returns:
            False when the running stage of the model did not end in time.
        """
        ended = self._worker.stop(STOP_S)
        self._answer(Refusal(Reason.MISSING_FRAMES, 0, "the node was deactivated"))
        self._writer.shutdown(wait=True)
        return ended

    def wake(self) -> None:
        """Something was received."""
        self._worker.wake()

    def reset(self) -> None:
        """Forget everything seen so far and discard the plan in flight."""
        self._forget = True
        self._inputs.reset()
        self._worker.reset()
        self.watchdog.restart(self._now_ns())
        self._outputs.publish_no_plan(self._now_ns())

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
        """
        future: concurrent.futures.Future[Decision | Refusal] = concurrent.futures.Future()
        self._once = future
        self._worker.wake()
        return future.result(2 * self.watchdog.hang_ns / NS_PER_S)

    def tick(self) -> None:
        """Look after the plan in force; called several times a second."""
        now_ns = self._now_ns()
        if self.watchdog.since_ns <= 0:
            self.watchdog.restart(now_ns)  # activated before the first /clock
        elif self.watchdog.check(now_ns):
            self._outputs.publish_no_plan(now_ns)
            self._node.get_logger().error(
                f"no accepted plan for {self.watchdog.timeout_ns / NS_PER_S:g} s: "
                "an empty path was published",
                throttle_duration_sec=10.0,
            )
            self._report()

    def _take(self) -> Selection | None:
        if self._forget:
            self._forget = False
            self._planner.reset()
        if self._once is not None:
            outcome = self._inputs.newest(self._now_ns())
            if isinstance(outcome, Refusal):
                self._answer(outcome)
                return None
            selection: Selection | None = outcome
        else:
            selection = self._inputs.take(self._settings, self._now_ns())
        if selection is not None:
            self._statistics.snapshots += 1
        return selection

    def _decide(self, selection: Selection, should_stop: Callable[[], bool]) -> Decision:
        self.watchdog.decision_since_ns = time.monotonic_ns()
        try:
            text = self._inputs.navigation_text(self._settings, self._now_ns())
            return self._planner.decide(selection, text, should_stop)
        finally:
            self.watchdog.decision_since_ns = None

    def _deliver(self, decision: Decision) -> None:
        self._back_off_s = FIRST_BACK_OFF_S
        accepted = decision.verdict.accepted
        drive = accepted or not self._settings.enforce
        self._statistics.count(decision)
        self._outputs.publish(decision, drive, self._settings.sampler.to_rear_axle)
        if drive:
            self.watchdog.published(decision.plan.t0_ns, accepted)
        if not accepted:
            self._keep_evidence(decision)
        self._answer(decision)
        self._report()

    def _failed(self, error: Exception) -> float:
        if isinstance(error, MalformedImageError):
            self._inputs.count_malformed(str(error).split(":")[0], str(error))
            return 0.0  # the next t0 has other frames
        self._statistics.failures += 1
        self._statistics.last_error = one_line(error)
        wait_s = self._back_off_s
        self._back_off_s = min(2 * wait_s, LONGEST_BACK_OFF_S)
        self._node.get_logger().error(
            f"planning failed, next try in {wait_s:g} s: {self._statistics.last_error}",
            throttle_duration_sec=1.0,
        )
        self._answer(Refusal(Reason.BUSY, 0, self._statistics.last_error))
        self._report()
        return wait_s

    def _answer(self, outcome: Decision | Refusal) -> None:
        """Answer the waiting plan_once, if there is one."""
        future, self._once = self._once, None
        if future is not None:
            future.set_result(outcome)

    def _keep_evidence(self, decision: Decision) -> None:
        """Write the snapshot of a rejected plan, off this thread, one at a time."""
        settings = self._settings
        if not settings.blackbox_directory or (self._writing and not self._writing.done()):
            return
        box = BlackBox(settings.blackbox_directory, settings.blackbox_max_files)

        def write() -> None:
            try:
                box.save(decision.snapshot, "rejected")
            except OSError as error:
                self._node.get_logger().warning(f"black box: {error}", throttle_duration_sec=10.0)

        self._writing = self._writer.submit(write)

    def _now_ns(self) -> int:
        return self._node.get_clock().now().nanoseconds
