"""Is there a plan one may still drive on, and does planning get anywhere?"""

from __future__ import annotations

from dataclasses import dataclass

MIN_TIMEOUT_S = 1.0
TIMEOUT_DECISIONS = 3.0  # automatic time-out in warm-up decisions
CLOCK_LAG_NS = 200_000_000  # /clock may tick this much later than the stamps that come with it
HANG_DECISIONS = 10.0  # a decision this many times longer than the warm-up's hangs
MIN_HANG_S = 5.0  # a busy machine may stall a 0.1 s decision for a second; that is no hang


def timeout_s(parameter_s: float, warm_up_s: float) -> float:
    """`watchdog.timeout_s`, where 0 means max(1 s, 3 x the warm-up's decision time)."""
    return parameter_s if parameter_s > 0 else max(MIN_TIMEOUT_S, TIMEOUT_DECISIONS * warm_up_s)


@dataclass
class Watchdog:
    """Ages in ROS time, so that a paused bag is no fault; hangs on the steady clock.

    With the gate in report mode rejected plans are published too: then the path can be fresh while
    no plan was accepted for long.
    """

    timeout_ns: int
    hang_ns: int
    since_ns: int  # ROS time of activation or t0 of the newest accepted plan, the later one
    path_ns: int | None = None  # t0 of the plan that is out on `path`
    plan_valid: bool = False  # the plan on `path` is fresh and the gate accepted it
    expired: bool = False  # no accepted plan for too long
    decision_since_ns: int | None = None  # steady time at which the decision in flight began

    def fresh(self, t0_ns: int, now_ns: int) -> bool:
        """Whether a plan for t0 is young enough to be driven."""
        return 0 <= now_ns - t0_ns + CLOCK_LAG_NS <= self.timeout_ns + CLOCK_LAG_NS

    def published(self, t0_ns: int, accepted: bool) -> None:
        """A plan for t0 went out on `path`."""
        self.path_ns = t0_ns
        self.plan_valid = accepted
        if accepted:
            self.since_ns = max(self.since_ns, t0_ns)
            self.expired = False

    def restart(self, now_ns: int) -> None:
        """The clock has jumped or planning starts: there is no plan, and time to make one."""
        self.since_ns = now_ns
        self.path_ns = None
        self.plan_valid = False
        self.expired = False

    def check(self, now_ns: int) -> bool:
        """Whether the path must be emptied now: true once for each plan that has grown too old,
        and once when none was accepted in time."""
        late = now_ns - self.since_ns > self.timeout_ns
        just_expired = late and not self.expired
        self.expired = late
        outdated = self.path_ns is not None and not self.fresh(self.path_ns, now_ns)
        if outdated or just_expired:
            self.path_ns = None
            self.plan_valid = False
        return outdated or just_expired

    def hangs(self, steady_ns: int) -> bool:
        """Whether the decision in flight takes far too long."""
        since_ns = self.decision_since_ns
        return since_ns is not None and steady_ns - since_ns > self.hang_ns

    def plan_age_s(self, now_ns: int) -> float:
        """Age of the valid plan's t0; -1 without one."""
        if not self.plan_valid or self.path_ns is None:
            return -1.0
        return (now_ns - self.path_ns) / 1e9
