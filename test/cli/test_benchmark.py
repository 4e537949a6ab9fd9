"""alpamayo_benchmark: figures beside floors; a figure under its floor is an error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from alpamayo_ros.cli.benchmark import main
from alpamayo_ros.devices import floor
from alpamayo_ros.devices.floor import Rates

SHORT = ["--device", "cpu", "--warmup", "1", "--runs", "2", "--max-new-tokens", "4"]


@pytest.fixture(autouse=True)
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device so fast that this machine is not under its floor."""
    monkeypatch.setattr(floor, "measured_rates", lambda *args: Rates(1e15, 1e15))


def test_stages_have_figures_and_a_floor(capsys: pytest.CaptureFixture) -> None:
    assert main(SHORT) == 0
    *table, last = capsys.readouterr().out.splitlines()
    values = json.loads(last)
    assert values["inputs"]["image_input"] == [1, 16, 3, 320, 576]
    assert values["inputs"]["ego_history"] == [1, 16, 12]
    assert (values["warmup"], values["runs"]) == (1, 2)
    assert list(values["stages"]) == ["vision", "prefill", "reasoning", "expert", "total"]
    for stage, figures in values["stages"].items():
        assert figures["min"] <= figures["p50"] <= figures["p95"] <= figures["max"], stage
        assert 0 < figures["floor"] < figures["min"]
        assert any(line.startswith(stage) for line in table)
    total = values["stages"]["total"]
    assert values["waypoints_per_s"] == pytest.approx(64e3 / total["p50"])
    assert total["flop"] == pytest.approx(
        sum(f["flop"] for s, f in values["stages"].items() if s != "total")
    )


def test_a_figure_under_its_floor_is_an_error(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floor, "measured_rates", lambda *args: Rates(1e6, 1e6))
    assert main(SHORT) == 1
    assert "error: under the device's floor, so not a whole decision" in capsys.readouterr().err


def test_no_runs_are_refused(capsys: pytest.CaptureFixture) -> None:
    assert main([*SHORT, "--runs", "0"]) == 2
    assert "--warmup must be >= 0 and --runs >= 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--runs", "-1"], "--runs >= 1"),
        (["--warmup", "-1"], "--warmup must be >= 0"),
        (["--runs", "x"], "invalid int value: 'x'"),
        (["--device", "foo"], "device 'foo' is not known; use auto, cpu, cuda:0 or npu:0"),
        (["--model", "/nowhere"], "model folder /nowhere: there is no such folder"),
        (["--snapshot", "/nowhere.npz"], "snapshot /nowhere.npz: there is no such file"),
        (["--seed", "-1"], "seed must be 0 to 9223372036854775807, got -1"),
        (["--num-samples", "0"], "num_samples must be 1 to 64, got 0"),
        (["--max-new-tokens", "0"], "max_new_tokens must be 1 to 1024, got 0"),
        (["--output", "/nowhere/x.json"], "cannot be written: there is no such folder"),
        (["--output", "/"], "cannot be written: it is a folder; name a file"),
    ],
)
def test_a_mistake_is_one_line_before_any_figure(
    capsys: pytest.CaptureFixture, options: list[str], message: str
) -> None:
    assert main([*SHORT, *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("sink", "code", "told"), [("| true", 141, ""), ("> /dev/full", 2, "No space left on device")]
)
def test_output_that_nobody_takes_ends_the_program_without_a_traceback(
    sink: str, code: int, told: str
) -> None:
    command = f"{sys.executable} -m test.npu.programs.command benchmark {' '.join(SHORT)}"
    result = subprocess.run(
        ["bash", "-c", f"{command} {sink}; exit ${{PIPESTATUS[0]}}"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert result.returncode == code
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == bool(told)
