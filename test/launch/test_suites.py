"""The launch_testing suites beside this file, each with `launch_test` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="launch_testing is not installed")

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("suite", "tests"), [("node_suite.py", 6), ("replay_suite.py", 2)])
def test_a_suite_passes_with_all_its_tests(suite, tests, domain_id, tmp_path):
    report = tmp_path / "report.xml"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-m", "launch_testing.launch_test", "--junit-xml", str(report)]
        + [str(FOLDER / suite)],
        cwd=ROOT,
        env={
            **os.environ,
            "ROS_DOMAIN_ID": str(domain_id),
            "ROS_LOG_DIR": str(tmp_path),
            "PYTHONPATH": path,
        },
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(list(ElementTree.parse(report).iter("testcase"))) == tests
