"""How the next token of the reasoning is chosen, and where all chance of a decision comes from.

A decision's random numbers depend on the seed and on t0 alone, are drawn on the CPU, and are the
same on every device and for every way of choosing: first the uniforms of the sampling, then the
noise of the flow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from alpamayo_ros.limits import TEMPERATURE, TOP_P
from alpamayo_ros.model.errors import ModelError

CANDIDATES = 1024  # of the vocabulary; the rare token beyond them is found the slow way

NO_MORE = -1  # in the place of a token: the sample's reasoning has ended

# (step, logits float32 (B, V)) -> the chosen token of each sample, on the host.
Choose = Callable[[int, Tensor], list[int]]


@dataclass(frozen=True, eq=False)
class Chance:
    """The random numbers of one decision."""

    uniforms: np.ndarray  # float64 (max_new_tokens, S) in [0, 1)
    noise: np.ndarray  # float32 (S, T, 2), standard normal


def draw_chance(
    seed: int, t0_ns: int, num_samples: int, max_new_tokens: int, waypoints: int
) -> Chance:
    """All random numbers of the decision at t0.

    Raises:
        ModelError: seed or t0 is negative.
    """
    if seed < 0 or t0_ns < 0:
        raise ModelError(f"seed and t0_ns must be >= 0, got {seed} and {t0_ns}")
    generator = np.random.default_rng([seed, t0_ns])
    uniforms = generator.random((max_new_tokens, num_samples))
    noise = generator.standard_normal((num_samples, waypoints, 2), dtype=np.float32)
    return Chance(uniforms, noise)


def greedy(step: int, logits: Tensor) -> list[int]:
    """The most probable token of each sample."""
    return logits.argmax(dim=-1).tolist()


def forced(tokens: np.ndarray) -> Choose:
    """Given tokens int (S, n), one column after the other; rows are padded with NO_MORE."""

    def choose(step: int, logits: Tensor) -> list[int]:
        return tokens[:, step].tolist()

    return choose


def require_sampling(temperature: float, top_p: float) -> None:
    """Refuse a way of sampling that is none.

    Raises:
        ModelError: temperature or top_p is out of range.
    """
    if temperature not in TEMPERATURE:
        raise ModelError(
            f"temperature must be {TEMPERATURE}, got {temperature!r}; greedy takes the most "
            "probable token"
        )
    if top_p not in TOP_P:
        raise ModelError(f"top_p must be {TOP_P}, got {top_p!r}")


def nucleus(uniforms: np.ndarray, temperature: float, top_p: float) -> Choose:
    """Sampling from the smallest set of largest probabilities with mass >= top_p.

    Uniforms float64 (steps, S). Ties go to the lower id; the token taken is the first of the set
    whose cumulative mass exceeds u times that of the set.

    Raises:
        ModelError: temperature or top_p is out of range.
    """
    require_sampling(temperature, top_p)

    def choose(step: int, logits: Tensor) -> list[int]:
        scaled = logits / temperature
        best = scaled.topk(min(CANDIDATES, scaled.shape[-1]), dim=-1)
        # One transfer to the host a token, of all that may be needed there: a second one would
        # stall the device, and 0.6 MB more do not. As float32 numbers: ids are exact up to 2^24.
        mass = torch.logsumexp(scaled, -1, keepdim=True)
        packed = torch.cat((mass, best.values, best.indices.float(), scaled), -1).cpu().numpy()
        count = best.values.shape[-1]
        return [
            _pick(row[: 1 + 2 * count], row[1 + 2 * count :], float(uniforms[step, sample]), top_p)
            for sample, row in enumerate(packed)
        ]

    return choose


def _pick(row: np.ndarray, scaled: np.ndarray, uniform: float, top_p: float) -> int:
    """One sample's token from log mass, candidates' values and ids in one row, and all logits."""
    row = row.astype(np.float64)
    values, ids = np.split(row[1:], 2)
    mass = np.exp(values - row[0])
    # The last value may be shared by tokens that were left out, so it must not be needed.
    if len(values) < len(scaled) and mass[values > values[-1]].sum() < top_p:
        values = scaled.astype(np.float64)
        ids = np.arange(len(values))
        mass = np.exp(values - row[0])
    order = np.lexsort((ids, -values))
    return int(ids[order][_nucleus_index(mass[order], uniform, top_p)])


def _nucleus_index(mass: np.ndarray, uniform: float, top_p: float) -> int:
    """Index into falling probabilities (N,) of the token that u in [0, 1) falls on."""
    cumulative = np.cumsum(mass)
    kept = min(int(np.searchsorted(cumulative, top_p)) + 1, len(mass))
    # u * mass is below mass, so the index is within the set whatever the rounding.
    index = int(np.searchsorted(cumulative[:kept], uniform * cumulative[kept - 1], side="right"))
    return min(index, kept - 1)
