"""The node on a vehicle: `ros2 launch alpamayo_ros alpamayo.launch.py model_path:=/data/R1-10B`."""

import os
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode
from launch_ros.parameter_descriptions import ParameterValue

from alpamayo_ros.ros.node_process import profile_variables
from launch import LaunchDescription

SHARE = Path(get_package_share_directory("alpamayo_ros"))
PROFILE_VARIABLE = profile_variables(os.environ)[0]
ROLES = ("cross_left", "front_wide", "cross_right", "front_tele")

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
    "dds_profile": (
        os.environ.get(PROFILE_VARIABLE, str(SHARE / "config" / "fastdds_images.xml")),
        "Fast DDS profile for large images; empty: the middleware's default, which loses many",
    ),
    "respawn": ("false", "start the node again when it dies"),
    "log_level": ("info", "debug, info, warn or error"),
    **{
        f"{role}_topic": (
            f"/sensing/camera/{role}/image",
            f"image topic of {role}; with transport compressed, /compressed is appended",
        )
        for role in ROLES
    },
    **{
        f"{role}_transport": ("", f"raw or compressed, of {role}; empty: as params_file says")
        for role in ROLES
    },
}
# Launch argument to the parameter that it sets when it is not empty.
PARAMETERS = {
    "model_path": "model.path",
    "tokenizer_path": "model.tokenizer_path",
    "device": "device",
    "use_sim_time": "use_sim_time",
    "autostart": "autostart",
    **{f"{role}_transport": f"cameras.{role}.transport" for role in ROLES},
}
BOOLEANS = ("use_sim_time", "autostart")


def generate_launch_description() -> LaunchDescription:
    """All arguments, then the node with them."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=_node)])


def _node(context) -> list:
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    parameters = {
        parameter: _boolean(name, given[name])
        if name in BOOLEANS
        else ParameterValue(given[name], value_type=str)  # a folder may be called 2024
        for name, parameter in PARAMETERS.items()
        if given[name]
    }
    remappings = [
        ("~/input/odometry", given["odometry_topic"]),
        ("~/input/navigation", given["navigation_topic"]),
    ]
    for role in ROLES:
        remappings += [
            (f"~/input/{role}/image", given[f"{role}_topic"]),
            (f"~/input/{role}/image/compressed", given[f"{role}_topic"] + "/compressed"),
        ]
    node = LifecycleNode(
        package="alpamayo_ros",
        executable="alpamayo_node",
        name="alpamayo",
        namespace=given["namespace"],
        parameters=[given["params_file"], parameters],
        remappings=remappings,
        arguments=["--ros-args", "--log-level", given["log_level"]],
        respawn=_boolean("respawn", given["respawn"]),
        respawn_delay=5.0,
        output="screen",
    )
    return [SetEnvironmentVariable(PROFILE_VARIABLE, given["dds_profile"]), node]


def _boolean(name: str, text: str) -> bool:
    """true or false, in any case; everything else would silently mean one of them."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"launch argument {name}:={text} must be true or false")
    return text.lower() == "true"
