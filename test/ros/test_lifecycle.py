"""The lifecycle over its services, from every state, and the end of the process."""

from __future__ import annotations

import signal
import time

import pytest

from .conftest import parameters
from .rig import Rig

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

COMPRESSED = {
    f"cameras__{role}__transport": "compressed"
    for role in ("cross_left", "front_wide", "cross_right", "front_tele")
}


def test_each_transition_and_its_mirror_under_load(start_node, context):
    bench = start_node(
        *parameters(model__path="demo", autostart="false", gate__mode="report", **COMPRESSED)
    )
    bench.wait_for_state("unconfigured")
    assert bench.get_state() == "unconfigured"
    with Rig(context):
        for _ in range(2):
            assert bench.change_state("configure")
            assert bench.get_state() == "inactive"
            bench.wait(lambda: bench.ear.status.model_id.startswith("demo"), "the model's name")
            assert bench.ear.status.demo_model
            for _ in range(2):
                assert bench.change_state("activate")
                bench.wait_for_state("active")
                bench.wait_for_plans(2)
                assert bench.change_state("deactivate")
                bench.wait_for_state("inactive")
                bench.wait(lambda: bench.ear.paths[-1].poses == [], "an empty path")
            assert bench.change_state("cleanup")
            bench.wait_for_state("unconfigured")
            assert bench.ear.status.model_id == ""
    seen = len(bench.ear.plans)
    assert bench.process.stop(signal.SIGTERM) == 0
    assert "Traceback" not in bench.process.output()
    assert len(bench.ear.plans) == seen


def test_what_configure_finds_wrong_leaves_a_node_that_says_why(start_node, tmp_path):
    bench = start_node(*parameters(model__path=tmp_path / "nowhere"))
    bench.wait(lambda: bench.ear.status and bench.ear.status.last_error, "an error")
    assert bench.get_state() == "unconfigured"
    assert "nowhere" in bench.ear.status.last_error
    assert "\n" not in bench.ear.status.last_error
    assert "Traceback" not in bench.process.output()

    # The same process can be mended without a restart.
    assert not bench.set_parameter("model.path", "").reason
    assert not bench.change_state("configure")
    bench.wait(lambda: "model.path is empty" in bench.ear.status.last_error, "another error")
    assert not bench.set_parameter("device", "npu:7").reason
    assert not bench.set_parameter("model.path", "demo").reason
    assert not bench.change_state("configure")
    bench.wait(lambda: "npu:7" in bench.ear.status.last_error, "a third error")
    assert not bench.set_parameter("device", "abacus").reason
    assert not bench.change_state("configure")
    bench.wait(lambda: "'abacus' is not known" in bench.ear.status.last_error, "a fourth error")
    assert not bench.set_parameter("device", "cpu").reason
    assert bench.change_state("configure")
    bench.wait(lambda: bench.ear.status.last_error == "", "no error")
    assert bench.get_state() == "inactive"

    # Loaded: what configure has read is fixed, what may change is checked.
    assert "clean up first" in bench.set_parameter("device", "auto").reason
    assert "is none of" in bench.set_parameter("gate.mode", "loose").reason
    assert bench.set_parameter("gate.mode", "report").successful
    bench.wait(lambda: bench.ear.status.gate_mode == "report", "the new gate mode")
    for name in ("reset", "plan_once", "save_snapshot"):
        assert not bench.trigger(name).success
    assert bench.process.stop(signal.SIGINT) == 0


def test_a_signal_while_the_model_is_loaded_ends_the_node_before_it_is_active(start_node):
    bench = start_node(*parameters(model__path="demo"))
    bench.wait(lambda: "loading demo" in bench.process.output(), "loading")
    assert bench.process.stop(signal.SIGINT) == 0
    assert "now active" not in bench.process.output()
    assert "Traceback" not in bench.process.output()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_active_node_soon_with_code_0(start_node, context, number):
    bench = start_node(*parameters(model__path="demo", gate__mode="report", **COMPRESSED))
    with Rig(context):
        bench.wait(lambda: len(bench.ear.plans) >= 2, "two plans")
        start_s = time.monotonic()
        assert bench.process.stop(number) == 0
        assert time.monotonic() - start_s < 10.0  # 2 s on a free machine
    assert "Traceback" not in bench.process.output()
    bench.wait(lambda: bench.ear.state == "finalized", "the last status")
    assert bench.ear.paths[-1].poses == []
