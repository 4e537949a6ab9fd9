"""`alpamayo_play` as a process: what of a bag comes out, how often, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from alpamayo_ros.ros import qos
from alpamayo_ros.ros.bag_run import Listener, Spinner
from alpamayo_ros.ros.node_process import wait_until
from alpamayo_ros.sensing.messages import stamp_ns
from test.evaluation.drives import START_NS, Recipe, write_drive

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

DURATION_S = 3.0


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    recipe = Recipe(duration_s=DURATION_S, navigation="turn left")
    return write_drive(tmp_path_factory.mktemp("play") / "bag", recipe)


class Ears:
    """What is heard of a bag: the stamps of odometry and of /clock, and texts."""

    def __init__(self, context) -> None:
        self.node = Listener(context)
        self.odometry_ns: list[int] = []
        self.clock_ns: list[int] = []
        self.texts: list[str] = []
        hear = self.node.create_subscription
        hear(
            Odometry,
            "/localization/odometry",
            lambda m: self.odometry_ns.append(stamp_ns(m.header.stamp)),
            1000,
        )
        hear(Clock, "/clock", lambda m: self.clock_ns.append(stamp_ns(m.clock)), qos.CLOCK)
        hear(String, "/route", lambda m: self.texts.append(m.data), 10)


@pytest.fixture
def ears(context):
    ears = Ears(context)
    with Spinner(context, ears.node):
        yield ears
    ears.node.destroy_node()


def start(domain_id, *arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "alpamayo_ros.cli.play", *map(str, arguments)],
        env={**os.environ, "ROS_DOMAIN_ID": str(domain_id)},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_bag_is_played_from_its_offset_with_clock_and_ends(bag, domain_id, ears):
    player = start(
        domain_id, bag, "--start-offset", "1", "--rate", "2", "--topics", "/localization/odometry"
    )
    assert player.wait(100) == 0
    last_ns = START_NS + round(DURATION_S * 1e9) - 20_000_000
    assert wait_until(lambda: ears.odometry_ns[-1:] == [last_ns], 20)
    assert ears.odometry_ns[0] == START_NS + 1_000_000_000
    assert len(ears.odometry_ns) == (DURATION_S - 1) * 50
    assert ears.clock_ns[0] >= START_NS + 1_000_000_000
    assert ears.texts == []  # not among the topics


def test_a_loop_goes_on_until_it_is_asked_to_end(bag, domain_id, ears):
    player = start(domain_id, bag, "--loop", "--rate", "10")
    assert wait_until(lambda: ears.texts.count("turn left") >= 3, 100)
    player.send_signal(signal.SIGINT)
    assert player.wait(30) == 0
    assert player.stderr.read() == ""
    assert any(late < early for early, late in zip(ears.clock_ns, ears.clock_ns[1:]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rate", "0"], "--rate 0: allowed are"),
        (["--start-offset", "99"], "--start-offset 99: allowed are 0 to"),
        (["--topics", "/nowhere"], "has nothing to play of ['/nowhere']"),
    ],
)
def test_a_wrong_use_is_one_line_and_code_2(bag, domain_id, arguments, words):
    player = start(domain_id, bag, *arguments)
    _, text = player.communicate(timeout=100)
    assert player.returncode == 2
    assert words in text
    assert len(text.strip().splitlines()) == 1


def test_a_folder_that_is_no_bag_is_one_line(domain_id, tmp_path):
    player = start(domain_id, tmp_path)
    _, text = player.communicate(timeout=100)
    assert player.returncode == 2
    assert "cannot be read" in text
