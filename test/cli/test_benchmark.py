"""alpamayo_benchmark: figures beside floors; a figure under its floor is an error."""

from __future__ import annotations

import json

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
