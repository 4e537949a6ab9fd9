"""What `/diagnostics` and `~/output/status` say, built from counters: docs/diagnostics.md."""

from __future__ import annotations

import time
from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

from alpamayo_ros.msg import PlannerStatus
from alpamayo_ros.planning.watchdog import Watchdog
from alpamayo_ros.ros import faults
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.messages import time_message
from alpamayo_ros.ros.parameters import NodeSettings
from alpamayo_ros.ros.statistics import Latencies, Statistics

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LOST_WARN, LOST_ERROR = 0.02, 0.20  # shares of a camera's frames over the last 10 s
INPUT_LATE_S = 1.0  # an input whose newest stamp is older than this is an ERROR while active


class Reporter:
    """Builds status and diagnostics. Nothing is kept but counts.

    Args:
        name: the node's, which entries begin with.
        inputs: what the node hears.
        unheard: our own topics that a subscriber asks otherwise for, and the policy; it may grow.
    """

    def __init__(self, name: str, inputs: Inputs, unheard: Mapping[str, str]) -> None:
        self._name = name
        self._inputs = inputs
        self._unheard = unheard
        self._received_before: dict[str, int] = {}
        self._malformed_before: dict[str, int] = {}
        self._steady_before_s = time.monotonic()

    def status(
        self,
        state: str,
        settings: NodeSettings,
        statistics: Statistics,
        watchdog: Watchdog | None,
        model_id: str,
        device: str,
        now_ns: int,
    ) -> PlannerStatus:
        """The planner's status now."""
        counts, refusal = self._inputs.refusals()
        rejections = dict(statistics.rejections)
        return PlannerStatus(
            header=Header(stamp=time_message(now_ns)),
            state=state,
            plan_valid=watchdog is not None and watchdog.plan_valid,
            plan_age=watchdog.plan_age_s(now_ns) if watchdog else -1.0,
            last_refusal=refusal.reason.value if refusal else "",
            last_refusal_detail=refusal.detail if refusal else "",
            last_error=statistics.last_error,
            model_id=model_id,
            demo_model=model_id.startswith("demo"),
            device=device,
            gate_mode="enforce" if settings.enforce else "report",
            snapshots=statistics.snapshots,
            plans=statistics.plans,
            accepted=statistics.accepted,
            rejected=statistics.rejected,
            refusal_reasons=list(counts),
            refusal_counts=list(counts.values()),
            rejection_reasons=list(rejections),
            rejection_counts=list(rejections.values()),
            decision_time_median_ms=float(statistics.median_ms),
        )

    def diagnostics(
        self,
        status: PlannerStatus,
        settings: NodeSettings,
        statistics: Statistics,
        watchdog: Watchdog | None,
        now_ns: int,
    ) -> DiagnosticArray:
        """The same and the inputs, with levels."""
        active = status.state == "active"
        entries = [
            self._planner(status, statistics, watchdog),
            self._latency(statistics.latencies(time.monotonic()), watchdog),
            self._model(status, statistics.device_free_bytes),
            *self._sensors(active, now_ns),
            self._rig(self._inputs.rig_problems(), active),
            self._qos(),
            self._black_box(settings, statistics),
        ]
        if settings.test_fault != faults.NONE:
            message = f"TEST FAULT {settings.test_fault} is set: this node must not drive a car"
            entries.append(self._entry("test", ERROR, message, {}))
        return DiagnosticArray(header=Header(stamp=time_message(now_ns)), status=entries)

    def _planner(
        self, status: PlannerStatus, statistics: Statistics, watchdog: Watchdog | None
    ) -> DiagnosticStatus:
        level, message = OK, status.state
        if status.state == "active":
            message = "planning" if status.plan_valid else "no accepted plan"
            level = OK if status.plan_valid else WARN
        if status.gate_mode == "report":
            level, message = WARN, f"{message}; REPORT ONLY: rejected plans are published too"
        if watchdog is not None and watchdog.expired:
            level, message = ERROR, f"no plan published for over {watchdog.timeout_ns / 1e9:g} s"
        if watchdog is not None and watchdog.hangs(time.monotonic_ns()):
            level, message = ERROR, f"a decision hangs for over {watchdog.hang_ns / 1e9:g} s"
        if status.last_error:
            level, message = ERROR, status.last_error
        return self._entry(
            "planner",
            level,
            message,
            {
                "state": status.state,
                "plan age [s]": f"{status.plan_age:.3f}",
                "snapshots": status.snapshots,
                "plans": status.plans,
                "accepted": status.accepted,
                "rejected": status.rejected,
                **{
                    f"rejected: {name}": count
                    for name, count in zip(status.rejection_reasons, status.rejection_counts)
                },
                **{
                    f"refused: {name}": count
                    for name, count in zip(status.refusal_reasons, status.refusal_counts)
                },
                "last refusal": status.last_refusal_detail,
                "failures": statistics.failures,
                "frames encoded ahead": statistics.encoded_ahead,
                "median decision time [ms]": f"{status.decision_time_median_ms:.1f}",
            },
        )

    def _latency(self, latencies: Latencies | None, watchdog: Watchdog | None) -> DiagnosticStatus:
        if latencies is None:
            return self._entry("latency", OK, "no decision within the last minute", {})
        p50_ms, p99_ms = latencies.p50_ms["total"], latencies.p99_ms["total"]
        level = OK
        message = f"{latencies.plans_per_s:.1f} plans/s, {p50_ms:.0f} ms (p99 {p99_ms:.0f} ms)"
        if watchdog is not None and p99_ms * 1e6 > watchdog.timeout_ns:
            level = WARN
            message += f": over watchdog.timeout_s, {watchdog.timeout_ns / 1e9:g} s, plans are late"
        values = {"plans [1/s]": f"{latencies.plans_per_s:.2f}"}
        for stage, median_ms in latencies.p50_ms.items():
            values[f"{stage} p50 [ms]"] = f"{median_ms:.1f}"
            values[f"{stage} p99 [ms]"] = f"{latencies.p99_ms[stage]:.1f}"
        return self._entry("latency", level, message, values)

    def _model(self, status: PlannerStatus, free_bytes: int | None) -> DiagnosticStatus:
        if not status.model_id:
            return self._entry("model", WARN, "no model is loaded", {})
        level, message = OK, status.model_id
        if status.demo_model:
            level, message = WARN, "DEMO MODEL: it must not drive a car"
        free = "" if free_bytes is None else f"{free_bytes / 1e6:.0f}"
        return self._entry(
            "model",
            level,
            message,
            {"model": status.model_id, "device": status.device, "free device memory [MB]": free},
        )

    def _sensors(self, active: bool, now_ns: int) -> list[DiagnosticStatus]:
        inputs = self._inputs
        steady_s = time.monotonic()
        span_s = max(steady_s - self._steady_before_s, 1e-3)
        self._steady_before_s = steady_s
        skews_ns = inputs.skews_ns()
        entries = []
        for name, newest_ns in inputs.newest_stamps_ns().items():
            received = inputs.received[name]
            rate_hz = max(received - self._received_before.get(name, 0), 0) / span_s
            self._received_before[name] = received
            age_s = (now_ns - newest_ns) / 1e9 if newest_ns is not None else None
            level, message = OK, f"{rate_hz:.1f} messages/s"
            if not active:
                message = "not listening"
            elif problem := self._problem(name, age_s, skews_ns.get(name, 0)):
                level, message = problem
            self._malformed_before[name] = inputs.malformed[name]
            values = {
                "received": received,
                "rate [1/s]": f"{rate_hz:.1f}",
                "age [s]": "" if age_s is None else f"{age_s:.3f}",
                "malformed": inputs.malformed[name],
                "last malformed": inputs.malformed_detail.get(name, ""),
                "duplicate or too late": inputs.sampler.unused[name],
            }
            if losses := inputs.losses(name):
                values["received of expected, 10 s"] = f"{losses.received} of {losses.expected}"
            if name in skews_ns:
                values["skew [s]"] = f"{skews_ns[name] / 1e9:+.3f}"
            label = name if name == "odometry" else f"camera {name}"
            entries.append(self._entry(label, level, message, values))
        return entries

    def _problem(self, name: str, age_s: float | None, skew_ns: int) -> tuple[bytes, str] | None:
        """Level and words of what is worst about an input of an active node."""
        inputs = self._inputs
        losses = inputs.losses(name)
        tolerance_ns = inputs.sampler.settings.tolerance_ns
        if hint := inputs.clock_hint(name):
            return ERROR, hint
        if age_s is None:
            return ERROR, "nothing received"
        if age_s > INPUT_LATE_S:
            return ERROR, f"nothing new for {age_s:.1f} s"
        if losses is not None and losses.share >= LOST_WARN:
            return (
                ERROR if losses.share >= LOST_ERROR else WARN,
                f"{losses.share:.0%} of {losses.expected} frames were lost on the way, "
                "see docs/transport.md",
            )
        if inputs.malformed[name] > self._malformed_before.get(name, 0):
            return WARN, inputs.malformed_detail[name]
        if abs(skew_ns) > tolerance_ns:
            return WARN, (
                f"{skew_ns / 1e9:+.3f} s off front_wide, over sync.tolerance_s "
                f"{tolerance_ns / 1e9:g}: unsynchronised"
            )
        if name == "odometry" and inputs.sampler.twist_not_filled:
            return WARN, "twist is zero while the pose moves: taken as not filled"
        return None

    def _rig(self, problems: list[str], active: bool) -> DiagnosticStatus:
        level, message = OK, "nothing wrong is seen" if active else "not listening"
        if problems:
            level, message = WARN, "; ".join(problems)
        return self._entry("rig", level, message, {})

    def _qos(self) -> DiagnosticStatus:
        problems = [
            f"{topic}: a publisher offers an incompatible {policy} and is not heard"
            for topic, policy in self._inputs.unheard().items()
        ]
        problems += [
            f"{topic}: a subscriber asks for an incompatible {policy} and hears nothing"
            for topic, policy in dict(self._unheard).items()
        ]
        level, message = WARN, "; ".join(problems)
        return self._entry("qos", level if problems else OK, message or "all fit", {})

    def _black_box(self, settings: NodeSettings, statistics: Statistics) -> DiagnosticStatus:
        folder, problem = settings.blackbox_directory, statistics.black_box_problem
        message = problem or ("keeps rejected plans" if folder else "off")
        return self._entry("black box", WARN if problem else OK, message, {"folder": folder})

    def _entry(
        self, part: str, level: bytes, message: str, values: dict[str, object]
    ) -> DiagnosticStatus:
        return DiagnosticStatus(
            level=level,
            name=f"{self._name}: {part}",
            message=message,
            hardware_id=self._name,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
