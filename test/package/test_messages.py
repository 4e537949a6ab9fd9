"""The message definitions: what they promise on the wire, and how well they explain it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from rclpy.serialization import deserialize_message, serialize_message

from alpamayo_ros.msg import DrivingPlan, PlannerStatus, Waypoint

MSG = Path(__file__).parents[2] / "msg"

WAYPOINT = {
    "time_from_start": "builtin_interfaces/Duration",
    "pose": "geometry_msgs/Pose",
    "speed": "float",
    "acceleration": "float",
    "curvature": "float",
}
DRIVING_PLAN = {
    "header": "std_msgs/Header",
    "child_frame_id": "string",
    "ego_pose": "geometry_msgs/Pose",
    "ego_speed": "double",
    "waypoints": "sequence<alpamayo_ros/Waypoint>",
    "reasoning": "string",
    "truncated": "boolean",
    "navigation_text": "string",
    "num_samples": "uint8",
    "spread": "float",
    "stage_names": "sequence<string>",
    "stage_times_ms": "sequence<float>",
    "verdict": "uint8",
    "reasons": "sequence<string>",
    "model_id": "string",
    "seed": "uint64",
}
PLANNER_STATUS = {
    "header": "std_msgs/Header",
    "state": "string",
    "plan_valid": "boolean",
    "plan_age": "float",
    "last_refusal": "string",
    "last_refusal_detail": "string",
    "last_error": "string",
    "model_id": "string",
    "demo_model": "boolean",
    "device": "string",
    "gate_mode": "string",
    "snapshots": "uint64",
    "plans": "uint64",
    "accepted": "uint64",
    "rejected": "uint64",
    "refusal_reasons": "sequence<string>",
    "refusal_counts": "sequence<uint64>",
    "rejection_reasons": "sequence<string>",
    "rejection_counts": "sequence<uint64>",
    "decision_time_median_ms": "float",
}

# What the comment of a field has to say: the unit of a number, the frame of a pose.
UNIT = re.compile(r"\b(m|m/s|m/s2|1/m|Metres|Seconds|Milliseconds|Number)\b", re.IGNORECASE)
FRAME = re.compile(r"\bframe\b", re.IGNORECASE)
NEEDED = {
    "geometry_msgs/Pose": FRAME,
    "Waypoint[]": FRAME,
    "builtin_interfaces/Duration": UNIT,
    "float32": UNIT,
    "float64": UNIT,
    "uint64": UNIT,
}


@dataclass(frozen=True)
class Line:
    """A field or constant of a definition, with the comment above it and behind it."""

    type: str
    name: str
    comment: str


def lines(path: Path) -> list[Line]:
    """Fields and constants of a definition. A comment ends with an empty line or a field."""
    found = []
    comment = ""
    for text in path.read_text(encoding="utf-8").splitlines():
        code, _, behind = text.partition("#")
        comment = f"{comment} {behind}".strip() if text else ""
        if code.strip():
            type_, name = code.split("=")[0].split()
            found.append(Line(type_, name, comment))
            comment = ""
    return found


ALL_LINES = [
    pytest.param(line, id=f"{path.stem}.{line.name}")
    for path in sorted(MSG.glob("*.msg"))
    for line in lines(path)
]


@pytest.mark.parametrize("line", ALL_LINES)
def test_a_field_is_explained_with_its_unit_or_frame(line):
    assert line.comment, f"{line.name} has no comment"
    needed = NEEDED.get(line.type.removesuffix("[]") if "Waypoint" not in line.type else line.type)
    assert needed is None or needed.search(line.comment), (
        f"the comment of {line.name} does not match {needed.pattern}: {line.comment}"
    )


@pytest.mark.parametrize(
    ("message", "fields"),
    [(Waypoint, WAYPOINT), (DrivingPlan, DRIVING_PLAN), (PlannerStatus, PLANNER_STATUS)],
)
def test_the_built_message_has_the_fields_of_the_contract(message, fields):
    assert message.get_fields_and_field_types() == fields


def test_the_verdicts_are_the_numbers_of_the_contract():
    assert (DrivingPlan.ACCEPTED, DrivingPlan.REJECTED) == (0, 1)


def test_a_plan_survives_the_way_over_the_wire():
    plan = DrivingPlan(
        child_frame_id="base_link",
        ego_speed=-0.1,
        waypoints=[Waypoint(speed=0.5 * k) for k in range(64)],
        reasoning="Keep the lane: the road bends to the left, 30 m ahead.",
        verdict=DrivingPlan.REJECTED,
        reasons=["lateral: 7.31 m/s2 over 6 m/s2"],
        seed=2**64 - 1,
    )
    assert deserialize_message(serialize_message(plan), DrivingPlan) == plan
