"""Plans as autoware_planning_msgs/Trajectory, where Autoware's messages are installed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from alpamayo_ros.msg import DrivingPlan
from alpamayo_ros.types import UserError


@dataclass(frozen=True)
class TrajectoryTypes:
    """Autoware's message classes."""

    trajectory: type
    point: type


def load_trajectory_types() -> TrajectoryTypes:
    """The classes of autoware_planning_msgs.

    Raises:
        UserError: the package cannot be imported here.
    """
    try:
        messages = importlib.import_module("autoware_planning_msgs.msg")
    except ImportError:
        raise UserError(
            "output.autoware is true and autoware_planning_msgs cannot be imported: source the "
            "Autoware workspace before the node starts, or set output.autoware to false"
        ) from None
    return TrajectoryTypes(messages.Trajectory, messages.TrajectoryPoint)


def trajectory_message(types: TrajectoryTypes, plan: DrivingPlan) -> Any:
    """A plan as a Trajectory: the same stamp (t0), frame, poses and times from t0.

    A point's speed, acceleration and heading rate are those of the segment that ends at it, as
    DrivingPlan has them. A plan without waypoints gives an empty one: no valid plan.
    """
    return types.trajectory(
        header=plan.header,
        points=[
            types.point(
                time_from_start=waypoint.time_from_start,
                pose=waypoint.pose,
                longitudinal_velocity_mps=waypoint.speed,
                acceleration_mps2=waypoint.acceleration,
                heading_rate_rps=waypoint.speed * waypoint.curvature,
            )
            for waypoint in plan.waypoints
        ],
    )
