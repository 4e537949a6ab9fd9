"""What the launch files make of their arguments' text; nothing here needs launch."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ament_index_python.packages import PackageNotFoundError, get_package_prefix

from alpamayo_ros.ros.bag_player import CLOCK_HZ
from alpamayo_ros.types import UserError

FRAMES = ("/tf", "/tf_static")  # for RViz


class LaunchArgumentError(UserError):
    """A launch argument's value cannot be used; one line."""


def boolean(name: str, text: str) -> bool:
    """true or false, in any case.

    Raises:
        LaunchArgumentError: it is neither; launch itself would silently take it for one of them.
    """
    if text.lower() not in ("true", "false"):
        raise LaunchArgumentError(f"launch argument {name}:={text} must be true or false")
    return text.lower() == "true"


def number(name: str, text: str, above: float = -math.inf, at_least: float = -math.inf) -> float:
    """A finite number within its limits.

    Raises:
        LaunchArgumentError: it is none, or outside.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and value > above and value >= at_least:
        return value
    limit = f"over {above:g}" if above > -math.inf else f"of at least {at_least:g}"
    raise LaunchArgumentError(f"launch argument {name}:={text} must be a number {limit}")


def existing(name: str, text: str) -> str:
    """The path of a file or folder that is there.

    Raises:
        LaunchArgumentError: none is given, or it is not there.
    """
    if not text or not Path(text).exists():
        raise LaunchArgumentError(
            f"launch argument {name}:={text}: there is no such file or folder"
        )
    return text


def installed(package: str) -> bool:
    """Whether a package is in a workspace that was sourced."""
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


def topics_to_play(images: Sequence[str], others: Sequence[str]) -> list[str]:
    """What of a bag node and RViz hear: images, raw or compressed, CameraInfo beside them, frames.

    A bag recorded on a vehicle also holds what a node published there. That must not be played
    beside the plans of this one.
    """
    heard = []
    for topic in images:
        heard += [topic, f"{topic}/compressed", str(PurePosixPath(topic).parent / "camera_info")]
    return list(dict.fromkeys([*heard, *others, *FRAMES]))


def player_command(
    python: str,
    rosbag2: bool,
    bag: str,
    topics: Sequence[str],
    rate: float,
    start_offset_s: float,
    loop: bool,
) -> list[str]:
    """The command that plays a bag with /clock: `ros2 bag play`, or this package's own player.

    Args:
        python: the interpreter that runs the own player.
        rosbag2: whether `ros2 bag` is installed.
        rate: bag seconds per second.
        start_offset_s: seconds of the bag to leave out.
    """
    if rosbag2:
        command = [shutil.which("ros2") or "ros2", "bag", "play", bag, "--clock", f"{CLOCK_HZ:g}"]
    else:
        command = [python, "-m", "alpamayo_ros.cli.play", bag]
    command += ["--rate", str(rate), "--start-offset", str(start_offset_s)]
    return [*command, *(["--loop"] if loop else []), "--topics", *topics]
