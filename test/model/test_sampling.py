"""Tokens are chosen as specified, and all chance comes from seed and t0."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from alpamayo_ros.model import ModelError
from alpamayo_ros.model.sampling import _nucleus_index, draw_chance, forced, greedy, nucleus


def slow_choice(logits: np.ndarray, u: float, temperature: float, top_p: float) -> int:
    """The specification, one token after the other."""
    scaled = logits.astype(np.float64) / temperature
    mass = np.exp(scaled - scaled.max())
    mass /= mass.sum()
    order = sorted(range(len(mass)), key=lambda token: (-scaled[token], token))
    kept, total = [], 0.0
    for token in order:
        kept.append(token)
        total += mass[token]
        if total >= top_p:
            break
    cumulative = 0.0
    for token in kept:
        cumulative += mass[token] / total
        if cumulative > u:
            return token
    return kept[-1]


@pytest.mark.parametrize("size", [50, 5000])
@pytest.mark.parametrize("temperature", [0.3, 0.6, 3.0])
@pytest.mark.parametrize("top_p", [0.1, 0.98, 1.0])
def test_sampling_follows_the_specification(size: int, temperature: float, top_p: float) -> None:
    # At temperature 3 the set needs more than 1024 of 5000 tokens: the exact way beside topk.
    rng = np.random.default_rng(size)
    logits = rng.normal(0, 2, (3, size)).astype(np.float32)
    logits[:, 7] = -np.inf
    uniforms = rng.random((20, 3))
    choose = nucleus(uniforms, temperature, top_p)
    for step in range(20):
        got = choose(step, torch.from_numpy(logits))
        assert got == [
            slow_choice(logits[k], uniforms[step, k], temperature, top_p) for k in range(3)
        ]


def test_tied_tokens_go_to_the_lower_id_first() -> None:
    # 3000 equal tokens: u picks by id, also where topk would have returned any 1024 of them.
    logits = torch.zeros(1, 3000)
    for u, expected in ((0.0, 0), (0.5001, 1500), (0.9999, 2999)):
        assert nucleus(np.array([[u]]), 1.0, 1.0)(0, logits) == [expected]
    assert nucleus(np.array([[0.9999]]), 1.0, 0.49999)(0, logits) == [1499]


def test_ties_at_the_border_of_the_candidates_are_decided_by_id() -> None:
    # 1000 tokens above 2000 equal ones: topk returns any 24 of these, the set wants the first.
    logits = torch.zeros(1, 3000)
    logits[0, 2000:] = 1.0
    mass = np.exp(1.0) * 1000
    top_p = (mass + 5.5) / (mass + 2000)  # the 1000, and 6 of the equal ones
    assert nucleus(np.array([[1 - 1e-9]]), 1.0, top_p)(0, logits) == [5]


def test_a_cumulative_mass_that_equals_u_does_not_exceed_it() -> None:
    assert _nucleus_index(np.array([0.5, 0.25, 0.25]), 0.5, 1.0) == 1


def test_masked_tokens_are_never_taken() -> None:
    logits = torch.full((1, 2000), -torch.inf)
    logits[0, [5, 900]] = 0.0
    for u in (0.0, 0.49, 0.51, 1 - 1e-16):
        assert nucleus(np.array([[u]]), 0.6, 1.0)(0, logits)[0] in (5, 900)


def test_frequencies_are_the_probabilities() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]]))
    uniforms = np.linspace(0, 1, 1000, endpoint=False)[:, None]
    choose = nucleus(uniforms, 1.0, 1.0)
    counts = np.bincount([choose(step, logits)[0] for step in range(1000)])
    np.testing.assert_allclose(counts, [500, 300, 200], atol=1)


def test_greedy_takes_the_most_probable_token_of_each_sample() -> None:
    assert greedy(0, torch.tensor([[0.0, 2.0, 1.0], [3.0, 2.0, 1.0]])) == [1, 0]


def test_forced_tokens_come_column_by_column() -> None:
    choose = forced(np.array([[4, 5], [6, -1]]))
    assert [choose(step, torch.zeros(1)) for step in (0, 1)] == [[4, 6], [5, -1]]


def test_chance_depends_on_seed_and_t0_alone() -> None:
    first, again = (draw_chance(3, 10**18, 2, 8, 64) for _ in range(2))
    np.testing.assert_array_equal(first.uniforms, again.uniforms)
    np.testing.assert_array_equal(first.noise, again.noise)
    for other in (draw_chance(4, 10**18, 2, 8, 64), draw_chance(3, 10**18 + 1, 2, 8, 64)):
        assert not np.array_equal(first.noise, other.noise)


def test_uniforms_are_drawn_before_the_noise() -> None:
    generator = np.random.default_rng([3, 10**18])
    chance = draw_chance(3, 10**18, 2, 8, 64)
    np.testing.assert_array_equal(chance.uniforms, generator.random((8, 2)))
    expected = generator.standard_normal((2, 64, 2), dtype=np.float32)
    np.testing.assert_array_equal(chance.noise, expected)


@pytest.mark.parametrize("temperature", [0.0, 1e-300, -1.0, float("nan"), 10.1])
def test_a_temperature_out_of_range_is_refused(temperature: float) -> None:
    with pytest.raises(ModelError, match=r"temperature must be 0\.01 to 10,"):
        nucleus(np.zeros((1, 1)), temperature, 0.98)


@pytest.mark.parametrize("top_p", [0.0, 0.009, 1.1, float("nan")])
def test_a_top_p_out_of_range_is_refused(top_p: float) -> None:
    with pytest.raises(ModelError, match=r"top_p must be 0\.01 to 1,"):
        nucleus(np.zeros((1, 1)), 0.6, top_p)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ModelError, match="must be >= 0"):
        draw_chance(-1, 0, 1, 1, 64)
