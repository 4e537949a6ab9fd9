"""Pictures of a scene: flat ground, shaded solids, sky and haze, with numpy and OpenCV.

Everything is painted at twice the size, from far to near, and halved at the end: so edges are
smooth and neighbouring faces leave no seams.
"""

from __future__ import annotations

import math
from functools import lru_cache

import cv2
import numpy as np

from alpamayo_ros.demo.cameras import Camera
from alpamayo_ros.demo.look import Look
from alpamayo_ros.demo.scene import Scene, Surface

OVERSAMPLING = 2
# With 0.25 m and 4 fractional bits, corners up to 15 km away fit OpenCV's 32-bit integers even in
# the tele camera, at any place in front of the near plane.
NEAR_M = 0.25
SHIFT = 4

# Two ranges of hills: colour, mean height over the horizon (rad), amplitude and waves a turn.
HILLS = (
    ((158, 180, 192), 0.050, ((0.020, 5, 0.4), (0.010, 11, 1.9), (0.004, 29, 0.2))),
    ((134, 160, 146), 0.022, ((0.010, 7, 2.1), (0.006, 17, 0.8), (0.003, 43, 2.6))),
)
TEXTURE_PX = 1024
TEXEL_M = 0.03  # a tile repeats every 31 m
TEXTURE_DEPTH = 0.3


def render(camera: Camera, scene: Scene) -> np.ndarray:
    """The picture that a camera of the ego takes: uint8 (height, width, 3) RGB."""
    canvas = _backdrop(camera, scene.look).copy()
    _paint_hills(canvas, camera, scene)
    for surface in scene.surfaces:
        _paint_surface(canvas, camera, scene, surface)
    _weather_ground(canvas, camera, scene)
    if scene.solids:
        _paint_solids(canvas, camera, scene)
    size = (camera.width_px, camera.height_px)
    return cv2.resize(canvas, size, interpolation=cv2.INTER_AREA)


def project_ground(camera: Camera, scene: Scene, xy_m: np.ndarray) -> np.ndarray:
    """Optical coordinates (N, 3) of map points (N, 2) on the ground."""
    return camera.optical(_in_vehicle(scene, np.column_stack([xy_m, np.zeros(len(xy_m))])))


def clip_near(optical_m: np.ndarray, near_m: float = NEAR_M) -> np.ndarray:
    """The part (M, 3) of a polygon (N, 3) in front of the near plane (Sutherland, Hodgman 1974)."""
    depth = optical_m[:, 2] - near_m
    if depth.min() > 0:
        return optical_m
    inside = depth > 0
    following = np.roll(np.arange(len(depth)), -1)
    crossing = inside != inside[following]
    part = depth / np.where(crossing, depth - depth[following], 1.0)
    cut = optical_m + part[:, None] * (optical_m[following] - optical_m)
    # Each corner gives itself if inside, then the cut of the edge that leaves it.
    both = np.stack([optical_m, cut], axis=1).reshape(-1, 3)
    return both[np.stack([inside, crossing], axis=1).ravel()]


def _in_vehicle(scene: Scene, points_m: np.ndarray) -> np.ndarray:
    """Map points (..., 3) in the vehicle frame."""
    cos, sin = math.cos(scene.ego_yaw_rad), math.sin(scene.ego_yaw_rad)
    turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return (points_m - (*scene.ego_xy_m, 0.0)) @ turn


def _to_canvas(camera: Camera, optical_m: np.ndarray) -> np.ndarray:
    """Fixed-point canvas coordinates (..., 2) int32 of optical points (..., 3) in front."""
    pixels = camera.pixels(optical_m)
    scaled = pixels * OVERSAMPLING + (OVERSAMPLING - 1) / 2
    return np.round(scaled * (1 << SHIFT)).astype(np.int32)


def _canvas_horizon(camera: Camera) -> int:
    """The first canvas row that looks at the ground."""
    return math.floor(camera.centre_px[1] * OVERSAMPLING + (OVERSAMPLING - 1) / 2) + 1


def _ground_rays(camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Depth (rows, 1) and length (rows, columns) of the rays to the ground, metres."""
    focal = camera.focal_px * OVERSAMPLING
    cx, cy = (c * OVERSAMPLING + (OVERSAMPLING - 1) / 2 for c in camera.centre_px)
    rows = np.arange(_canvas_horizon(camera), camera.height_px * OVERSAMPLING) - cy
    columns = np.arange(camera.width_px * OVERSAMPLING) - cx
    depth = (camera.position_m[2] * focal / rows)[:, None]
    return depth, depth * np.sqrt(1 + (columns / focal) ** 2)


@lru_cache(maxsize=16)
def _backdrop(camera: Camera, look: Look) -> np.ndarray:
    """Sky over grass, at canvas size."""
    height, width = camera.height_px * OVERSAMPLING, camera.width_px * OVERSAMPLING
    horizon = _canvas_horizon(camera)
    rise = np.arange(horizon, 0, -1) / (camera.focal_px * OVERSAMPLING)
    part = np.clip(np.arctan(rise) / 0.7, 0, 1)[:, None] ** 0.7
    canvas = np.empty((height, width, 3), np.uint8)
    low, high = np.array(look.horizon), np.array(look.zenith)
    canvas[:horizon] = (low + (high - low) * part)[:, None]
    canvas[horizon:] = look.grass
    return canvas


def _paint_hills(canvas: np.ndarray, camera: Camera, scene: Scene) -> None:
    """Hills so far away that only their bearing matters."""
    half = math.tan(camera.hfov_rad / 2)
    across = np.linspace(-1.02 * half, 1.02 * half, 97)
    bearing = scene.ego_yaw_rad + camera.yaw_rad - np.arctan(across)
    for colour, mean, waves in HILLS:
        rise = mean + sum(a * np.sin(n * bearing + phase) for a, n, phase in waves)
        # The elevation is over the distance to the column, which grows off the axis.
        down = -np.tan(rise) * np.hypot(1, across)
        ridge = np.column_stack([across, down, np.ones_like(across)])
        foot = np.array([[across[-1], 0.0, 1.0], [across[0], 0.0, 1.0]])
        corners = _to_canvas(camera, np.vstack([ridge, foot]))
        light = scene.look.ground_light
        lit = [min(channel * light, 255) for channel in colour]
        cv2.fillPoly(canvas, [corners], lit, cv2.LINE_8, SHIFT)


def _paint_surface(canvas: np.ndarray, camera: Camera, scene: Scene, surface: Surface) -> None:
    if not surface.outlines_m:
        return
    optical = project_ground(camera, scene, np.concatenate(surface.outlines_m))
    ends = np.cumsum([len(outline) for outline in surface.outlines_m])
    starts = np.concatenate([[0], ends[:-1]])
    seen = np.flatnonzero(_reach_into_view(camera, optical, starts))
    whole = np.minimum.reduceat(optical[:, 2], starts) > NEAR_M
    parts = [
        optical[starts[i] : ends[i]] if whole[i] else clip_near(optical[starts[i] : ends[i]])
        for i in seen
    ]
    if parts:
        corners = _to_canvas(camera, np.concatenate(parts))
        outlines = np.split(corners, np.cumsum([len(part) for part in parts])[:-1])
        cv2.fillPoly(canvas, outlines, surface.colour, cv2.LINE_8, SHIFT)


def _reach_into_view(camera: Camera, optical_m: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Of outlines that begin at rows `starts` of optical_m (N, 3), which may be seen: bool."""
    right, _, forward = optical_m.T
    wide = camera.width_px / 2 / camera.focal_px
    return (
        (np.maximum.reduceat(forward, starts) > NEAR_M)
        & (np.minimum.reduceat(right - wide * forward, starts) < 0)
        & (np.maximum.reduceat(right + wide * forward, starts) > 0)
    )


@lru_cache(maxsize=1)
def _texture() -> np.ndarray:
    """Grain of the ground, float32 (N, N), mean 0, periodic; the same in every process."""
    rng = np.random.default_rng(20)
    total = np.zeros((TEXTURE_PX, TEXTURE_PX), np.float32)
    for cell_px, weight in ((2, 0.5), (4, 0.3), (16, 0.5), (64, 0.7)):
        cells = rng.uniform(-1, 1, (TEXTURE_PX // cell_px,) * 2).astype(np.float32)
        padded = np.pad(cells, 2, mode="wrap")
        grown = cv2.resize(padded, None, fx=cell_px, fy=cell_px, interpolation=cv2.INTER_CUBIC)
        margin = 2 * cell_px
        total += weight * grown[margin:-margin, margin:-margin]
    return total / np.abs(total).max()


@lru_cache(maxsize=16)
def _weather(camera: Camera, look: Look) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each ground pixel: its own light, the grain's weight, and the haze's light (.., 3)."""
    depth, length = _ground_rays(camera)
    own = np.exp(-length / look.haze_m).astype(np.float32)
    footprint_m = depth**2 / (camera.position_m[2] * camera.focal_px * OVERSAMPLING)
    seen = np.clip(4 * TEXEL_M / footprint_m, 0, 1) * np.ones_like(length)
    haze = (1 - own)[..., None] * np.array(look.haze)
    own *= look.ground_light
    return own, (own * seen * TEXTURE_DEPTH).astype(np.float32), haze.astype(np.float32)


def _weather_ground(canvas: np.ndarray, camera: Camera, scene: Scene) -> None:
    """Give the ground grain, so that motion shows, and haze."""
    own, grain, haze = _weather(camera, scene.look)
    ground = canvas[_canvas_horizon(camera) :]
    rows, columns = ground.shape[:2]
    # The grain is blurred by its weight anyway: half the canvas size is enough and takes a quarter.
    coarse = np.array([[2, 0, 0.5], [0, 2, 0.5], [0, 0, 1]])
    noise = cv2.warpPerspective(
        _texture(),
        _pixel_to_texel(camera, scene) @ coarse,
        ((columns + 1) // 2, (rows + 1) // 2),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_WRAP,
    )
    noise = cv2.resize(noise, None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    gain = own + grain * noise[:rows, :columns]
    lit = cv2.multiply(ground, cv2.merge([gain, gain, gain]), dtype=cv2.CV_32F)
    cv2.add(lit, haze, dst=ground, dtype=cv2.CV_8U)


def _pixel_to_texel(camera: Camera, scene: Scene) -> np.ndarray:
    """Homography (3, 3) from ground pixels of the canvas to the tile of grain."""
    focal = camera.focal_px * OVERSAMPLING
    cx, cy = (c * OVERSAMPLING + (OVERSAMPLING - 1) / 2 for c in camera.centre_px)
    height_m = camera.position_m[2]
    rows = cy - _canvas_horizon(camera)
    # Pixel (u, v, 1) to the ground point (forward, left, 1) from the camera, times v - horizon.
    to_camera = np.array([[0, 0, focal * height_m], [-height_m, 0, height_m * cx], [0, 1, -rows]])
    yaw = scene.ego_yaw_rad + camera.yaw_rad
    cos, sin = math.cos(scene.ego_yaw_rad), math.sin(scene.ego_yaw_rad)
    x, y, _ = camera.position_m
    # The tile repeats, so only the remainder of the place matters, and numbers stay small.
    tile_m = TEXTURE_PX * TEXEL_M
    place_x = (scene.ego_xy_m[0] + cos * x - sin * y) % tile_m
    place_y = (scene.ego_xy_m[1] + sin * x + cos * y) % tile_m
    cos, sin = math.cos(yaw), math.sin(yaw)
    to_map = np.array([[cos, -sin, place_x], [sin, cos, place_y], [0, 0, TEXEL_M]])
    return to_map @ to_camera


def _paint_solids(canvas: np.ndarray, camera: Camera, scene: Scene) -> None:
    """Paint solids from far to near; a face that looks away is not seen."""
    corners_m = np.concatenate([body.corners_m for body in scene.solids])
    counts = np.array([len(body.corners_m) for body in scene.solids])
    optical = camera.optical(_in_vehicle(scene, corners_m))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    distance_m = np.minimum.reduceat(np.linalg.norm(optical, axis=2).min(axis=1), starts)
    distance_m = np.repeat(distance_m, counts)
    faces = np.flatnonzero(_visible(camera, optical))
    faces = faces[np.argsort(-distance_m[faces], kind="stable")]
    own = np.concatenate([body.colours for body in scene.solids])[faces]
    glows = np.concatenate([body.glows for body in scene.solids])[faces]
    shaded = _shaded(own, corners_m[faces], distance_m[faces], scene.look)
    paints = np.where(glows[:, None], own, shaded).tolist()
    whole = np.all(optical[faces, :, 2] > NEAR_M, axis=1)
    safe = np.where(whole[:, None, None], optical[faces], (0.0, 0.0, 1.0))
    points = _to_canvas(camera, safe)
    for i, is_whole in enumerate(whole.tolist()):
        corners = points[i]
        if not is_whole:
            corners = _to_canvas(camera, clip_near(optical[faces[i]]))
        cv2.fillConvexPoly(canvas, corners, paints[i], cv2.LINE_8, SHIFT)


def _visible(camera: Camera, optical_m: np.ndarray) -> np.ndarray:
    """Which faces (F, 4, 3) look at the camera and reach into its view: bool (F,)."""
    normal = np.cross(optical_m[:, 1] - optical_m[:, 0], optical_m[:, 2] - optical_m[:, 0])
    # Optical axes (right, down, forward) are right-handed, so outward normals stay outward.
    towards = np.einsum("fi,fi->f", normal, optical_m[:, 0]) < 0
    right, down, forward = np.moveaxis(optical_m, 2, 0)
    wide = camera.width_px / 2 / camera.focal_px
    high = camera.height_px / 2 / camera.focal_px
    return (
        towards
        & (forward.max(axis=1) > NEAR_M)
        & (right - wide * forward < 0).any(axis=1)
        & (right + wide * forward > 0).any(axis=1)
        & (down - high * forward < 0).any(axis=1)
        & (down + high * forward > 0).any(axis=1)
    )


def _shaded(
    colours: np.ndarray, corners_m: np.ndarray, distance_m: np.ndarray, look: Look
) -> np.ndarray:
    """Colours (F, 3) of faces (F, 4, 3) in sunlight, seen through haze."""
    normal = np.cross(corners_m[:, 1] - corners_m[:, 0], corners_m[:, 2] - corners_m[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    light = look.ambient + look.diffuse * np.maximum(normal @ np.array(look.sun), 0)
    clear = np.exp(-distance_m / look.haze_m)[:, None]
    haze = np.array(look.haze) * (1 - clear)
    return np.minimum(colours * light[:, None], 255) * clear + haze
