"""The NPU's table of operators: right numbers, torch_npu's fused kernels, nonsense refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="module")
def observed(on_npu: Callable[..., Any]) -> Any:
    return on_npu("operators")


def test_every_operator_computes_what_mathematics_says(observed: Any) -> None:
    assert {check["dtype"] for check in observed["checks"]} == {"float32", "bfloat16"}
    assert [check for check in observed["checks"] if not check["within"]] == []
    assert not any(check["judged_by_itself"] for check in observed["checks"])


def test_the_fused_kernels_are_what_computes(observed: Any) -> None:
    assert observed["called"] == [
        *("npu::npu_add_rms_norm", "npu::npu_fusion_attention", "npu::npu_fusion_attention_v3"),
        *("npu::npu_rms_norm", "npu::npu_rotary_mul", "npu::npu_swiglu"),
    ]


def test_query_heads_in_groups_need_no_copy_of_the_keys(observed: Any) -> None:
    grouped = [call for call in observed["attention"] if call["layout"] == "BNSD"]
    assert grouped
    for call in grouped:
        assert call["operator"] == "npu_fusion_attention_v3"  # the one that graphs can capture
        assert (call["query"][1], call["key"][1]) == (4, 2)


def test_sequences_of_several_lengths_are_one_call(observed: Any) -> None:
    packed = [call for call in observed["attention"] if call["layout"] == "TND"]
    assert [call["query"] for call in packed] == [[16, 4, 32], [16, 4, 32]]  # one a type


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("float mask", "a mask must be bool, True where a key is seen, got torch.float32"),
        ("short mask", "a mask must be (1, 1, 1 or 3, 5), got (1, 1, 1, 4)"),
        ("head counts", "query heads a multiple of key heads"),
        ("types", "attention takes one floating type of at most 32 bits"),
        ("causal with a prefix", "causal attention takes no mask, and as many queries as keys"),
        ("lengths", "lengths (2, 3) do not add up to 6 tokens"),
        ("packed heads", "packed attention is of (tokens, heads, width)"),
        ("packed types", "attention takes one floating type of at most 32 bits"),
        ("an empty sequence", "lengths (0, 6) do not add up to 6 tokens"),
        ("three axes", "attention is of four axes"),
        ("a mask of heads", "a mask must be (1, 1, 1 or 3, 5), got (1, 4, 3, 5)"),
        ("whole numbers", "attention takes one floating type of at most 32 bits"),
        ("a norm's width", "a norm is of one shape (..., N) and a weight (N,)"),
        ("a residual of another shape", "got (1, 4, 1, 8), (1, 4, 3, 8) and (8,)"),
        ("an odd width", "swiglu is of an even last axis, got (2, 7)"),
        ("tables", "tables alike, got (1, 4, 3, 8), (3, 8) and (3, 8)"),
    ],
)
def test_arguments_that_torch_npu_would_not_check_are_refused(
    observed: Any, call: str, message: str
) -> None:
    assert message in observed["refusals"][call]
