"""The list of allowed skips, in real runs of pytest on planted tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TEST = Path(__file__).parents[1]

PLANTED = """
import pytest

def test_passes():
    pass

@pytest.mark.skip(reason="no lorry here")
def test_needs_a_lorry():
    pass
"""
PLANTED_MODULE = """
import pytest

pytest.importorskip("a_module_that_nobody_has", reason="no such module")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout that has nothing but an empty test folder."""
    (tmp_path / "test").mkdir()
    return tmp_path


def run(folder: Path, allowed: str, *options: str) -> subprocess.CompletedProcess[str]:
    """pytest's result on the planted tests in folder/test with these lines of the list."""
    for name in ("__init__.py", "skip_list.py", "conftest.py"):
        shutil.copy(TEST / name, folder / "test")
    (folder / "test" / "allowed_skips.txt").write_text(allowed)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two processes"])
def test_a_planted_skip_fails_the_run_and_is_named(folder, options):
    (folder / "test" / "test_planted.py").write_text(PLANTED)
    result = run(folder, "# nothing\n", *options)
    assert result.returncode == 1, result.stdout
    assert "ERROR not in test/allowed_skips.txt: test/test_planted.py::test_needs_a_lorry" in (
        result.stdout
    )
    assert "1 passed, 1 skipped" in result.stdout.splitlines()[-1]


def test_a_listed_skip_passes_and_is_still_printed(folder):
    (folder / "test" / "test_planted.py").write_text(PLANTED)
    result = run(folder, "test/test_planted.py::* | no lorry*\n")
    assert result.returncode == 0, result.stdout
    assert "SKIPPED test/test_planted.py::test_needs_a_lorry | no lorry here" in result.stdout
    assert "ERROR" not in result.stdout


def test_a_listed_test_that_is_skipped_for_another_reason_fails(folder):
    (folder / "test" / "test_planted.py").write_text(PLANTED)
    assert run(folder, "test/test_planted.py::* | no tractor*\n").returncode == 1


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two processes"])
def test_a_module_that_skips_itself_counts_once(folder, options):
    (folder / "test" / "test_planted.py").write_text(PLANTED_MODULE)
    (folder / "test" / "test_other.py").write_text("def test_passes():\n    pass\n")
    result = run(folder, "", *options)
    assert result.returncode == 1, result.stdout
    assert result.stdout.count("SKIPPED test/test_planted.py | no such module") == 1


def test_a_failure_keeps_its_exit_code(folder):
    (folder / "test" / "test_planted.py").write_text(PLANTED + "    assert False\n")
    (folder / "test" / "test_failing.py").write_text("def test_fails():\n    assert False\n")
    assert run(folder, "* | *\n").returncode == 1


def test_a_line_without_a_reason_is_refused(folder):
    result = run(folder, "test_planted.py::*\n")
    assert result.returncode == 4
    assert "'test_planted.py::*' is not of the form 'node id | reason'" in result.stderr
