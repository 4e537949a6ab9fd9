"""The node on a vehicle: `ros2 launch alpamayo_ros alpamayo.launch.py model_path:=/data/R1-10B`."""

import os
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode, Node
from launch_ros.parameter_descriptions import ParameterValue

from alpamayo_ros.ros.launch_arguments import LaunchArgumentError, boolean, existing, installed
from alpamayo_ros.ros.node_process import profile_variables
from alpamayo_ros.types import CAMERA_ROLES
from launch import LaunchDescription

SHARE = Path(get_package_share_directory("alpamayo_ros"))
PROFILE_VARIABLE = profile_variables(os.environ)[0]
END_S = (
    "30"  # launch's own 5 s cut off a stage of the model on a busy CPU, where nothing interrupts it
)
SHOWN_OUTPUTS = ("markers", "path", "path_remaining", "overlay")  # by config/alpamayo.rviz

ARGUMENTS = {
    "params_file": (str(SHARE / "config" / "alpamayo.yaml"), "YAML file of parameters"),
    "model_path": ("", "checkpoint folder, or demo; empty: as params_file says"),
    "tokenizer_path": (
        "",
        "folder of Qwen3-VL-8B-Instruct, where the checkpoint has no tokenizer; "
        "empty: as params_file says",
    ),
    "device": ("", "auto, cpu, cuda:N or npu:N; empty: as params_file says"),
    "namespace": ("", "namespace of the node"),
    "use_sim_time": ("", "true for bags with /clock; empty: as params_file says"),
    "autostart": ("", "false under a lifecycle manager; empty: as params_file says"),
    "odometry_topic": ("/localization/odometry", "nav_msgs/Odometry"),
    "navigation_topic": ("~/input/navigation", "std_msgs/String with the route instruction"),
    "rviz": ("false", "start RViz with config/alpamayo.rviz"),
    "dds_profile": (
        os.environ.get(PROFILE_VARIABLE, str(SHARE / "config" / "fastdds_images.xml")),
        "Fast DDS profile for large images; empty: the middleware's default, which loses many",
    ),
    "respawn": ("false", "start the node again when it dies"),
    "log_level": ("info", "least severe messages that the node logs"),
    **{
        f"{role}_topic": (
            f"/sensing/camera/{role}/image",
            f"image topic of {role}; with transport compressed, /compressed is appended",
        )
        for role in CAMERA_ROLES
    },
    **{
        f"{role}_transport": ("", f"raw or compressed, of {role}; empty: as params_file says")
        for role in CAMERA_ROLES
    },
}
CHOICES = {
    "log_level": ["debug", "info", "warn", "error", "fatal"],
    **{f"{role}_transport": ["", "raw", "compressed"] for role in CAMERA_ROLES},
}
# Launch argument to the parameter that it sets when it is not empty.
PARAMETERS = {
    "model_path": "model.path",
    "tokenizer_path": "model.tokenizer_path",
    "device": "device",
    "use_sim_time": "use_sim_time",
    "autostart": "autostart",
    **{f"{role}_transport": f"cameras.{role}.transport" for role in CAMERA_ROLES},
}
BOOLEANS = ("use_sim_time", "autostart")


def generate_launch_description() -> LaunchDescription:
    """All arguments, then the node with them, and RViz."""
    declared = [
        DeclareLaunchArgument(
            name, default_value=default, description=text, choices=CHOICES.get(name)
        )
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=_start)])


def _start(context) -> list:
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    actions = [SetEnvironmentVariable(PROFILE_VARIABLE, given["dds_profile"]), _node(given)]
    return [*actions, _rviz(given)] if boolean("rviz", given["rviz"]) else actions


def _node(given: dict[str, str]) -> LifecycleNode:
    parameters = {
        parameter: boolean(name, given[name])
        if name in BOOLEANS
        else ParameterValue(given[name], value_type=str)  # a folder may be called 2024
        for name, parameter in PARAMETERS.items()
        if given[name]
    }
    remappings = [
        ("~/input/odometry", given["odometry_topic"]),
        ("~/input/navigation", given["navigation_topic"]),
    ]
    for role in CAMERA_ROLES:
        remappings += [
            (f"~/input/{role}/image", given[f"{role}_topic"]),
            (f"~/input/{role}/image/compressed", given[f"{role}_topic"] + "/compressed"),
        ]
    return LifecycleNode(
        package="alpamayo_ros",
        executable="alpamayo_node",
        name="alpamayo",
        namespace=given["namespace"],
        parameters=[existing("params_file", given["params_file"]), parameters],
        remappings=remappings,
        arguments=["--ros-args", "--log-level", given["log_level"]],
        respawn=boolean("respawn", given["respawn"]),
        respawn_delay=5.0,
        sigterm_timeout=END_S,
        output="screen",
    )


def _rviz(given: dict[str, str]) -> Node:
    """RViz, whose layout has the default names, with the names that were given in their place."""
    if not installed("rviz2"):
        raise LaunchArgumentError(
            "launch argument rviz:=true: rviz2 is not installed; install it or leave rviz false"
        )
    node = "/".join(part for part in (given["namespace"].strip("/"), "alpamayo") if part)
    names = {f"/alpamayo/output/{name}": f"/{node}/output/{name}" for name in SHOWN_OUTPUTS}
    names |= {ARGUMENTS[f"{role}_topic"][0]: given[f"{role}_topic"] for role in CAMERA_ROLES}
    names[ARGUMENTS["odometry_topic"][0]] = given["odometry_topic"]
    sim_time = boolean("use_sim_time", given["use_sim_time"] or "false")
    return Node(
        package="rviz2",
        executable="rviz2",
        arguments=["-d", str(SHARE / "config" / "alpamayo.rviz")],
        parameters=[{"use_sim_time": sim_time}],
        remappings=[(old, new) for old, new in names.items() if old != new],
    )
