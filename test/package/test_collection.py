"""Every test file is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ("alpamayo_ros", "config", "docs", "launch", "scripts", "test")


def files_with_tests() -> set[str]:
    """Python files that are named as tests or define one, wherever they lie."""
    files = [path for place in PLACES for path in (ROOT / place).rglob("*.py")]
    return {
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.name.startswith("test_")
        or (path.name.endswith("_test.py") and "test" in path.parts)
        or "\ndef test_" in path.read_text(encoding="utf-8")
    }


def test_every_test_file_is_collected():
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    collected = set(re.findall(r"^(\S+\.py)::", result.stdout, re.MULTILINE))
    skipped_whole = set(re.findall(r"^SKIPPED (\S+\.py) \|", result.stdout, re.MULTILINE))
    assert files_with_tests() == collected | skipped_whole
