"""A plain `colcon build`, as in a ROS 2 workspace, and `pip install`, each into an empty folder."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE_PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

# The build compiles the messages: 14 s on two free cores, a minute or more beside other tests.
pytestmark = pytest.mark.timeout(300)


def sources(folder: Path, *suffixes: str) -> set[str]:
    """Files below a folder, relative to it."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix in suffixes
    }


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    """A folder with build/ and install/ of a build with tests and without links."""
    folder = tmp_path_factory.mktemp("workspace")
    underlay = os.pathsep.join(
        prefix
        for prefix in os.environ["AMENT_PREFIX_PATH"].split(os.pathsep)
        if not Path(prefix, "share", "alpamayo_ros").is_dir()
    )
    result = subprocess.run(
        ["colcon", "--log-base", "log", "build", "--paths", ROOT]
        + ["--cmake-args", f"-DPython3_EXECUTABLE={sys.executable}", "-DBUILD_TESTING=ON"],
        cwd=folder,
        env={**os.environ, "AMENT_PREFIX_PATH": underlay, "CMAKE_PREFIX_PATH": underlay},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def prefix(workspace) -> Path:
    """Where the package is installed."""
    return workspace / "install" / "alpamayo_ros"


def run(prefix: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command's result with the fresh install first on the paths."""
    wheels_did_paths = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"  # of this process, not of the new one
    return subprocess.run(
        command,
        cwd=prefix,
        env={
            **{name: value for name, value in os.environ.items() if name != wheels_did_paths},
            "PYTHONPATH": str(prefix / SITE_PACKAGES),
            "LD_LIBRARY_PATH": str(prefix / "lib"),
            "AMENT_PREFIX_PATH": os.pathsep.join([str(prefix), os.environ["AMENT_PREFIX_PATH"]]),
        },
        capture_output=True,
        text=True,
    )


def test_messages_and_code_are_imported_from_the_install_folder(prefix):
    code = (
        "import alpamayo_ros, alpamayo_ros.types; from alpamayo_ros.msg import DrivingPlan\n"
        "from rclpy.serialization import serialize_message\n"
        "assert serialize_message(DrivingPlan())\n"
        "print(alpamayo_ros.__file__, alpamayo_ros.__version__)"
    )
    result = run(prefix, sys.executable, "-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(str(prefix / SITE_PACKAGES)), "another package was found"


def test_all_files_are_installed_as_copies(prefix):
    suffixes = (".py", ".json", ".html", ".yaml", ".xml", ".npz", ".safetensors")
    code = sources(ROOT / "alpamayo_ros", *suffixes)
    assert code <= sources(prefix / SITE_PACKAGES / "alpamayo_ros", *suffixes)
    for folder in ("launch", "config"):
        share = prefix / "share" / "alpamayo_ros" / folder
        assert sources(ROOT / folder, *suffixes) == sources(share, *suffixes)
    assert not [path for path in prefix.rglob("*") if path.is_symlink()]


def test_every_program_of_the_list_is_installed_and_executable(prefix):
    lines = (ROOT / "resource" / "executables.txt").read_text().splitlines()
    programs = {path.name: path for path in (prefix / "lib" / "alpamayo_ros").iterdir()}
    assert set(programs) == {line.split(" = ")[0] for line in lines}
    for program in programs.values():
        assert program.stat().st_mode & stat.S_IXOTH


def test_an_installed_program_explains_itself(prefix):
    result = run(prefix, str(prefix / "lib" / "alpamayo_ros" / "alpamayo_inference"), "--help")
    assert result.returncode == 0, result.stderr
    assert "--snapshot" in result.stdout


def test_colcon_test_would_run_this_suite(workspace):
    result = subprocess.run(
        ["ctest", "-N"], cwd=workspace / "build" / "alpamayo_ros", capture_output=True, text=True
    )
    assert "Test #1: pytest" in result.stdout


def test_pip_installs_code_data_and_programs(tmp_path):
    checkout = tmp_path / "checkout"  # a build leaves files beside setup.py
    checkout.mkdir()
    for name in ("alpamayo_ros", "resource"):
        shutil.copytree(ROOT / name, checkout / name)
    for path in [ROOT / "setup.py", ROOT / "setup.cfg", *ROOT.glob("requirements*.txt")]:
        shutil.copy(path, checkout)
    target = tmp_path / "target"
    result = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        + ["--disable-pip-version-check", "--target", str(target), str(checkout)],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    suffixes = (".py", ".json", ".html", ".yaml", ".npz", ".safetensors")
    assert sources(ROOT / "alpamayo_ros", *suffixes) == sources(target / "alpamayo_ros", *suffixes)
    lines = (ROOT / "resource" / "executables.txt").read_text().splitlines()
    assert {line.split(" = ")[0] for line in lines} == {p.name for p in (target / "bin").iterdir()}
