"""The lifecycle node: cleanup closes what configure opens, deactivate stops what activate began."""

from __future__ import annotations

import concurrent.futures
import threading
import time
import traceback
from collections.abc import Callable

from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockChange, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from alpamayo_ros.model import PlanCancelled
from alpamayo_ros.planning.planner import DEMO, Planner, load_model
from alpamayo_ros.ros import parameters
from alpamayo_ros.ros.diagnostics import Reporter
from alpamayo_ros.ros.evidence import NodeBlackBox, one_line
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.loop import PlanningLoop
from alpamayo_ros.ros.outputs import Outputs, Reports
from alpamayo_ros.ros.parameters import NodeSettings
from alpamayo_ros.ros.side_node import SideNode
from alpamayo_ros.ros.statistics import Statistics
from alpamayo_ros.types import Refusal, UserError

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
STUCK = "a stage of the model does not end; nothing is planned until it does, or a restart"
REPORT_PERIOD_S = 1.0
TICK_PERIOD_S = 0.1


class AlpamayoNode(LifecycleNode):
    """Four cameras and odometry in, a driving plan out.

    Its executor, single-threaded, serves lifecycle, parameters and /clock. Inputs and services have
    a side node each, status and watchdog a thread: loading a model or a long decision delays none.

    Args:
        stopping: set when the process is to end: a long transition gives up, and none starts.

    Raises:
        ParameterError: a parameter is unknown or not allowed.
    """

    def __init__(self, name: str = "alpamayo", stopping: threading.Event | None = None) -> None:
        super().__init__(name)
        parameters.declare(self)
        self.settings = NodeSettings.read(self)
        self._state = "unconfigured"
        self._transition = threading.Lock()
        self._stopping = stopping or threading.Event()
        self._statistics = Statistics()
        self._inputs = Inputs(self, self._on_input)
        self._outputs: Outputs | None = None
        self._planner: Planner | None = None
        self._black_box: NodeBlackBox | None = None
        self._model_name, self._device = "", ""  # of the loaded model
        self._warm_up_s = 0.0
        self._loop: PlanningLoop | None = None
        self._stuck: PlanningLoop | None = None  # deactivated, but a stage of the model still runs
        self._reports = Reports(self)
        self._reporter = Reporter(name, self._inputs, self._reports.unheard)
        self._side = SideNode(self, "services")
        self._side.serve(Trigger, "~/reset", self._on_reset)
        self._side.serve(Trigger, "~/plan_once", self._on_plan_once)
        self._side.serve(Trigger, "~/save_snapshot", self._on_save_snapshot)
        self._ended = threading.Event()
        self._housekeeping = threading.Thread(target=self._keep_house, name="house", daemon=True)
        self._jumps = self.get_clock().create_jump_callback(
            JumpThreshold(
                min_forward=None,  # a gap is seen by its stamps
                min_backward=Duration(nanoseconds=-1),
                on_clock_change=True,
            ),
            post_callback=self._on_jump,
        )
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self._side.start()
        self._housekeeping.start()
        if parameters.value_of(self, "autostart"):
            steady = Clock(clock_type=ClockType.STEADY_TIME)  # sim time may stand still
            self._autostart = self.create_timer(0.0, self._on_autostart, clock=steady)

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the model and try it once."""
        return self._guarded("configure", self._configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Listen and plan."""
        return self._guarded("activate", self._activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop planning, keep the model."""
        return self._guarded("deactivate", self._deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give the model's memory back."""
        return self._guarded("cleanup", self._cleanup)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End for good, from any state."""
        return self._guarded("shutdown", self._shutdown)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Back to unconfigured, whatever went wrong."""
        return self._guarded("error", self._release)

    def end(self) -> bool:
        """Shut down from whatever state the node is in; called once, by the process.

        Not by a lifecycle transition: rclpy refuses one while another runs.

        Returns:
            False when a thread of the model still runs.
        """
        self._stopping.set()
        if self._state != "finalized":
            self._guarded("shutdown", self._shutdown)
        self._ended.set()
        self._housekeeping.join()
        self._reports.flush()
        self._side.close()
        self._jumps.unregister()
        return self._stuck is None

    def _guarded(self, name: str, transition: Callable[[], None]) -> TransitionCallbackReturn:
        """Run a transition; rclpy would swallow its exception without a word."""
        with self._transition:
            problem = self._problem(name, transition)
            if problem:
                # Outside the except block: a living traceback would hold a half-loaded model.
                self._undo(name)
                self._statistics.last_error = problem
                self.get_logger().error(f"{name} failed, now {self._state}: {problem}")
            else:
                self.get_logger().info(f"{name}: now {self._state}")
            self._report()
            return FAILURE if problem else SUCCESS

    def _problem(self, name: str, transition: Callable[[], None]) -> str:
        """Run a transition; what went wrong, in one line."""
        try:
            if name != "shutdown":
                self._give_up_when_stopping()
            transition()
        except UserError as error:
            return str(error)
        except PlanCancelled:
            return "the process is ending"
        except Exception as error:
            self.get_logger().debug(traceback.format_exc())
            return one_line(error)
        return ""

    def _undo(self, name: str) -> None:
        """Leave nothing behind of a transition that failed half-way."""
        if name == "configure":
            self._release()
        elif name == "activate":
            self._stop_planning()
            self._state = "inactive"

    def _give_up_when_stopping(self) -> None:
        if self._stopping.is_set():
            raise PlanCancelled

    def _configure(self) -> None:
        self._refuse_beside_stuck()
        self.settings = settings = NodeSettings.read(self)
        self._statistics = Statistics()
        self._inputs.forget_counts()
        self._black_box = None
        if settings.blackbox_directory:
            self._black_box = NodeBlackBox(
                settings, self._statistics, lambda: self.settings.test_fault
            )
        self._outputs = Outputs(self, settings, self._inputs.camera_infos, self._reports.unheard)
        if settings.model_path == DEMO:
            self.get_logger().warning("DEMO MODEL: it must not drive a car")
        self.get_logger().info(f"loading {settings.model_path or '(no model.path)'} ...")
        model = load_model(
            settings.model_path,
            settings.tokenizer_path,
            settings.device,
            settings.dtype,
            settings.planner,
            settings.tuning,
        )
        self._planner = Planner(model, settings.planner)
        self._give_up_when_stopping()
        self._warm_up_s = self._planner.warm_up(self._stopping.is_set)
        self._model_name, self._device = model.model_id, model.device
        self._state = "inactive"
        self.get_logger().info(
            f"{model.model_id} on {model.device}: {self._warm_up_s * 1e3:.0f} ms per decision"
        )

    def _activate(self) -> None:
        self._refuse_beside_stuck()
        assert self._planner is not None
        assert self._outputs is not None
        self._loop = PlanningLoop(
            self,
            self.settings,
            self._inputs,
            self._outputs,
            self._planner,
            self._statistics,
            self._warm_up_s,
            self._black_box,
            self._report,
        )
        self._inputs.subscribe(self.settings)
        self._loop.start()
        self._state = "active"

    def _deactivate(self) -> None:
        self._stop_planning()
        self._state = "inactive"

    def _stop_planning(self) -> None:
        """Stop listening and planning. From here on nothing is published but an empty path, even
        where a stage of the model does not end: then the loop is kept as stuck."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.stop():
            self._stuck = loop
            self._statistics.last_error = STUCK
            self.get_logger().error(STUCK)
        self._inputs.unsubscribe()
        if self._outputs is not None:
            self._outputs.publish_no_plan(self._now_ns())

    def _refuse_beside_stuck(self) -> None:
        """The stuck thread still holds the model: planning or loading beside it would be wrong."""
        if self._stuck is not None:
            if not self._stuck.stop(timeout_s=0.0):
                raise RuntimeError(STUCK)
            self._stuck = None

    def _cleanup(self) -> None:
        self._refuse_beside_stuck()
        self._release()

    def _shutdown(self) -> None:
        if self._loop is not None:
            self._stop_planning()
        if self._stuck is None:
            self._release()
        self._state = "finalized"

    def _release(self) -> None:
        """Close whatever configure has opened."""
        if self._loop is not None:
            self._stop_planning()
        planner, self._planner = self._planner, None
        self._model_name, self._device = "", ""
        if planner is not None:
            planner.close()
        if self._outputs is not None:
            self._outputs.close()
            self._outputs = None
        self._state = "unconfigured"

    def _on_autostart(self) -> None:
        self._autostart.cancel()
        if self._state == "unconfigured" and self.trigger_configure() == SUCCESS:
            self.trigger_activate()  # refused by itself when the process is ending

    # Events

    def _on_input(self) -> None:
        loop = self._loop
        if loop is not None:
            loop.wake()

    def _on_jump(self, jump: TimeJump) -> None:
        """A bag loops or is wound back, or the clock changes: nothing seen so far counts."""
        loop = self._loop
        started = jump.clock_change in (
            ClockChange.ROS_TIME_ACTIVATED,
            ClockChange.ROS_TIME_DEACTIVATED,
        )
        if not started:
            self.get_logger().info(
                f"the clock went back by {-jump.delta.nanoseconds / 1e9:.3f} s: starting afresh"
            )
        if loop is not None:
            loop.reset()
        else:
            self._inputs.reset()

    def _on_set_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        result = parameters.check_change(changes, configured=self._planner is not None)
        if result.successful:
            given = {change.name: change.value for change in changes}
            self.settings = NodeSettings.read(self, given)
            loop = self._loop
            if loop is not None:
                loop.apply(self.settings)
        return result

    def _keep_house(self) -> None:
        """Watchdog several times a second, status and diagnostics once; on wall time."""
        next_report_s = time.monotonic()
        while not self._ended.wait(TICK_PERIOD_S):
            due = time.monotonic() >= next_report_s
            if due:
                next_report_s = time.monotonic() + REPORT_PERIOD_S
            self._look_after(due)

    def _look_after(self, report_is_due: bool) -> None:
        try:
            loop = self._loop
            if loop is not None:
                loop.tick()
            if report_is_due:
                self._report(with_diagnostics=True)
        except Exception:  # a report that fails must not end the watchdog
            self.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)

    # Services

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        loop = self._loop
        if loop is None:
            return _answer(response, False, f"the node is {self._state}, not active")
        loop.reset()
        return _answer(response, True, "buffers and features forgotten")

    def _on_plan_once(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        loop = self._loop
        if loop is None:
            return _answer(response, False, f"the node is {self._state}, not active")
        try:
            outcome = loop.plan_once()
        except concurrent.futures.TimeoutError:
            return _answer(response, False, "the decision hangs")
        except Exception as error:  # whatever the decision raised; the planning thread has said it
            return _answer(response, False, one_line(error))
        if isinstance(outcome, Refusal):
            return _answer(response, False, f"{outcome.reason.value}: {outcome.detail}")
        verdict = outcome.verdict
        text = "accepted" if verdict.accepted else "rejected: " + "; ".join(verdict.reasons)
        return _answer(response, verdict.accepted, text)

    def _on_save_snapshot(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        decision = self._statistics.last_decision
        if not self.settings.blackbox_directory:
            return _answer(response, False, "blackbox.directory is empty: set it to a folder")
        if decision is None or self._black_box is None:
            return _answer(response, False, "there is no snapshot yet")
        try:
            path = self._black_box.save(decision.snapshot, "requested")
            return _answer(response, True, str(path))
        except OSError as error:
            return _answer(response, False, one_line(error))

    # Helpers

    def _report(self, with_diagnostics: bool = False) -> None:
        loop = self._loop
        watchdog = loop.watchdog if loop is not None else None
        now_ns = self._now_ns()
        status = self._reporter.status(
            self._state,
            self.settings,
            self._statistics,
            watchdog,
            self._model_name,
            self._device or self.settings.device,
            now_ns,
        )
        diagnostics = None
        if with_diagnostics:
            diagnostics = self._reporter.diagnostics(
                status, self.settings, self._statistics, watchdog, now_ns
            )
        self._reports.publish(status, diagnostics)

    def _now_ns(self) -> int:
        return self.get_clock().now().nanoseconds


def _answer(response: Trigger.Response, success: bool, message: str) -> Trigger.Response:
    response.success = success
    response.message = message
    return response
