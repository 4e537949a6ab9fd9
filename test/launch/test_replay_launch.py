"""replay.launch.py under the real launch and launch_ros, where they are."""

from __future__ import annotations

import pytest

pytest.importorskip("launch_ros", reason="launch_ros is not installed")

from launch.actions import RegisterEventHandler
from launch.event_handlers import OnProcessExit

from alpamayo_ros.types import CAMERA_ROLES
from launch import LaunchDescription
from test.evaluation.drives import Recipe, write_drive
from test.launch.files import LAUNCH, launch_arguments, service

FILE = "replay.launch.py"
pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("domain"),
]


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    topics = {role: f"/sensing/camera/{role}/image/compressed" for role in CAMERA_ROLES}
    recipe = Recipe(duration_s=3.0, topics=topics)
    return write_drive(tmp_path_factory.mktemp("replay") / "bag", recipe)


def run(**arguments: object) -> int:
    """launch's exit code, once the replay has ended by itself."""
    return service(FILE, arguments).run()


def test_every_argument_of_both_files_is_explained_once():
    arguments = launch_arguments(FILE)
    own = {"bag", "rate", "start_offset", "loop", "use_sim_time"}
    assert own | {"params_file", "model_path", "rviz", "dds_profile", "log_level"} <= set(arguments)
    assert arguments["bag"].default_value is None  # it must be given
    assert all(len(a.description) > 8 for a in arguments.values())


def test_it_ends_with_the_bag_and_without_an_error(bag):
    parameters = LAUNCH.parent / "config" / "demo.yaml"
    arguments = {"bag": bag, "params_file": parameters, "start_offset": 0.5, "rate": 2}
    codes = {}

    def note(event, _context):
        codes[event.process_name.rpartition("-")[0]] = event.returncode

    replay = service(FILE, arguments)
    noting = RegisterEventHandler(OnProcessExit(on_exit=note))
    replay.include_launch_description(LaunchDescription([noting]))
    assert replay.run() == 0
    assert codes == {"player": 0, "alpamayo_node": 0}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("bag", "nowhere", "there is no such file or folder"),
        ("rate", "0", "must be a number over 0"),
        ("start_offset", "-1", "must be a number of at least 0"),
        ("loop", "often", "must be true or false"),
    ],
)
def test_a_mistake_is_known_before_the_node_starts(bag, name, value, words, caplog):
    assert run(**{"bag": bag, name: value}) == 1
    assert f"launch argument {name}:={value}" in caplog.text
    assert words in caplog.text
    assert "process started" not in caplog.text
