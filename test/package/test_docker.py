"""The Dockerfiles hold to rules that can be checked without building them."""

from __future__ import annotations

import re
import shlex
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
DOCKERFILES = sorted(DOCKER.glob("Dockerfile.*"))
OUTSIDE = re.compile(r"https?://|--(extra-)?index-url|--trusted-host")


def instructions(path: Path) -> list[tuple[str, str]]:
    """Instructions with their text, lines joined, without comments."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(" ", 1)) for line in joined.splitlines() if line.strip()]


def texts(path: Path, name: str) -> list[str]:
    """The text of each instruction of one name."""
    return [text for kind, text in instructions(path) if kind == name]


def test_there_is_one_for_ascend_and_one_for_cuda():
    assert [path.suffix for path in DOCKERFILES] == [".ascend", ".cuda"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.suffix)
def test_what_is_copied_exists_and_is_not_ignored(path):
    admitted = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    sources = [source for text in texts(path, "COPY") for source in text.split()[:-1]]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch(source.split("/")[0], pattern) for pattern in admitted), source


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.suffix)
def test_the_build_gets_all_that_cmake_installs(path):
    sources = {source for text in texts(path, "COPY") for source in text.split()[:-1]}
    assert {"CMakeLists.txt", "package.xml", "resource", "msg", "launch", "config"} <= sources
    assert "alpamayo_ros" in sources


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.suffix)
def test_shell_parts_parse_and_leave_no_lists_and_caches(path):
    for text in texts(path, "RUN"):
        result = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        if "apt-get install" in text:
            assert "--no-install-recommends" in text
            assert "rm -rf /var/lib/apt/lists/*" in text
            assert "apt-get update" in text  # in one layer, or the lists are old
        if "pip install" in text:
            assert "--no-cache-dir" in shlex.split(text)


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.suffix)
def test_the_node_runs_as_a_user_and_no_host_is_named(path):
    assert texts(path, "USER") == ["alpamayo"]
    kinds = [kind for kind, _ in instructions(path)]
    assert "RUN" not in kinds[kinds.index("USER") :]  # it could not write to the image's folders
    assert not OUTSIDE.search(path.read_text())


def test_the_entry_point_parses():
    result = subprocess.run(
        ["bash", "-n", str(DOCKER / "entrypoint.sh")], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
