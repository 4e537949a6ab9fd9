"""The launch files' checks and commands, wherever launch is or not."""

from __future__ import annotations

import pytest

from alpamayo_ros.ros.launch_arguments import (
    LaunchArgumentError,
    boolean,
    existing,
    number,
    player_command,
    topics_to_play,
)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("TRUE", True)])
def test_a_boolean_is_true_or_false_in_any_case(text, value):
    assert boolean("loop", text) is value


@pytest.mark.parametrize("text", ["", "1", "yes", "on"])
def test_another_word_is_no_boolean(text):
    with pytest.raises(LaunchArgumentError, match=f"^launch argument loop:={text} must be true"):
        boolean("loop", text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "fast", ""])
def test_a_rate_is_a_finite_number_over_0(text):
    assert number("rate", "0.001", above=0) == 0.001
    with pytest.raises(LaunchArgumentError, match=f"rate:={text} must be a number over 0$"):
        number("rate", text, above=0)


def test_an_offset_may_be_0_and_not_less():
    assert number("start_offset", "0", at_least=0) == 0
    with pytest.raises(LaunchArgumentError, match=r"-0\.1 must be a number of at least 0$"):
        number("start_offset", "-0.1", at_least=0)


def test_a_path_must_be_there(tmp_path):
    assert existing("bag", str(tmp_path)) == str(tmp_path)
    for text in ("", str(tmp_path / "none")):
        with pytest.raises(LaunchArgumentError, match="there is no such file or folder"):
            existing("bag", text)


def test_what_a_node_published_on_the_vehicle_is_not_played():
    topics = topics_to_play(["/front/image", "/left/image"], ["/odom"])
    assert topics == [
        "/front/image",
        "/front/image/compressed",
        "/front/camera_info",
        "/left/image",
        "/left/image/compressed",
        "/left/camera_info",
        "/odom",
        "/tf",
        "/tf_static",
    ]


@pytest.mark.parametrize("loop", [True, False])
@pytest.mark.parametrize("rosbag2", [True, False])
def test_both_players_get_the_same_options(rosbag2, loop):
    command = player_command("python3", rosbag2, "drive", ["/odom", "/tf"], 2.0, 1.5, loop)
    first = command.index("--rate")
    looped = ["--loop"] if loop else []
    assert command[first:] == (
        ["--rate", "2.0", "--start-offset", "1.5", *looped, "--topics", "/odom", "/tf"]
    )
    if rosbag2:  # a number must follow --clock, which otherwise takes the bag for one
        assert command[1:first] == ["bag", "play", "drive", "--clock", "40"]
    else:
        assert command[:first] == ["python3", "-m", "alpamayo_ros.cli.play", "drive"]
