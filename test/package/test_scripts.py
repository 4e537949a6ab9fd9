"""The set-up scripts: which Python they take, what they refuse, what a shell has afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"
BASH = shutil.which("bash")

# An interpreter that says it is of another version.
FAKE_PYTHON = """#!{bash}
exec "{python}" -c 'import sys; sys.version_info = {version}; sys.executable = "{name}"
exec(sys.argv[1])' "$2"
"""
CLEAN = {"HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}


def bash(command: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """The result of a command line in a bash with just this environment."""
    return subprocess.run(
        [BASH, "--norc", "-c", command],
        cwd=cwd,
        env={**CLEAN, "PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        timeout=100,
    )


def assert_refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2 and one line that holds these words."""
    assert result.returncode == 2, result.stdout + result.stderr
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


@pytest.fixture
def fake(tmp_path):
    """Makes Pythons of chosen versions in a folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, version: tuple[int, int]) -> Path:
        path = folder / name
        path.write_text(
            FAKE_PYTHON.format(bash=BASH, python=sys.executable, version=version, name=path)
        )
        path.chmod(0o755)
        return folder

    return make


@pytest.mark.parametrize("version", [(3, 10), (3, 11), (3, 12), (3, 13)])
def test_python3_is_taken_when_its_version_has_wheels(fake, version):
    folder = fake("python3", version)
    fake("python3.12", (3, 12))
    result = bash("scripts/choose_python.sh", PATH=f"{folder}:/bin")
    assert result.stdout.strip() == str(folder / "python3")


@pytest.mark.parametrize("version", [(3, 9), (3, 14)])
def test_an_unfit_python3_gives_way_to_the_newest_fit_one(fake, version):
    fake("python3", version)
    fake("python3.10", (3, 10))
    folder = fake("python3.12", (3, 12))
    (folder / "python3.13").write_text("#!/bin/sh\nexit 127\n")  # a version manager's empty shim
    (folder / "python3.13").chmod(0o755)
    result = bash(f"{BASH} scripts/choose_python.sh", PATH=str(folder))
    assert result.stdout.strip() == str(folder / "python3.12")


def test_a_named_python_is_taken_and_an_unfit_one_refused(fake):
    fake("python3", (3, 11))
    folder = fake("mine", (3, 10))
    fake("old", (3, 8))
    script = f"{BASH} scripts/choose_python.sh"
    result = bash(script, PATH=str(folder), PYTHON="mine")
    assert result.stdout.strip() == str(folder / "mine")
    assert_refused(bash(script, PATH=str(folder), PYTHON="old"), "PYTHON=old", "3.10 to 3.13")


def test_no_fit_python_is_one_clear_line(fake):
    folder = fake("python3", (3, 14))
    result = bash(f"{BASH} scripts/choose_python.sh", PATH=str(folder))
    assert_refused(result, "3.10 to 3.13", "make setup PYTHON=")


def test_an_unknown_distribution_is_refused():
    assert_refused(bash("scripts/setup.sh humble"), "ROS=humble", "kilted", "jazzy")


def test_wheels_are_not_mixed_with_a_sourced_distribution():
    sourced = {
        "ROS_DISTRO": "jazzy",
        "PYTHONPATH": "/opt/ros/jazzy/lib/python3.12/site-packages",
    }
    assert_refused(bash("scripts/setup.sh", **sourced), "ROS 2 jazzy is sourced", "colcon")
    result = bash(". scripts/env.sh || exit 2", **sourced)
    assert_refused(result, "ROS 2 jazzy is sourced", "install/setup.bash")


@pytest.mark.parametrize("missing", ["g++", "make"])
def test_a_missing_tool_is_named_with_its_remedy(tmp_path, missing):
    for tool in {"bash", "dirname", "flock", "g++", "make", "uname"} - {missing}:
        (tmp_path / tool).symlink_to(shutil.which(tool))
    result = bash(f"{BASH} scripts/setup.sh", PATH=str(tmp_path))
    assert_refused(result, f"{missing} is missing", "apt install")


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A checkout without an environment."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("scripts", "msg", "resource"):
        shutil.copytree(ROOT / name, folder / name)
    for path in ROOT.glob("requirements*.txt"):
        shutil.copy(path, folder)
    return folder


def test_a_set_up_without_network_says_so_and_an_interrupted_one_starts_anew(checkout):
    offline = {
        "PYTHON": sys.executable,
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_RETRIES": "1",
    }
    venv = checkout / ".venv"
    assert_refused(bash("scripts/setup.sh", checkout, **offline), "no network")
    assert (venv / "bin" / "python").exists()

    trace = venv / "trace"
    trace.touch()
    assert_refused(bash("scripts/setup.sh", checkout, **offline), "no network")
    assert trace.exists(), "a usable environment was thrown away"

    (venv / "incomplete").touch()  # as a kill in the middle of pip leaves it
    assert_refused(bash("scripts/setup.sh", checkout, **offline), "no network")
    assert not trace.exists(), "a half-filled environment was kept"
    assert not (venv / "fingerprint").exists()


@pytest.fixture
def set_up(checkout) -> Path:
    """A checkout that looks set up for both distributions."""
    for suffix in ("", "-jazzy"):
        venv = checkout / f".venv{suffix}"
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").symlink_to(sys.executable)
        (venv / "fingerprint").touch()
        (checkout / f"install{suffix}" / "alpamayo_ros").mkdir(parents=True)
    return checkout


def variables(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What `env` printed."""
    assert result.returncode == 0, result.stderr
    return dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)


def test_a_shell_has_environment_and_package_on_its_paths(set_up):
    env = variables(bash("set -eu; . scripts/env.sh; env", set_up, LD_LIBRARY_PATH="/mine"))
    built = set_up / "install" / "alpamayo_ros"
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert env["PATH"] == f"{set_up}/.venv/bin:{built}/lib/alpamayo_ros:/usr/bin:/bin"
    assert env["PYTHONPATH"] == f"{built}/lib/{python}/site-packages"
    assert env["LD_LIBRARY_PATH"] == f"{built}/lib:/mine"
    assert env["AMENT_PREFIX_PATH"] == f"{built}:{set_up}/.venv"
    assert env["FASTDDS_DEFAULT_PROFILES_FILE"] == f"{set_up}/config/fastdds_images.xml"


def test_a_second_distribution_takes_the_place_of_the_first(set_up):
    twice = bash(". scripts/env.sh; ROS=jazzy; . scripts/env.sh; . scripts/env.sh; env", set_up)
    env = variables(twice)
    built = set_up / "install-jazzy" / "alpamayo_ros"
    assert env["PATH"] == f"{set_up}/.venv-jazzy/bin:{built}/lib/alpamayo_ros:/usr/bin:/bin"
    assert env["AMENT_PREFIX_PATH"] == f"{built}:{set_up}/.venv-jazzy"
    assert env["FASTRTPS_DEFAULT_PROFILES_FILE"] == f"{set_up}/config/fastdds_images.xml"


def test_the_profile_of_the_user_is_kept_even_an_empty_one(set_up):
    env = variables(bash(". scripts/env.sh; env", set_up, FASTDDS_DEFAULT_PROFILES_FILE=""))
    assert env["FASTDDS_DEFAULT_PROFILES_FILE"] == ""


def test_a_shell_keeps_no_helper_of_the_script(set_up):
    result = bash(". scripts/env.sh; set", set_up)
    assert "alpamayo_prepend" not in result.stdout
    assert "alpamayo_root" not in result.stdout


def test_a_program_of_the_environment_can_source_it_again():
    """The wheels' Python marks its environment as done; a child shell's new paths are not."""
    inner = "bash -c '. scripts/env.sh && python -c \"import rclpy, alpamayo_ros.msg; print(42)\"'"
    result = bash(
        ". scripts/env.sh && python -c 'import os; os.system(os.environ[\"INNER\"])'",
        INNER=inner,
        ROS=os.environ.get("ROS", "kilted"),
    )
    assert result.stdout.strip() == "42", result.stderr


def test_a_checkout_that_is_not_set_up_is_told_how(checkout):
    result = bash("ROS=jazzy; . scripts/env.sh || exit 2", checkout)
    assert_refused(result, "make setup ROS=jazzy")
