"""One decision of the network: prefill, reasoning token by token, then the flow of the actions.

Host numbers steer everything: the device is waited for once a token, to learn whether it was the
last, and not at all in the flow.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from alpamayo_ros.devices.graphs import Capture, CaptureError
from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model import sampling
from alpamayo_ros.model.captured import CapturedVelocity
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.expert import velocity
from alpamayo_ros.model.flow_matching import flow_times, integrate
from alpamayo_ros.model.language import Additions, KeyValueCache, Rotary, rotary_table
from alpamayo_ros.model.network import Network
from alpamayo_ros.model.prompt import Prompt
from alpamayo_ros.model.vision import ImageFeatures

LOG = logging.getLogger(__name__)

Check = Callable[[], None]  # raises when the plan is to be given up


@dataclass(frozen=True)
class Reasoning:
    """The tokens of each sample, with the end token, as they lie in the cache."""

    token_ids: tuple[tuple[int, ...], ...]
    closed: tuple[bool, ...]  # the end token never came and was appended


class Rollout:
    """Runs a network; keeps the cache between decisions, at the same addresses."""

    def __init__(
        self,
        network: Network,
        config: ModelConfig,
        operators: Operators,
        end_of_text: int,
        capture: Capture | None = None,
    ) -> None:
        """With `capture` the flow's step is recorded at the first decision, then replayed."""
        self.network = network
        self.config = config
        self.operators = operators
        self.end_token = config.special_ids["traj_future_start"]
        self.end_of_text = end_of_text
        self._cache: KeyValueCache | None = None
        self._capture = capture
        self._captured: CapturedVelocity | None = None
        self._prompt_tables = functools.lru_cache(maxsize=4)(self._make_prompt_tables)
        weight = network.vlm.lm_head.weight
        self._device, self._dtype = str(weight.device), weight.dtype
        # Constants of the flow's schedule.
        self._times = flow_times(config.flow_steps, self._device)
        self._time_features = network.action_in_proj.time_features(self._times)

    def cache(self, num_samples: int, tokens: int) -> KeyValueCache:
        """A cache for so many samples of so many tokens, the last one again where it fits."""
        cache = self._cache
        if cache is None or cache.batch != num_samples or cache.capacity < tokens:
            # Free it before the next one is made.
            self._cache = self._captured = cache = None
            text = self.config.backbone.text
            cache = KeyValueCache(text, num_samples, tokens, self._device, self._dtype)
            self._cache = cache
        return cache

    @property
    def captured(self) -> bool:
        """Whether the flow's step has been recorded."""
        return self._captured is not None

    def prefill(
        self, prompt: Prompt, ids: np.ndarray, features: ImageFeatures, cache: KeyValueCache
    ) -> Tensor:
        """Put the prompt into the cache of every sample; logits float32 (1, V) of the next token.

        It runs once, whatever the number of samples, and is copied.
        """
        model = self.network.vlm.model.language_model
        indices, rotary = self._prompt_tables(prompt)
        embeddings = model.embed_tokens(torch.from_numpy(ids).to(self._device))
        embeddings = embeddings.index_copy_(0, indices, features.tokens)
        states = model.run(
            embeddings[None],
            rotary,
            cache.first_row(),
            start=0,
            causal=True,
            additions=Additions(indices, features.deepstack),
            last_only=True,
        )
        cache.copy_first_row(len(ids))
        return self._logits(states)

    def reason(
        self,
        prompt: Prompt,
        logits: Tensor,
        cache: KeyValueCache,
        choose: sampling.Choose,
        max_new_tokens: int,
        check: Check,
    ) -> Reasoning:
        """Choose tokens until each sample has its end token in the cache.

        A sample whose end does not come within max_new_tokens, or that ends its text without it,
        gets it appended. logits (1, V) are the prefill's.
        """
        samples, start = cache.batch, len(prompt.ids)
        table = self._text_rotary(prompt.next_position, max_new_tokens + 1)
        logits = logits.expand(samples, -1)
        rows: list[list[int]] = [[] for _ in range(samples)]
        closed = [False] * samples
        for step in range(max_new_tokens + 1):
            check()
            last = step == max_new_tokens
            chosen = [self.end_token] * samples if last else choose(step, logits)
            for sample, row in enumerate(rows):
                if row and row[-1] == self.end_token:
                    continue
                ended = chosen[sample] == sampling.NO_MORE or row[-1:] == [self.end_of_text]
                closed[sample] = last or ended
                row.append(self.end_token if closed[sample] else chosen[sample])
            # Samples that have ended go along with the end token; nobody looks at the result.
            newest = [row[-1] for row in rows]
            states = self._decode(newest, table.span(step, step + 1), cache, start + step)
            if all(row[-1] == self.end_token for row in rows):
                break
            logits = self._logits(states)
        return Reasoning(tuple(tuple(row) for row in rows), tuple(closed))

    def answer(
        self,
        prompt: Prompt,
        logits: Tensor,
        cache: KeyValueCache,
        choose: sampling.Choose,
        max_new_tokens: int,
        check: Check,
    ) -> list[int]:
        """Tokens of one answer, with its end token where that comes within max_new_tokens."""
        start = len(prompt.ids)
        table = self._text_rotary(prompt.next_position, max_new_tokens)
        ends = (self.config.special_ids["answer_end"], self.end_of_text)
        row: list[int] = []
        for step in range(max_new_tokens):
            check()
            row += choose(step, logits)
            if row[-1] in ends:
                break
            states = self._decode(row[-1:], table.span(step, step + 1), cache, start + step)
            logits = self._logits(states)
        return row

    def actions(
        self,
        prompt: Prompt,
        reasoning: Reasoning,
        noise: np.ndarray,
        cache: KeyValueCache,
        check: Check,
        on_step: Callable[[int, Tensor], None] | None = None,
    ) -> Tensor:
        """Normalised actions float32 (S, T, 2) from noise of that shape, by the flow.

        `on_step` is called as `integrate` says.
        """
        network = self.network
        encode = network.action_in_proj
        length = len(prompt.ids)
        ends = [length + len(row) for row in reasoning.token_ids]  # one past each end token
        waypoints = noise.shape[1]
        captured = self._captured_velocity(cache, waypoints)
        start = max(ends) if captured is None else captured.start
        rotary = self._expert_rotary(prompt.rope_delta, ends, waypoints)
        mask = self._expert_mask(ends, start, waypoints)
        if captured is not None:
            captured.begin(rotary, mask, max(ends))

        def velocity_at(x: Tensor, step: int) -> Tensor:
            check()
            if captured is not None:
                return captured(x, self._time_features[step])
            return velocity(
                network.expert,
                encode,
                network.action_out_proj,
                x,
                self._time_features[step],
                rotary,
                cache,
                start,
                mask,
            )

        x = torch.from_numpy(noise).to(self._device)
        return integrate(x, self._times, velocity_at, self.operators.euler_step, on_step)

    def _captured_velocity(self, cache: KeyValueCache, waypoints: int) -> CapturedVelocity | None:
        """The recorded step for this cache; None where steps are not recorded."""
        if self._capture is not None and self._captured is None:
            try:
                self._captured = CapturedVelocity(self.network, cache, waypoints, self._capture)
            except CaptureError as error:
                LOG.warning("graph_capture fails (%s): the flow's steps run one by one", error)
                self._capture = None
        return self._captured

    def _make_prompt_tables(self, prompt: Prompt) -> tuple[Tensor, Rotary]:
        """Where the images' tokens stand, and the rotary table; uploaded once a prompt."""
        positions = torch.from_numpy(prompt.positions)[:, None]
        text = self.config.backbone.text
        rotary = rotary_table(positions, text, self._device, self._dtype)
        return torch.from_numpy(prompt.image_indices).to(self._device), rotary

    def _decode(
        self, tokens: list[int], rotary: Rotary, cache: KeyValueCache, start: int
    ) -> Tensor:
        """States (B, 1, hidden) of one token of each sample, which goes into the cache."""
        model = self.network.vlm.model.language_model
        column = torch.tensor(tokens)[:, None].to(self._device)
        return model.run(model.embed_tokens(column), rotary, cache, start)

    def _logits(self, states: Tensor) -> Tensor:
        """Logits float32 (B, V) after the last of states (B, S, hidden), no trajectory bins."""
        logits = self.network.vlm.lm_head(states[:, -1]).float()
        first = self.config.trajectory_first_id
        logits[:, first : first + self.config.trajectory_bins] = -torch.inf
        return logits

    def _text_rotary(self, first_position: int, count: int) -> Rotary:
        """Rotary table of `count` tokens from a position on, the same on all axes."""
        positions = (first_position + torch.arange(count)).expand(3, 1, count)
        return rotary_table(positions, self.config.backbone.text, self._device, self._dtype)

    def _expert_rotary(self, rope_delta: int, ends: list[int], waypoints: int) -> Rotary:
        """The expert's tokens follow each sample's end token. In float32, as its residual is."""
        offsets = ends if len(set(ends)) > 1 else ends[:1]
        positions = torch.tensor(offsets)[:, None] + rope_delta + torch.arange(waypoints)
        return rotary_table(
            positions.expand(3, -1, -1), self.config.expert, self._device, torch.float32
        )

    def _expert_mask(self, ends: list[int], start: int, waypoints: int) -> Tensor | None:
        """What the expert may see where samples end before `start`: bool (S, 1, 1, T)."""
        if set(ends) == {start}:
            return None
        columns = torch.arange(start + waypoints)
        seen = (columns < torch.tensor(ends)[:, None]) | (columns >= start)
        return seen[:, None, None].to(self._device)
