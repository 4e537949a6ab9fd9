"""The process of the node: arguments, signals, executor, exit code."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from alpamayo_ros.ros.allocator import keep_memory_of_images
from alpamayo_ros.streams import occupy_closed_streams

if TYPE_CHECKING:
    from rclpy.executors import SingleThreadedExecutor

    from alpamayo_ros.ros.node import AlpamayoNode


def main(argv: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM.

    Returns:
        0 after a clean end; 2, with one line on stderr, for what is wrong before configure.
    """
    argv = sys.argv[1:] if argv is None else argv
    occupy_closed_streams()
    stopping = threading.Event()

    def stop(number: int, _: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)  # asked twice, the process ends at once

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    from rclpy.utilities import remove_ros_args

    try:
        own = remove_ros_args(["alpamayo_node", *argv])[1:]
    except Exception as error:  # rcl's argument and YAML errors share no class
        return _fail(error)
    _parser().parse_args(own)
    return _spin(argv, stopping)


def _spin(argv: list[str], stopping: threading.Event) -> int:
    import rclpy
    from rclpy.exceptions import NameValidationException, ParameterException
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    from alpamayo_ros.devices.device import prepare_environment

    prepare_environment()  # before anything imports torch
    from alpamayo_ros.ros.node import AlpamayoNode

    keep_memory_of_images()
    # Our own handlers: rclpy's would end the context before the last empty path is out.
    rclpy.init(args=["alpamayo_node", *argv], signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = AlpamayoNode(stopping=stopping)
    except (ValueError, RuntimeError, ParameterException, NameValidationException) as error:
        # our own errors, rcl's and rclpy's: a bad file, value, type or name
        rclpy.shutdown()
        return _fail(error)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        while not stopping.is_set():
            _spin_once(executor, node)
    finally:
        ended = node.end()
        executor.shutdown(timeout_sec=1.0)
        node.destroy_node()
        rclpy.shutdown()
    if not ended:
        os._exit(0)  # a thread inside the model would crash the interpreter on its way out
    return 0


def _spin_once(executor: SingleThreadedExecutor, node: AlpamayoNode) -> None:
    try:
        executor.spin_once(timeout_sec=0.2)
    except Exception:  # of one callback; the others go on
        node.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)


def _fail(error: Exception) -> int:
    text = re.sub(r", at \S+:\d+", "", " ".join(str(error).split()))  # rcl's own source lines
    with suppress(OSError):  # the exit code says it too
        print(f"alpamayo_node: {text}", file=sys.stderr)
    return 2


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.exit(_fail(ValueError(f"{message}; parameters go behind --ros-args -p (see --help)")))


def _parser() -> argparse.ArgumentParser:
    from alpamayo_ros import __version__
    from alpamayo_ros.ros.parameter_table import TABLE

    width = max(len(parameter.name) for parameter in TABLE)
    lines = [
        f"  {p.name:{width}}  {p.default!r:8}  {p.help}" + (f" [{p.unit}]" if p.unit else "")
        for p in TABLE
    ]
    parser = _OneLineParser(
        prog="alpamayo_node",
        description="Driving plans from four cameras and odometry with Alpamayo-R1, as a ROS 2 "
        "lifecycle node. Everything is set by ROS arguments, for example\n"
        "  alpamayo_node --ros-args -p model.path:=demo -r ~/input/odometry:=/odom",
        epilog="parameters, with defaults:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
