"""package.xml, setup.py, the requirements and the list of programs agree with the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from catkin_pkg.package import parse_package

import alpamayo_ros

ROOT = Path(__file__).parents[2]

# Import names that differ from the distribution on PyPI.
PYPI_NAMES = {"cv2": "opencv-python-headless", "yaml": "pyyaml", "torch_npu": "torch-npu"}
# rosdep keys of modules that Debian packages.
ROSDEP_KEYS = {
    "cv2": "python3-opencv",
    "jinja2": "python3-jinja2",
    "matplotlib": "python3-matplotlib",
    "numpy": "python3-numpy",
    "tqdm": "python3-tqdm",
    "yaml": "python3-yaml",
}


def imported_modules(*places: str) -> set[str]:
    """Top-level modules that the Python files below these folders import, wherever in a file."""
    found = set()
    for path in (path for place in places for path in (ROOT / place).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"alpamayo_ros", "test"}


def required(*names: str) -> set[str]:
    """Distributions that these requirements files name."""
    return {
        re.split(r"[=<>~!\[ ]", line)[0].lower()
        for name in names
        for line in (ROOT / name).read_text().splitlines()
        if line and not line.startswith(("#", "-"))
    }


def programs() -> dict[str, str]:
    """Name of a program to module:function."""
    lines = (ROOT / "resource" / "executables.txt").read_text().splitlines()
    return dict(line.split(" = ") for line in lines)


@pytest.fixture(scope="module")
def manifest():
    """package.xml, validated by ROS's own parser."""
    warnings: list[str] = []
    package = parse_package(str(ROOT / "package.xml"), warnings=warnings)
    assert warnings == []
    return package


@pytest.fixture(scope="module")
def metadata() -> dict[str, list[str]]:
    """What setup.py says, by setuptools in a process of its own."""
    code = (
        "import json, setuptools; from distutils.core import run_setup\n"
        "d = run_setup('setup.py', stop_after='init')\n"
        "print(json.dumps({'scripts': d.entry_points['console_scripts'], 'version': "
        "[d.get_version()], 'packages': d.packages, 'needs': d.install_requires, "
        "'npu': d.extras_require['npu'], 'ray': d.extras_require['ray']}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ast.literal_eval(result.stdout.splitlines()[-1])


def test_the_versions_are_one(manifest, metadata):
    assert {manifest.version, *metadata["version"]} == {alpamayo_ros.__version__}


def test_every_import_of_the_package_is_named(manifest):
    keys = {dependency.name for dependency in manifest.exec_depends}
    pip = required("requirements.txt", "requirements-npu.txt") | {"ray", "pyarrow"}
    missing = {
        name
        for name in imported_modules("alpamayo_ros", "launch")
        if name not in keys and PYPI_NAMES.get(name, name) not in pip
    }
    assert missing == set(), "neither package.xml nor requirements.txt names these"


def test_every_import_of_the_tests_is_named(manifest):
    keys = {dependency.name for dependency in manifest.exec_depends + manifest.test_depends}
    pip = required(*(path.name for path in ROOT.glob("requirements*.txt")))
    missing = {
        name
        for name in imported_modules("test", "scripts")
        if name not in keys and PYPI_NAMES.get(name, name).replace("_", "-") not in pip
    }
    assert missing == set(), "neither package.xml nor a requirements file names these"


def test_modules_that_distributions_package_are_in_both_lists(manifest):
    keys = {dependency.name for dependency in manifest.exec_depends}
    pip = required("requirements.txt")
    used = imported_modules("alpamayo_ros", "launch") & set(ROSDEP_KEYS)
    assert {ROSDEP_KEYS[name] for name in used} <= keys
    assert {PYPI_NAMES.get(name, name) for name in used} <= pip


def test_messages_are_declared_the_way_rosidl_asks_for(manifest):
    assert [group.name for group in manifest.member_of_groups] == ["rosidl_interface_packages"]
    assert manifest.get_build_type() == "ament_cmake"
    cmake = (ROOT / "CMakeLists.txt").read_text()
    declared = set(re.findall(r'"(msg/\w+\.msg)"', cmake))
    assert declared == {f"msg/{path.name}" for path in (ROOT / "msg").glob("*.msg")}


def test_programs_of_setup_py_are_those_of_the_build(metadata):
    assert dict(script.split(" = ") for script in metadata["scripts"]) == programs()


@pytest.mark.parametrize("program", programs())
def test_a_program_names_a_main_that_exists(program):
    module, function = programs()[program].split(":")
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_extras_are_ascend_and_ray(metadata):
    assert any(need.startswith("torch-npu") for need in metadata["npu"])
    assert any(need.startswith("ray") for need in metadata["ray"])
    assert any(need.startswith("transformers==4.57") for need in metadata["needs"])


def test_every_folder_of_code_is_a_package(metadata):
    folders = {
        path.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for path in (ROOT / "alpamayo_ros").rglob("*.py")
    }
    assert folders == set(metadata["packages"])


def test_pip_installs_the_programs_where_ros2_run_looks_for_them():
    """setup.cfg's lines, for whoever builds the Python part the ament_python way."""
    text = (ROOT / "setup.cfg").read_text()
    assert "[develop]\nscript_dir=$base/lib/alpamayo_ros" in text
    assert "[install]\ninstall_scripts=$base/lib/alpamayo_ros" in text
