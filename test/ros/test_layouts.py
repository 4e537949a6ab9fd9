"""The layouts of RViz and Foxglove name topics that exist, displays that exist, and panels once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from alpamayo_ros.ros.outputs import Outputs, Reports
from alpamayo_ros.types import CAMERA_ROLES

from .test_outputs import SETTINGS, Desk

ROOT = Path(__file__).parents[2]

# Names from rviz_default_plugins/plugins_description.xml (Humble to Kilted), those in use here.
RVIZ_DISPLAYS = {"Grid", "TF", "MarkerArray", "Path", "Odometry", "Image"}
RVIZ_TOOLS = {"Interact", "MoveCamera", "Select", "FocusCamera", "Measure"}
RVIZ_VIEWS = {"ThirdPersonFollower"}
FOXGLOVE_PANELS = {"3D", "Image", "RawMessages", "DiagnosticSummary", "Plot"}


def published() -> set[str]:
    """Full names of all topics of the node in its default namespace."""
    desk = Desk()
    settings = SimpleNamespace(
        outputs=SETTINGS.__class__(True, False, True, SETTINGS.overlay_mount),
        planner=SimpleNamespace(crop=False),
    )
    Outputs(desk, settings, {}, {})
    Reports(desk)
    return {desk.resolve_topic_name(pen.topic_name) for pen in desk.pens.values()}


def heard() -> set[str]:
    """Topics that the launch file gives the node by default."""
    launch = (ROOT / "launch" / "alpamayo.launch.py").read_text()
    camera = re.search(r'f"(/[^"]*\{role\}[^"]*)"', launch)[1]
    odometry = re.search(r'"odometry_topic": \("(/[^"]+)"', launch)[1]
    return {camera.format(role=role) for role in CAMERA_ROLES} | {odometry}


@pytest.fixture(scope="module")
def rviz() -> dict:
    return yaml.safe_load((ROOT / "config" / "alpamayo.rviz").read_text())["Visualization Manager"]


@pytest.fixture(scope="module")
def foxglove() -> dict:
    return json.loads((ROOT / "config" / "foxglove.json").read_text())


def test_rviz_shows_topics_that_the_node_publishes_or_hears(rviz):
    topics = {d["Topic"]["Value"] for d in rviz["Displays"] if "Topic" in d}
    assert topics <= published() | heard()
    assert topics >= {"/alpamayo/output/markers", "/alpamayo/output/path"} | heard()


def test_rviz_asks_for_what_is_latched_as_latched(rviz):
    """A volatile subscriber would see nothing until the next plan."""
    for display in rviz["Displays"]:
        if display["Class"].endswith(("/Path", "/MarkerArray")):
            assert display["Topic"]["Durability Policy"] == "Transient Local", display["Name"]
            assert display["Topic"]["Reliability Policy"] == "Reliable", display["Name"]


def test_rviz_has_only_displays_tools_and_views_that_come_with_it(rviz):
    for entries, known in (
        (rviz["Displays"], RVIZ_DISPLAYS),
        (rviz["Tools"], RVIZ_TOOLS),
        ([rviz["Views"]["Current"]], RVIZ_VIEWS),
    ):
        assert {entry["Class"] for entry in entries} == {f"rviz_default_plugins/{k}" for k in known}


def foxglove_topics(configuration: dict) -> set[str]:
    """Every topic that a panel names, less the field behind it."""
    found = set(configuration.get("topics", {}))
    for key in ("topicPath", "topicToRender"):
        found |= {configuration[key]} if configuration.get(key) else set()
    found |= {path["value"] for path in configuration.get("paths", [])}
    found |= set(configuration.get("imageMode", {}).values())
    return {topic.partition(".")[0] for topic in found}


def test_foxglove_shows_topics_that_the_node_publishes_or_hears(foxglove):
    topics = set().union(*map(foxglove_topics, foxglove["configById"].values()))
    assert topics <= published() | heard()
    assert topics >= {
        "/alpamayo/output/markers",
        "/alpamayo/output/reasoning",
        "/alpamayo/output/status",
        "/diagnostics",
        *(topic for topic in heard() if topic.endswith("/image")),
    }


def test_foxglove_lays_out_each_panel_once_and_knows_their_kinds(foxglove):
    def panels(node) -> list[str]:
        return [node] if isinstance(node, str) else panels(node["first"]) + panels(node["second"])

    placed = panels(foxglove["layout"])
    assert sorted(placed) == sorted(foxglove["configById"])
    assert {panel.partition("!")[0] for panel in placed} == FOXGLOVE_PANELS
