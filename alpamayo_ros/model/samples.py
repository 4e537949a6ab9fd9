"""Several samples of one decision: what a caller may give them, and which one is driven."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from alpamayo_ros.limits import MAX_NEW_TOKENS, NUM_SAMPLES, SEED
from alpamayo_ros.model.errors import ModelError
from alpamayo_ros.model.sampling import NO_MORE, require_sampling

MAX_NOISE = 100.0  # ten times what chance ever gives; from far beyond, plans leave float32


def require_choices(
    num_samples: int,
    max_new_tokens: int,
    seed: int,
    temperature: float = 0.6,
    top_p: float = 0.98,
) -> None:
    """Refuse arguments of a decision that no model takes; programs ask before they load one.

    Raises:
        ModelError: one is out of range; one line.
    """
    for name, value, limits in (
        ("num_samples", num_samples, NUM_SAMPLES),
        ("max_new_tokens", max_new_tokens, MAX_NEW_TOKENS),
        ("seed", seed, SEED),
    ):
        if value not in limits:
            raise ModelError(f"{name} must be {limits}, got {value!r}")
        if not isinstance(value, Integral):
            raise ModelError(f"{name} must be a whole number, {limits}, got {value!r}")
    require_sampling(temperature, top_p)


def medoid(xy_m: np.ndarray) -> tuple[int, float]:
    """The sample nearest to all others, and how far these are from it on the mean.

    xy_m (S, T, 2). The distance of two samples is the mean of that of their waypoints, in m; the
    spread of one sample is zero. Samples that are not finite are left out, unless all are such.
    """
    usable = np.flatnonzero(np.isfinite(xy_m).all(axis=(1, 2)))
    if len(usable) == 0:
        return 0, 0.0
    finite = xy_m[usable]
    gaps = np.linalg.norm(finite[:, None] - finite[None], axis=-1).mean(-1)
    best = int(gaps.sum(1).argmin())
    others = max(len(usable) - 1, 1)
    return int(usable[best]), float(gaps[best].sum() / others)


def checked_noise(noise: np.ndarray, num_samples: int, waypoints: int) -> np.ndarray:
    """The flow's noise, float32 (S, T, 2).

    Raises:
        ModelError: it has another shape, or numbers that no standard normal draw gives.
    """
    noise = np.asarray(noise)
    wanted = (num_samples, waypoints, 2)
    if noise.shape != wanted or noise.dtype.kind != "f":
        raise ModelError(
            f"noise must be finite float32 {wanted}, got {noise.dtype} {noise.shape}: its first "
            "number is num_samples"
        )
    largest = np.abs(noise).max()
    if not largest <= MAX_NOISE:
        raise ModelError(
            f"noise must be finite float32 within {MAX_NOISE:g}, as standard normal numbers are, "
            f"got {largest:.9g}"
        )
    return np.ascontiguousarray(noise, np.float32)


def checked_tokens(
    tokens: np.ndarray, num_samples: int, vocab_size: int, end_token: int, end_of_text: int
) -> np.ndarray:
    """Given reasoning, int64 (S, n) padded with -1 at the end of a row.

    Args:
        end_token: ends a row.
        end_of_text: ends it too, but for the end token, which may be written out behind it.

    Raises:
        ModelError: it has another shape, numbers that are no tokens, or tokens behind an end.
    """
    tokens = np.asarray(tokens)
    fits = tokens.ndim == 2 and tokens.shape[0] == num_samples
    if not fits or tokens.shape[1] not in MAX_NEW_TOKENS:
        raise ModelError(
            f"tokens must be of shape ({num_samples}, n) for {num_samples} samples with n from "
            f"{MAX_NEW_TOKENS}, got {tokens.shape}"
        )
    padded = tokens == NO_MORE
    if tokens.dtype.kind not in "iu" or not ((tokens >= 0) & (tokens < vocab_size) | padded).all():
        raise ModelError(
            f"tokens must be whole numbers from 0 to {vocab_size - 1}, or {NO_MORE} where a row "
            "has ended"
        )
    if padded[:, 0].any() or (padded[:, :-1] & ~padded[:, 1:]).any():
        raise ModelError(f"tokens: each row needs a token and only its end may be {NO_MORE}")
    for end, followers in ((end_token, (NO_MORE,)), (end_of_text, (end_token, NO_MORE))):
        ended = np.cumsum(tokens == end, axis=1) > 0
        if (ended[:, :-1] & ~np.isin(tokens[:, 1:], followers)).any():
            raise ModelError(
                f"tokens: a row goes on behind the token {end}, which ends it: pad with {NO_MORE}"
            )
    return tokens.astype(np.int64)
