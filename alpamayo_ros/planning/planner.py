"""From a selection of encoded frames to a plan: decode, shrink, decide, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.devices.device import release_memory, resolve_device
from alpamayo_ros.devices.tuning import UNTUNED, Tuning
from alpamayo_ros.model import AlpamayoR1, ModelError
from alpamayo_ros.model.features import CameraFrame
from alpamayo_ros.model.images import resize_frame
from alpamayo_ros.model.memory import require_memory
from alpamayo_ros.planning.gate import GateLimits, judge
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.sensing.images import centre_crop, decode
from alpamayo_ros.sensing.selection import Selection
from alpamayo_ros.types import (
    CAMERA_IDS,
    CAMERA_ROLES,
    Frame,
    Plan,
    Snapshot,
    UserError,
    Verdict,
)

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


class UnusableFrameError(UserError):
    """A frame of a selection is no image that the model can see."""

    def __init__(self, selection: Selection, role: str, frame: Frame, detail: str) -> None:
        super().__init__(f"{role}: {detail}")
        self.selection = selection
        self.role = role
        self.frame = frame


@dataclass(frozen=True, eq=False)
class Decision:
    """A plan with what it was made from and what the gate says of it."""

    selection: Selection
    snapshot: Snapshot
    plan: Plan
    verdict: Verdict


def load_model(
    path: str,
    tokenizer_path: str,
    device: str,
    dtype: str,
    settings: PlannerSettings,
    tuning: Tuning = UNTUNED,
) -> AlpamayoR1:
    """Load a checkpoint folder, or the built-in small model when path is "demo".

    Args:
        device: auto, cpu, cuda:N or npu:N.
        dtype: float32, bfloat16, or auto: float32 on the CPU, bfloat16 elsewhere.
        settings: how many samples and tokens the device must have room for.
        tuning: switches of the device.

    Raises:
        ModelError, DeviceError: what is wrong with the folder, its tensors or the device; one line.
    """
    if not path:
        raise ModelError(
            "model.path is empty: give the folder of the Alpamayo-R1 checkpoint, "
            'or "demo" for the built-in small model that drives nothing real '
            "(if a YAML file gives it: its first line must be alpamayo: or /**:)"
        )
    device = resolve_device(device)
    tuning.check(device)
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else "bfloat16"
    tokenizer = tokenizer_path or None
    if path == DEMO:
        if tokenizer:
            raise ModelError(
                "the demo model has a tokenizer of its own: leave out model.tokenizer_path "
                "(--tokenizer)"
            )
        return load_demo_model(device, dtype, tuning)
    require_memory(path, tokenizer, device, dtype, settings.num_samples, settings.max_new_tokens)
    return AlpamayoR1.from_pretrained(path, tokenizer, device, dtype, tuning)


class Planner:
    """One model and its settings. Used by one thread at a time."""

    def __init__(self, model: AlpamayoR1, settings: PlannerSettings) -> None:
        self.model = model
        self.settings = settings
        self._pool = ThreadPoolExecutor(DECODE_THREADS, thread_name_prefix="decode")
        self._prepared: dict[int, tuple[Frame, np.ndarray]] = {}
        self._tried_ahead: dict[int, Frame] = {}  # since the last decision

    def decide(
        self,
        selection: Selection,
        navigation_text: str = "",
        should_stop: Callable[[], bool] | None = None,
    ) -> Decision:
        """Plan on a selection and judge the plan.

        Raises:
            UnusableFrameError: a frame's bytes are no image that fits the others.
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
        frames = [(role, frame) for role in CAMERA_ROLES for frame in selection.frames[role]]
        new = [(role, frame) for role, frame in frames if id(frame) not in self._prepared]
        pixels = self._pool.map(lambda key: self._pixels_of(selection, *key), new)
        prepared = {id(frame): (frame, rgb) for (_, frame), rgb in zip(new, pixels)}
        # What the next t0 may use again is among these; everything else is forgotten. Frames are
        # kept with their pixels, so that no other object gets their identity.
        self._prepared = {
            id(frame): prepared.get(id(frame)) or self._prepared[id(frame)] for _, frame in frames
        }
        self._tried_ahead.clear()
        images = {
            role: tuple(self._prepared[id(frame)][1] for frame in selection.frames[role])
            for role in CAMERA_ROLES
        }
        for role in CAMERA_ROLES:
            sizes = [image.shape for image in images[role]]
            for frame, size in zip(selection.frames[role], sizes):
                if size != sizes[-1]:
                    raise UnusableFrameError(
                        selection, role, frame, "the size of its images has changed"
                    )
        return selection.snapshot(images, navigation_text)

    def encode_ahead(self, frames: Iterable[tuple[str, Frame]]) -> bool:
        """Decode, shrink and encode the first of these frames (role, frame) that is not yet.

        A decision that uses it finds it done. Of a frame that is no image the decision speaks.

        Returns:
            Whether there was one.
        """
        for role, frame in frames:
            if id(frame) in self._prepared or id(frame) in self._tried_ahead:
                continue
            self._tried_ahead[id(frame)] = frame
            try:
                rgb = self._pixels(frame)
            except UserError:
                return True
            self._prepared[id(frame)] = (frame, rgb)
            self.model.encode_ahead([CameraFrame(CAMERA_IDS[role], frame.stamp_ns, rgb)])
            return True
        return False

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

    def warm_up(self, should_stop: Callable[[], bool] | None = None) -> float:
        """Plan twice on a made-up snapshot of the usual size; the second one's duration in s.

        Raises:
            ModelError: the plan holds numbers that are not finite: the weights are damaged.
        """
        snapshot = fake_snapshot(0)
        plan = self.plan(snapshot, should_stop)
        if not plan.finite:
            raise ModelError(
                f"{self.model.model_id} plans NaN on a sound snapshot: its weights are damaged, "
                f"or {self.model.dtype} is too coarse for them"
            )
        self.reset()
        start_s = time.perf_counter()
        self.plan(snapshot, should_stop)
        duration_s = time.perf_counter() - start_s
        self.reset()
        return duration_s

    def reset(self) -> None:
        """Forget prepared frames and reused features."""
        self._prepared.clear()
        self._tried_ahead.clear()
        self.model.reset()

    def recover(self) -> None:
        """Forget what a failed decision may have left half-done and give its memory back."""
        self.reset()
        release_memory(self.model.device)

    def close(self) -> None:
        """End the decoding threads and give the model's memory back to the device."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        device = self.model.device
        del self.model
        release_memory(device)

    def _pixels_of(self, selection: Selection, role: str, frame: Frame) -> np.ndarray:
        try:
            return self._pixels(frame)
        except UserError as error:
            raise UnusableFrameError(selection, role, frame, str(error)) from None

    def _pixels(self, frame: Frame) -> np.ndarray:
        """A frame's image at the model's size, uint8 (H, W, 3)."""
        rgb = decode(frame)
        if self.settings.crop:
            rgb = centre_crop(rgb, CROP_ASPECT)
        return resize_frame(rgb, *self.model.pixel_limits)
