"""Launch files as the tests start them. Import it behind `importorskip("launch_ros")`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

import launch

LAUNCH = Path(__file__).resolve().parents[2] / "launch"


def service(name: str, arguments: Mapping[str, object]) -> launch.LaunchService:
    """A launch service for a file of launch/ with arguments."""
    service = launch.LaunchService(noninteractive=True)
    given = [(argument, str(value)) for argument, value in arguments.items()]
    source = PythonLaunchDescriptionSource(str(LAUNCH / name))
    action = IncludeLaunchDescription(source, launch_arguments=given)
    service.include_launch_description(launch.LaunchDescription([action]))
    return service


def launch_arguments(name: str) -> dict[str, launch.actions.DeclareLaunchArgument]:
    """What a file of launch/ declares, with the files that it includes, by name."""
    source = PythonLaunchDescriptionSource(str(LAUNCH / name))
    description = source.get_launch_description(launch.LaunchContext())
    return {argument.name: argument for argument in description.get_launch_arguments()}
