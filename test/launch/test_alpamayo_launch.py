"""alpamayo.launch.py under the real launch and launch_ros, where they are."""

from __future__ import annotations

import threading

import pytest

from alpamayo_ros.ros.bag_run import Listener, Spinner
from alpamayo_ros.ros.node_process import wait_until

pytest.importorskip("launch_ros", reason="launch_ros is not installed")

from launch import LaunchService
from test.launch.files import launch_arguments
from test.launch.files import service as service_of

FILE = "alpamayo.launch.py"
pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]


def service(*arguments: str) -> LaunchService:
    """A launch service for the file with arguments such as "device:=cpu"."""
    return service_of(FILE, dict(argument.split(":=") for argument in arguments))


def test_every_argument_is_explained():
    arguments = launch_arguments(FILE)
    assert len(arguments) >= 19
    assert all(len(argument.description) > 8 for argument in arguments.values())


def test_the_node_comes_up_active_under_a_namespace_and_ends_cleanly(domain, context):
    running = service(
        "model_path:=demo",
        "namespace:=car",
        "use_sim_time:=False",
        "front_wide_transport:=compressed",
        "front_wide_topic:=/front",
    )
    listener = Listener(context, "/car/alpamayo")
    seen = []

    def watch() -> None:
        try:
            seen.append(wait_until(lambda: listener.state == "active", 90))
            seen.append(len(listener.get_subscriptions_info_by_topic("/front/compressed")))
        finally:
            running.shutdown()

    watcher = threading.Thread(target=watch)  # launch insists on the main thread
    with Spinner(context, listener):
        watcher.start()
        code = running.run()
        watcher.join(30)
    assert seen == [True, 1], listener.status
    assert code == 0
    listener.destroy_node()


@pytest.mark.parametrize("argument", ["use_sim_time:=yes", "autostart:=1", "respawn:=maybe"])
def test_a_boolean_that_is_none_is_refused(domain, argument, caplog):
    assert service("model_path:=demo", argument).run() == 1
    assert f"launch argument {argument} must be true or false" in caplog.text
