"""`alpamayo_demo` as a user calls it, on a short drive: real node, real bag, real pictures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.recording import ODOMETRY_TOPIC, record_drive
from alpamayo_ros.ros.bag_run import plan_stamp_ns, run_node_on_bag
from alpamayo_ros.ros.node_process import config_file, wait_until
from alpamayo_ros.sensing.messages import stamp_ns
from alpamayo_ros.types import CAMERA_ROLES, STEP_NS

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

DURATION_S = 6.0


def demo(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "alpamayo_ros.cli.demo", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env=dict(os.environ),
    )


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """What the demo writes for a drive of six seconds."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    result = demo("--output", str(folder), "--duration", str(DURATION_S), "--seed", "3")
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def test_the_summary_counts_as_many_plans_as_the_node_had_time_for(output):
    summary = json.loads((output / "summary.json").read_text())
    assert summary["seconds_from_first_window"] == pytest.approx(DURATION_S - 1.6)
    period_s = max(0.1, summary["decision_time_median_ms"] / 1e3)
    assert summary["expected_plans"] == pytest.approx(0.9 * (DURATION_S - 1.6) / period_s)
    assert summary["plans"] >= summary["expected_plans"] - 1  # a short drive rounds coarsely
    assert 0.8 * summary["plans"] <= summary["accepted"] <= summary["plans"]
    assert summary["model_id"].startswith("demo")
    known = {"missing_frames", "unsynchronised", "odometry_gap", "busy"}
    assert set(summary["refused"]) <= known


def test_the_report_stands_alone_and_shows_moments(output):
    page = (output / "report.html").read_text()
    assert not re.search(r"(src|href)=[\"'](?!data:|#)", page)
    assert page.count("data:image/jpeg;base64,") >= 6 * 2


def test_the_pictures_are_there_and_hold_a_scene(output):
    for name in ("front.png", "above.png"):
        picture = cv2.imread(str(output / name))
        assert picture is not None
        assert picture.std() > 10


def test_a_second_demo_touches_nothing_of_others(output, tmp_path):
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag" / "my_drive.mcap").write_text("mine")
    result = demo("--output", str(tmp_path))
    assert result.returncode == 2
    assert "is not empty and not a demo's" in result.stderr
    assert (tmp_path / "bag" / "my_drive.mcap").read_text() == "mine"
    file = tmp_path / "file"
    file.touch()
    assert "is no folder" in demo("--output", str(file)).stderr

    (output / "thesis.txt").write_text("mine")
    assert demo("--output", str(output), "--duration", "3").returncode == 0
    assert (output / "thesis.txt").read_text() == "mine"
    assert json.loads((output / "summary.json").read_text())["seconds_from_first_window"] < 2


def test_a_terminated_demo_leaves_no_process_behind(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "alpamayo_ros.cli.demo", "--output", str(tmp_path / "out")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert wait_until(
        lambda: any("now active" in log.read_text() for log in tmp_path.glob(".out.draft-*/*.log")),
        100,
    )
    node = int(next(p for p in os.listdir("/proc") if p.isdigit() and is_child(p, process.pid)))
    process.terminate()
    assert process.wait(30) == 143
    assert wait_until(lambda: not Path(f"/proc/{node}").exists(), 20)
    assert "now finalized" in (tmp_path / "out" / "node.log").read_text()
    assert not list(tmp_path.glob(".out.draft-*"))


def is_child(pid: str, parent: int) -> bool:
    """Whether a process is the node that a demo has started."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
    return int(stat[1]) == parent and "alpamayo_node" in command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--duration", "1"], "--duration 1: allowed are 3 to 80"),
        (["--duration", "nan"], "--duration nan: allowed"),
        (["--seed", "-1"], "--seed -1: allowed"),
        (["--moments", "-1"], "--moments -1: allowed"),
        (["--domain-id", "999"], "--domain-id 999: allowed are 0 to 101"),
        (["--bogus"], "unrecognized arguments: --bogus"),
        (["--params-file", "nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["--seed", "many"], "invalid int value: 'many'"),
    ],
)
def test_a_wrong_use_is_one_line_and_code_2(tmp_path, arguments, words):
    result = demo("--output", str(tmp_path / "out"), *arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def looped(tmp_path_factory, domain_id):
    """A drive with camera phases, played twice to one node that plans once a second."""
    folder = tmp_path_factory.mktemp("looped")
    phases = {"cross_left": 7, "cross_right": 13, "front_tele": 31}
    recording = record_drive(folder / "bag", seed=5, duration_s=4.0, phases_ms=phases)
    inputs = {f"~/input/{r}/image/compressed": recording.image_topics[r] for r in CAMERA_ROLES}
    slow = folder / "slow.yaml"  # a node that is never busy takes the same t0s in both rounds
    slow.write_text(config_file("demo.yaml").read_text() + "    planning.max_rate_hz: 1.0\n")
    run = run_node_on_bag(
        recording.path,
        slow,
        {**inputs, "~/input/odometry": ODOMETRY_TOPIC},
        folder / "node.log",
        domain_id,
        loops=2,
    )
    assert run.exit_code == 0
    return recording, run


def test_plans_of_a_played_bag_carry_its_stamps_poses_and_speeds(looped):
    recording, run = looped
    drive = Drive(recording.seed)
    assert run.plans
    for plan in run.plans:
        t0_ns = plan_stamp_ns(plan)
        assert (t0_ns - recording.start_ns) % STEP_NS == 0  # a front_wide stamp: no phase
        state = drive.state_at(recording.t_s(t0_ns))
        position = plan.ego_pose.position
        np.testing.assert_allclose([position.x, position.y], [state.x_m, state.y_m], atol=1e-6)
        assert plan.ego_speed == pytest.approx(state.speed_m_s, abs=0.05)
        assert len(plan.waypoints) == 64
        assert stamp_ns(plan.waypoints[-1].time_from_start) == 64 * STEP_NS


def test_a_bag_that_loops_is_planned_on_again_and_alike(looped):
    """The clock jumps back: buffers are cleared, planning resumes, equal t0s give equal plans."""
    _, run = looped
    stamps = [plan_stamp_ns(plan) for plan in run.plans]
    backward = [k for k in range(1, len(stamps)) if stamps[k] < stamps[k - 1]]
    assert len(backward) == 1, stamps
    first = {plan_stamp_ns(plan): plan for plan in run.plans[: backward[0]]}
    second = {plan_stamp_ns(plan): plan for plan in run.plans[backward[0] :]}
    both = set(first) & set(second)
    assert both
    for t0_ns in both:
        assert first[t0_ns].waypoints == second[t0_ns].waypoints
        assert first[t0_ns].reasoning == second[t0_ns].reasoning
