"""The plain operators against slow arithmetic in float64: they judge the fused ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from alpamayo_ros.devices import cpu
from alpamayo_ros.devices.operators import Operators, operators_for

OPERATORS = operators_for("cpu")


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def slow_attention(query, key, value, seen) -> np.ndarray:
    """One query row at a time; seen(batch, row, column) says what may be seen."""
    batch, heads, rows, width = query.shape
    group = heads // key.shape[1]
    out = np.zeros(query.shape)
    for b in range(batch):
        for h in range(heads):
            for row in range(rows):
                k = key[b, h // group].double().numpy()
                scores = k @ query[b, h, row].double().numpy() / np.sqrt(width)
                visible = [c for c in range(len(k)) if seen(b, row, c)]
                mass = np.exp(scores[visible] - scores[visible].max())
                out[b, h, row] = mass / mass.sum() @ value[b, h // group, visible].double().numpy()
    return out


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (6, 2), (4, 1)])
def test_attention_to_everything(heads: int, kv_heads: int) -> None:
    query, key, value = random(2, heads, 3, 8), random(2, kv_heads, 7, 8), random(2, kv_heads, 7, 8)
    expected = slow_attention(query, key, value, lambda b, row, column: True)
    got = OPERATORS.attention(query, key, value)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (6, 2)])
def test_causal_attention(heads: int, kv_heads: int) -> None:
    query, key, value = random(1, heads, 6, 8), random(1, kv_heads, 6, 8), random(1, kv_heads, 6, 8)
    expected = slow_attention(query, key, value, lambda b, row, column: column <= row)
    got = OPERATORS.attention(query, key, value, causal=True)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (6, 2)])
def test_a_mask_is_true_where_a_key_is_seen_and_differs_by_sample(heads, kv_heads) -> None:
    query, key, value = random(2, heads, 3, 8), random(2, kv_heads, 7, 8), random(2, kv_heads, 7, 8)
    mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    mask[0, ..., 2:5] = False
    expected = slow_attention(query, key, value, lambda b, row, column: bool(mask[b, 0, 0, column]))
    got = OPERATORS.attention(query, key, value, mask=mask)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (6, 2)])
def test_a_mask_may_differ_by_query(heads: int, kv_heads: int) -> None:
    query, key, value = random(2, heads, 3, 8), random(2, kv_heads, 7, 8), random(2, kv_heads, 7, 8)
    mask = random(2, 1, 3, 7, seed=5) > 0
    mask[..., 0] = True  # no query without any key
    expected = slow_attention(query, key, value, lambda b, row, k: bool(mask[b, 0, row, k]))
    got = OPERATORS.attention(query, key, value, mask=mask)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)


def test_rms_norm_divides_by_the_root_of_the_mean_square() -> None:
    x, weight = random(3, 5), random(5, seed=1)
    wide = x.double().numpy()
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * weight.double().numpy()
    np.testing.assert_allclose(OPERATORS.rms_norm(x, weight, 1e-6).numpy(), expected, atol=1e-6)


def test_rms_norm_of_a_float32_residual_has_the_type_of_the_weights() -> None:
    x, weight = random(3, 5), random(5, seed=1).bfloat16()
    assert OPERATORS.rms_norm(x, weight, 1e-6).dtype == torch.bfloat16


def test_add_rms_norm_is_the_norm_of_the_sum_and_keeps_the_residuals_type() -> None:
    x, residual, weight = random(3, 5).bfloat16(), random(3, 5, seed=1), random(5, seed=2)
    normed, total = OPERATORS.add_rms_norm(x, residual, weight, 1e-6)
    torch.testing.assert_close(total, x.float() + residual, rtol=0, atol=0)
    torch.testing.assert_close(normed, OPERATORS.rms_norm(total, weight, 1e-6), rtol=0, atol=0)


def test_rotary_turns_pairs_of_the_two_halves() -> None:
    x, angle = random(2, 3, 6), random(3, 3, seed=1)
    cos, sin = (torch.cat([f(angle), f(angle)], -1) for f in (torch.cos, torch.sin))
    turned = OPERATORS.rotary(x, cos, sin)
    pairs = torch.complex(x[..., :3], x[..., 3:]) * torch.polar(torch.ones_like(angle), angle)
    expected = torch.cat([pairs.real, pairs.imag], -1)
    torch.testing.assert_close(turned, expected, atol=1e-6, rtol=0)


def test_swiglu_gates_the_second_half_by_the_first() -> None:
    gate, up = random(4, 3), random(4, 3, seed=1)
    expected = gate / (1 + torch.exp(-gate)) * up
    got = OPERATORS.swiglu(torch.cat([gate, up], -1))
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_the_euler_step_keeps_a_float32_state() -> None:
    x, velocity = random(2, 4), random(2, 4, seed=1).bfloat16()
    stepped = OPERATORS.euler_step(x, torch.tensor(0.25), velocity)
    assert stepped.dtype == torch.float32
    torch.testing.assert_close(stepped, x + 0.25 * velocity.float())


@pytest.mark.parametrize("rows", [1, 6, 64])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_is_the_product_with_the_transposed_weight(rows: int, with_bias: bool) -> None:
    x, weight = random(2, rows, 24), random(40, 24, seed=1)
    bias = random(40, seed=2) if with_bias else None
    expected = x.double().numpy() @ weight.double().numpy().T
    expected += 0 if bias is None else bias.numpy()
    with torch.no_grad():
        got = OPERATORS.linear(x, weight, bias)
        row = OPERATORS.linear(x[:, -1], weight, bias)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)
    np.testing.assert_allclose(row.numpy(), expected[:, -1], atol=1e-5)


def test_linear_has_gradients_where_they_are_wanted() -> None:
    x, weight = random(3, 4), random(5, 4, seed=1).requires_grad_()
    OPERATORS.linear(x, weight, None).sum().backward()
    torch.testing.assert_close(weight.grad, x.sum(0).expand(5, 4))


CASES = {
    "linear": (random(2, 3, 16), random(8, 16, seed=1), random(8, seed=2)),
    "linear_gelu": (random(2, 3, 16), random(8, 16, seed=1), random(8, seed=2), "tanh"),
    "rotary": (random(2, 4, 3, 16), *(random(2, 1, 3, 8, seed=k).tile(2) for k in (1, 2))),
    "rms_norm": (random(2, 3, 16), random(16, seed=1), 1e-6),
    "add_rms_norm": (random(2, 3, 16), random(2, 3, 16, seed=2), random(16, seed=1), 1e-6),
}


def both(name: str, arguments: tuple) -> tuple:
    """What the CPU's operator and the plain one make of the same arguments."""
    with torch.no_grad():
        return tuple(getattr(table, name)(*arguments) for table in (OPERATORS, Operators()))


@pytest.mark.parametrize("name", CASES)
def test_the_cpus_operators_compute_what_the_plain_ones_do(name: str) -> None:
    assert getattr(OPERATORS, name) is not getattr(Operators(), name)
    got, expected = both(name, CASES[name])
    torch.testing.assert_close(got, expected, atol=2e-6, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_cpus_operators_round_bfloat16_as_the_plain_ones_do(name: str) -> None:
    narrow = [v.bfloat16() if isinstance(v, torch.Tensor) else v for v in CASES[name]]
    got, expected = both(name, tuple(narrow))
    torch.testing.assert_close(got, expected, atol=0, rtol=0)


def test_the_cpus_norm_of_a_float32_residual_rounds_as_the_plain_one_does() -> None:
    x, weight, eps = CASES["rms_norm"]
    got, expected = both("rms_norm", (x, weight.bfloat16(), eps))
    torch.testing.assert_close(got, expected, atol=0, rtol=0)


@pytest.mark.parametrize("name", CASES)
def test_every_operator_has_gradients_where_they_are_wanted(name: str) -> None:
    x = CASES[name][0].clone().requires_grad_()
    result = getattr(OPERATORS, name)(x, *CASES[name][1:])
    (result[0] if isinstance(result, tuple) else result).square().sum().backward()
    assert x.grad is not None
    assert x.grad.abs().max() > 0


def test_rows_are_split_so_that_a_part_holds_no_more_than_so_many_values() -> None:
    assert Operators().parts(10**6, 10**6) == 1
    table = Operators(values_at_once=100)
    assert [table.parts(rows, 10) for rows in (1, 10, 11, 20, 21)] == [1, 1, 2, 2, 3]


def test_the_table_is_the_plain_one_on_cuda() -> None:
    assert operators_for("cuda:0") == Operators()


def test_a_build_of_pytorch_without_onednn_has_the_plain_table(monkeypatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert operators_for("cpu") == Operators(values_at_once=cpu.VALUES_AT_ONCE)
