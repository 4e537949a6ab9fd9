"""Alpamayo-R1 as one object: a checkpoint folder in, plans for snapshots out."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from alpamayo_ros.devices.device import DeviceError, dtype_name, resolve_device, resolve_dtype
from alpamayo_ros.devices.graphs import capture
from alpamayo_ros.devices.operators import operators_for
from alpamayo_ros.devices.timing import StageClock
from alpamayo_ros.devices.tuning import UNTUNED, Tuning
from alpamayo_ros.model import sampling
from alpamayo_ros.model.action_space import (
    drive,
    history_bins,
    physical_actions,
    speed_at_t0,
    wrapped,
)
from alpamayo_ros.model.checkpoint import load_checkpoint
from alpamayo_ros.model.config_file import backbone_folder, load_config
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.errors import ModelError, PlanCancelled
from alpamayo_ros.model.features import CameraFrame, FeatureCache, join
from alpamayo_ros.model.images import model_size
from alpamayo_ros.model.memory import cache_bytes, weight_bytes
from alpamayo_ros.model.network import Network, empty_network
from alpamayo_ros.model.prompt import CAMERA_LABELS, CameraLayout, PromptBuilder
from alpamayo_ros.model.rollout import Reasoning, Rollout
from alpamayo_ros.model.samples import checked_noise, checked_tokens, medoid, require_choices
from alpamayo_ros.model.tokenizer import FILE_NAME, TextTokenizer, tokenizer_folder
from alpamayo_ros.types import CAMERA_IDS, Plan, Snapshot


@dataclass(frozen=True)
class Answer:
    """What version 1.5 says to a question about the images."""

    text: str
    token_ids: tuple[int, ...]  # with the end token, where it came
    truncated: bool  # it was cut off


@dataclass(frozen=True, eq=False)
class _Choices:
    """How one decision is to be made, checked."""

    choose: sampling.Choose
    noise: np.ndarray  # float32 (S, T, 2)
    max_new_tokens: int


class AlpamayoR1:
    """A loaded model. `plan` may be called from any thread; calls take turns."""

    def __init__(
        self,
        network: Network,
        config: ModelConfig,
        tokenizer: TextTokenizer,
        model_id: str,
        device: str,
        dtype: torch.dtype,
        tuning: Tuning = UNTUNED,
    ) -> None:
        """Take over a network that already has its weights on the device, and merge it."""
        operators = operators_for(device)
        network.eval().requires_grad_(False)
        network.merge()
        network.tune(tuning)
        self.network = network
        self.config = config
        self.tokenizer = tokenizer
        self.model_id = model_id
        self.device = device
        self.dtype = dtype
        self.tuning = tuning
        self.features = FeatureCache(network.vlm.model.visual, self.pixel_limits)
        self.prompts = PromptBuilder(config, tokenizer)
        recorder = functools.partial(capture, device) if tuning.graph_capture else None
        end_of_text = tokenizer.special("<|im_end|>")
        self.rollout = Rollout(network, config, operators, end_of_text, recorder)
        # A released checkpoint computes with mean and deviation as it stores them, rounded.
        scale = network.action_space
        self.action_space = replace(
            config.action_space,
            accel_mean=float(scale.accel_mean),
            accel_std=float(scale.accel_std),
            curvature_mean=float(scale.curvature_mean),
            curvature_std=float(scale.curvature_std),
        )
        self._lock = threading.Lock()

    @classmethod
    def from_pretrained(
        cls,
        folder: str | os.PathLike[str],
        tokenizer: str | os.PathLike[str] | None = None,
        device: str = "cpu",
        dtype: torch.dtype | str = torch.float32,
        tuning: Tuning = UNTUNED,
    ) -> AlpamayoR1:
        """Load a checkpoint folder: config.json, *.safetensors, tokenizer files or their folder.

        Args:
            folder: the checkpoint.
            tokenizer: folder with tokenizer.json where the checkpoint ships none.
            device: auto, cpu, cuda:0 or npu:0.
            dtype: torch.float32 or torch.bfloat16, or their names.
            tuning: switches of the device, off by default.

        Raises:
            ModelError: folder, tensors, tokenizer, device or type are wrong; one line.
        """
        folder = Path(folder)
        named = Path(tokenizer) if tokenizer else None
        try:
            device, weight_type = resolve_device(device), resolve_dtype(dtype)
            tuning.check(device)
        except DeviceError as error:
            raise ModelError(str(error)) from None
        config = load_config(folder, named)
        words = tokenizer_folder(folder, backbone_folder(folder, named), named)
        text = TextTokenizer.load(words, config)
        network = empty_network(config, operators_for(device))
        identity = load_checkpoint(network, config, folder, words / FILE_NAME, device, weight_type)
        return cls(network, config, text, identity, device, weight_type, tuning)

    @property
    def accel_bounds(self) -> tuple[float, float]:
        """Acceleration in m/s2 that the checkpoint calls plausible; the model does not clip."""
        return self.config.action_space.accel_bounds

    @property
    def curvature_bounds(self) -> tuple[float, float]:
        """Curvature in 1/m that the checkpoint calls plausible; the model does not clip."""
        return self.config.action_space.curvature_bounds

    @property
    def pixel_limits(self) -> tuple[int, int]:
        """Least and largest area of an image in pixels, for `resize_frame`."""
        return self.config.min_pixels, self.config.max_pixels

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of the weights on the device."""
        return weight_bytes(self.config, self.dtype)

    def memory_bytes(self, num_samples: int, max_new_tokens: int) -> int:
        """Bytes of weights and key/value cache for plans of this kind."""
        return self.checkpoint_bytes + cache_bytes(
            self.config, self.dtype, num_samples, max_new_tokens
        )

    def reset(self) -> None:
        """Forget the features of images seen before."""
        with self._lock:
            self.features.clear()

    def plan(
        self,
        snapshot: Snapshot,
        num_samples: int = 1,
        seed: int = 0,
        greedy: bool = False,
        temperature: float = 0.6,
        top_p: float = 0.98,
        max_new_tokens: int = 256,
        noise: np.ndarray | None = None,
        tokens: np.ndarray | None = None,
        navigation_text: str | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Plan:
        """Decide on a snapshot.

        Args:
            snapshot: frames at camera or model size, history in the ego frame at t0.
            num_samples: trajectories drawn; the medoid is chosen.
            seed: with the snapshot's t0 it fixes all chance.
            greedy: take the most probable token instead of sampling it.
            temperature: of the sampling, 0.01 to 10.
            top_p: mass of the most probable tokens that are sampled from, 0.01 to 1.
            max_new_tokens: reasoning that is longer is closed and flagged.
            noise: float32 (S, 64, 2) in place of the flow's noise.
            tokens: int (S, n), padded with -1: the reasoning of each sample up to and including
                the end token, in place of sampling it.
            navigation_text: instruction of a route planner; None: none.
            should_stop: asked between stages, tokens and flow steps; True gives the plan up.

        Raises:
            ModelError: an argument is out of range, or the cameras are not the model's; one line.
            PlanCancelled: should_stop said so.
        """

        choices = self._choices(
            snapshot, num_samples, seed, greedy, temperature, top_p, max_new_tokens, noise, tokens
        )
        navigation = "" if navigation_text is None else navigation_text
        with self._lock, torch.no_grad():
            return self._plan(snapshot, choices, seed, navigation, _check(should_stop))

    def answer(
        self,
        snapshot: Snapshot,
        question: str,
        seed: int = 0,
        greedy: bool = False,
        temperature: float = 0.6,
        top_p: float = 0.98,
        max_new_tokens: int = 256,
        should_stop: Callable[[], bool] | None = None,
    ) -> Answer:
        """Answer a question about a snapshot's images, which checkpoints of version 1.5 can.

        The ego history plays no part. The arguments are those of `plan`.

        Raises:
            ModelError: the checkpoint is R1, or an argument is out of range; one line.
            PlanCancelled: should_stop said so.
        """
        if self.config.version == "1":
            raise ModelError("an R1 checkpoint answers no questions: load one of version 1.5")
        choices = self._choices(
            snapshot, 1, seed, greedy, temperature, top_p, max_new_tokens, None, None
        )
        check, rollout = _check(should_stop), self.rollout
        with self._lock, torch.no_grad():
            frames = self._frames(snapshot)
            prompt = self.prompts.question(self._layout(frames), question)
            features = join(self.features.encode(frames, check))
            cache = rollout.cache(1, len(prompt.ids) + max_new_tokens)
            logits = rollout.prefill(prompt, prompt.ids, features, cache)
            ids = rollout.answer(prompt, logits, cache, choices.choose, max_new_tokens, check)
        ended = ids[-1] in (self.config.special_ids["answer_end"], rollout.end_of_text)
        return Answer(self.tokenizer.decode(ids).strip(), tuple(ids), not ended)

    def encode_ahead(
        self, frames: Sequence[CameraFrame], should_stop: Callable[[], bool] | None = None
    ) -> int:
        """Encode frames that a later plan may use, while the device has nothing else to do.

        A plan that meets them, by camera, stamp and content, does not encode them again. A plan
        that comes meanwhile waits for one image. Returns how many images were encoded.

        Raises:
            PlanCancelled: should_stop, asked before each image, said so.
        """
        count = 0
        for frame in frames:
            with self._lock, torch.no_grad():
                before = self.features.encoded
                self.features.encode([frame], _check(should_stop))
                count += self.features.encoded - before
        return count

    def _plan(
        self,
        snapshot: Snapshot,
        choices: _Choices,
        seed: int,
        navigation_text: str,
        check: Callable[[], None],
    ) -> Plan:
        config, rollout = self.config, self.rollout
        clock = StageClock(self.device)
        frames = self._frames(snapshot)
        prompt = self.prompts.build(self._layout(frames), navigation_text)
        bins = history_bins(snapshot.ego_history_xyz, config.history)
        ids = prompt.with_history(config.history.first_id + bins)
        v0_m_s = speed_at_t0(snapshot.ego_history_xyz, snapshot.ego_history_rot, self.action_space)
        clock.mark("prepare", wait=False)
        features = join(self.features.encode(frames, check))
        clock.mark("vision")
        check()
        samples, waypoints, _ = choices.noise.shape
        cache = rollout.cache(samples, len(ids) + choices.max_new_tokens + 1 + waypoints)
        logits = rollout.prefill(prompt, ids, features, cache)
        clock.mark("prefill")
        reasoning = rollout.reason(
            prompt, logits, cache, choices.choose, choices.max_new_tokens, check
        )
        clock.mark("reasoning")
        normalised = rollout.actions(prompt, reasoning, choices.noise, cache, check)
        actions = physical_actions(normalised.cpu().numpy(), self.action_space)
        trajectories = drive(actions, v0_m_s, config.action_space.dt_s)
        clock.mark("expert", wait=False)
        chosen, spread_m = medoid(trajectories.xy_m)
        return Plan(
            t0_ns=snapshot.t0_ns,
            samples=np.concatenate(
                [trajectories.xy_m, wrapped(trajectories.yaw_rad)[..., None]], axis=-1
            ).astype(np.float32),
            actions=actions.astype(np.float32),
            chosen=chosen,
            z_m=float(snapshot.ego_history_xyz[-1, 2]),
            v0_m_s=v0_m_s,
            reasoning=self._text(reasoning.token_ids[chosen]),
            token_ids=reasoning.token_ids,
            truncated=self._truncated(reasoning),
            spread_m=spread_m,
            seed=seed,
            model_id=self.model_id,
            device=self.device,
            dtype=dtype_name(self.dtype),
            navigation_text=navigation_text,
            timing_ms=clock.durations_ms(),
        )

    def _choices(
        self,
        snapshot: Snapshot,
        num_samples: int,
        seed: int,
        greedy: bool,
        temperature: float,
        top_p: float,
        max_new_tokens: int,
        noise: np.ndarray | None,
        tokens: np.ndarray | None,
    ) -> _Choices:
        """Check the arguments of `plan` and draw its random numbers."""
        require_choices(num_samples, max_new_tokens, seed, temperature, top_p)
        waypoints = self.config.action_space.waypoints
        chance = sampling.draw_chance(seed, snapshot.t0_ns, num_samples, max_new_tokens, waypoints)
        if tokens is not None:
            ends = self.rollout.end_token, self.rollout.end_of_text
            tokens = checked_tokens(tokens, num_samples, self.config.vocab_size, *ends)
            choose = sampling.forced(tokens)
            max_new_tokens = tokens.shape[1]
        elif greedy:
            choose = sampling.greedy
        else:
            choose = sampling.nucleus(chance.uniforms, temperature, top_p)
        if noise is None:
            noise = chance.noise
        return _Choices(choose, checked_noise(noise, num_samples, waypoints), max_new_tokens)

    def _frames(self, snapshot: Snapshot) -> list[CameraFrame]:
        """The snapshot's frames in the order of the prompt."""
        version_1 = self.config.version == "1"
        known = tuple(CAMERA_IDS.values() if version_1 else CAMERA_LABELS)
        ids = snapshot.camera_ids
        if not set(ids) <= set(known) or (version_1 and ids != known):
            wanted = "exactly" if version_1 else "some of"
            raise ModelError(f"the model wants {wanted} the cameras {known}, got {tuple(ids)}")
        return [
            CameraFrame(camera_id, int(stamp_ns), rgb)
            for camera_id, frames, stamps_ns in zip(ids, snapshot.frames, snapshot.frame_stamps_ns)
            for rgb, stamp_ns in zip(frames, stamps_ns)
        ]

    def _layout(self, frames: list[CameraFrame]) -> list[CameraLayout]:
        """The cameras of the prompt; a camera's frames are of one size."""
        factor = self.config.backbone.vision.size_factor
        shapes = {frame.camera_id: frame.rgb.shape for frame in frames}
        layout = []
        for camera_id, (height, width, _) in shapes.items():
            rows, columns = model_size(height, width, *self.pixel_limits)
            layout.append(CameraLayout(camera_id, (rows // factor, columns // factor)))
        return layout

    def _text(self, token_ids: tuple[int, ...]) -> str:
        """The chain of causation: all up to its end token, or up to the end."""
        end = self.config.special_ids["cot_end"]
        stop = token_ids.index(end) if end in token_ids else len(token_ids)
        return self.tokenizer.decode(token_ids[:stop]).strip()

    def _truncated(self, reasoning: Reasoning) -> tuple[bool, ...]:
        """Whether a sample's text lacks its end token, or had to be closed."""
        end = self.config.special_ids["cot_end"]
        return tuple(
            closed or end not in ids for ids, closed in zip(reasoning.token_ids, reasoning.closed)
        )


def _check(should_stop: Callable[[], bool] | None) -> Callable[[], None]:
    """A function that raises PlanCancelled once should_stop says so."""

    def check() -> None:
        if should_stop is not None and should_stop():
            raise PlanCancelled

    return check
