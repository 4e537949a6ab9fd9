"""Pictures against pinhole geometry: what stands where is seen there."""

import math

import cv2
import numpy as np
import pytest

from alpamayo_ros.demo.cameras import default_rig
from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.look import Look
from alpamayo_ros.demo.render import TEXEL_M, TEXTURE_PX, clip_near, render
from alpamayo_ros.demo.scene import Scene, Surface
from alpamayo_ros.demo.shapes import Face, Solid, cuboid, solid

RIG = {camera.role: camera for camera in default_rig()}
EGO_XY_M, EGO_YAW_RAD = (412.0, -655.0), 2.2
COS, SIN = math.cos(EGO_YAW_RAD), math.sin(EGO_YAW_RAD)


def in_map(forward_m: float, left_m: float) -> tuple[float, float]:
    """A point of the vehicle frame in the map."""
    x, y = EGO_XY_M
    return x + COS * forward_m - SIN * left_m, y + SIN * forward_m + COS * left_m


def scene(surfaces: tuple[Surface, ...] = (), solids: tuple[Solid, ...] = ()) -> Scene:
    return Scene(EGO_XY_M, EGO_YAW_RAD, surfaces, solids)


def cube(forward_m: float, left_m: float, colour: tuple[int, int, int], size_m=1.0) -> Solid:
    half = size_m / 2
    body = solid(cuboid(-half, half, size_m, 0.0, size_m, colour).faces())
    return body.at(*in_map(forward_m, left_m), EGO_YAW_RAD)


def square(forward_m: float, left_m: float, half_m: float) -> Surface:
    corners = [
        in_map(forward_m + a * half_m, left_m + b * half_m)
        for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))
    ]
    return Surface((np.array(corners),), (255, 255, 255))


def is_red(image: np.ndarray) -> np.ndarray:
    channels = image.astype(int)
    return (channels[..., 0] > 100) & (channels[..., 1:].max(axis=-1) < 60)


def is_green(image: np.ndarray) -> np.ndarray:
    channels = image.astype(int)
    return (channels[..., 1] > 120) & (channels[..., [0, 2]].max(axis=-1) < 60)


@pytest.mark.parametrize(
    ("role", "forward_m", "left_m"),
    [
        ("front_wide", 9.0, 2.0),
        ("front_wide", 20.0, -6.0),
        ("front_tele", 30.0, 1.0),
        ("cross_left", 4.0, 6.0),
        ("cross_right", 5.0, -7.0),
    ],
)
def test_a_marking_is_drawn_at_its_pinhole_projection(role, forward_m, left_m):
    camera = RIG[role]
    marked = render(camera, scene((square(forward_m, left_m, 0.25),))).astype(float)
    painted = np.abs(marked - render(camera, scene())).sum(axis=-1)
    assert painted.sum() > 300
    row = (painted.sum(axis=1) @ np.arange(320)) / painted.sum()
    column = (painted.sum(axis=0) @ np.arange(576)) / painted.sum()

    # The same by hand: turn into the camera's axis, then focal length over depth.
    dx, dy = forward_m - camera.position_m[0], left_m - camera.position_m[1]
    depth = dx * math.cos(camera.yaw_rad) + dy * math.sin(camera.yaw_rad)
    to_left = dy * math.cos(camera.yaw_rad) - dx * math.sin(camera.yaw_rad)
    focal = 288 / math.tan(math.radians(15 if role == "front_tele" else 60))
    assert column == pytest.approx(287.5 - focal * to_left / depth, abs=0.8)
    assert row == pytest.approx(159.5 + focal * camera.position_m[2] / depth, abs=0.8)


def test_a_red_object_on_the_left_is_on_the_left():
    only = scene(solids=(cube(8.0, 5.0, (255, 0, 0), 1.5),))
    rows, columns = np.nonzero(is_red(render(RIG["front_wide"], only)))
    assert len(columns) > 50
    assert columns.max() < 288
    assert is_red(render(RIG["cross_left"], only)).sum() > 50
    assert not is_red(render(RIG["cross_right"], only)).any()
    assert not is_red(render(RIG["front_tele"], only)).any()
    assert rows.min() < 170 < rows.max(), "a body 1.5 m high reaches from the ground to eye level"


@pytest.mark.parametrize("order", [1, -1])
def test_the_nearer_body_hides_the_farther_one_in_any_order(order):
    near, far = cube(10.0, 0.0, (255, 0, 0), 2.0), cube(16.0, 0.0, (0, 255, 0), 2.0)
    image = render(RIG["front_wide"], scene(solids=(near, far)[::order]))
    assert is_red(image).sum() > 200
    assert not is_green(image).any()


def test_what_is_behind_a_camera_is_not_seen():
    empty = render(RIG["front_wide"], scene())
    behind = render(
        RIG["front_wide"], scene((square(-5.0, 0.0, 1.0),), (cube(-6.0, 0.0, (255, 0, 0)),))
    )
    assert (empty == behind).all()


def test_a_surface_through_the_camera_plane_fills_the_foreground():
    image = render(RIG["front_wide"], scene((square(0.0, 0.0, 30.0),)))
    assert image[200:].min() > 150  # white with grain
    assert image[-1, [0, 288, 575]].min() > 150


def clipped_slowly(polygon: np.ndarray, near_m: float) -> np.ndarray:
    """Edge by edge, as the books have it."""
    kept = []
    for i in range(len(polygon)):
        a, b = polygon[i], polygon[(i + 1) % len(polygon)]
        if a[2] > near_m:
            kept.append(a)
        if (a[2] > near_m) != (b[2] > near_m):
            kept.append(a + (near_m - a[2]) / (b[2] - a[2]) * (b - a))
    return np.array(kept).reshape(-1, 3)


def test_clipping_agrees_with_a_slow_reference():
    rng = np.random.default_rng(1)
    sizes = set()
    for _ in range(200):
        polygon = rng.normal(0, 2, (int(rng.integers(3, 8)), 3))
        expected = clipped_slowly(polygon, 0.25)
        np.testing.assert_allclose(clip_near(polygon, 0.25), expected, atol=1e-12)
        sizes.add(len(expected))
    assert {0, 3, 4, 5} <= sizes


def test_pictures_of_a_drive_are_the_same_for_a_seed_and_change_with_time():
    drive, again = Drive(2), Drive(2)
    for camera in RIG.values():
        first = render(camera, drive.scene_at(5.0))
        assert (first == render(camera, again.scene_at(5.0))).all()
        moved = render(camera, drive.scene_at(5.1))
        assert first.shape == (320, 576, 3)
        assert (np.abs(first.astype(int) - moved).max(axis=-1) > 10).mean() > 0.02


@pytest.mark.parametrize(("forward_m", "left_m"), [(0.1, 0.0), (0.0, 0.1), (-0.05, -0.08)])
def test_grain_on_the_ground_stays_where_it_is_while_the_ego_moves(forward_m, left_m):
    camera = RIG["front_wide"]

    def green(at_m: tuple[float, float]) -> np.ndarray:
        picture = render(camera, Scene(in_map(*at_m), EGO_YAW_RAD, (), ()))
        return picture[..., 1].astype(np.float32)

    before, after = green((0.0, 0.0)), green((forward_m, left_m))
    # A pixel's ground point, seen from where the ego was before, by the pinhole formulas.
    rows, columns = np.mgrid[240:310, 200:380].astype(np.float32)
    scale = 288 / math.tan(math.radians(60))
    depth = camera.position_m[2] * scale / (rows - 159.5)
    to_right = (columns - 287.5) / scale * depth
    row = 159.5 + camera.position_m[2] * scale / (depth + forward_m)
    column = 287.5 + (to_right - left_m) / (depth + forward_m) * scale
    moved = cv2.remap(before, column.astype(np.float32), row, cv2.INTER_LINEAR)
    now, still = after[240:310, 200:380], before[240:310, 200:380]
    assert np.abs(now - moved).mean() < 0.4 * np.abs(now - still).mean()


def test_grain_repeats_after_a_tile_and_not_before():
    camera = RIG["front_wide"]
    tile_m = TEXTURE_PX * TEXEL_M
    here = render(camera, Scene((3.0, 4.0), 0.0, (), ())).astype(int)
    a_tile_on = render(camera, Scene((3.0 + tile_m, 4.0 - tile_m), 0.0, (), ()))
    assert np.abs(here - a_tile_on).max() <= 1
    for metres in (7.0, tile_m / 2):
        elsewhere = render(camera, Scene((3.0 + metres, 4.0), 0.0, (), ()))
        assert np.abs(here - elsewhere)[200:].mean() > 3


def test_a_face_that_looks_away_is_not_seen():
    body = cuboid(-1.0, 1.0, 2.0, 0.0, 2.0, (120, 120, 120))
    near, far = Face(body.rear.corners_m, (255, 0, 0)), Face(body.front.corners_m, (0, 255, 0))
    image = render(
        RIG["front_wide"], scene(solids=(solid([near, far]).at(*in_map(9.0, 0.0), EGO_YAW_RAD),))
    )
    assert is_red(image).sum() > 200
    assert not is_green(image).any()


def test_any_even_or_odd_size_can_be_rendered():
    world = Drive(0).scene_at(1.0)
    for size in ((161, 97), (320, 240)):
        for camera in default_rig(*size):
            assert render(camera, world).shape == (size[1], size[0], 3)


def test_dusk_darkens_everything_but_lamps():
    dusk = Look(ground_light=0.5, ambient=0.3, diffuse=0.2, haze_m=1e9)
    day = Look(haze_m=1e9)
    lamp, wall = Face(np.zeros((4, 3)), (255, 0, 0), True), Face(np.zeros((4, 3)), (255, 0, 0))
    face = cuboid(-1.0, 1.0, 2.0, 0.0, 2.0, (255, 0, 0)).rear.corners_m

    def middle(kind: Face, look: Look) -> int:
        body = solid([Face(face, kind.colour, kind.glows)]).at(*in_map(9.0, 0.0), EGO_YAW_RAD)
        picture = render(RIG["front_wide"], Scene(EGO_XY_M, EGO_YAW_RAD, (), (body,), look))
        return int(picture[165, 288, 0])

    assert middle(lamp, day) == middle(lamp, dusk) == 255
    assert middle(wall, dusk) < 0.7 * middle(wall, day)
    grounds = [
        render(RIG["front_wide"], Scene(EGO_XY_M, EGO_YAW_RAD, (), (), look))[250:].mean()
        for look in (day, dusk)
    ]
    assert grounds[1] == pytest.approx(grounds[0] / 2, rel=0.03)
