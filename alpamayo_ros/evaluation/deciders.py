"""Where plans come from: the model, as the node runs it, or a file that a user gives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from alpamayo_ros.planning.gate import GateLimits, judge, segment_speeds_m_s
from alpamayo_ros.planning.planner import Decision, Planner, PlannerSettings, load_model
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import STEP_S, WAYPOINTS, Plan, UserError, Verdict

STANDSTILL_M = 0.01  # a segment shorter than this has no curvature
TOLERANCE_NS = 1_000_000  # of a given t0: stamps may have gone through float64 seconds


class PlansError(UserError):
    """A file of plans that cannot be scored; one line."""


@dataclass(frozen=True)
class ModelChoice:
    """Which model decides, and how."""

    path: str = "demo"
    tokenizer: str = ""
    device: str = "auto"
    dtype: str = "auto"
    planner: PlannerSettings = field(default_factory=PlannerSettings)


class ModelDecider:
    """The model and the node's own planner."""

    def __init__(self, choice: ModelChoice) -> None:
        model = load_model(
            choice.path, choice.tokenizer, choice.device, choice.dtype, choice.planner
        )
        self.identity = (model.model_id, model.device, str(model.dtype).removeprefix("torch."))
        self._planner = Planner(model, choice.planner)

    def decide(self, bag: str, selection: Selection, navigation_text: str) -> Decision:
        """The node's decision."""
        return self._planner.decide(selection, navigation_text)

    def reset(self) -> None:
        """Forget prepared frames and reused features."""
        self._planner.reset()

    def close(self) -> None:
        """Give the device's memory back."""
        self._planner.close()


@dataclass(frozen=True, eq=False)
class GivenPlan:
    """A plan from a file, judged by the gate."""

    plan: Plan
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Plans:
    """Plans of a file, by bag (empty: for any bag) and t0."""

    bags: tuple[str, ...]  # one a plan
    t0_ns: np.ndarray  # int64 (N,)
    samples: np.ndarray  # float32 or float64 (N, S, 64, 3)
    chosen: np.ndarray  # int64 (N,)
    reasoning: tuple[str, ...]
    sha256: str

    @classmethod
    def load(cls, path: Path) -> Plans:
        """Read an .npz with `t0_ns` (N,) and `samples` (N, S, 64, 3) or `waypoints` (N, 64, 3).

        `chosen` (N,), `reasoning` (N,) and `bag` (N,) texts may be there too. Coordinates are
        x_m, y_m, yaw_rad in the ego frame at t0; without a yaw (..., 2) the motion's is taken.

        Raises:
            PlansError: the file is missing, damaged or of other shapes; one line.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except FileNotFoundError:
            raise PlansError(f"--plans {path}: there is no such file") from None
        except Exception:  # zipfile, zlib and numpy raise a dozen kinds on damage
            raise PlansError(f"--plans {path} is damaged, or no .npz of plain arrays") from None
        try:
            return cls._from_arrays(arrays, digest)
        except (PlansError, ValueError) as error:
            raise PlansError(f"--plans {path}: {error}") from None

    @classmethod
    def _from_arrays(cls, arrays: dict[str, np.ndarray], digest: str) -> Plans:
        samples = arrays.get("samples")
        if samples is None and "waypoints" in arrays:
            samples = np.expand_dims(arrays["waypoints"], min(1, arrays["waypoints"].ndim))
        t0_ns = arrays.get("t0_ns")
        if samples is None or t0_ns is None:
            raise PlansError("it needs t0_ns (N,) and samples (N, S, 64, 3) or waypoints")
        if t0_ns.ndim != 1 or len(t0_ns) == 0:
            raise PlansError(f"t0_ns must be (N,), one a plan, got {t0_ns.shape}")
        count = len(t0_ns)
        fits = samples.ndim == 4 and samples.shape[0] == count and samples.shape[1] > 0
        if not fits or samples.shape[2] != WAYPOINTS or samples.shape[3] not in (2, 3):
            raise PlansError(
                f"samples must be ({count}, S, {WAYPOINTS}, 3 or 2), got {samples.shape}"
            )
        if t0_ns.dtype.kind not in "iu":
            raise PlansError(f"t0_ns must be whole nanoseconds, got {t0_ns.dtype}")
        if samples.dtype.kind != "f":
            raise PlansError(f"samples must be floating point, got {samples.dtype}")
        if samples.shape[3] == 2:
            samples = _with_yaw(samples)
        chosen = arrays.get("chosen", np.zeros(count, np.int64))
        whole = chosen.shape == (count,) and chosen.dtype.kind in "iu"
        if not whole or not ((chosen >= 0) & (chosen < samples.shape[1])).all():
            raise PlansError(
                f"chosen must be ({count},) whole numbers of 0 to {samples.shape[1] - 1}"
            )
        return cls(
            bags=_texts(arrays, "bag", count),
            t0_ns=t0_ns.astype(np.int64),
            samples=samples,
            chosen=chosen.astype(np.int64),
            reasoning=_texts(arrays, "reasoning", count),
            sha256=digest,
        )

    def find(self, bag: str, t0_ns: int) -> int | None:
        """Index of the plan for a bag's t0."""
        near = np.flatnonzero(np.abs(self.t0_ns - t0_ns) <= TOLERANCE_NS)
        return next((int(i) for i in near if self.bags[i] in ("", bag)), None)


class GivenDecider:
    """Plans of a file, in place of a model's."""

    def __init__(self, plans: Plans, limits: GateLimits | None = None) -> None:
        self.identity = (f"given-plans@{plans.sha256[:12]}", "none", str(plans.samples.dtype))
        self._plans = plans
        self._limits = limits or GateLimits()

    def decide(self, bag: str, selection: Selection, navigation_text: str) -> GivenPlan | None:
        """The plan that was given for this t0."""
        index = self._plans.find(bag, selection.t0_ns)
        if index is None:
            return None
        samples, chosen = self._plans.samples[index], int(self._plans.chosen[index])
        speed_m_s = selection.t0_speed_m_s
        plan = Plan(
            t0_ns=selection.t0_ns,
            samples=samples,
            actions=np.stack([implied_actions(sample, speed_m_s) for sample in samples]),
            chosen=chosen,
            z_m=0.0,
            v0_m_s=speed_m_s,
            reasoning=self._plans.reasoning[index],
            token_ids=(),
            truncated=(False,) * len(samples),
            spread_m=_spread_m(samples, chosen),
            seed=0,
            model_id=self.identity[0],
            device=self.identity[1],
            dtype=self.identity[2],
            navigation_text=navigation_text,
        )
        return GivenPlan(plan, judge(plan, self._limits, speed_m_s))

    def reset(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is held."""


def implied_actions(waypoints: np.ndarray, speed_m_s: float) -> np.ndarray:
    """Acceleration m/s2 and curvature 1/m (64, 2) of a path, float64, for the gate.

    Acceleration is the change of the segments' speeds, the first one from the ego's; curvature is
    the turn by the length of a segment, 0 where it is shorter than 1 cm.
    """
    waypoints = np.asarray(waypoints, np.float64)
    speeds = segment_speeds_m_s(waypoints)
    acceleration = np.diff(speeds, prepend=speed_m_s) / STEP_S
    turn = np.diff(np.unwrap(waypoints[:, 2]), prepend=0.0)
    length = speeds * STEP_S
    moving = np.abs(length) > STANDSTILL_M
    curvature = np.where(moving, turn / np.where(moving, length, 1.0), 0.0)
    return np.column_stack([acceleration, curvature])


def _spread_m(samples: np.ndarray, chosen: int) -> float:
    """Mean distance of the other samples to the chosen one; 0 with a single sample."""
    gaps = np.linalg.norm(samples[..., :2] - samples[chosen, :, :2], axis=-1).mean(axis=1)
    return float(gaps.sum() / max(len(samples) - 1, 1))


def _with_yaw(samples: np.ndarray) -> np.ndarray:
    """Samples (N, S, 64, 2) with the direction of each segment as third column."""
    motion = np.diff(samples, axis=2, prepend=np.zeros_like(samples[:, :, :1]))
    yaw = np.arctan2(motion[..., 1], motion[..., 0])
    return np.concatenate([samples, yaw[..., None]], axis=-1)


def _texts(arrays: dict[str, np.ndarray], name: str, count: int) -> tuple[str, ...]:
    values = arrays.get(name, np.full(count, ""))
    if values.shape != (count,) or values.dtype.kind != "U":
        raise PlansError(f"{name} must be ({count},) texts, got {values.dtype} {values.shape}")
    return tuple(str(value) for value in values)
