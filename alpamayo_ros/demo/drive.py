"""A synthetic drive: who is where at any time, what is seen, what comes next, and why."""

from __future__ import annotations

import math

import numpy as np

from alpamayo_ros.demo.causes import Cause
from alpamayo_ros.demo.course import random_course
from alpamayo_ros.demo.ego import FRONT_M, simulate
from alpamayo_ros.demo.ego import STEP_S as RUN_STEP_S
from alpamayo_ros.demo.judgement import EVERY_S, judge
from alpamayo_ros.demo.look import random_look
from alpamayo_ros.demo.navigation import PHRASES, navigation_text
from alpamayo_ros.demo.pedestrians import CLOTHES, PEOPLE, STRIDES_M, Walker
from alpamayo_ros.demo.road import ASPHALT_HALF_M, EGO_LANE_M, LANE_WIDTH_M
from alpamayo_ros.demo.scene import Scene, Surface
from alpamayo_ros.demo.scenery import Scenery
from alpamayo_ros.demo.shapes import VEHICLE_SHAPES, Solid
from alpamayo_ros.demo.signals import GANTRIES, POST_HEAD_M, POSTS, Signal
from alpamayo_ros.demo.traffic import Actor, Traffic
from alpamayo_ros.demo.vehicle import VehicleState
from alpamayo_ros.types import STEP_S, WAYPOINTS

# Seed 0 is the demo's drive; nothing is ever trained on the held-out ones.
HELD_OUT_SEEDS = range(1000)
TRAINING_SEEDS = range(1000, 1_000_000)

# Random streams of the course, the light, the plants, the traffic and the words. With these the
# demo's drive, in daylight, meets a bend, an intersection and a pedestrian within its first 20 s.
SALT, STREAMS = 804, (0, 10, 2, 3, 4)
MAX_DURATION_S = 80.0
FUTURE_S = 7.0  # what is simulated beyond it, for the future of the last moment
VIEW_BEHIND_M = 45.0
VIEW_AHEAD_M = 260.0
PERSON_M = 0.7  # breadth from above
SHADOW = (56, 57, 62)


class Drive:
    """A drive fixed by its seed, simulated once as a whole."""

    duration_s = MAX_DURATION_S

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        plan, look, plants, others, words = (
            np.random.default_rng([seed, SALT, stream]) for stream in STREAMS
        )
        self.course = random_course(plan, MAX_DURATION_S + FUTURE_S, VIEW_AHEAD_M)
        self.road = self.course.road
        self.run = simulate(self.course, MAX_DURATION_S + FUTURE_S)
        self.look = random_look(look)
        self.scenery = Scenery(self.course, plants)
        self.traffic = Traffic(self.course, self.run, others)
        self._causes = judge(self.course, self.run, MAX_DURATION_S)
        self._phrases = [PHRASES[words.integers(len(PHRASES))] for _ in self.course.junctions]

    def state_at(self, t_s: float) -> VehicleState:
        """The ego's rear axle at t_s, map frame.

        Raises:
            ValueError: t_s is outside 0 .. MAX_DURATION_S + FUTURE_S.
        """
        s_m, speed, acceleration = self._ego_at(t_s)
        point = self.road.at(s_m)
        x_m, y_m = point.ahead(0.0, EGO_LANE_M)
        bend = point.curvature_1_m / (1 - point.curvature_1_m * EGO_LANE_M)
        return VehicleState(x_m, y_m, point.heading_rad, speed, acceleration, bend)

    def place_m(self, t_s: float) -> float:
        """Arc length of the route where the ego's rear axle is at t_s."""
        return self._ego_at(t_s)[0]

    def cause_at(self, t_s: float) -> Cause:
        """What binds the ego over the next seconds, and what it does."""
        return self._causes[min(int(t_s / EVERY_S + 1e-6), len(self._causes) - 1)]

    def navigation_at(self, t_s: float) -> str:
        """The instruction in force at t_s, "" where there is none."""
        s_m, speed, _ = self._ego_at(t_s)
        spoken = (
            navigation_text(junction.plan, phrase, s_m + FRONT_M, speed)
            for junction, phrase in zip(self.course.junctions, self._phrases)
        )
        return next((text for text in spoken if text), "")

    def actors_at(self, t_s: float) -> list[Actor]:
        """The other vehicles in view at t_s, map frame."""
        return self.traffic.actors(t_s, VIEW_BEHIND_M, VIEW_AHEAD_M)

    def scene_at(self, t_s: float) -> Scene:
        """What there is to see at t_s."""
        state, s_m = self.state_at(t_s), self.place_m(t_s)
        span = max(s_m - VIEW_BEHIND_M, 0.0), s_m + VIEW_AHEAD_M
        actors = self.actors_at(t_s)
        vehicles = [
            VEHICLE_SHAPES[actor.model, actor.braking].at(actor.x_m, actor.y_m, actor.yaw_rad)
            for actor in actors
        ]
        shadow = Surface(tuple(outline_m(actor, margin_m=0.12) for actor in actors), SHADOW)
        xy_m = (state.x_m, state.y_m)
        return Scene(
            xy_m,
            state.yaw_rad,
            (*self.scenery.surfaces(*span), self.scenery.repairs(*span), shadow),
            (*self.scenery.solids(xy_m, state.yaw_rad), *vehicles, *self._crossing(t_s, *span)),
            self.look,
        )

    def _crossing(self, t_s: float, from_m: float, to_m: float) -> list[Solid]:
        """Walkers and traffic lights between two arc lengths."""
        bodies = []
        for hindrance in self.run.hindrances:
            if not from_m < hindrance.from_m < to_m:
                continue
            thing, point = hindrance.thing, self.road.at(hindrance.from_m)
            if isinstance(thing, Walker):
                lateral_m = thing.lateral_m(t_s)
                walks = thing.start_s < t_s and abs(lateral_m) < 7.4
                stride = STRIDES_M[int(t_s * 3.2) % len(STRIDES_M)] if walks else 0.0
                body = PEOPLE[CLOTHES[thing.clothes], stride]
                facing = point.heading_rad - thing.side * math.pi / 2
                bodies.append(body.at(*point.ahead(0.0, lateral_m), facing))
            elif isinstance(thing, Signal):
                phase, yaw = thing.phase(t_s), point.heading_rad
                bodies.append(POSTS[phase].at(*point.ahead(POST_HEAD_M), yaw))
                bodies.append(GANTRIES[phase].at(*point.ahead(thing.gantry_m), yaw))
        return bodies

    def future_xyyaw(self, t_s: float) -> np.ndarray:
        """Where the ego will be: float64 (64, 3) x_m, y_m, yaw_rad in the ego frame at t_s."""
        states = [self.state_at(t_s + STEP_S * k) for k in range(1, WAYPOINTS + 1)]
        xy = np.array([(state.x_m, state.y_m) for state in states])
        now = self.state_at(t_s)
        yaw = [math.remainder(state.yaw_rad - now.yaw_rad, 2 * math.pi) for state in states]
        return np.column_stack([in_ego_frame(now, xy), yaw])

    def lane_lines(self, t_s: float) -> tuple[np.ndarray, ...]:
        """Kerbs and lane lines near the ego, each (N, 2) m in the ego frame at t_s.

        First the five of the first stretch of road from left to right, then those of others, then
        the rounded corners of intersections, which no line crosses.
        """
        state, s_m = self.state_at(t_s), self.place_m(t_s)
        span = s_m - VIEW_BEHIND_M, s_m + VIEW_AHEAD_M
        laterals = (ASPHALT_HALF_M, LANE_WIDTH_M - 0.1, 0.0, 0.1 - LANE_WIDTH_M, -ASPHALT_HALF_M)
        lines = [
            stretch.road.points_m(along_m, lateral)
            for stretch, along_m in self.scenery.stretches(*span)
            for lateral in laterals
        ]
        lines += [
            line for junction in self.scenery.junctions(*span) for line in junction.corners_m()
        ]
        return tuple(in_ego_frame(state, line) for line in lines)

    def actor_outlines(self, t_s: float) -> tuple[np.ndarray, ...]:
        """Corners (4, 2) m of the other vehicles and the people in view, ego frame at t_s."""
        state, s_m = self.state_at(t_s), self.place_m(t_s)
        outlines = [outline_m(actor) for actor in self.actors_at(t_s)]
        for hindrance in self.run.hindrances:
            walker = hindrance.thing
            near = -VIEW_BEHIND_M < hindrance.from_m - s_m < VIEW_AHEAD_M
            if near and isinstance(walker, Walker):
                place_m = self.road.at(walker.zebra_m).ahead(0.0, walker.lateral_m(t_s))
                outlines.append(
                    place_m + PERSON_M / 2 * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
                )
        return tuple(in_ego_frame(state, outline) for outline in outlines)

    def _ego_at(self, t_s: float) -> tuple[float, float, float]:
        """Arc length, speed and acceleration, linear between steps."""
        last_s = MAX_DURATION_S + FUTURE_S
        if not 0 <= t_s <= last_s:
            raise ValueError(f"time {t_s} s: a drive lasts from 0 to {MAX_DURATION_S} s")
        run = self.run
        place = min(t_s / RUN_STEP_S, len(run.s_m) - 1.000001)
        i = int(place)
        part = place - i
        return (
            float(run.s_m[i] + part * (run.s_m[i + 1] - run.s_m[i])),
            float(run.speed_m_s[i] + part * (run.speed_m_s[i + 1] - run.speed_m_s[i])),
            float(
                run.acceleration_m_s2[i]
                + part * (run.acceleration_m_s2[i + 1] - run.acceleration_m_s2[i])
            ),
        )


def outline_m(actor: Actor, margin_m: float = 0.0) -> np.ndarray:
    """Corners (4, 2) of a vehicle in the map, from front left counter-clockwise."""
    x, y = actor.length_m / 2 + margin_m, actor.width_m / 2 + margin_m
    cos, sin = math.cos(actor.yaw_rad), math.sin(actor.yaw_rad)
    corners = np.array([[x, y], [-x, y], [-x, -y], [x, -y]])
    return corners @ np.array([[cos, sin], [-sin, cos]]) + (actor.x_m, actor.y_m)


def in_ego_frame(state: VehicleState, xy_m: np.ndarray) -> np.ndarray:
    """Map points (N, 2) in the frame of a vehicle: x forward, y left."""
    cos, sin = math.cos(state.yaw_rad), math.sin(state.yaw_rad)
    return (xy_m - (state.x_m, state.y_m)) @ np.array([[cos, -sin], [sin, cos]])
