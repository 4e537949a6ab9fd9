"""A device's operators against float32 mathematics on the CPU, on small seeded inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from alpamayo_ros.devices.device import DTYPES, resolve_dtype
from alpamayo_ros.devices.operators import Operators, operators_for

# Of the largest number of the result. bfloat16 has 8 bits, and a kernel may round in between.
TOLERANCES = {"float32": 1e-4, "bfloat16": 2e-2}
EPS = 1e-6
HEADS, KV_HEADS, WIDTH, KEYS = 4, 2, 32, 11
LENGTHS = (5, 9, 2)

Compute = Callable[[Operators, Callable[..., Tensor]], Tensor]


@dataclass(frozen=True)
class OperatorCheck:
    """How far one operator was from the mathematics, relative to the largest number."""

    name: str
    dtype: str
    error: float
    allowed: float
    judged_by_itself: bool  # the same function on the same numbers: the error says nothing

    @property
    def within(self) -> bool:
        """Fails on NaN too."""
        return self.error <= self.allowed


def _attention(operators: Operators, random: Callable[..., Tensor]) -> Tensor:
    query = random(2, HEADS, 3, WIDTH)
    return operators.attention(query, random(2, KV_HEADS, KEYS, WIDTH), random(2, KV_HEADS, KEYS, WIDTH))  # fmt: skip  # noqa: E501


def _causal(operators: Operators, random: Callable[..., Tensor]) -> Tensor:
    keys = [random(1, KV_HEADS, KEYS, WIDTH) for _ in range(2)]
    return operators.attention(random(1, HEADS, KEYS, WIDTH), *keys, causal=True)


def _masked(operators: Operators, random: Callable[..., Tensor]) -> Tensor:
    query = random(2, HEADS, 3, WIDTH)
    seen = torch.ones(2, 1, 1, KEYS, dtype=torch.bool)
    seen[0, ..., 2:6] = False
    keys = [random(2, KV_HEADS, KEYS, WIDTH) for _ in range(2)]
    return operators.attention(query, *keys, mask=seen.to(query.device))


def _packed(operators: Operators, random: Callable[..., Tensor]) -> Tensor:
    query, key, value = (random(sum(LENGTHS), HEADS, WIDTH) for _ in range(3))
    return operators.packed_attention(query, key, value, LENGTHS)


def _rotary(operators: Operators, random: Callable[..., Tensor]) -> Tensor:
    angles = random(1, 1, 3, WIDTH // 2).repeat(1, 1, 1, 2)
    return operators.rotary(random(2, HEADS, 3, WIDTH), angles.cos(), angles.sin())


def _add_rms_norm(operators: Operators, random: Callable[..., Tensor]) -> Tensor:
    x, residual, weight = random(2, 3, WIDTH), random(2, 3, WIDTH), random(WIDTH)
    return torch.cat(operators.add_rms_norm(x, residual, weight, EPS))


def _add_rms_norm_wide(operators: Operators, random: Callable[..., Tensor]) -> Tensor:
    """With the expert's residual, which is float32 whatever the weights are."""
    x, residual, weight = random(2, 3, WIDTH), random(2, 3, WIDTH), random(WIDTH)
    normed, total = operators.add_rms_norm(x, residual.float(), weight, EPS)
    return torch.cat((normed.float(), total))


def _euler_step(operators: Operators, random: Callable[..., Tensor]) -> Tensor:
    return operators.euler_step(random(2, 5, 2).float(), random(1)[0].float(), random(2, 5, 2))


COMPUTATIONS: dict[str, Compute] = {
    "attention": _attention,
    "attention, causal": _causal,
    "attention, masked": _masked,
    "packed_attention": _packed,
    "linear": lambda operators, random: operators.linear(random(3, 8), random(6, 8), random(6)),
    "linear_gelu": lambda operators, random: operators.linear_gelu(
        random(3, 8), random(6, 8), random(6), "tanh"
    ),
    "rms_norm": lambda operators, random: operators.rms_norm(
        random(2, 3, WIDTH), random(WIDTH), EPS
    ),
    "add_rms_norm": _add_rms_norm,
    "add_rms_norm, float32 residual": _add_rms_norm_wide,
    "rotary": _rotary,
    "swiglu": lambda operators, random: operators.swiglu(random(2, 3, 2 * WIDTH)),
    "euler_step": _euler_step,
}


def check_operators(device: str) -> list[OperatorCheck]:
    """Compare every operator of a resolved device's table, in each type, with the plain one."""
    return [_check(name, device, dtype) for dtype in DTYPES for name in COMPUTATIONS]


def untested_operators() -> set[str]:
    """Names in the table that no computation above is of; empty, which a test holds."""
    tested = {_field(name) for name in COMPUTATIONS}
    return {field.name for field in fields(Operators) if callable(field.default)} - tested


def _check(name: str, device: str, dtype: str) -> OperatorCheck:
    number_type = resolve_dtype(dtype)

    def source(on: str, wide: bool) -> Callable[..., Tensor]:
        """The same numbers, rounded to the type, at each call: on the device, or for judging."""
        generator = torch.Generator().manual_seed(0)

        def random(*shape: int) -> Tensor:
            rounded = torch.randn(shape, generator=generator).to(number_type)
            return (rounded.float() if wide else rounded).to(on)

        return random

    compute, plain, table = COMPUTATIONS[name], Operators(), operators_for(device)
    with torch.no_grad():
        expected = compute(plain, source("cpu", wide=True))
        got = compute(table, source(device, wide=False)).cpu().float()
    error = float((got - expected).abs().max() / expected.abs().max())
    field = _field(name)
    same = (device, dtype) == ("cpu", "float32") and getattr(table, field) is getattr(plain, field)
    return OperatorCheck(name, dtype, error, TOLERANCES[dtype], same)


def _field(name: str) -> str:
    """The operator in the table that a computation is of."""
    return name.partition(",")[0]
