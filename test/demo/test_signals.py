"""When lights are red, and that the lit lamp can be seen from far away in small images."""

import numpy as np
import pytest

from alpamayo_ros.demo.cameras import default_rig
from alpamayo_ros.demo.render import render
from alpamayo_ros.demo.scene import Scene
from alpamayo_ros.demo.signals import GANTRIES, POSTS, RED_AMBER_S, Phase, Signal

RED = Signal(100.0, 18.0, 12.0)
SMALL = {camera.role: camera for camera in default_rig(160, 96)}


def test_a_light_stays_red_until_the_ego_has_come_near_and_for_its_time():
    assert RED.seen(5.0, 30.0) is RED
    assert RED.phase(1e6) is Phase.RED
    near = RED.seen(5.0, 40.0)
    assert near.green_s == 17.0
    assert near.seen(9.0, 60.0) is near
    assert near.phase(17.0 - RED_AMBER_S - 0.01) is Phase.RED
    assert near.phase(17.0 - RED_AMBER_S + 0.01) is Phase.RED_AMBER
    assert near.phase(17.0) is Phase.GREEN
    assert near.phase(90.0) is Phase.GREEN


def test_a_light_that_is_green_stays_green():
    green = Signal(100.0, 18.0, 0.0)
    assert all(green.seen(1.0, 50.0).phase(t_s) is Phase.GREEN for t_s in (0.0, 5.0, 80.0))


def lit(phase: Phase, distance_m: float, camera: str) -> tuple[np.ndarray, np.ndarray]:
    """Which pixels of a small image are as red, and as green, as a lamp."""
    bodies = (POSTS[phase].at(distance_m, 1.75), GANTRIES[phase].at(distance_m + 18, 1.75))
    image = render(SMALL[camera], Scene((0.0, 0.0), 0.0, (), bodies)).astype(int)
    red, green, blue = np.moveaxis(image, 2, 0)
    return (red > 150) & (green < 90), (green > 150) & (red < 110) & (blue < 170)


@pytest.mark.parametrize("distance_m", [25.0, 40.0, 60.0])
def test_the_lit_lamp_is_some_pixels_in_a_small_tele_image(distance_m):
    red, green = lit(Phase.RED, distance_m, "front_tele")
    assert red.sum() >= 4
    assert not green.any()
    red, green = lit(Phase.GREEN, distance_m, "front_tele")
    assert green.sum() >= 4
    assert not red.any()


def test_who_waits_at_the_line_sees_the_lamp_in_both_front_cameras():
    for camera in ("front_wide", "front_tele"):
        assert lit(Phase.RED, 7.9, camera)[0].sum() >= 4
        assert lit(Phase.GREEN, 7.9, camera)[1].sum() >= 4
