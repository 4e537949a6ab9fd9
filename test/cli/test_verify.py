"""alpamayo_verify: a table and JSON; a check that fails is exit code 1."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import torch

from alpamayo_ros.cli.verify import main
from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.devices import self_test
from alpamayo_ros.devices.floor import Rates
from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model import verification
from alpamayo_ros.model.rollout import Rollout
from alpamayo_ros.sensing.fake import fake_snapshot


def run(capsys: pytest.CaptureFixture, *options: str) -> tuple[int, list[str], dict]:
    """Exit code, lines of the table, JSON."""
    code = main(["--device", "cpu", *options])
    *lines, last = capsys.readouterr().out.splitlines()
    return code, lines, json.loads(last)


# Where a CPU finds no fault, and could not have found every one.
SAYS_NOTHING_ON_THE_CPU = [
    "operator attention in float32",  # the CPU's table has the plain one, which judges
    "operator attention, causal in float32",
    "operator attention, masked in float32",
    "operator packed_attention in float32",
    "operator swiglu in float32",
    "operator euler_step in float32",
    "parity with the CPU in float32",
    "parity with the CPU in bfloat16",
    "stalls of vision, prefill",
    "stalls of N tokens",
    "stalls of 10 flow steps",
    "rates",  # it has no public peak
]


def test_on_the_cpu_nothing_fails_and_what_it_cannot_tell_is_not_counted_as_passed(
    capsys: pytest.CaptureFixture,
) -> None:
    code, lines, values = run(capsys)
    assert (code, values["passed"], values["failed"]) == (0, True, [])
    not_checked = [re.sub(r"\d+ tokens", "N tokens", name) for name in values["not_checked"]]
    assert not_checked == SAYS_NOTHING_ON_THE_CPU
    assert lines[0] == f"cpu, torch {torch.__version__}"
    assert lines[-1] == "25 of 25 checks passed on cpu, 12 could not be checked there"
    assert sum(line.startswith("passed ") for line in lines) == 25
    untold = [line for line in lines if line.startswith("not checked ")]
    assert len(untold) == 12
    assert all(line.endswith(")") for line in untold)  # why
    kinds = {check["name"].split(" ")[0] for check in values["checks"]}
    assert kinds == {"operator", "placement", "parity", "stalls", "rates", "floor"}


def test_a_number_read_within_the_flow_is_a_stall_on_the_cpu_too(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    actions = Rollout.actions

    def reading(self: Rollout, *args: object, **kwargs: object) -> torch.Tensor:
        result = actions(self, *args, **kwargs)
        result.sum().item()
        return result

    monkeypatch.setattr(Rollout, "actions", reading)
    code, lines, values = run(capsys)
    assert (code, values["failed"]) == (1, ["stalls of 10 flow steps"])
    assert lines[-1] == "25 of 26 checks passed on cpu, 11 could not be checked there"


@pytest.mark.parametrize(
    ("name", "reached", "outcome"),
    [
        ("NVIDIA H100 PCIe", Rates(700e12, 1.9e12), "passed"),
        ("NVIDIA H100 PCIe", Rates(900e12, 1.9e12), "failed"),
        ("NVIDIA H100 NVL", Rates(700e12, 3.0e12), "not checked"),  # its figures are unverified
        ("NVIDIA A100-SXM4-80GB", Rates(200e12, 1.5e12), "not checked"),
    ],
)
def test_rates_are_checked_only_against_figures_that_have_a_source(
    monkeypatch: pytest.MonkeyPatch, name: str, reached: Rates, outcome: str
) -> None:
    monkeypatch.setattr(verification, "check_operators", lambda device: [])
    monkeypatch.setattr(verification, "PARITY_ATOL_M", {"float32": 1e-3})
    monkeypatch.setattr(verification, "device_name", lambda device: name)
    monkeypatch.setattr(verification, "measured_rates", lambda device, dtype: reached)
    checks = verification.verify("cpu", load_demo_model, fake_snapshot(0))
    assert next(check.outcome.value for check in checks if check.name == "rates") == outcome


def test_the_switches_that_a_device_has_are_tried_when_asked_for(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "verify", lambda *args: iter(()))
    code, _, values = run(capsys, "--switches")
    assert code == 0
    assert [c["name"] for c in values["checks"]] == ["switch patch_embedding convolution"]


def test_a_switch_that_moves_the_plan_is_a_failure(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "verify", lambda *args: iter(()))
    proj = torch.nn.Conv3d.forward
    monkeypatch.setattr(torch.nn.Conv3d, "forward", lambda self, x: -proj(self, x))
    code, _, values = run(capsys, "--switches")
    assert (code, values["failed"]) == (1, ["switch patch_embedding convolution"])


def test_a_wrong_operator_is_named(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(Operators(), swiglu=lambda gate_up: gate_up.chunk(2, dim=-1)[0])
    monkeypatch.setattr(self_test, "operators_for", lambda device: wrong)
    code, lines, values = run(capsys)
    assert code == 1
    assert values["failed"] == ["operator swiglu in float32", "operator swiglu in bfloat16"]
    assert sum(line.startswith("FAILED ") for line in lines) == 2


def test_every_operator_of_the_table_is_tested() -> None:
    assert self_test.untested_operators() == set()


def test_an_unknown_device_is_one_line(capsys: pytest.CaptureFixture) -> None:
    assert main(["--device", "tpu"]) == 2
    assert "device 'tpu' is not known" in capsys.readouterr().err
