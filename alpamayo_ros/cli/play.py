"""alpamayo_play: plays a bag with /clock, for where `ros2 bag play` is not."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence

import rclpy
from rclpy.signals import SignalHandlerOptions

from alpamayo_ros.cli.common import OneLineParser, UsageError, require_range, run
from alpamayo_ros.limits import Limits
from alpamayo_ros.ros.bag_player import BagError, BagPlayer, bag_topics, message_class
from alpamayo_ros.ros.node_process import use_dds_profile

LISTENERS_S = 3.0  # longest wait for subscribers; some topics may have none
RATE = Limits(0.01, 100)


def main(argv: Sequence[str] | None = None) -> int:
    """Play a bag; 0 at its end or when asked to end, 2 for a wrong use."""
    return run(_command, argv)


def _command(argv: Sequence[str] | None) -> int:
    options = _parser().parse_args(argv)
    require_range("--rate", options.rate, RATE)
    topics = _playable(options.bag, options.topics)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    use_dds_profile(os.environ)  # read when the participant is made
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        _play(options, topics, stop)
    finally:
        rclpy.shutdown()
    return 0


def _play(options: argparse.Namespace, topics: Sequence[str], stop: threading.Event) -> None:
    node = rclpy.create_node("alpamayo_play")
    player = BagPlayer(node, options.bag, {topic: topic for topic in topics})
    longest_s = player.span.duration_s
    require_range("--start-offset", options.start_offset, Limits(0, longest_s))
    player.wait_for_listeners(LISTENERS_S)
    while not stop.is_set():
        player.play(options.rate, stop=stop, start_offset_s=options.start_offset)
        if not options.loop:
            break
    player.close()
    node.destroy_node()


def _playable(bag: str, wanted: Sequence[str] | None) -> list[str]:
    """Topics of the bag to play: those wanted, less what cannot be published here.

    Raises:
        BagError: the bag cannot be read.
        UsageError: nothing is left.
    """
    kinds = bag_topics(bag)
    playable = []
    for topic in sorted(kinds):
        if topic == "/clock" or (wanted is not None and topic not in wanted):
            continue  # /clock is the player's own
        try:
            message_class(kinds[topic])
        except BagError as error:
            print(f"warning: {topic} is left out: {error}", file=sys.stderr)
        else:
            playable.append(topic)
    if not playable:
        raise UsageError(
            f"bag {bag} has nothing to play of {wanted or 'all'}; it has {sorted(kinds)}"
        )
    return playable


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="alpamayo_play",
        description="Plays a rosbag2 with /clock, where `ros2 bag play` is not. Messages go out "
        "at the pace of their log times.",
    )
    parser.add_argument("bag", help="folder of the bag")
    parser.add_argument("--rate", type=float, default=1.0, help="bag seconds per second (1)")
    parser.add_argument("--loop", action="store_true", help="again and again; /clock jumps back")
    parser.add_argument(
        "--start-offset", type=float, default=0.0, help="seconds of the bag to leave out (0)"
    )
    parser.add_argument("--topics", nargs="+", help="only these of the bag's topics")
    return parser


if __name__ == "__main__":
    sys.exit(main())
