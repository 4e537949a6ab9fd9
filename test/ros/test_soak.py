"""The short form of benchmarks/soak.py: nothing grows while the node plans."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "soak.py"
MINUTES = 0.7


@pytest.mark.process
@pytest.mark.timeout(500)
def test_a_node_that_plans_keeps_neither_memory_nor_files_nor_threads_and_always_answers():
    result = subprocess.run(
        [sys.executable, str(PROGRAM), "--minutes", str(MINUTES)],
        capture_output=True,
        text=True,
        timeout=480,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    figures = json.loads(result.stdout.splitlines()[-1])
    assert figures["passed"]
    assert figures["plans"] > 5
