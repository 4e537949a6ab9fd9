"""Which t0 to plan on, and with which frames and poses: the rule, apart from clocks and threads.

t0 is the newest front_wide stamp, not planned yet, for which every camera has a frame within the
tolerance of each of t0-0.3, -0.2, -0.1 and t0, and odometry covers the 1.5 s before it. A t0 is
decided only when every camera has a frame at or after t0 - 5 ms and odometry one at or after t0:
from then on no message still to come can change the choice (a camera below 100 Hz has no nearer
frame), so a node and an evaluator that see the same messages choose alike.
"""

from __future__ import annotations

import collections
import itertools
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.sensing.clocks import clock_hint
from alpamayo_ros.sensing.poses import (
    NO_ORIGIN,
    Origin,
    PoseRing,
    Track,
    implied_acceleration_m_s2,
    implied_speeds_m_s,
)
from alpamayo_ros.sensing.ring import StampRing
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import (
    CAMERA_ROLES,
    FRAME_OFFSETS_NS,
    POSE_OFFSETS_NS,
    REFERENCE_ROLE,
    EgoPose,
    Frame,
    Reason,
    Refusal,
)

SETTLED_NS = 5_000_000  # a camera with a frame this close before t0 has no nearer one to come
FUTURE_NS = 200_000_000  # /clock may tick at 10 Hz and arrive after the message it belongs to
LATE_NS = 100_000_000  # how much later than others' a camera's messages may come
MAX_FRAMES = 256  # a camera's, 2.4 s at 100 Hz
MAX_ACCELERATION_M_S2 = 15.0  # odometry that implies more has jumped
SPEED_TOLERANCE_M_S = 1.0  # implied speed against twist, plus ...
SPEED_TOLERANCE_SHARE = 0.1  # ... this share of the twist


@dataclass(frozen=True)
class SamplerSettings:
    """The parameters of the rule, named as the node's parameters are."""

    tolerance_ns: int = 55_000_000  # sync.tolerance_s
    max_age_ns: int = 500_000_000  # sync.max_age_s
    max_gap_ns: int = 300_000_000  # odometry.max_gap_s
    period_ns: int = 100_000_000  # 1 / planning.max_rate_hz
    to_rear_axle: Origin = NO_ORIGIN

    @property
    def keep_ns(self) -> int:
        """How long frames are kept: for the oldest t0 that is planned on, and late messages."""
        return self.max_age_ns - FRAME_OFFSETS_NS[0] + self.tolerance_ns + LATE_NS


class Sampler:
    """Rings of frames and poses, and the rule over them. Not thread-safe: its user holds a lock."""

    def __init__(self, settings: SamplerSettings | None = None) -> None:
        self.settings = settings or SamplerSettings()
        self.rings: dict[str, StampRing[Frame]] = {
            role: StampRing(self.settings.keep_ns, MAX_FRAMES) for role in CAMERA_ROLES
        }
        self.poses = PoseRing()
        self.refused: collections.Counter[str] = collections.Counter()
        self.last_refusal: Refusal | None = None
        self.unused: collections.Counter[str] = collections.Counter()  # duplicate or too late
        self.twist_not_filled = False  # odometry moves with a twist of exactly zero
        self._frame_ids = ("", "")
        self._ahead_ns: dict[str, int] = {}  # of the clock, by sensor: its newest stamp on arrival
        self._done_ns = -1  # every t0 up to here is planned, refused or passed over
        self._planned_ns: int | None = None

    def apply(self, settings: SamplerSettings) -> None:
        """Take over changed settings."""
        self.settings = settings
        for ring in self.rings.values():
            ring.keep_ns = settings.keep_ns

    def add_frame(self, role: str, frame: Frame, now_ns: int) -> Refusal | None:
        """Keep a camera's frame, unless its stamp makes no sense at `now_ns`."""
        refusal = self._misdated(role, frame.stamp_ns, now_ns)
        if refusal is None:
            self._count_kept(role, self.rings[role].append(frame), frame.stamp_ns - now_ns)
        return refusal

    def add_pose(
        self, pose: EgoPose, frame_id: str, child_frame_id: str, now_ns: int
    ) -> Refusal | None:
        """Keep an odometry pose, unless its stamp makes no sense at `now_ns`."""
        refusal = self._misdated("odometry", pose.stamp_ns, now_ns)
        if refusal is None:
            if self._frame_ids != (frame_id, child_frame_id):
                self.poses.clear()  # poses in two frames are not one track
                self._frame_ids = (frame_id, child_frame_id)
            self._count_kept("odometry", self.poses.append(pose), pose.stamp_ns - now_ns)
        return refusal

    def clock_hint(self, name: str) -> str:
        """What is wrong with the clock of a sensor (or `odometry`), as last heard; or ""."""
        return clock_hint(self._ahead_ns.get(name, 0))

    def take(self, now_ns: int) -> Selection | None:
        """The newest t0 that can be planned on now, taken: it is not offered again.

        t0s that it passes over count as `busy`; those that fail are refused, each once.
        """
        selection = None
        refusals = []
        for t0_ns in reversed(self._candidates(now_ns)):
            if selection is not None:
                refusals.append(Refusal(Reason.BUSY, t0_ns, "a newer snapshot took its place"))
                continue
            outcome = self._evaluate(t0_ns, now_ns)
            if isinstance(outcome, Selection):
                selection = outcome
            else:
                refusals.append(outcome)
        for refusal in reversed(refusals):  # the newest t0's is the last one then
            self._refuse(refusal)
        if selection is not None:
            self._planned_ns = selection.t0_ns
        return selection

    def newest(self, now_ns: int) -> Selection | Refusal:
        """The newest decided t0 whatever the rate, planned before or not; or why there is none."""
        settled_ns = self._settled_ns()
        refusal = None
        for t0_ns in reversed(self.rings[REFERENCE_ROLE].stamps_ns):
            if t0_ns > settled_ns:
                continue
            if self._planned_ns is not None and t0_ns < self._planned_ns:
                break  # t0 never goes back
            outcome = self._evaluate(t0_ns, now_ns)
            if isinstance(outcome, Selection):
                self._planned_ns = t0_ns
                self._done_ns = max(self._done_ns, t0_ns)
                return outcome
            refusal = refusal or outcome
        return refusal or Refusal(Reason.MISSING_FRAMES, 0, "nothing complete was received yet")

    def next_wanted_ns(self) -> int | None:
        """From when on a t0 is planned on again; None before the first, and while t0s fail."""
        if self._planned_ns is None:
            return None
        wanted_ns = self._planned_ns + self.settings.period_ns - SETTLED_NS
        return wanted_ns if self._done_ns < wanted_ns else None

    def skip(self, now_ns: int, reason: Reason, detail: str) -> None:
        """Refuse every t0 that could be decided now, for a reason outside the rule (paused)."""
        for t0_ns in self._candidates(now_ns):
            self._refuse(Refusal(reason, t0_ns, detail))

    def reset(self) -> None:
        """Forget all frames, poses and t0s: the clock has jumped or the user asked for it."""
        for ring in self.rings.values():
            ring.clear()
        self.poses.clear()
        self._ahead_ns.clear()
        self._done_ns = -1
        self._planned_ns = None

    def drop_frame(self, role: str, frame: Frame, t0_ns: int, detail: str) -> bool:
        """Forget a frame that turned out to be no image, and refuse the t0 that it was for.

        Returns:
            Whether it was still there, so that one frame is counted once.
        """
        self._refuse(Refusal(Reason.MISSING_FRAMES, t0_ns, detail))
        return self.rings[role].remove(frame)

    def _count_kept(self, name: str, kept: bool, ahead_ns: int) -> None:
        self.unused[name] += not kept
        if kept:
            self._ahead_ns[name] = ahead_ns

    def _misdated(self, name: str, stamp_ns: int, now_ns: int) -> Refusal | None:
        if now_ns <= 0:
            refusal = Refusal(Reason.WAITING_FOR_CLOCK, stamp_ns, "no /clock was received yet")
        elif stamp_ns <= 0:
            refusal = Refusal(Reason.STALE, stamp_ns, f"{name} has no stamp (0)")
        elif stamp_ns > now_ns + FUTURE_NS:
            self._ahead_ns[name] = stamp_ns - now_ns
            ahead_s = self._ahead_ns[name] / 1e9
            cause = self.clock_hint(name) or (
                f"stamps are {ahead_s:.3f} s ahead of the clock: are both clocks synchronised?"
            )
            refusal = Refusal(Reason.FUTURE_STAMP, stamp_ns, f"{name}: {cause}")
        else:
            return None
        self._refuse(refusal, consume=False)
        return refusal

    def _candidates(self, now_ns: int) -> list[int]:
        """Rising t0s that are decided now and not done; then they are done."""
        stamps_ns = self.rings[REFERENCE_ROLE].stamps_ns
        earliest_ns = -1
        if self._planned_ns is not None:
            earliest_ns = self._planned_ns + self.settings.period_ns - SETTLED_NS
        settled_ns = self._settled_ns()
        decided = []
        for stamp_ns in stamps_ns:
            if stamp_ns <= self._done_ns:
                continue
            expired = now_ns - stamp_ns > self.settings.max_age_ns
            if stamp_ns > settled_ns and not expired:
                break  # later ones are not decided either
            self._done_ns = stamp_ns
            if stamp_ns >= earliest_ns:
                decided.append(stamp_ns)
        return decided

    def _settled_ns(self) -> int:
        """The newest instant about which no message still to come can change anything."""
        cameras_ns = [ring.stamps_ns[-1] if len(ring) else -1 for ring in self.rings.values()]
        odometry_ns = self.poses.stamps_ns[-1] if len(self.poses) else -1
        return min(min(cameras_ns) + SETTLED_NS, odometry_ns)

    def _evaluate(self, t0_ns: int, now_ns: int) -> Selection | Refusal:
        stale = self._staleness(t0_ns, now_ns)
        # An expired t0 that is not settled has a sensor that went silent: that is what to say,
        # unless front_wide counts from elsewhere and each t0 was expired when it came.
        settled = t0_ns <= self._settled_ns() or bool(self.clock_hint(REFERENCE_ROLE))
        if stale is not None and settled:
            return stale
        frames: dict[str, tuple[Frame, ...]] = {}
        for role in CAMERA_ROLES:
            found = self._frames_of(role, t0_ns)
            if isinstance(found, Refusal):
                return found
            frames[role] = found
        track = self._track(t0_ns)
        if isinstance(track, Refusal):
            return track
        if stale is not None:
            return stale
        speed_m_s = float(track.speeds_m_s[-1])
        if self.twist_not_filled:
            speed_m_s = float(implied_speeds_m_s(track)[-1])
        origin = self.settings.to_rear_axle
        return Selection.of_track(t0_ns, frames, track, speed_m_s, origin, self._frame_ids)

    def _staleness(self, t0_ns: int, now_ns: int) -> Refusal | None:
        age_ns = now_ns - t0_ns
        if age_ns <= self.settings.max_age_ns:
            return None
        return Refusal(
            Reason.STALE,
            t0_ns,
            self.clock_hint(REFERENCE_ROLE)
            or f"t0 is {age_ns / 1e9:.3f} s old, over sync.max_age_s "
            f"{self.settings.max_age_ns / 1e9:g}",
        )

    def _frames_of(self, role: str, t0_ns: int) -> tuple[Frame, ...] | Refusal:
        ring = self.rings[role]
        if not len(ring):
            return Refusal(Reason.MISSING_FRAMES, t0_ns, f"{role} has no frame")
        frames = []
        for offset_ns in FRAME_OFFSETS_NS:
            frame = ring.nearest(t0_ns + offset_ns)
            assert frame is not None
            off_ns = frame.stamp_ns - t0_ns - offset_ns
            if abs(off_ns) > self.settings.tolerance_ns:
                return self._far_frame(role, t0_ns, offset_ns, off_ns)
            frames.append(frame)
        stamps_ns = [frame.stamp_ns for frame in frames]
        if any(b <= a for a, b in itertools.pairwise(stamps_ns)):
            return Refusal(
                Reason.MISSING_FRAMES, t0_ns, f"{role} has one frame for two instants 0.1 s apart"
            )
        return tuple(frames)

    def _far_frame(self, role: str, t0_ns: int, offset_ns: int, off_ns: int) -> Refusal:
        """A camera that has frames around the instant but none near is unsynchronised."""
        stamps_ns = self.rings[role].stamps_ns
        around = stamps_ns[0] <= t0_ns + offset_ns <= stamps_ns[-1] + SETTLED_NS
        reason = Reason.UNSYNCHRONISED if around else Reason.MISSING_FRAMES
        if hint := self.clock_hint(role):
            return Refusal(reason, t0_ns, f"{role}: {hint}")
        return Refusal(
            reason,
            t0_ns,
            f"{role} has no frame within {self.settings.tolerance_ns / 1e9:g} s of "
            f"t0{offset_ns / 1e9:+.1f} s: the nearest is {off_ns / 1e9:+.3f} s off",
        )

    def _track(self, t0_ns: int) -> Track | Refusal:
        instants_ns = [t0_ns + offset_ns for offset_ns in POSE_OFFSETS_NS]
        gap_ns = self.poses.widest_gap_ns(instants_ns[0], t0_ns)
        if gap_ns is None:
            detail = "odometry does not cover the 1.5 s before t0"
            hint = self.clock_hint("odometry")
            return Refusal(Reason.ODOMETRY_GAP, t0_ns, f"odometry: {hint}" if hint else detail)
        if gap_ns > self.settings.max_gap_ns:
            return Refusal(
                Reason.ODOMETRY_GAP,
                t0_ns,
                f"odometry has a gap of {gap_ns / 1e9:.3f} s, over odometry.max_gap_s "
                f"{self.settings.max_gap_ns / 1e9:g}",
            )
        track = self.poses.at(instants_ns)
        acceleration = implied_acceleration_m_s2(track)
        if not acceleration <= MAX_ACCELERATION_M_S2:
            return Refusal(
                Reason.ODOMETRY_JUMP,
                t0_ns,
                f"odometry implies {acceleration:.1f} m/s2, over {MAX_ACCELERATION_M_S2:g}",
            )
        return self._inconsistency(track, t0_ns) or track

    def _inconsistency(self, track: Track, t0_ns: int) -> Refusal | None:
        implied = implied_speeds_m_s(track)
        twist = (track.speeds_m_s[:-1] + track.speeds_m_s[1:]) / 2
        self.twist_not_filled = bool(
            (track.speeds_m_s == 0).all() and np.abs(implied).max() > SPEED_TOLERANCE_M_S
        )
        if self.twist_not_filled:
            return None
        excess = np.abs(implied - twist) - (
            SPEED_TOLERANCE_M_S + SPEED_TOLERANCE_SHARE * np.abs(twist)
        )
        worst = int(np.argmax(excess))  # NaN is the largest of all
        if excess[worst] <= 0:
            return None
        return Refusal(
            Reason.ODOMETRY_INCONSISTENT,
            t0_ns,
            f"positions imply {implied[worst]:.2f} m/s where the twist says {twist[worst]:.2f}",
        )

    def _refuse(self, refusal: Refusal, consume: bool = True) -> None:
        self.refused[refusal.reason.value] += 1
        if consume or self.last_refusal is None or refusal.reason is not self.last_refusal.reason:
            self.last_refusal = refusal
