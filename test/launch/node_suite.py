"""A launch_testing suite: alpamayo.launch.py comes up, plans, survives bad images, ends cleanly.

`launch_test test/launch/node_suite.py`, or with all other tests through test_suites.py.
"""

from __future__ import annotations

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
from test.ros.rig import Rig

FILE = Path(__file__).resolve().parents[2] / "launch" / "alpamayo.launch.py"
NODE = "/car/alpamayo"
DEADLINE_S = 120.0  # for anything that busy cores may delay

ARGUMENTS = {
    "params_file": str(FILE.parents[1] / "config" / "demo.yaml"),
    "namespace": "car",
    "use_sim_time": "false",
    "odometry_topic": f"{NODE}/input/odometry",
    **{f"{role}_topic": f"{NODE}/input/{role}/image" for role in CAMERA_ROLES},
    **{f"{role}_transport": "compressed" for role in CAMERA_ROLES},
}


def generate_test_description() -> LaunchDescription:
    """The launch file with the demo model, for cameras that send JPEG."""
    return LaunchDescription(
        [
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(FILE)), launch_arguments=ARGUMENTS.items()
            ),
            launch_testing.actions.ReadyToTest(),
        ]
    )


class TestNode(unittest.TestCase):
    """One drive past a running node; unittest runs the steps by their names."""

    @classmethod
    def setUpClass(cls) -> None:
        rclpy.init()
        context = rclpy.get_default_context()
        cls.listener = Listener(context, NODE)
        cls.rig = Rig(context, NODE)
        cls.spinner = Spinner(context, cls.listener, cls.rig).__enter__()
        cls.rig.__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.rig.__exit__()
        cls.spinner.__exit__()
        cls.listener.destroy_node()
        cls.rig.destroy_node()
        rclpy.shutdown()

    def wait(self, condition) -> None:
        assert wait_until(condition, DEADLINE_S), self.listener.status

    def plans_after(self, count: int) -> bool:
        return len(self.listener.plans) > count

    def test_1_it_comes_up_active(self) -> None:
        self.wait(lambda: self.listener.state == "active")

    def test_2_it_plans_on_what_the_cameras_send(self) -> None:
        self.wait(lambda: self.plans_after(1))
        assert len(self.listener.plans[-1].waypoints) == 64

    def test_3_it_survives_images_that_are_none(self) -> None:
        self.rig.broken = {"front_wide"}
        sent = len(self.rig.sent_ns)
        try:
            self.wait(lambda: len(self.rig.sent_ns) >= sent + 20)
        finally:
            self.rig.broken = set()
        assert self.listener.state == "active"

    def test_4_it_plans_on_the_images_afterwards(self) -> None:
        mended_ns = self.rig.sent_ns[-1]
        self.wait(lambda: plan_stamp_ns(self.listener.plans[-1]) > mended_ns)


@launch_testing.post_shutdown_test()
class TestEnd(unittest.TestCase):
    """What is left after Ctrl-C."""

    def test_the_node_ended_with_code_0(self, proc_info) -> None:
        launch_testing.asserts.assertExitCodes(proc_info)

    def test_it_was_finalized_and_nothing_was_raised(self, proc_output) -> None:
        text = "".join(
            event.text.decode()
            for name in proc_output.process_names()
            for event in proc_output[name]
        )
        assert "now finalized" in text
        assert "Traceback" not in text
