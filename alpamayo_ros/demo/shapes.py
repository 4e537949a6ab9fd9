"""Solids made of quadrangles: vehicles, trees, houses and posts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

Colour = tuple[int, int, int]

GLASS: Colour = (44, 54, 66)
RUBBER: Colour = (28, 28, 30)
FRAME: Colour = (245, 245, 242)
PAINT: dict[str, Colour] = {
    "red": (186, 40, 38),
    "blue": (38, 84, 160),
    "white": (232, 232, 228),
    "grey": (120, 126, 134),
    "van": (236, 190, 62),
}


@dataclass(frozen=True, eq=False)
class Solid:
    """An opaque body. Of faces that overlap in a picture, the later one is nearer."""

    corners_m: np.ndarray  # float64 (F, 4, 3), counter-clockwise seen from outside
    colours: np.ndarray  # float32 (F, 3) RGB before light and haze
    glows: np.ndarray  # bool (F,), lamps: neither sun nor haze changes their colour

    def at(self, x_m: float, y_m: float, yaw_rad: float = 0.0) -> Solid:
        """The body turned by yaw about its origin and moved there, on the ground."""
        cos, sin = math.cos(yaw_rad), math.sin(yaw_rad)
        turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        return Solid(self.corners_m @ turn.T + (x_m, y_m, 0.0), self.colours, self.glows)


@dataclass(frozen=True, eq=False)
class Face:
    """A quadrangle (4, 3): bottom left, bottom right, top right, top left, seen from outside."""

    corners_m: np.ndarray
    colour: Colour
    glows: bool = False

    def moved(self, x_m: float, y_m: float, z_m: float) -> Face:
        """The face elsewhere."""
        return Face(self.corners_m + (x_m, y_m, z_m), self.colour, self.glows)

    def patch(self, left: float, right: float, low: float, high: float, colour: Colour) -> Face:
        """The part of the face between fractions of its width and height."""
        a, b, c, d = self.corners_m

        def point(u: float, v: float) -> np.ndarray:
            return (a * (1 - u) + b * u) * (1 - v) + (d * (1 - u) + c * u) * v

        corners = [point(left, low), point(right, low), point(right, high), point(left, high)]
        return Face(np.array(corners), colour)


@dataclass(frozen=True)
class Rectangle:
    """An upright block's bottom or top: a rectangle parallel to the axes at one height."""

    x0_m: float
    x1_m: float
    width_m: float
    z_m: float

    def corners_m(self) -> np.ndarray:
        """Front left, rear left, rear right, front right: (4, 3)."""
        half = self.width_m / 2
        places = ((self.x1_m, half), (self.x0_m, half), (self.x0_m, -half), (self.x1_m, -half))
        return np.array([(x, y, self.z_m) for x, y in places])


@dataclass(frozen=True, eq=False)
class Block:
    """The faces of a block between two rectangles."""

    bottom: Face
    left: Face
    rear: Face
    right: Face
    front: Face
    top: Face

    def faces(self) -> list[Face]:
        """All six, in no order that matters: a block is convex."""
        return [self.bottom, self.left, self.rear, self.right, self.front, self.top]


def block(low: Rectangle, high: Rectangle, colour: Colour, top: Colour | None = None) -> Block:
    """A block with a colour, and perhaps another one on top."""
    b, t = low.corners_m(), high.corners_m()

    def side(i: int, j: int) -> Face:
        return Face(np.array([b[i], b[j], t[j], t[i]]), colour)

    return Block(
        Face(b[::-1], colour),
        side(0, 1),
        side(1, 2),
        side(2, 3),
        side(3, 0),
        Face(t, top or colour),
    )


def cuboid(x0_m: float, x1_m: float, width_m: float, z0_m: float, z1_m: float, c: Colour) -> Block:
    """An upright cuboid."""
    low = Rectangle(x0_m, x1_m, width_m, z0_m)
    return block(low, Rectangle(x0_m, x1_m, width_m, z1_m), c)


def solid(faces: Iterable[Face]) -> Solid:
    """A body of faces, nearer ones later."""
    listed = list(faces)
    corners = np.array([face.corners_m for face in listed])
    colours = np.array([face.colour for face in listed], np.float32)
    return Solid(corners, colours, np.array([face.glows for face in listed]))


def _wheel(x_m: float, side: int, half_width_m: float, radius_m: float) -> list[Face]:
    """An octagon flush with the left (side 1) or right (-1) flank, and its hub."""
    faces = []
    for radius, colour in ((radius_m, RUBBER), (radius_m * 0.55, (150, 152, 156))):
        angles = side * (math.pi / 8 + np.arange(8) * math.pi / 4)
        ring = np.column_stack(
            [
                x_m - radius * np.cos(angles),
                np.full(8, side * (half_width_m + 0.01)),
                radius_m + radius * np.sin(angles),
            ]
        )
        faces += [Face(ring[[0, 1, 2, 3]], colour), Face(ring[[0, 3, 4, 7]], colour)]
        faces.append(Face(ring[[4, 5, 6, 7]], colour))
    return faces


def _lamps(end: Face, colour: Colour, low: float, high: float) -> list[Face]:
    faces = [end.patch(0.04, 0.26, low, high, colour), end.patch(0.74, 0.96, low, high, colour)]
    return [replace(face, glows=max(colour) == 255) for face in faces]


def _flanks(half_width_m: float, axles_m: tuple[float, float], radius_m: float) -> list[Face]:
    return [
        face
        for side in (1, -1)
        for x_m in axles_m
        for face in _wheel(x_m, side, half_width_m, radius_m)
    ]


def car(paint: Colour, braking: bool) -> Solid:
    """A saloon 4.5 m long and 1.84 m wide, origin in its middle on the ground."""
    sill = cuboid(-2.25, 2.25, 1.84, 0.22, 0.55, paint)
    waist = block(Rectangle(-2.25, 2.25, 1.84, 0.55), Rectangle(-2.15, 2.05, 1.74, 0.9), paint)
    cabin = block(Rectangle(-1.95, 1.0, 1.66, 0.9), Rectangle(-1.35, 0.3, 1.3, 1.46), paint)
    lit = (255, 40, 30) if braking else (132, 18, 20)
    under = cuboid(-1.75, 1.8, 1.76, 0.0, 0.3, RUBBER)
    faces = (
        under.faces()
        + sill.faces()
        + [
            sill.rear.patch(0.03, 0.97, 0.0, 0.45, (58, 58, 60)),
            sill.front.patch(0.03, 0.97, 0.0, 0.5, (58, 58, 60)),
            sill.rear.patch(0.36, 0.64, 0.55, 0.95, (238, 238, 232)),
        ]
    )
    faces += waist.faces() + _lamps(waist.rear, lit, 0.25, 0.85)
    faces += _lamps(waist.front, (252, 250, 226), 0.2, 0.7)
    faces += _flanks(0.92, (-1.35, 1.4), 0.33)
    faces += cabin.faces() + [
        cabin.rear.patch(0.08, 0.92, 0.12, 0.88, GLASS),
        cabin.front.patch(0.06, 0.94, 0.1, 0.92, GLASS),
    ]
    for flank in (cabin.left, cabin.right):
        faces += [flank.patch(u, u + 0.4, 0.12, 0.86, GLASS) for u in (0.08, 0.52)]
    if braking:
        faces.append(replace(cabin.rear.patch(0.35, 0.65, 0.86, 0.99, lit), glows=True))
    return solid(faces)


def van(paint: Colour, braking: bool) -> Solid:
    """A delivery van 5.6 m long and 2.05 m wide, origin in its middle on the ground."""
    body = cuboid(-2.8, 1.5, 2.05, 0.35, 2.45, paint)
    nose = block(Rectangle(1.5, 2.8, 2.0, 0.35), Rectangle(1.5, 2.7, 1.95, 1.15), paint)
    cab = block(Rectangle(1.5, 2.6, 1.95, 1.15), Rectangle(1.5, 1.75, 1.85, 2.2), paint)
    lit = (255, 40, 30) if braking else (132, 18, 20)
    bumper: Colour = (58, 58, 60)
    under = cuboid(-2.1, 2.2, 1.9, 0.0, 0.5, RUBBER)
    # Seen from ahead, nose and cab hide the body's front; seen from behind, the rest of the body
    # hides them; its flanks never cross them in a picture, for the nose is narrower.
    faces = [
        *under.faces(),
        body.front,
        *nose.faces(),
        nose.front.patch(0.03, 0.97, 0.0, 0.3, bumper),
    ]
    faces += _lamps(nose.front, (252, 250, 226), 0.5, 0.8)
    faces += [*cab.faces(), cab.front.patch(0.06, 0.94, 0.08, 0.92, GLASS)]
    faces += [flank.patch(0.1, 0.9, 0.15, 0.8, GLASS) for flank in (cab.left, cab.right)]
    rear = body.rear
    faces += [body.bottom, body.left, body.right, body.top, rear]
    faces += [
        rear.patch(0.02, 0.98, 0.0, 0.1, bumper),
        rear.patch(0.495, 0.505, 0.1, 0.97, (150, 116, 30)),
        rear.patch(0.1, 0.45, 0.58, 0.88, GLASS),
        rear.patch(0.55, 0.9, 0.58, 0.88, GLASS),
        rear.patch(0.38, 0.62, 0.13, 0.2, (238, 238, 232)),
        *(
            replace(rear.patch(left, left + 0.14, 0.2, 0.42, lit), glows=braking)
            for left in (0.01, 0.85)
        ),
    ]
    return solid(faces + _flanks(1.025, (-1.7, 1.75), 0.36))


VEHICLE_SHAPES = {
    (model, braking): (van if model == "van" else car)(paint, braking)
    for model, paint in PAINT.items()
    for braking in (False, True)
}


def _lathe(profile_m: list[tuple[float, float]], sides: int, colours: np.ndarray) -> list[Face]:
    """Rings (radius, height) from the bottom up, joined by sides; colours (rings - 1, sides, 3)."""
    angles = np.arange(sides + 1) * 2 * math.pi / sides
    faces = []
    for i, ((r0, z0), (r1, z1)) in enumerate(pairwise(profile_m)):
        for j in range(sides):
            ends = angles[[j, j + 1, j + 1, j]]
            radii, heights = np.array([r0, r0, r1, r1]), np.array([z0, z0, z1, z1])
            corners = np.column_stack([radii * np.cos(ends), radii * np.sin(ends), heights])
            red, green, blue = (int(c) for c in colours[i, j])
            faces.append(Face(corners, (red, green, blue)))
    return faces


def tree(rng: np.random.Generator) -> Solid:
    """A round or a pointed tree, 5 to 9 m high."""
    size = float(rng.uniform(0.85, 1.35))
    if rng.random() < 0.6:
        profile = [(0.5, 1.9), (1.6, 2.7), (2.0, 4.0), (1.4, 5.4), (0.3, 6.2)]
        green = np.array([74, 118, 50])
    else:
        profile = [(1.5, 1.2), (1.1, 2.9), (0.75, 4.6), (0.05, 6.6)]
        green = np.array([44, 88, 56])
    scaled = [(radius * size, height * size) for radius, height in profile]
    rings = (len(profile) - 1, 8, 1)
    colours = green + rng.integers(-14, 15, rings) + rng.integers(-12, 13, 3)
    trunk = cuboid(-0.16, 0.16, 0.32, 0.0, scaled[0][1] + 0.3, (92, 72, 54))
    return solid(trunk.faces() + _lathe(scaled, 8, np.clip(colours, 0, 255)))


def house(rng: np.random.Generator) -> Solid:
    """A house along x with a gable roof, windows and a door towards both long sides."""
    length, width, eaves = (float(rng.uniform(*span)) for span in ((9, 14), (7, 9), (3.2, 5.6)))
    walls: list[Colour] = [(226, 214, 190), (214, 190, 160), (200, 204, 206), (190, 128, 104)]
    roofs: list[Colour] = [(142, 68, 52), (96, 92, 94), (120, 84, 66)]
    wall, tiles = walls[rng.integers(len(walls))], roofs[rng.integers(len(roofs))]
    body = cuboid(-length / 2, length / 2, width, 0.0, eaves, wall)
    faces = body.faces()
    for front in (body.left, body.right):
        faces += _windows_and_door(front, eaves)
    return solid(faces + _roof(body, eaves + width * 0.38, tiles))


def _windows_and_door(front: Face, eaves_m: float) -> list[Face]:
    storeys = [(0.3, 0.62)] if eaves_m < 4.2 else [(0.18, 0.4), (0.62, 0.84)]
    faces = [front.patch(0.46, 0.54, 0.0, 2.1 / eaves_m, (96, 62, 44))]
    for low, high in storeys:
        for left in (0.08, 0.3, 0.6, 0.82):
            faces.append(front.patch(left - 0.01, left + 0.11, low - 0.02, high + 0.02, FRAME))
            faces.append(front.patch(left, left + 0.1, low, high, GLASS))
    return faces


def _roof(body: Block, ridge_m: float, tiles: Colour) -> list[Face]:
    """Two slopes over the long sides, a little wider than the walls, and the gables."""
    front_left, rear_left, rear_right, front_right = body.top.corners_m

    def triangle(left: np.ndarray, right: np.ndarray) -> Face:
        peak = np.array([left[0], 0.0, ridge_m])
        return Face(np.array([left, right, peak, peak]), body.top.colour)

    def slope(left: np.ndarray, right: np.ndarray) -> Face:
        outwards = np.array([1.04, 1.1, 1.0])
        ridge = [np.array([end[0] * 1.04, 0.0, ridge_m]) for end in (right, left)]
        return Face(np.array([left * outwards, right * outwards, *ridge]), tiles)

    gables = [triangle(rear_left, rear_right), triangle(front_right, front_left)]
    return gables + [slope(front_left, rear_left), slope(rear_right, front_right)]


def post() -> Solid:
    """A white guide post with a black band, 1 m high."""
    body = cuboid(-0.06, 0.06, 0.14, 0.0, 1.0, (240, 240, 236))
    sides = (body.left, body.rear, body.right, body.front)
    return solid(body.faces() + [side.patch(0, 1, 0.68, 0.88, (30, 30, 32)) for side in sides])
