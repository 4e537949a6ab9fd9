"""Who subscribes late hears the last path while it holds, and later that there is none."""

from __future__ import annotations

import numpy as np
import pytest
from nav_msgs.msg import Path
from sensor_msgs.msg import CameraInfo, Image
from visualization_msgs.msg import Marker, MarkerArray

from alpamayo_ros.ros import qos
from alpamayo_ros.sensing.messages import stamp_ns
from alpamayo_ros.types import NS_PER_S, STEP_NS

from .conftest import parameters
from .rig import Rig

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

TIMEOUT_S = 8.0  # of the watchdog, long enough to join meanwhile on a busy machine


@pytest.fixture(scope="module")
def rig(context):
    with Rig(context, compressed=False) as rig:
        yield rig


@pytest.fixture(scope="module")
def bench(start_node, rig):
    """A node that publishes its plans on path, whatever the gate says, with every output that this
    machine can have."""
    bench = start_node(
        *parameters(
            model__path="demo",
            gate__mode="report",
            sampling__max_new_tokens=2,
            watchdog__timeout_s=TIMEOUT_S,
            output__path_remaining=True,
            output__overlay=True,
        )
    )
    # The gate accepts nothing here, so the watchdog empties the path once after its time.
    bench.wait(lambda: any(not path.poses for path in bench.ear.paths), "an empty path")
    bench.wait(lambda: bench.ear.paths[-1].poses != [], "a path")
    return bench


def joined(bench, kind: type, name: str):
    """The first message that a new subscriber of an output hears."""
    heard: list = []
    subscription = bench.ear.create_subscription(
        kind, f"/alpamayo/output/{name}", heard.append, qos.LATCHED
    )
    try:
        bench.wait(lambda: heard, f"a latched {name}")
        return heard[0]
    finally:
        bench.ear.destroy_subscription(subscription)


def test_plans_are_drawn_into_the_front_image_once_its_calibration_is_known(bench):
    """Heard from a subscriber as RViz's: reliable."""
    info = CameraInfo(width=160, height=90, distortion_model="plumb_bob", d=[0.0] * 5)
    info.header.frame_id = "front_wide_optical"
    info.k = np.array([46.0, 0, 79.5, 0, 46.0, 44.5, 0, 0, 1.0])
    pictures: list[Image] = []
    bench.ear.create_subscription(Image, "/alpamayo/output/overlay", pictures.append, qos.PICTURES)
    publisher = bench.ear.create_publisher(
        CameraInfo, "/alpamayo/input/front_wide/camera_info", qos.LATCHED
    )

    def drawn() -> bool:
        publisher.publish(info)
        return bool(pictures)

    bench.wait(drawn, "an overlay")
    assert pictures[0].header.frame_id == "front_wide_optical"
    assert stamp_ns(pictures[0].header.stamp) % STEP_NS == 0  # as the rig stamps its images
    assert len(pictures[0].data) == 3 * pictures[0].width * pictures[0].height > 0


def test_a_path_is_latched_while_it_holds_and_replaced_by_an_empty_one_after(bench, rig):
    rig.silent.add("odometry")
    try:
        path = joined(bench, Path, "path")
        assert len(path.poses) == 64
        now_ns = bench.ear.get_clock().now().nanoseconds
        assert 0 < now_ns - stamp_ns(path.header.stamp) < (TIMEOUT_S + 1) * NS_PER_S
        assert len(joined(bench, Path, "path_remaining").poses) < 64
        bench.wait(lambda: bench.ear.paths[-1].poses == [], "an empty path")
        for name in ("path", "path_ego", "path_remaining"):
            none = joined(bench, Path, name)
            assert none.poses == []
            assert stamp_ns(none.header.stamp) > stamp_ns(path.header.stamp)
        line, _, text = joined(bench, MarkerArray, "markers").markers
        assert line.action == Marker.ADD
        assert {(c.r, c.g, c.b) for c in line.colors} == {tuple(np.float32([0.6] * 3).tolist())}
        assert text.text.startswith("STALE\n")
    finally:
        rig.silent.clear()
    bench.wait(lambda: bench.ear.paths[-1].poses != [], "a path again")


def test_after_deactivation_a_late_joiner_hears_that_there_is_no_plan(bench):
    assert bench.change_state("deactivate")
    for name in ("path", "path_ego", "path_remaining"):
        assert joined(bench, Path, name).poses == []
    markers = joined(bench, MarkerArray, "markers").markers
    assert {marker.action for marker in markers} == {Marker.DELETE}
    assert bench.change_state("activate")
    bench.wait(lambda: bench.ear.paths[-1].poses != [], "a path again")
