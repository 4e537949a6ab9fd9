"""The node on a bag: `ros2 launch alpamayo_ros replay.launch.py bag:=drive model_path:=demo`.

The bag starts when the node is active. All ends with it, and with the node or RViz.
"""

import sys
from pathlib import Path

from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.event_handlers import OnStateTransition

from alpamayo_ros.ros.launch_arguments import (
    boolean,
    existing,
    installed,
    number,
    player_command,
    topics_to_play,
)
from alpamayo_ros.types import CAMERA_ROLES
from launch import LaunchDescription

NODE = Path(__file__).resolve().with_name("alpamayo.launch.py")

ARGUMENTS = {
    "bag": (None, "folder of the rosbag2"),
    "rate": ("1.0", "bag seconds per second"),
    "start_offset": ("0.0", "seconds of the bag to leave out"),
    "loop": ("false", "play the bag again and again"),
    "use_sim_time": ("true", "the bag's time, from /clock; false: the wall's"),
}


def generate_launch_description() -> LaunchDescription:
    """The bag's arguments, checked, then alpamayo.launch.py with its own, then the player."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription(
        [
            *declared,
            # Before the node, so that a mistake is known before the model is loaded.
            OpaqueFunction(function=_check),
            RegisterEventHandler(OnProcessExit(on_exit=_end)),
            RegisterEventHandler(
                OnStateTransition(
                    goal_state="active",
                    entities=[OpaqueFunction(function=_player)],
                    handle_once=True,
                )
            ),
            IncludeLaunchDescription(PythonLaunchDescriptionSource(str(NODE))),
        ]
    )


def _given(context, name: str) -> str:
    return LaunchConfiguration(name).perform(context)


def _check(context) -> None:
    existing("bag", _given(context, "bag"))
    number("rate", _given(context, "rate"), above=0)
    number("start_offset", _given(context, "start_offset"), at_least=0)
    boolean("loop", _given(context, "loop"))


def _end(event, context) -> Shutdown | None:
    """End all; but launch_ros fails when an end that is under way is asked for again."""
    return None if context.is_shutdown else Shutdown(reason=f"{event.process_name} has ended")


def _player(context) -> list:
    images = [_given(context, f"{role}_topic") for role in CAMERA_ROLES]
    others = [_given(context, f"{name}_topic") for name in ("odometry", "navigation")]
    command = player_command(
        sys.executable,
        installed("ros2bag"),
        _given(context, "bag"),
        topics_to_play(images, [topic for topic in others if not topic.startswith("~")]),
        number("rate", _given(context, "rate"), above=0),
        number("start_offset", _given(context, "start_offset"), at_least=0),
        boolean("loop", _given(context, "loop")),
    )
    return [ExecuteProcess(cmd=command, name="player", output="screen")]
