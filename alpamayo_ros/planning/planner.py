"""From a selection of encoded frames to a plan: decode, shrink, decide, judge."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.devices.device import resolve_device
from alpamayo_ros.model import AlpamayoR1, ModelError
from alpamayo_ros.model.images import resize_frame
from alpamayo_ros.model.memory import require_memory
from alpamayo_ros.planning.gate import GateLimits, judge
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.sensing.images import MalformedImageError, centre_crop, decode
from alpamayo_ros.sensing.sampler import Selection
from alpamayo_ros.types import CAMERA_ROLES, Frame, Plan, Snapshot, Verdict

DEMO = "demo"  # model.path that means the built-in small model
CROP_ASPECT = 576 / 320  # of the images that the model was trained on
DECODE_THREADS = 4


@dataclass(frozen=True)
class PlannerSettings:
    """How to decide; named as the node's parameters are."""

    num_samples: int = 1
    temperature: float = 0.6  # sampling.*
    top_p: float = 0.98
    greedy: bool = False
    seed: int = 0
    max_new_tokens: int = 256
    crop: bool = False  # image.fit: crop
    gate: GateLimits = field(default_factory=GateLimits)


@dataclass(frozen=True, eq=False)
class Decision:
    """A plan with what it was made from and what the gate says of it."""

    selection: Selection
    snapshot: Snapshot
    plan: Plan
    verdict: Verdict


def load_model(
    path: str, tokenizer_path: str, device: str, dtype: str, settings: PlannerSettings
) -> AlpamayoR1:
    """Load a checkpoint folder, or the built-in small model when path is "demo".

    Args:
        device: auto, cpu, cuda:N or npu:N.
        dtype: float32, bfloat16, or auto: float32 on the CPU, bfloat16 elsewhere.
        settings: how many samples and tokens the device must have room for.

    Raises:
        ModelError, DeviceError: what is wrong with the folder, its tensors or the device; one line.
    """
    if not path:
        raise ModelError(
            "model.path is empty: give the folder of the Alpamayo-R1 checkpoint, "
            'or "demo" for the built-in small model that drives nothing real'
        )
    device = resolve_device(device)
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else "bfloat16"
    if path == DEMO:
        return load_demo_model(device=device, dtype=dtype)
    tokenizer = tokenizer_path or None
    require_memory(path, tokenizer, device, dtype, settings.num_samples, settings.max_new_tokens)
    return AlpamayoR1.from_pretrained(path, tokenizer=tokenizer, device=device, dtype=dtype)


class Planner:
    """One model and its settings. Used by one thread at a time."""

    def __init__(self, model: AlpamayoR1, settings: PlannerSettings) -> None:
        self.model = model
        self.settings = settings
        self._pool = ThreadPoolExecutor(DECODE_THREADS, thread_name_prefix="decode")
        self._prepared: dict[tuple[str, int], np.ndarray] = {}

    def decide(
        self,
        selection: Selection,
        navigation_text: str = "",
        should_stop: Callable[[], bool] | None = None,
    ) -> Decision:
        """Plan on a selection and judge the plan.

        Raises:
            MalformedImageError: a frame's bytes are no image; its role is named.
            PlanCancelled: should_stop returned True.
        """
        start_s = time.perf_counter()
        snapshot = self.prepare(selection, navigation_text)
        prepare_ms = (time.perf_counter() - start_s) * 1e3
        plan = self.plan(snapshot, should_stop)
        plan = replace(
            plan,
            timing_ms={
                "decode": prepare_ms,
                **plan.timing_ms,
                "total": plan.timing_ms["total"] + prepare_ms,
            },
        )
        settings = self.settings
        limits = replace(
            settings.gate,
            acceleration_m_s2=self.model.accel_bounds,
            curvature_1_m=self.model.curvature_bounds,
        )
        return Decision(selection, snapshot, plan, judge(plan, limits, selection.t0_speed_m_s))

    def prepare(self, selection: Selection, navigation_text: str = "") -> Snapshot:
        """Decode and shrink each frame of a selection, once for all plans that use it."""
        wanted = {
            (role, frame.stamp_ns): frame
            for role in CAMERA_ROLES
            for frame in selection.frames[role]
        }
        new = [key for key in wanted if key not in self._prepared]
        pixels = self._pool.map(lambda key: self._pixels(key[0], wanted[key]), new)
        self._prepared.update(zip(new, pixels))
        # What the next t0 may use again is among these; everything else is forgotten.
        self._prepared = {key: self._prepared[key] for key in wanted}
        frames = {
            role: tuple(self._prepared[role, frame.stamp_ns] for frame in selection.frames[role])
            for role in CAMERA_ROLES
        }
        return selection.snapshot(frames, navigation_text)

    def plan(self, snapshot: Snapshot, should_stop: Callable[[], bool] | None = None) -> Plan:
        """Plan on a snapshot with the settings."""
        settings = self.settings
        return self.model.plan(
            snapshot,
            num_samples=settings.num_samples,
            seed=settings.seed,
            greedy=settings.greedy,
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_new_tokens=settings.max_new_tokens,
            navigation_text=snapshot.navigation_text or None,
            should_stop=should_stop,
        )

    def warm_up(self) -> float:
        """Plan twice on a made-up snapshot of the usual size; the second one's duration in s."""
        snapshot = fake_snapshot(0)
        self.plan(snapshot)
        self.reset()
        start_s = time.perf_counter()
        self.plan(snapshot)
        duration_s = time.perf_counter() - start_s
        self.reset()
        return duration_s

    def reset(self) -> None:
        """Forget prepared frames and reused features."""
        self._prepared.clear()
        self.model.reset()

    def close(self) -> None:
        """End the decoding threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _pixels(self, role: str, frame: Frame) -> np.ndarray:
        try:
            rgb = decode(frame)
        except MalformedImageError as error:
            raise MalformedImageError(f"{role}: {error}") from None
        if self.settings.crop:
            rgb = centre_crop(rgb, CROP_ASPECT)
        return resize_frame(rgb, *self.model.pixel_limits)
