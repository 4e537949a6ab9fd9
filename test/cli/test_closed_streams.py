"""A stream that is closed or takes nothing costs a program only what it would have said there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = [
    line.partition(" = ")[2].strip()
    for line in (ROOT / "resource" / "executables.txt").read_text().splitlines()
    if line
]
INFERENCE = "alpamayo_ros.cli.inference:main"
VALIDATE = "alpamayo_ros.cli.validate:main"
CLOSED = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]


def run(program: str, arguments: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """A program (MODULE:FUNCTION) in a shell that closes or redirects its streams."""
    module, _, function = program.partition(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}())"
    return subprocess.run(
        ["bash", "-c", f"python3 -c '{code}' {arguments} {redirection}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("redirection", [*CLOSED, "2>/dev/full"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_refuses_a_mistake_with_any_stream_closed(
    program: str, redirection: str
) -> None:
    result = run(program, "--nonsense", redirection)
    assert result.returncode == 2
    assert result.stdout == ""  # what is meant for standard error goes nowhere else
    assert len(result.stderr.splitlines()) == (0 if "2>" in redirection else 1)


@pytest.mark.parametrize("redirection", CLOSED)
def test_a_result_for_a_file_needs_no_stream(tmp_path: Path, redirection: str) -> None:
    file = tmp_path / "plan.json"
    result = run(INFERENCE, f"--device cpu --greedy --output {file}", redirection)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert json.loads(file.read_text())["finite"] is True


def test_a_result_is_printed_with_the_other_streams_closed() -> None:
    result = run(INFERENCE, "--device cpu --greedy", "<&- 2>&-")
    assert result.returncode == 0
    assert json.loads(result.stdout)["finite"] is True


@pytest.mark.parametrize(
    "program",
    [p for p in PROGRAMS if p.split(":")[0].rpartition(".")[2] in
     ("inference", "validate", "verify", "benchmark")],
)  # fmt: skip
def test_a_result_that_nobody_would_get_is_refused_before_the_work(program: str) -> None:
    arguments = "--reference /no/a --candidate /no/b" if program == VALIDATE else ""
    result = run(program, arguments, ">&-")
    assert result.returncode == 2
    assert result.stderr == "error: standard output is closed: name a file with --output\n"


@pytest.mark.parametrize("redirection", CLOSED)
def test_no_file_that_is_opened_later_becomes_a_standard_stream(
    tmp_path: Path, redirection: str
) -> None:
    # Else what a library writes to standard error would land in that file.
    code = (
        "from alpamayo_ros.streams import occupy_closed_streams as occupy; occupy(); "
        f"print(open({__file__!r}).fileno(), file=open({str(tmp_path / 'number')!r}, 'w'))"
    )
    subprocess.run(["bash", "-c", f'python3 -c "{code}" {redirection}'], cwd=ROOT, check=True)
    assert int((tmp_path / "number").read_text()) > 2
