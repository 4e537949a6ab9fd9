"""A plan drawn into the front image, and seen from above.

Plans come from a model and may hold anything: what is not finite or far outside is left out, and
nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np

from alpamayo_ros.demo.cameras import Camera
from alpamayo_ros.demo.render import clip_near
from alpamayo_ros.demo.traffic import EGO_LENGTH_M, EGO_REAR_OVERHANG_M, EGO_WIDTH_M
from alpamayo_ros.types import STEP_S

Colour = tuple[int, int, int]

FARTHEST_M = 1000.0  # what lies beyond is not drawn, so corners fit OpenCV's 32-bit integers
SHIFT = 4  # fractional bits of the corners given to OpenCV

REJECTED: Colour = (222, 52, 44)
SPEEDS_M_S = (0.0, 6.0, 12.0, 20.0)
SPEED_COLOURS = np.array([(70, 60, 220), (30, 130, 240), (20, 200, 190), (160, 235, 70)])
RIBBON_OPACITY = 0.55

PAPER: Colour = (248, 248, 246)
GRID: Colour = (222, 224, 226)
INK: Colour = (70, 74, 80)
LANES: Colour = (160, 164, 170)
OTHERS: Colour = (128, 138, 156)
EGO: Colour = (40, 44, 52)
PAST: Colour = (120, 126, 200)
TRUTH: Colour = (235, 160, 30)
PLAN: Colour = (24, 110, 230)
SAMPLE: Colour = (150, 192, 240)
BEHIND_M = 14.0
AHEAD_RANGE_M = (36.0, 120.0)
GRID_M = 10


def draw_plan_in_front(
    image_rgb: np.ndarray,
    camera: Camera,
    waypoints: np.ndarray,
    accepted: bool = True,
    width_m: float = EGO_WIDTH_M,
) -> np.ndarray:
    """The image with the plan as a translucent ribbon on the ground.

    Args:
        image_rgb: uint8 (H, W, 3), taken by `camera` at the plan's t0.
        camera: its mounting is relative to the ego frame, whose z = 0 is the ground.
        waypoints: (N, 3) x_m, y_m, yaw_rad in the ego frame; the ribbon starts at the ego.
        accepted: coloured by speed (blue is slow, green fast); otherwise red.
        width_m: of the ribbon.

    Returns:
        A new uint8 (H, W, 3) RGB image.
    """
    painted = image_rgb.copy()
    ribbon = np.zeros(image_rgb.shape[:2], np.uint8)
    for start, end in _segments(np.asarray(waypoints, np.float64)):
        corners_m = np.vstack([_ends(start, width_m), _ends(end, width_m)[::-1]])
        on_ground = np.column_stack([corners_m, np.zeros(4)])
        visible = clip_near(camera.optical(on_ground))
        if len(visible) < 3:
            continue
        corners = _fixed(camera.pixels(visible))
        speed_m_s = float(np.hypot(*(end - start)[:2])) / STEP_S
        colour = speed_colour(speed_m_s) if accepted else REJECTED
        cv2.fillPoly(painted, [corners], colour, cv2.LINE_8, SHIFT)
        cv2.fillPoly(ribbon, [corners], (255,), cv2.LINE_8, SHIFT)
    part = (cv2.GaussianBlur(ribbon, (3, 3), 0) / 255.0 * RIBBON_OPACITY)[..., None]
    blended = image_rgb * (1 - part) + painted * part
    edge = cv2.morphologyEx(ribbon, cv2.MORPH_GRADIENT, np.ones((2, 2), np.uint8))
    blended += (edge / 255.0)[..., None] * 0.5 * (255 - blended)
    return np.round(blended).astype(np.uint8)


def speed_colour(speed_m_s: float) -> Colour:
    """Blue for standstill over cyan to green for 20 m/s and more."""
    red, green, blue = (
        round(float(np.interp(speed_m_s, SPEEDS_M_S, SPEED_COLOURS[:, channel])))
        for channel in range(3)
    )
    return red, green, blue


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What else to show in a view from above; all of it in the ego frame at t0, metres."""

    lane_lines: Sequence[np.ndarray] = ()  # each (N, 2)
    outlines: Sequence[np.ndarray] = ()  # other vehicles, each (4, 2)
    truth: np.ndarray | None = None  # (N, 2) or (N, 3), where the ego really went


def draw_from_above(
    waypoints: np.ndarray,
    samples: np.ndarray,
    history: np.ndarray,
    surroundings: Surroundings | None = None,
    accepted: bool = True,
    size_px: tuple[int, int] = (400, 640),
) -> np.ndarray:
    """The plan from above, ahead is up: uint8 (height, width, 3) RGB.

    Args:
        waypoints: (N, 3) of the chosen sample, ego frame at t0, metres.
        samples: (S, N, 3) all samples.
        history: (K, 2) or (K, 3) past positions.
        surroundings: lane lines, vehicles and truth, where they are known.
        accepted: the plan is blue; otherwise red.
        size_px: width and height.
    """
    around = surroundings or Surroundings()
    lines = [waypoints] if around.truth is None else [waypoints, around.truth]
    sheet = _Sheet.around(lines, size_px)
    sheet.grid()
    for line in around.lane_lines:
        sheet.line(line, LANES, 0.16)
    for outline in around.outlines:
        sheet.polygon(outline, OTHERS)
    for sample in samples:
        sheet.line(_from_ego(sample), SAMPLE, 0.18)
    sheet.line(history, PAST, 0.5)
    if around.truth is not None:
        sheet.line(_from_ego(around.truth), TRUTH, 1.0)
    plan = PLAN if accepted else REJECTED
    sheet.line(_from_ego(waypoints), plan, 0.5)
    sheet.dots(waypoints[9::10], plan, 0.7)
    half = EGO_WIDTH_M / 2
    rear, front = -EGO_REAR_OVERHANG_M, EGO_LENGTH_M - EGO_REAR_OVERHANG_M
    sheet.polygon(np.array([[front, half], [rear, half], [rear, -half], [front, -half]]), EGO)
    legend = [(plan, "plan, a dot a second" if accepted else "plan (rejected)"), (PAST, "past")]
    if around.truth is not None:
        legend.append((TRUTH, "driven"))
    sheet.legend(legend)
    return sheet.finished()


@dataclass(frozen=True, eq=False)
class _Sheet:
    """A canvas of twice the size on which metres of the ego frame are drawn."""

    canvas: np.ndarray  # uint8 (2 H, 2 W, 3)
    px_per_m: float
    origin_px: tuple[float, float]  # column and row of the ego

    @classmethod
    def around(cls, lines: Sequence[np.ndarray], size_px: tuple[int, int]) -> _Sheet:
        width, height = 2 * size_px[0], 2 * size_px[1]
        ahead = [line[_drawable(line), 0].max(initial=0.0) for line in lines]
        ahead_m = min(max(max(ahead) + 6, AHEAD_RANGE_M[0]), AHEAD_RANGE_M[1])
        px_per_m = height / (ahead_m + BEHIND_M)
        canvas = np.full((height, width, 3), PAPER, np.uint8)
        return cls(canvas, px_per_m, (width / 2, height - BEHIND_M * px_per_m))

    def pixels(self, points_m: np.ndarray) -> np.ndarray:
        """Fixed-point (N, 2) int32 of drawable points (N, 2 or more)."""
        x, y = points_m[:, 0], points_m[:, 1]
        column = self.origin_px[0] - y * self.px_per_m
        return _fixed(np.column_stack([column, self.origin_px[1] - x * self.px_per_m]))

    def width_px(self, width_m: float) -> int:
        return max(2, round(width_m * self.px_per_m))

    def line(self, points_m: np.ndarray, colour: Colour, width_m: float) -> None:
        """A line through points, broken where one cannot be drawn."""
        drawable = _drawable(points_m)
        breaks = np.flatnonzero(np.diff(drawable.astype(int))) + 1
        for part, kept in zip(np.split(points_m, breaks), np.split(drawable, breaks)):
            if kept.all() and len(part):
                width = self.width_px(width_m)
                pixels = [self.pixels(part)]
                cv2.polylines(self.canvas, pixels, False, colour, width, cv2.LINE_AA, SHIFT)

    def dots(self, points_m: np.ndarray, colour: Colour, radius_m: float) -> None:
        radius = self.width_px(radius_m) << SHIFT
        for column, row in self.pixels(points_m[_drawable(points_m)]).tolist():
            cv2.circle(self.canvas, (column, row), radius, colour, -1, cv2.LINE_AA, SHIFT)

    def polygon(self, corners_m: np.ndarray, colour: Colour) -> None:
        if _drawable(corners_m).all():
            cv2.fillPoly(self.canvas, [self.pixels(corners_m)], colour, cv2.LINE_AA, SHIFT)

    def text(self, words: str, column: float, row: float) -> None:
        place = (round(column), round(row))
        font = cv2.FONT_HERSHEY_SIMPLEX
        cv2.putText(self.canvas, words, place, font, 0.8, INK, 2, cv2.LINE_AA)

    def grid(self) -> None:
        """Lines every 10 m, named by their distance ahead."""
        height, width = self.canvas.shape[:2]
        reach = GRID_M * int(max(height, width) / self.px_per_m / GRID_M + 1)
        for metres in range(-reach, reach + 1, GRID_M):
            across = np.array([[metres, -reach], [metres, reach]], np.float64)
            self.line(across, GRID, 0.0)
            self.line(across[:, ::-1], GRID, 0.0)
            row = self.origin_px[1] - metres * self.px_per_m
            if metres >= 0 and row > 30:
                self.text(f"{metres} m", 8, row - 8)

    def legend(self, entries: Sequence[tuple[Colour, str]]) -> None:
        height, width = self.canvas.shape[:2]
        for i, (colour, words) in enumerate(reversed(entries)):
            row = height - 20 - 32 * i
            cv2.rectangle(self.canvas, (width - 320, row - 16), (width - 296, row), colour, -1)
            self.text(words, width - 284, row)

    def finished(self) -> np.ndarray:
        height, width = self.canvas.shape[:2]
        return cv2.resize(self.canvas, (width // 2, height // 2), interpolation=cv2.INTER_AREA)


def _drawable(points: np.ndarray) -> np.ndarray:
    """Which rows (N,) are finite and near enough."""
    return np.all(np.abs(points[:, :2]) < FARTHEST_M, axis=1)  # NaN compares false


def _from_ego(points_m: np.ndarray) -> np.ndarray:
    """Positions (N + 1, 2) that begin at the ego."""
    return np.vstack([np.zeros(2), points_m[:, :2]])


def _segments(waypoints: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Neighbouring poses (x_m, y_m, yaw_rad) from the ego on, where both can be drawn."""
    poses = np.vstack([np.zeros(3), waypoints[:, :3]])
    usable = _drawable(poses) & np.isfinite(poses[:, 2])
    for i, j in pairwise(range(len(poses))):
        if usable[i] and usable[j]:
            yield poses[i], poses[j]


def _ends(pose: np.ndarray, width_m: float) -> np.ndarray:
    """The left and right end (2, 2) of the ribbon's cross-section at a pose."""
    x, y, yaw = pose
    left = np.array([-np.sin(yaw), np.cos(yaw)]) * width_m / 2
    return np.array([(x, y) + left, (x, y) - left])


def _fixed(pixels: np.ndarray) -> np.ndarray:
    """Pixels (N, 2) as OpenCV's fixed-point int32."""
    return np.round(pixels * (1 << SHIFT)).astype(np.int32)
