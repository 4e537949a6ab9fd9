"""What `/diagnostics` and `~/output/status` say, built from counters."""

from __future__ import annotations

import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

from alpamayo_ros.msg import PlannerStatus
from alpamayo_ros.planning.watchdog import Watchdog
from alpamayo_ros.ros.inputs import Inputs
from alpamayo_ros.ros.messages import time_message
from alpamayo_ros.ros.parameters import NodeSettings
from alpamayo_ros.ros.statistics import Statistics

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LOST_WARN, LOST_ERROR = 0.02, 0.20  # shares of a camera's frames over the last 10 s
INPUT_LATE_S = 1.0  # an input whose newest stamp is older than this is an ERROR while active


class Reporter:
    """Builds status and diagnostics. All it needs is handed in, nothing is kept but counts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._received_before: dict[str, int] = {}
        self._malformed_before: dict[str, int] = {}
        self._steady_before_s = time.monotonic()

    def status(
        self,
        state: str,
        settings: NodeSettings,
        statistics: Statistics,
        inputs: Inputs,
        watchdog: Watchdog | None,
        model_id: str,
        device: str,
        now_ns: int,
    ) -> PlannerStatus:
        """The planner's status now."""
        counts, refusal = inputs.refusals()
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
        self, status: PlannerStatus, inputs: Inputs, watchdog: Watchdog | None, now_ns: int
    ) -> DiagnosticArray:
        """The same and the inputs, with levels."""
        entries = [self._planner(status, watchdog), self._model(status)]
        active = status.state == "active"
        entries += self._inputs(inputs, active, now_ns)
        entries.append(self._rig(inputs.rig_problems(), active))
        return DiagnosticArray(header=Header(stamp=time_message(now_ns)), status=entries)

    def _planner(self, status: PlannerStatus, watchdog: Watchdog | None) -> DiagnosticStatus:
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
                "median decision time [ms]": f"{status.decision_time_median_ms:.1f}",
            },
        )

    def _model(self, status: PlannerStatus) -> DiagnosticStatus:
        if not status.model_id:
            return self._entry("model", WARN, "no model is loaded", {})
        level, message = OK, status.model_id
        if status.demo_model:
            level, message = WARN, "DEMO MODEL: it must not drive a car"
        return self._entry(
            "model", level, message, {"model": status.model_id, "device": status.device}
        )

    def _inputs(self, inputs: Inputs, active: bool, now_ns: int) -> list[DiagnosticStatus]:
        steady_s = time.monotonic()
        span_s = max(steady_s - self._steady_before_s, 1e-3)
        entries = []
        for name, newest_ns in inputs.newest_stamps_ns().items():
            received, malformed = inputs.received[name], inputs.malformed[name]
            rate_hz = max(received - self._received_before.get(name, 0), 0) / span_s
            self._received_before[name] = received
            age_s = (now_ns - newest_ns) / 1e9 if newest_ns is not None else None
            losses = inputs.losses(name) if name != "odometry" else None
            lost_share = losses.share if losses is not None else 0.0
            level, message = OK, f"{rate_hz:.1f} messages/s"
            if not active:
                message = "not listening"
            elif hint := inputs.clock_hint(name):
                level, message = ERROR, hint
            elif age_s is None:
                level, message = ERROR, "nothing received"
            elif age_s > INPUT_LATE_S:
                level, message = ERROR, f"nothing new for {age_s:.1f} s"
            elif lost_share >= LOST_WARN:
                level = ERROR if lost_share >= LOST_ERROR else WARN
                message = (
                    f"{lost_share:.0%} of {losses.expected} frames were lost on the way, "
                    "see docs/transport.md"
                )
            elif malformed > self._malformed_before.get(name, 0):
                level, message = WARN, inputs.malformed_detail[name]
            values = {
                "received": received,
                "rate [1/s]": f"{rate_hz:.1f}",
                "age [s]": "" if age_s is None else f"{age_s:.3f}",
                "malformed": malformed,
                "duplicate or too late": inputs.sampler.unused[name],
            }
            if losses is not None:
                values["received of expected, 10 s"] = f"{losses.received} of {losses.expected}"
            self._malformed_before[name] = malformed
            if name == "odometry" and inputs.sampler.twist_not_filled and level == OK:
                level, message = WARN, "twist is zero while the pose moves: taken as not filled"
            label = name if name == "odometry" else f"camera {name}"
            entries.append(self._entry(label, level, message, values))
        self._steady_before_s = steady_s
        return entries

    def _rig(self, problems: list[str], active: bool) -> DiagnosticStatus:
        level, message = OK, "nothing wrong is seen" if active else "not listening"
        if problems:
            level, message = WARN, "; ".join(problems)
        return self._entry("rig", level, message, {})

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
