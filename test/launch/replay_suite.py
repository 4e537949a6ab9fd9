"""A launch_testing suite: replay.launch.py plays a bag, and the node plans on it.

`launch_test test/launch/replay_suite.py`, or with all other tests through test_suites.py.
"""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

import launch_testing.actions
import launch_testing.asserts
import rclpy
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

from alpamayo_ros.ros.bag_run import Listener, Spinner, plan_stamp_ns
from alpamayo_ros.ros.node_process import wait_until
from alpamayo_ros.types import CAMERA_ROLES
from launch import LaunchDescription
from test.evaluation.drives import START_NS, Recipe, write_drive

FILE = Path(__file__).resolve().parents[2] / "launch" / "replay.launch.py"
DURATION_S = 30.0  # a decision beside other work may take many of them
OFFSET_S = 1.0
HISTORY_S = 1.5  # of odometry, before the first t0
DEADLINE_S = 120.0


def generate_test_description() -> tuple[LaunchDescription, dict[str, object]]:
    """The launch file on a bag of its own, which is removed with the suite's context."""
    folder = tempfile.TemporaryDirectory()
    topics = {role: f"/sensing/camera/{role}/image/compressed" for role in CAMERA_ROLES}
    bag = write_drive(Path(folder.name) / "bag", Recipe(duration_s=DURATION_S, topics=topics))
    arguments = {
        "bag": str(bag),
        "loop": "true",
        "start_offset": str(OFFSET_S),
        "params_file": str(FILE.parents[1] / "config" / "demo.yaml"),
    }
    include = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(FILE)), launch_arguments=arguments.items()
    )
    ready = launch_testing.actions.ReadyToTest()
    return LaunchDescription([include, ready]), {"folder": folder}


class TestReplay(unittest.TestCase):
    """While the bag is played."""

    def test_plans_are_of_the_bags_time_behind_the_offset(self) -> None:
        rclpy.init()
        context = rclpy.get_default_context()
        listener = Listener(context)
        try:
            with Spinner(context, listener):
                assert wait_until(lambda: len(listener.plans) >= 2, DEADLINE_S)
        finally:
            listener.destroy_node()
            rclpy.shutdown()
        after_s = [(plan_stamp_ns(plan) - START_NS) / 1e9 for plan in listener.plans]
        assert min(after_s) >= OFFSET_S + HISTORY_S - 1e-06
        assert max(after_s) < DURATION_S


@launch_testing.post_shutdown_test()
class TestEnd(unittest.TestCase):
    """What is left after Ctrl-C."""

    def test_node_and_player_ended_with_code_0(self, proc_info) -> None:
        assert len(proc_info.process_names()) == 2
        launch_testing.asserts.assertExitCodes(proc_info)
