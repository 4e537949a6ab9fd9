"""What is wrong before configure ends with one clear line and exit code 2."""

from __future__ import annotations

import os
import subprocess

import pytest

from alpamayo_ros.ros.node_process import node_executable

pytestmark = pytest.mark.process


def run(domain_id, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*node_executable(), *arguments],
        env={**os.environ, "ROS_DOMAIN_ID": str(domain_id)},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-p", "gate.modus:=report"], "unknown parameter gate.modus: did you mean gate.mode?"),
        (["-p", "gate.mode:=loose"], "gate.mode: 'loose' is none of enforce, report"),
        (["-p", "sync.tolerance_s:=5.0"], "sync.tolerance_s: 5.0 is not in 0.001 to 0.1"),
        (["-p", "num_samples:=many"], "num_samples: 'many' is no whole number"),
        (["-p", "odometry.to_rear_axle:=[1.0]"], "[1.0] is no list of 4 floats"),
        (["--params-file", "missing.yaml"], "missing.yaml"),
        (["-p", "no_assignment"], "no_assignment"),
        (["-p", "use_sim_time:=maybe"], "use_sim_time"),
    ],
)
def test_wrong_ros_arguments_end_with_one_line_and_code_2(domain_id, arguments, words):
    result = run(domain_id, "--ros-args", *arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert result.stderr.startswith("alpamayo_node: ")
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_wrong_name_is_one_line_of_ours_after_rcls_own(domain_id):
    result = run(domain_id, "--ros-args", "-r", "__node:=1bad")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("alpamayo_node: ")
    assert "1bad" in last


def test_a_broken_yaml_file_ends_with_one_line_and_code_2(domain_id, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("alpamayo:\n  ros__parameters:\n   - [\n")
    result = run(domain_id, "--ros-args", "--params-file", str(broken))
    assert result.returncode == 2
    assert "broken.yaml" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_argument_that_is_none_of_ros_is_refused(domain_id):
    result = run(domain_id, "--device", "npu:0")
    assert result.returncode == 2
    assert "unrecognized arguments: --device npu:0" in result.stderr


def test_help_lists_every_parameter(domain_id):
    from alpamayo_ros.ros.parameter_table import TABLE

    result = run(domain_id, "--help")
    assert result.returncode == 0
    assert [p.name for p in TABLE if f"  {p.name} " not in result.stdout] == []
