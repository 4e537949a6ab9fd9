"""A synthetic drive: who is where at any time, what is seen, and what comes next."""

from __future__ import annotations

import math

import numpy as np

from alpamayo_ros.demo.road import ASPHALT_HALF_M, LANE_WIDTH_M, Road
from alpamayo_ros.demo.scene import Scene, Surface
from alpamayo_ros.demo.scenery import Scenery
from alpamayo_ros.demo.shapes import VEHICLE_SHAPES
from alpamayo_ros.demo.traffic import Actor, Traffic, World
from alpamayo_ros.demo.vehicle import VehicleState
from alpamayo_ros.types import STEP_S, WAYPOINTS

MAX_DURATION_S = 300.0
ROAD_LENGTH_M = 5000.0  # more than MAX_DURATION_S at the highest desired speed, and the view
STEPS_PER_S = 100
VIEW_BEHIND_M = 45.0
VIEW_AHEAD_M = 260.0
SHADOW = (56, 57, 62)


class Drive:
    """A drive fixed by its seed. The state at t depends on earlier states only."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.seed = seed
        self.road = Road.random(rng, ROAD_LENGTH_M)
        self.traffic = Traffic.random(rng, self.road)
        self.scenery = Scenery(self.road, rng)
        self._worlds = [self.traffic.first(self.road)]

    def world_at(self, t_s: float) -> World:
        """Everybody's state at t_s, integrated at 100 Hz and for the rest with one short step.

        Raises:
            ValueError: t_s is outside 0 .. MAX_DURATION_S + 10.
        """
        if not 0 <= t_s <= MAX_DURATION_S + 10:
            raise ValueError(f"time {t_s} s: a drive lasts from 0 to {MAX_DURATION_S} s")
        whole = math.floor(t_s * STEPS_PER_S + 1e-6)
        while len(self._worlds) <= whole:
            last = self._worlds[-1]
            self._worlds.append(self.traffic.step(last, self.road, 1 / STEPS_PER_S))
        rest_s = t_s - whole / STEPS_PER_S
        world = self._worlds[whole]
        return self.traffic.step(world, self.road, rest_s) if rest_s > 1e-9 else world

    def state_at(self, t_s: float) -> VehicleState:
        """The ego's rear axle at t_s, map frame."""
        return self.world_at(t_s).ego.state

    def actors_at(self, t_s: float) -> list[Actor]:
        """The other vehicles in view at t_s, map frame."""
        world = self.world_at(t_s)
        return self.traffic.actors(world, self.road, VIEW_BEHIND_M, VIEW_AHEAD_M)

    def scene_at(self, t_s: float) -> Scene:
        """What there is to see at t_s."""
        world = self.world_at(t_s)
        ego = world.ego
        span = ego.s_m - VIEW_BEHIND_M, ego.s_m + VIEW_AHEAD_M
        actors = self.traffic.actors(world, self.road, VIEW_BEHIND_M, VIEW_AHEAD_M)
        bodies = [
            VEHICLE_SHAPES[actor.model, actor.braking].at(actor.x_m, actor.y_m, actor.yaw_rad)
            for actor in actors
        ]
        shadow = Surface(tuple(outline_m(actor, margin_m=0.12) for actor in actors), SHADOW)
        return Scene(
            (ego.state.x_m, ego.state.y_m),
            ego.state.yaw_rad,
            (*self.scenery.surfaces(*span), shadow),
            (*self.scenery.solids(*span), *bodies),
        )

    def future_xyyaw(self, t_s: float) -> np.ndarray:
        """Where the ego will be: float64 (64, 3) x_m, y_m, yaw_rad in the ego frame at t_s."""
        states = [self.state_at(t_s + STEP_S * k) for k in range(1, WAYPOINTS + 1)]
        xy = np.array([(state.x_m, state.y_m) for state in states])
        now = self.state_at(t_s)
        yaw = [math.remainder(state.yaw_rad - now.yaw_rad, 2 * math.pi) for state in states]
        return np.column_stack([in_ego_frame(now, xy), yaw])

    def lane_lines(self, t_s: float) -> tuple[np.ndarray, ...]:
        """Kerbs and lane lines near the ego, each (N, 2) m in the ego frame at t_s, from left."""
        world = self.world_at(t_s)
        near = (self.road.s_m > world.ego.s_m - VIEW_BEHIND_M) & (
            self.road.s_m < world.ego.s_m + VIEW_AHEAD_M
        )
        s_m = self.road.s_m[near][::4]
        laterals = (ASPHALT_HALF_M, LANE_WIDTH_M - 0.1, 0.0, 0.1 - LANE_WIDTH_M, -ASPHALT_HALF_M)
        return tuple(
            in_ego_frame(world.ego.state, self.road.points_m(s_m, lateral)) for lateral in laterals
        )

    def actor_outlines(self, t_s: float) -> tuple[np.ndarray, ...]:
        """Corners (4, 2) m of the other vehicles in view, ego frame at t_s."""
        state = self.state_at(t_s)
        return tuple(in_ego_frame(state, outline_m(actor)) for actor in self.actors_at(t_s))


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
