"""The data goes one way, and so do the imports (docs/structure.md)."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "alpamayo_ros"
FILES = sorted(PACKAGE.rglob("*.py"))
ROS = {"rclpy", "rcl_interfaces", "sensor_msgs", "nav_msgs", "std_msgs", "launch"}
TORCH = {"torch", "torch_npu", "transformers"}


def room(path: Path) -> str:
    """The folder below the package that a file lies in; "" for its top."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def imports(path: Path) -> set[str]:
    """Dotted names of all modules that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def importers(roots: set[str]) -> set[str]:
    """The rooms with a file that imports one of these top-level packages."""
    return {room(path) for path in FILES if {name.split(".")[0] for name in imports(path)} & roots}


def test_only_ros_and_cli_know_ros():
    assert importers(ROS) <= {"ros", "cli"}
    assert "ros" in importers(ROS)


def test_only_model_devices_and_the_small_model_with_its_training_know_torch():
    assert importers(TORCH) <= {"model", "devices", "demo"}
    in_demo = [p for p in FILES if room(p) == "demo" and imports(p) & TORCH]
    assert [p.name for p in in_demo if p.parent.name != "training"] == ["small_model.py"]


@pytest.mark.parametrize("name", ["sensing", "model", "devices"])
def test_lower_rooms_do_not_know_higher_ones(name):
    higher = {"planning", "ros", "cli", "evaluation"} | ({"model"} if name != "model" else set())
    for path in FILES:
        if room(path) == name:
            used = {n.split(".")[1] for n in imports(path) if n.startswith("alpamayo_ros.")}
            assert not used & higher, path


def test_evaluation_knows_neither_ros_nor_the_command_line():
    for path in FILES:
        if room(path) == "evaluation":
            used = {n.split(".")[1] for n in imports(path) if n.startswith("alpamayo_ros.")}
            assert not used & {"ros", "cli", "msg"}, path


def test_types_know_nothing_of_the_package():
    assert not [n for n in imports(PACKAGE / "types.py") if n.startswith("alpamayo_ros")]


def test_rooms_do_not_import_each_other_in_a_circle():
    graph: dict[str, set[str]] = {}
    for path in FILES:
        inner = {n.split(".")[1] for n in imports(path) if n.startswith("alpamayo_ros.")}
        graph.setdefault(room(path), set()).update(inner - {room(path), "msg"})
    assert list(TopologicalSorter(graph).static_order())


def test_files_are_of_a_size_that_one_reads_in_one_sitting():
    too_long = {p.name: n for p in FILES if (n := len(p.read_text().splitlines())) > 400}
    assert too_long == {}
