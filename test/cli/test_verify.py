"""alpamayo_verify: a table and JSON; a check that fails is exit code 1."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from alpamayo_ros.cli.verify import main
from alpamayo_ros.devices import self_test
from alpamayo_ros.devices.operators import Operators
from alpamayo_ros.model import verification


def run(capsys: pytest.CaptureFixture, *options: str) -> tuple[int, list[str], dict]:
    """Exit code, lines of the table, JSON."""
    code = main(["--device", "cpu", *options])
    *lines, last = capsys.readouterr().out.splitlines()
    return code, lines, json.loads(last)


def test_the_cpu_passes(capsys: pytest.CaptureFixture) -> None:
    code, lines, values = run(capsys)
    assert (code, values["passed"], values["failed"]) == (0, True, [])
    assert lines[-1] == f"{len(values['checks'])} of {len(values['checks'])} checks passed on cpu"
    kinds = {check["name"].split(" ")[0] for check in values["checks"]}
    assert kinds == {"device", "operator", "placement", "parity", "stalls", "rates", "floor"}


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
    assert sum(line.startswith("FAIL") for line in lines) == 2


def test_every_operator_of_the_table_is_tested() -> None:
    assert self_test.untested_operators() == set()


def test_an_unknown_device_is_one_line(capsys: pytest.CaptureFixture) -> None:
    assert main(["--device", "tpu"]) == 2
    assert "device 'tpu' is not known" in capsys.readouterr().err
